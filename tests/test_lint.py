import ast
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_folder_of_runs_does_not_change_what_is_linted(tmp_path):
    shutil.copy(ROOT / "ruff.toml", tmp_path)
    shutil.copy(ROOT / "benchmarks" / "campaign.py", tmp_path)
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", tmp_path]
    for name in (None, "runs", "cache", "export", "site"):
        if name:  # As `make pretrain` leaves it.
            (tmp_path / name).mkdir()
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, f"{name}: {result.stdout}{result.stderr}"


def calls(*names):
    """Pairs of a file of tfeff and a call in it of a function, such as `ops.pad`."""
    for path in (ROOT / "tfeff").glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                yield path, node


def test_what_is_mapped_is_padded_with_zeros():
    """`tf.vectorized_map` ignores another constant; data sets do without it."""
    for path, call in calls("ops.pad", "keras.ops.pad", "tf.pad"):
        if "data" not in path.relative_to(ROOT).parts:
            keywords = {keyword.arg for keyword in call.keywords}
            assert len(call.args) <= 2, f"{path}:{call.lineno}"
            assert not keywords & {"mode", "constant_values"}, f"{path}:{call.lineno}"


def test_integers_have_32_bits():
    """Without a dtype they have 16 where Keras' own floats are float16."""
    for path, call in calls("ops.arange", "keras.ops.arange"):
        keywords = {keyword.arg for keyword in call.keywords}
        assert "dtype" in keywords, f"{path}:{call.lineno}"
