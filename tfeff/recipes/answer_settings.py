"""Settings of fine-tuning to answer questions from passages."""

from typing import Any, ClassVar

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import settings
from tfeff.recipes.tuning_settings import TuningSettings


@settings
class AnswerSettings(TuningSettings):
    """Fine-tunes a pretrained encoder to answer questions from passages.

    Every few steps the model is scored on the development set by the task's metrics,
    and the weights with the best one are kept. Long passages are read in windows; a
    `sequence_length` beyond the pretrained one extends the encoder. As BlockBERT's
    authors did on TriviaQA, which chooses by one half of the development set and
    scores the other:

        tfeff answer --config=blockbert_finetune_mrqa --task=TriviaQA \\
            --train=mrqa --dev=mrqa --pretrained=runs/blockbert --run_dir=runs/trivia

    Relative positions in place of a published BERT's, as Huang et al. do, on windows
    that may be longer than in pretraining:

        tfeff answer --config=huang_large_finetune_squad --run_dir=runs/huang \\
            --pretrained=presets/bert_large --train=squad --dev=squad \\
            --sequence_length=576

    A run that was stopped resumes at its first unfinished cell of the grid when it is
    started again. The run directory holds a folder for each cell, and of the best one
    `metrics.json`, `predictions.json` (of SQuAD 2.0 also `null_odds.json`), both in the
    layouts of submissions, `model.keras`, `preset/`: the same with the tokenizer,
    and `export/`: a SavedModel that takes questions and passages; with `predict_split`
    also `predictions/` with the same of that part, and its metrics where it has
    answers.
    """

    command = "answer"
    recipe = "answer"

    # No setting here: questions are not trained on a TPU.
    tpu: ClassVar[Any] = ""  # type: ignore[misc]

    run_dir: str = setting("Folder or URL of the run.", fixed=False)
    task: str = setting(
        "SQuAD1.1 or squad1, SQuAD2.0 or squad2, or a data set of MRQA.", "squad1"
    )
    train: str = setting(
        "File to train on, or the folder of the published ones.", by_content=True
    )
    dev: str = setting("File, or folder, to choose the best by.", by_content=True)
    dev_split: str | None = setting(
        "The part of dev to choose by, such as dev_half of MRQA; default: dev.", None
    )
    predict_split: str | None = setting(
        "A part to predict with the best model, all questions of it, such as test_half "
        "of MRQA, or any name that begins with test, of the file `test`; default: "
        "none.",
        None,
        fixed=False,
    )
    test: str | None = setting(
        "File, or folder, of `predict_split`; default: that of `dev`.",
        None,
        fixed=False,
    )
    skip_mismatched: bool = setting(
        "Leave questions whose answer does not stand at its offset out of train and "
        "dev, and of the scores there.",
        False,
    )
    train_examples: int | None = setting(
        "Train on the first N questions; default: on all.", None, minimum=1
    )
    dev_examples: int | None = setting(
        "Choose by the first N questions; default: by all.", None, minimum=1
    )
    sequence_length: int | None = setting(
        "Tokens in a window; none: as pretrained.", 384, minimum=4
    )
    stride: int = setting("Tokens from window to window.", 128, minimum=1)
    max_answer_tokens: int = setting("Most tokens of an answer.", 30, minimum=1)
    batch_sizes: tuple[int, ...] = setting(
        "Batch sizes to try, of windows, over all replicas.", (16,), minimum=1
    )
    epochs: tuple[int, ...] = setting(
        "Passes over the windows to try.", (2,), minimum=1
    )
    metric: str | None = setting(
        "The metric that selects the best model; default: the data set's first, f1.",
        None,
    )
    strategy: str = setting(
        "Where to train.", "default", choices=("default", "mirrored"), fixed=False
    )

    def num_steps(self, num_examples: int, in_step: int, epochs: float) -> int:
        """Like the base class, but in whole passes over the windows."""
        return self.steps or int(epochs) * -(-num_examples // in_step)
