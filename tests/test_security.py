"""What SECURITY.md says: files that tfeff loads run no code and import no module."""

import ast
import json
import os
import shutil
import sys
import warnings
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks.pages import REPOSITORY
from tests.subjects.encoders import tiny
from tests.subjects.sentences import tokenizer

FOREIGN = {
    "module": "tfeff_foreign",
    "class_name": "Foreign",
    "registered_name": None,
    "config": {},
}
LAMBDA = keras.saving.serialize_keras_object(
    keras.layers.Lambda(lambda x: x, name="function")
)
# What would read a pickle, run text as code, or take Keras' protection away.
UNSAFE_NAMES = {
    *("pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"),
    *("eval", "exec", "enable_unsafe_deserialization", "trust_remote_code"),
    *("system", "popen", "Popen"),
}
UNSAFE_ARGUMENTS = {
    "allow_pickle": True,
    "safe_mode": False,
    "shell": True,
    "trust_remote_code": True,
}


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A module that can be imported, and leaves a file when it is."""
    folder, mark = tmp_path / "path", tmp_path / "mark"
    folder.mkdir()
    code = f"open({str(mark)!r}, 'w').close()\nclass Foreign:\n    pass\n"
    (folder / "tfeff_foreign.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    yield mark
    assert not mark.exists() and "tfeff_foreign" not in sys.modules


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A preset of a task, without digests, which whoever changes files changes too."""
    path = tmp_path_factory.mktemp("saved") / "preset"
    encoder = tiny(
        "convbert_small", vocabulary_size=60, feedforward={"activation": "relu"}
    )
    model = tfeff.tasks.Classifier(encoder, 2)
    model.compile()
    tfeff.tasks.save_pretrained(model, tokenizer(), path)
    os.remove(path / "SHA256SUMS")
    return path


def changed(saved, folder, file, *keys, to):
    """A copy of the preset, one value of whose JSON file is another one."""
    shutil.copytree(saved, folder)
    path = folder / file
    content = json.loads(path.read_text())
    if not keys:
        content = to
    else:
        place = content
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
    path.write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("value", [FOREIGN, LAMBDA], ids=["class", "lambda"])
@pytest.mark.parametrize(
    ("file", "keys"),
    [
        ("config.json", ()),
        ("config.json", ("config", "dtype")),
        ("config.json", ("config", "attention")),
        ("config.json", ("config", "attention", "kernel_initializer")),
        ("config.json", ("config", "feedforward")),
        ("config.json", ("config", "feedforward", "activation")),
        ("config.json", ("config", "tables_of")),
        ("tokenizer.json", ()),
        ("tokenizer.json", ("config", "dtype")),
        ("task.json", ()),
        ("task.json", ("config", "pooler_activation")),
        ("task.json", ("config", "dtype")),
    ],
    ids=lambda x: ".".join(x) if isinstance(x, tuple) else x,
)
def test_a_preset_cannot_name_code(
    file, keys, value, saved, tmp_path, foreign, monkeypatch
):
    loaded = []
    # What makes a function of the code in a file.
    monkeypatch.setattr(
        keras.src.utils.python_utils, "func_load", lambda *x, **y: loaded.append(x)
    )
    path = changed(saved, tmp_path / "preset", file, *keys, to=value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError)):
            tfeff.tasks.load_task(path)
    assert not loaded


def test_a_preset_that_is_not_changed_loads(saved):
    with pytest.warns(UserWarning, match="has no SHA256SUMS"):
        model, _ = tfeff.tasks.load_task(saved)
    assert isinstance(model, tfeff.tasks.Classifier)


def test_a_model_file_with_a_function_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "mark"
    inputs = keras.Input((3,))
    layer = keras.layers.Lambda(lambda x: Path("mark").touch() or x)
    model = keras.Model(inputs, layer(inputs))
    mark.unlink()
    tfeff.training.save_checkpoint(model, str(tmp_path / "model.keras"))
    with pytest.raises(ValueError, match="[Ll]ambda"):
        tfeff.training.load_checkpoint(str(tmp_path / "model.keras"))
    assert not mark.exists()


def test_a_model_file_cannot_name_a_module(tmp_path, foreign):
    inputs = keras.Input((3, 4))
    model = keras.Model(inputs, tfeff.layers.SelfAttention(2)(inputs))
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as old:
        files = {name: old.read(name) for name in old.namelist()}
    config = json.loads(files["config.json"])
    config["config"]["layers"][1] |= FOREIGN
    files["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(tmp_path / "other.keras", "w") as new:
        for name, content in files.items():
            new.writestr(name, content)
    with pytest.raises(ValueError, match="cannot be loaded(.|\n)*Foreign"):
        tfeff.training.load_checkpoint(str(tmp_path / "other.keras"))


def test_a_model_file_cannot_name_a_saved_model(tmp_path):
    """A SavedModel's graph is a program, which may write files, too."""

    class Writes(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None, 3))])
        def serve(self, x):
            return x

    tf.saved_model.save(Writes(), str(tmp_path / "saved"), Writes().serve)
    inputs = keras.Input((3,))
    layer = keras.layers.TFSMLayer(str(tmp_path / "saved"), "serving_default")
    keras.Model(inputs, layer(inputs)).save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="cannot be loaded(.|\n)*TFSMLayer"):
        tfeff.training.load_checkpoint(str(tmp_path / "model.keras"))


class Payload:
    """An object whose pickle makes a folder when it is read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def test_heads_hold_no_pickles(saved, tmp_path):
    mark = str(tmp_path / "mark")
    path = tmp_path / "preset"
    shutil.copytree(saved, path)
    (head, *_) = path.glob("*.npz")
    with np.load(head) as file:
        arrays = dict(file)
    np.savez(head, **arrays | {"kernel": np.array([Payload(mark)], object)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="is damaged: .*allow_pickle=False"):
            tfeff.tasks.load_task(path)
    assert not os.path.exists(mark)


def test_pickled_checkpoints_are_not_read(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="These are pickles, which can run any code"):
        tfeff.convert.load(tmp_path)


def test_documentation_is_read_without_importing_it(tmp_path, monkeypatch):
    mark = tmp_path / "mark"
    code = f'"""A module\'s documentation."""\nopen({str(mark)!r}, "w").close()\n'
    (tmp_path / "documented.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    assert list(tfeff.data.docstrings(["documented"])) == ["A module's documentation."]
    assert not mark.exists()


def test_the_package_has_no_unsafe_call():
    """Nor does it load a SavedModel, whose graph is a program."""
    for path in sorted(REPOSITORY.glob("tfeff/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name.split(".")[0] for alias in node.names}
                names.add((getattr(node, "module", None) or "").split(".")[0])
                assert not names & UNSAFE_NAMES, where
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called.split(".")[-1] not in UNSAFE_NAMES, where
                assert not called.endswith("saved_model.load"), where
                for argument in node.keywords:
                    value = getattr(argument.value, "value", None)
                    unsafe = UNSAFE_ARGUMENTS.get(argument.arg, ...)
                    assert value is not unsafe, where


def test_the_page_names_this_file_and_files_that_exist():
    text = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
    assert "tests/test_security.py" in text
    for part in text.split("`"):
        if part.startswith(("tests/", "tfeff/")):
            assert Path(REPOSITORY / part).exists(), part
