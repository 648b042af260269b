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
