"""Keras and KerasHub load what tfeff saved after `import tfeff`, in either order."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import tfeff
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tests.subjects.sentences import tokenizer
from tfeff.utils.registration import CLASSES, AfterImports

PACKAGE = Path(tfeff.__file__).parent
SLOW = pytest.mark.slow


def test_the_table_has_every_registered_class():
    found = {}
    for path in sorted(PACKAGE.glob("**/*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # A function comes with the class whose configuration names it.
            if isinstance(node, ast.ClassDef) and any(
                "register_keras_serializable" in ast.unparse(decorator)
                for decorator in node.decorator_list
            ):
                found.setdefault(module, []).append(node.name)
    assert {module: sorted(names) for module, names in CLASSES.items()} == {
        module: sorted(names) for module, names in found.items()
    }


def run(code: str) -> list[str]:
    """The lines that a program prints in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A preset, files of Keras, and the logits of one of them."""
    folder = tmp_path_factory.mktemp("saved")
    encoder = tiny("shatter_base", vocabulary_size=60, num_segments=2)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), folder / "preset")
    model = tfeff.tasks.Regressor(encoder, pooling="layerwise")
    model.compile()
    model.save(folder / "model.keras")
    batch = batch_of(encoder)
    layer = tfeff.layers.SelfAttention(2)
    inputs = keras.Input((3, 4))
    keras.Model(inputs, layer(inputs)).save(folder / "layer.keras")
    np.savez(folder / "batch.npz", **batch, scores=np.asarray(model(batch)))
    return folder


LOAD = """
import sys, numpy as np
{imports}
assert "tfeff.tasks" not in sys.modules
import keras
folder = {folder!r}
print(type(keras.models.load_model(folder + "/layer.keras").layers[-1]).__module__)
print("keras_hub" in sys.modules)
model = keras.models.load_model(folder + "/model.keras")
with np.load(folder + "/batch.npz") as file:
    batch = dict(file)
expected = batch.pop("scores")
np.testing.assert_allclose(model(batch), expected, atol=1e-6)
import keras_hub
print(type(keras_hub.models.Backbone.from_preset(folder + "/preset")).__name__)
print(type(keras_hub.models.Tokenizer.from_preset(folder + "/preset")).__name__)
classifier = keras_hub.models.TextClassifier.from_preset(
    folder + "/preset", num_classes=2
)
print(type(classifier).__name__, classifier.preprocessor.sequence_length)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "import tfeff, keras",
        *[
            pytest.param(imports, marks=SLOW)
            for imports in (
                "import keras, tfeff",
                "import tfeff, keras_hub",
                "import keras_hub, tfeff",
                "import tfeff.layers",
            )
        ],
    ],
)
def test_either_order(imports, saved):
    code = LOAD.format(imports=imports, folder=str(saved))
    assert run(code) == [
        "tfeff.layers.self_attention",
        str("keras_hub" in imports),
        "Encoder",
        "AlbertTokenizer",
        "EncoderTextClassifier 16",
    ]


EACH_FIRST = """
import json, os, sys
import tensorflow, tensorflow_text, keras
failed = []
for name in json.loads({names!r}):
    process = os.fork()
    if process == 0:
        code = 1
        try:
            __import__(name)
            import keras_hub
            for module in ("tfeff.encoders", "tfeff.data.text.bert_tokenizer"):
                assert module in sys.modules, module
            real = keras.saving.get_registered_object("tfeff>Encoder")
            assert issubclass(real, keras_hub.models.Backbone)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(process, 0)[1]:
        failed.append(name)
print(failed)
"""


@SLOW
def test_each_module_can_be_the_first():
    """KerasHub's import, within that of a module, imports others of tfeff."""
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in sorted(PACKAGE.glob("**/*.py"))
        if path.stem not in ("__init__", "__main__")
        and "keras_hub" in path.read_text(encoding="utf-8")
    ]
    assert len(names) > 20
    assert run(EACH_FIRST.format(names=json.dumps(names))) == ["[]"]


def test_classes_take_the_place_of_their_stand_ins():
    regressor, encoder = tfeff.tasks.Regressor, tfeff.encoders.Encoder
    objects = keras.saving.get_custom_objects()
    assert objects["tfeff>Regressor"] is regressor
    assert objects["tfeff>Encoder"] is encoder


def test_after_each_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    (tmp_path / "tfeff_one.py").write_text("seen = []")
    (tmp_path / "tfeff_two.py").write_text("raise ValueError('broken')")
    called = []
    AfterImports(
        {
            "json": lambda: called.append("json"),
            "tfeff_one": lambda: called.append(sys.modules["tfeff_one"].seen),
            "tfeff_two": lambda: called.append("two"),
            "tfeff_none": lambda: called.append("none"),
        }
    )
    assert called == ["json"]  # It is imported already.
    import tfeff_one

    assert called == ["json", tfeff_one.seen]
    with pytest.raises(ValueError, match="broken"):
        __import__("tfeff_two")
    (tmp_path / "tfeff_two.py").write_text("whole_at_last = True")
    __import__("tfeff_two")
    assert called[2:] == ["two"]
    with pytest.raises(ModuleNotFoundError):
        __import__("tfeff_none")
    assert tfeff_one.__loader__.get_source("tfeff_one") == "seen = []"
    for name in ("tfeff_one", "tfeff_two"):
        monkeypatch.delitem(sys.modules, name)
