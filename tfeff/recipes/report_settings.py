"""Settings of the table of finished runs."""

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import Settings, settings


@settings
class ReportSettings(Settings):
    """Prints the papers' tables of runs of `tfeff finetune` and `tfeff answer`.

    The table has a row for each encoder, by its `pretrained`, and a column for each
    task, in percent:

        tfeff report --runs='runs/glue-*'

    For GLUE, BoolQ, MultiRC, RACE, labelled words and data sets of your own, it shows
    the metric that the run chose by, on the development set (for MNLI, on both sets),
    and the average over GLUE's eight tasks where all are there. For questions it shows
    exact match and F1: those of `predict_split`, such as test_half of MRQA, where the
    run has them, and of the development set otherwise. On the development set these are
    means over the seeds, on another part the best model's. Below stand the baselines,
    which read no text: the commonest class or answer of the training part, the mean
    rating, each word's commonest label.

    Of several runs of a task that fine-tune one encoder, the best counts; a last table
    has each of them, by its folder, the best first. Whatever else a glob matches, such
    as runs of pretraining, is left out, and a line says so. Nothing is changed.
    """

    runs: tuple[str, ...] = setting("Folders of finished runs, and globs.")
    output: str | None = setting(
        "A file for the tables, too, replaced if there is one; default: none.", None
    )
