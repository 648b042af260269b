"""The machine, versions and command of a result."""

import functools
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys


def description() -> str:
    """Markdown lines with the processor, cores, memory, versions and command."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"- machine: {processor()}, {memory:.0f} GiB\n"
        f"- versions: {versions('tensorflow', 'keras', 'keras-hub', 'numpy')}\n"
        f"- command: `{command()}`\n"
    )


def versions(*packages: str) -> str:
    """Python's version, and those of packages."""
    found = (f"{name} {importlib.metadata.version(name)}" for name in packages)
    return ", ".join((f"Python {platform.python_version()}", *found))


def installed(*packages: str) -> str:
    """The versions of packages, of which some may be missing."""
    found = []
    for name in packages:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} missing")
    return ", ".join(found)


@functools.cache
def commit() -> str:
    """The commit of the code, with a mark where files but results differ from it."""

    def git(*words: str) -> subprocess.CompletedProcess:
        words = ("git", "-C", os.path.dirname(__file__), *words)
        return subprocess.run(words, capture_output=True, text=True)

    found = git("rev-parse", "--short=12", "HEAD").stdout.strip()
    if not found:
        return "unknown"
    places = (":/", ":(top,exclude)benchmarks/results")
    is_changed = git("diff", "--quiet", "HEAD", "--", *places).returncode
    return f"{found}-dirty" if is_changed else found


def command() -> str:
    """The command that runs the program."""
    return shlex.join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]])


def processor() -> str:
    """The processor, the widest of its instructions that matter, and its cores."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read()
    except OSError:
        text = ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    name = model[1] if model else platform.processor() or platform.machine()
    flags = set(text.split())
    known = {"amx_bf16": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}
    widest = next((f" with {known[flag]}" for flag in known if flag in flags), "")
    return f"{name}{widest}, {os.cpu_count()} cores"
