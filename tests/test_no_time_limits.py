"""No test fails because the machine is slow."""

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
# Shorter than this, waiting for a process is a limit that a busy machine exceeds.
SHORTEST = 600
# An assertion about one of these is an assertion about the machine.
CLOCKS = {"time", "perf_counter", "monotonic", "process_time", "thread_time"}


def time_limits(source: str) -> list[str]:
    """The places in a test's source where time decides, as `line: code`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword):
            limit = node.value.value if isinstance(node.value, ast.Constant) else None
            if node.arg == "deadline" and limit is not None:
                found.append(node.value)
            if node.arg == "timeout" and limit is not None and limit < SHORTEST:
                found.append(node.value)
        if isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                name = part.func if isinstance(part, ast.Call) else None
                if isinstance(name, ast.Attribute) and name.attr in CLOCKS:
                    found.append(part)
    return [f"{node.lineno}: {ast.unparse(node)}" for node in found]


@pytest.mark.parametrize(
    "source, limits",
    [
        ("@settings(deadline=200)\ndef test(): pass", ["1: 200"]),
        ("@settings(deadline=None)\ndef test(): pass", []),
        ("process.wait(timeout=30)", ["1: 30"]),
        ("process.wait(timeout=600)\nprocess.wait()", []),
        ("assert time.monotonic() - start < 3", ["1: time.monotonic()"]),
        ("while time.monotonic() < end: pass", []),
    ],
)
def test_time_limits_are_found(source, limits):
    assert time_limits(source) == limits


def test_no_test_has_a_time_limit():
    found = {
        str(path.relative_to(TESTS)): limits
        for path in sorted(TESTS.glob("**/*.py"))
        if (limits := time_limits(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_hypothesis_has_no_time_limit():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
