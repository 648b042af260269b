"""Settings of caches that are built before a training."""

from tfeff.recipes.corpus_settings import CorpusSettings
from tfeff.recipes.fields import setting
from tfeff.recipes.settings import settings


@settings
class CacheSettings(CorpusSettings):
    """Tokenizes a corpus once, for any number of runs of `tfeff pretrain`.

    The folder then has the tokenizer, and a cache of the text to train on and of that
    to validate by:

        tfeff cache --cache_dir=caches/english --corpus='corpus/*.jsonl' \\
            --sequence_length=512
        tfeff pretrain --run_dir=runs/first --cache_dir=caches/english \\
            --sequence_length=512

    With a runner, workers of Apache Beam do the work and write the same bytes. The
    runner's own flags stand behind `--`:

        tfeff cache --cache_dir=/shared/english --corpus='/shared/corpus/*.jsonl' \\
            --sequence_length=512 --tokenizer_sample=1000000000 \\
            --runner=FlinkRunner -- --flink_master=flink:8081 --parallelism=100

    Started again with the same settings, it goes on with the caches that are not
    complete.
    """

    command = "cache"

    cache_dir: str = setting("Folder to write, or a URL.", fixed=False)
    tokenizer_sample: int | None = setting(
        "Bytes of text that the tokenizer is trained on, in documents drawn by a hash; "
        "by default all.",
        None,
        minimum=1,
    )
    runner: str | None = setting(
        "A runner of Apache Beam, such as DirectRunner, PrismRunner, DataflowRunner, "
        "FlinkRunner or SparkRunner; by default threads of this process.",
        None,
        fixed=False,
    )
    beam_flags: tuple[str, ...] = setting(
        "The runner's flags, as Beam has them.", (), fixed=False, behind_dashes=True
    )
