"""Settings of evaluating a pretrained model on text."""

from tfeff.recipes.corpus_settings import CORPUS_HELP, TEXT_FIELD_HELP
from tfeff.recipes.fields import setting
from tfeff.recipes.settings import Settings, settings
from tfeff.utils.checks import MAX_SEED


@settings
class EvaluateSettings(Settings):
    """Evaluates a run of pretraining or stacking, or a preset, on any text.

    The text is tokenized and cut as the run's own, and made into examples of its
    objective, with a fixed seed; on the run's validation text, in batches of the run's
    size, that gives its own `metrics.json`. The metrics are printed as JSON:

        tfeff evaluate --run_dir=runs/shatter --corpus='news/*.txt'

    A preset that keeps its head of masked or of permutation language modelling, as
    `tfeff convert` writes it of published checkpoints, has the settings of that
    objective's paper:

        tfeff evaluate --pretrained=presets/bert --corpus='news/*.txt' \\
            --sequence_length=128 --pseudo_perplexity

    The metrics are `loss` and the objective's own, such as the accuracy of masked
    tokens or of the detector of replaced ones; `perplexity`, exp of the mean negative
    log likelihood of the tokens that are predicted; `tokens` and `words` in the text;
    and `unigram_entropy`, the loss of predicting each token by how frequent it is in
    this text, with its `unigram_perplexity`: a model that is no better than these has
    learnt nothing of the order of words. With `pseudo_perplexity` also
    `pseudo_perplexity_per_word`, which models of other tokenizers share. Nothing in the
    run directory is changed; a run that is still going may be evaluated.
    """

    run_dir: str | None = setting(
        "Folder or URL of a run, in place of pretrained.", None, fixed=False
    )
    pretrained: str | None = setting(
        "A preset that keeps its head, in place of a run.", None
    )
    sequence_length: int | None = setting(
        "Tokens in a sequence with pretrained; default: the encoder's longest.",
        None,
        minimum=3,
    )
    corpus: tuple[str, ...] = setting(CORPUS_HELP)
    text_field: str = setting(TEXT_FIELD_HELP, "text")
    max_characters: int = setting(
        "Most characters of the docstrings corpus.", 10_000_000, minimum=1
    )
    step: int | None = setting(
        "The step of a checkpoint that the run keeps; default: the newest.",
        None,
        minimum=1,
    )
    pseudo_perplexity: bool = setting(
        "Whether to predict each token from all others, too: as many passes as there "
        "are tokens.",
        False,
    )
    batch_size: int = setting("Sequences in a batch.", 16, minimum=1)
    seed: int = setting("Seed of what is masked.", 0, minimum=0, maximum=MAX_SEED)
    output: str | None = setting(
        "A file for the metrics, too, replaced if there is one; default: none.", None
    )
