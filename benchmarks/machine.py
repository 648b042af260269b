"""The machine, versions, command and commit of a result."""

import contextlib
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys

# Those whose version decides what is measured, where they are installed.
MEASURED = ("tensorflow", "keras", "keras-hub", "numpy", "tf-models-official")
MEASURED += ("tf-keras", "jax", "libtpu", "torch", "transformers", "onnxruntime")
MEASURED += ("onnx", "tf2onnx", "ai-edge-litert")


def origin() -> dict[str, str]:
    """The machine, versions, command and commit of what is measured now."""
    now = commit()
    return {
        "machine": processor(),
        "versions": versions(*MEASURED),
        "command": command(),
        "commit": COMMIT if now == COMMIT else f"{COMMIT} to {now}",
    }


def description() -> str:
    """Markdown lines with the machine, versions, command and commit."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    found = origin()
    return (
        f"- machine: {found['machine']}, {memory:.0f} GiB\n"
        f"- versions: {found['versions']}\n"
        f"- command: `{found['command']}`\n"
        f"- commit: {found['commit']}\n"
    )


def versions(*packages: str) -> str:
    """Python's version, and those of the packages that are installed."""
    found = [f"Python {platform.python_version()}"]
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)


def commit() -> str:
    """The commit of the code, with a mark where files but results differ from it.

    Where there is no git, the environment variable `TFEFF_COMMIT` names it.
    """

    def git(*words: str) -> subprocess.CompletedProcess:
        words = ("git", "-C", os.path.dirname(__file__), *words)
        return subprocess.run(words, capture_output=True, text=True)

    found = git("rev-parse", "--short=12", "HEAD").stdout.strip()
    if not found:
        return os.environ.get("TFEFF_COMMIT", "unknown")
    places = (":/", ":(top,exclude)benchmarks/results")
    is_changed = git("diff", "--quiet", "HEAD", "--", *places).returncode
    return f"{found}-dirty" if is_changed else found


def command() -> str:
    """The command that runs the program, without the folder of its results."""
    words = [word for word in sys.argv[1:] if not word.startswith("--results=")]
    return shlex.join(["python", os.path.relpath(sys.argv[0]), *words])


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


COMMIT = commit()  # Of the code as the program begins.
