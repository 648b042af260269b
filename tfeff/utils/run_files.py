"""Names of files and folders of a run, which several packages read."""

CONFIG = "config.json"
METRICS_FILE = "metrics.json"
CHECKPOINTS = "checkpoints"


def checkpoint_name(step: int) -> str:
    """The file name of the checkpoint after `step` steps."""
    return f"step-{step:08d}.keras"
