"""What a result was measured with: machine, versions, command."""

import importlib.metadata
import os
import platform
import shlex
import sys


def description() -> str:
    """Markdown lines with the processor, cores, memory, versions and command."""
    packages = ("tensorflow", "keras", "keras-hub", "numpy")
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in packages
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    command = shlex.join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]])
    return (
        f"- machine: {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB\n"
        f"- versions: Python {platform.python_version()}, {versions}\n"
        f"- command: `{command}`\n"
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(
                line.split(":", 1)[1].strip()
                for line in lines
                if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
