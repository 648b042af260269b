"""The loggers of other libraries, of which lesser messages are left out for a while."""

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quieter(name: str, level: int) -> Iterator[None]:
    """Context in which a logger leaves out messages below a level.

    Args:
        name: of the logger, such as `"tensorflow"`, whose own level is `INFO` in an
            interactive Python.
        level: such as `logging.WARNING`; a higher one of the logger's own stays.
    """
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(max(level, before))
    try:
        yield
    finally:
        logger.setLevel(before)
