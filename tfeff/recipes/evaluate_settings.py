"""Settings of evaluating a pretraining run."""

from tfeff.recipes.corpus_settings import CORPUS_HELP, TEXT_FIELD_HELP
from tfeff.recipes.settings import Settings, setting, settings


@settings
class EvaluateSettings(Settings):
    """Evaluates a run of pretraining or stacking on any text.

    The text is tokenized and cut as the run's own, and made into examples of its
    objective, with a fixed seed; on the run's validation text that gives its own
    `metrics.json`. The metrics are printed as JSON:

        tfeff evaluate --run_dir=runs/shatter --corpus='news/*.txt'

    `loss` and the objective's own metrics, such as the accuracy of masked tokens or of
    the detector of replaced ones; `perplexity`, exp of the mean negative log likelihood
    of the tokens that are predicted; `tokens` in the text, and its `unigram_entropy`.
    Nothing in the run directory is changed; a run that is still going may be evaluated.
    """

    run_dir: str = setting("Folder of the run.", fixed=False)
    corpus: tuple[str, ...] = setting(CORPUS_HELP)
    text_field: str = setting(TEXT_FIELD_HELP, "text")
    max_characters: int = setting(
        "Where the docstrings corpus ends.", 10_000_000, minimum=1
    )
    step: int | None = setting(
        "The step of a checkpoint that the run keeps; default: the newest.",
        None,
        minimum=1,
    )
    pseudo_perplexity: bool = setting(
        "Whether to mask each token alone, too, of masked language models: as many "
        "passes as there are tokens.",
        False,
    )
    batch_size: int = setting("Sequences in a batch.", 16, minimum=1)
    seed: int = setting("Seed of what is masked.", 0)
    output: str | None = setting("A file for the metrics, too; default: none.", None)
