"""Digests of an export: every damaged file is found and named."""

import random
import shutil
import subprocess

import pytest

import tfeff
from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder

SMALL, SAMPLE = 2_000, 300


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "1"
    tfeff.export.save_for_serving(make_encoder(), tokenizer(), path)
    return path


def files(export):
    return [path for path in sorted(export.rglob("*")) if path.is_file()]


def sha256sum(export):
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    return subprocess.run(command, cwd=export, capture_output=True, text=True)


def test_every_file_has_a_digest(export):
    names = {str(path.relative_to(export)) for path in files(export)}
    listed = (export / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in listed} == names - {"SHA256SUMS"}
    assert {"saved_model.pb", "variables/variables.index"} < names
    tfeff.export.check_export(export)
    assert sha256sum(export).returncode == 0


def test_a_file_without_a_digest_is_named(export):
    serving = export / "assets.extra" / "tf_serving_warmup_requests"
    serving.parent.mkdir()
    serving.write_bytes(b"1")
    tfeff.export.check_export(export)
    shutil.rmtree(serving.parent)
    path = export / "SHA256SUMS"
    whole = path.read_text()
    path.write_text(whole[: whole.index("\n") + 1])
    with pytest.raises(ValueError, match="must have all files .*saved_model.pb"):
        tfeff.export.check_export(export)
    path.write_text(whole)


@pytest.mark.slow
def test_every_flipped_byte_is_found_and_named(export):
    """All bytes of files up to 2,000, 300 of each larger one; one bit at a time."""
    source, flips = random.Random(0), 0
    for path in files(export):
        name = str(path.relative_to(export))
        content = path.read_bytes()
        places = range(len(content))
        if len(content) > SMALL:
            places = [0, len(content) - 1, *source.sample(places, SAMPLE - 2)]
        for place in places:
            damaged = bytearray(content)
            damaged[place] ^= 1 << source.randrange(8)
            path.write_bytes(damaged)
            with pytest.raises(ValueError) as caught:
                tfeff.export.check_export(export)
            assert name in str(caught.value)
            flips += 1
        if name != "SHA256SUMS":
            # One of them by the command that a server without tfeff has.
            result = sha256sum(export)
            assert result.returncode and f"{name}: FAILED" in result.stdout
        path.write_bytes(content)
    tfeff.export.check_export(export)
    assert flips > 1_500, flips


def test_missing_files_are_named(export):
    path = export / "variables" / "variables.index"
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(ValueError, match="variables/variables.index"):
        tfeff.export.check_export(export)
    path.write_bytes(content)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`path` must be a folder with a file"):
        tfeff.export.check_export(tmp_path)
    with pytest.raises(TypeError, match="`path` must be a path"):
        tfeff.export.check_export(7)
