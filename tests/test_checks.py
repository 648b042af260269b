"""What a check gives back is used: it is an `int` where NumPy's integer came."""

import ast
from pathlib import Path

import tfeff

PACKAGE = Path(tfeff.__file__).parent
CONVERTING = {"check_integer", "check_seed", "check_rate", "check_positive"}


def dropped(source: str) -> list[str]:
    """Calls of converting checks of a local variable whose result is dropped."""
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", None) in CONVERTING
        and any(
            isinstance(argument, ast.Name)
            and argument.id in ("seed", getattr(node.value.args[0], "value", None))
            for argument in node.value.args
        )
    ]


def test_dropped_results_are_found():
    assert dropped('check_integer("n", n)') == ["1: check_integer('n', n)"]
    assert dropped("check_seed(seed)") == ["1: check_seed(seed)"]
    assert not dropped('n = check_integer("n", n)')
    assert not dropped('check_integer("sizes", size)')


def test_results_of_checks_are_used():
    others = {"convert", "export"}  # Their numbers go no further than the function.
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in sorted(PACKAGE.glob("**/*.py"))
        if path.parent.name not in others
        if (lines := dropped(path.read_text(encoding="utf-8")))
    }
    assert not found
