"""Settings of the table of finished runs."""

from tfeff.recipes.settings import Settings, setting, settings


@settings
class ReportSettings(Settings):
    """Prints the papers' tables of runs of `tfeff finetune` and `tfeff answer`.

    A row for each encoder, by its `pretrained`, and a column for each task, in percent:

        tfeff report --runs='runs/glue-*'

    Of GLUE, BoolQ, MultiRC, RACE, labelled words and data sets of one's own it is the
    metric that the run chose by, on the development set (of MNLI on both parts), and
    the average over GLUE's eight tasks where all are there. Of questions it is exact
    match and F1: those of `predict_split`, such as test_half of MRQA, where the run has
    them, and of the development set otherwise. Below stand the baselines, which read no
    text: the commonest class or answer of the training part, the mean rating, each
    word's commonest label.

    Of several runs of a task that fine-tune one encoder, the best counts; a last table
    has each of them, by its folder, the best first. What a glob matches beside such
    runs, as those of pretraining, is left out, and told. Nothing is changed.
    """

    runs: tuple[str, ...] = setting("Folders of finished runs, and globs.")
    output: str | None = setting("A file for the tables, too; default: none.", None)
