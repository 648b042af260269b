"""Models exported for token ids agree with Keras in SavedModels, LiteRT and ONNX."""

import importlib.util
import pathlib
import resource
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest
from scipy.special import erf

import tfeff
from tests.checks import assert_close
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tests.subjects.formats import (
    ENDINGS,
    LENGTHS,
    check_own_operators,
    check_same,
    exported,
    interpreter,
    named_outputs,
    operators,
    randomized,
    run,
    runner,
    specs,
)
from tests.subjects.own_calls import Halved, Tripled
from tests.subjects.versions import needs_litert
from tfeff import layers, objectives, tasks
from tfeff.encoders import presets
from tfeff.export import export_model
from tfeff.formats.export_model import _EXPORTS

needs_onnx = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None,
    reason="onnxruntime is not installed (extra onnx)",
)
slow = pytest.mark.slow
NEEDS = {"onnx": needs_onnx, "litert": needs_litert}
FORMATS = [pytest.param(x, marks=NEEDS.get(x, ())) for x in ENDINGS]


def make_encoder(preset="shatter_base", **kwargs):
    return tiny(preset, num_layers=1, **kwargs)


MODELS = {
    "masked_lm": lambda: objectives.MaskedLM(make_encoder()),
    "sentence_pair": lambda: objectives.SentencePairPrediction(
        make_encoder("albert_base", num_segments=3)
    ),
    "replaced_token": lambda: objectives.ReplacedTokenDetection(
        make_encoder("bert_base"), make_encoder("convbert_base")
    ),
    "permutation_lm": lambda: objectives.PermutationLM(make_encoder("xlnet_base")),
    "classifier": lambda: tasks.Classifier(make_encoder(), 3),
    "layerwise": lambda: tasks.Classifier(make_encoder(), 3, pooling="layerwise"),
    "mean": lambda: tasks.Classifier(make_encoder(), 3, pooling="mean"),
    "segments": lambda: tasks.Regressor(make_encoder(), pooling="segments"),
    "regressor": lambda: tasks.Regressor(make_encoder("bert_rab_base")),
    "choice": lambda: tasks.MultipleChoice(make_encoder("blockbert_n2_base")),
    "sentences": lambda: tasks.SentenceEmbedding(make_encoder()),
    "spans": lambda: tasks.SpanQA(make_encoder("bert_base")),
    "tokens": lambda: tasks.TokenClassifier(make_encoder("sparsebert_base"), 3),
}


def cases():
    """Each model with each format; one is quick."""
    for kind in MODELS:
        for format in ENDINGS:
            marks = [NEEDS[format]] if format in NEEDS else []
            if (kind, format) != ("spans", "onnx"):
                marks.append(slow)
            yield pytest.param(kind, format, marks=marks)


def inputs_of(model, lengths):
    """A batch with what the model reads beside the encoder's inputs."""
    batch = batch_of(model.encoder, lengths, max(lengths))
    positions = np.array([[max(n - 1, 0), 0] for n in lengths], "int32")
    others = {
        "mask_positions": positions,
        "ranks": np.where(np.arange(max(lengths)) == positions[:, :1], 1, -1),
    }
    others["ranks"][:, 0] = 0
    batch |= {name: others[name].astype("int32") for name in others}
    if isinstance(model, tasks.MultipleChoice):
        batch = {name: np.stack([x, x[::-1]], axis=1) for name, x in batch.items()}
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("kind, format", cases())
def test_objectives_and_tasks(kind, format, tmp_path):
    model = randomized(MODELS[kind]())
    call = runner(exported(model, tmp_path, format))
    for lengths in LENGTHS:
        batch = inputs_of(model, lengths)
        if kind == "replaced_token":
            # Without a position to draw at, the discriminator reads the text as it is.
            batch["mask_positions"] *= 0
            expected = {"replaced": named_outputs(model, batch)["replaced"]}
            batch = {name: batch[name] for name in model.encoder.input}
        elif kind == "sentences":  # A text a row: there is nothing to group.
            batch = {name: batch[name] for name in model.input}
            alone = {name: x[:, None] for name, x in batch.items()}
            expected = {"embeddings": np.asarray(model(alone))[:, 0]}
        else:
            batch = {name: batch[name] for name in model.input}
            expected = named_outputs(model, batch)
        check_same(call(batch), expected)


@keras.saving.register_keras_serializable("formats")
class Longer(tasks.SentenceEmbedding):
    def call(self, *args, **kwargs):
        return super().call(*args, **kwargs) * 7


@keras.saving.register_keras_serializable("formats")
class Surer(objectives.ReplacedTokenDetection):
    def call(self, *args, **kwargs):
        outputs = super().call(*args, **kwargs)
        return {**outputs, "replaced": 5 * outputs["replaced"]}


def tripled():
    return Tripled.from_config(make_encoder("bert_base").get_config())


OWN_CALLS = {
    "encoder": tripled,
    "task": lambda: Halved(make_encoder(), 3),
    "sentences": lambda: tasks.SentenceEmbedding(tripled()),
    "replaced_token": lambda: objectives.ReplacedTokenDetection(
        make_encoder("bert_base"), tripled()
    ),
    "own_sentences": lambda: Longer(make_encoder()),
    "own_replaced_token": lambda: Surer(
        make_encoder("bert_base"), make_encoder("bert_base")
    ),
}


@pytest.mark.quick("encoder-tf_saved_model", "task-tf_saved_model")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", OWN_CALLS)
def test_a_call_of_ones_own_counts(kind, format, tmp_path):
    model = randomized(OWN_CALLS[kind]())
    if kind == "own_replaced_token" and format != "tf_saved_model":
        # Its own call draws tokens, for which these formats have no operators.
        with pytest.raises(ValueError, match="Received: Stateless.*/replacement"):
            exported(model, tmp_path, format)
        return
    encoder = getattr(model, "encoder", model)
    batch = batch_of(encoder, (7, 4), 7)
    expected = named_outputs(encoder, batch)
    if kind == "task":
        expected = named_outputs(model, batch)
    elif kind.endswith("sentences"):
        alone = {name: x[:, None] for name, x in batch.items()}
        expected = {"embeddings": np.asarray(model(alone))[:, 0]}
    elif kind.endswith("replaced_token"):
        whole = {**batch, "mask_positions": np.zeros((2, 1), "int32")}
        expected = {"replaced": named_outputs(model, whole)["replaced"]}
    check_same(runner(exported(model, tmp_path, format))(batch), expected, 1e-4)


@slow
@pytest.mark.parametrize("format", FORMATS)
def test_texts_of_one_segment_without_padding_need_no_more_than_ids(format, tmp_path):
    encoder = randomized(make_encoder("bert_base"))
    ids = keras.InputSpec(shape=(None, None), dtype="int32")
    path = exported(encoder, tmp_path, format, input_signature={"token_ids": ids})
    batch = batch_of(encoder, (5, 5), 5)
    batch["segment_ids"][:] = 0
    expected = named_outputs(encoder, batch)
    check_same(run(path, {"token_ids": batch["token_ids"]}), expected)


@needs_litert
@pytest.mark.slow
def test_litert_of_a_fixed_shape_and_of_any(tmp_path):
    encoder = randomized(make_encoder())
    batch = batch_of(encoder, (5,), 5)
    expected = named_outputs(encoder, batch)
    fixed = exported(
        encoder, tmp_path, "litert", input_signature=specs(encoder, (1, 5))
    )
    check_same(run(fixed, batch), expected)
    check_own_operators(fixed)
    # Masks and partitions of a known length are constants.
    sizes = {"SHAPE", "PACK", "RANGE", "LOG"}
    assert not operators(fixed) & sizes
    for details in interpreter(fixed).get_input_details():
        assert list(details["shape_signature"]) == [1, 5]

    free = exported(encoder, tmp_path, "litert")
    assert sizes <= operators(free)
    check_own_operators(free)
    reader = interpreter(free)
    for name in batch:
        (details,) = (x for x in reader.get_input_details() if name in x["name"])
        assert list(details["shape_signature"]) == [-1, -1]
        reader.resize_tensor_input(details["index"], (1, 5))
    reader.allocate_tensors()
    for name, x in batch.items():
        (details,) = (x for x in reader.get_input_details() if name in x["name"])
        reader.set_tensor(details["index"], x)
    reader.invoke()
    results = [reader.get_tensor(x["index"]) for x in reader.get_output_details()]
    last = np.asarray(expected["sequence_output"])
    assert min(np.abs(x - last).max() for x in results) <= 1e-5
    for lengths in LENGTHS:
        batch = batch_of(encoder, lengths, max(lengths))
        check_same(run(free, batch), named_outputs(encoder, batch))


@needs_litert
def test_gelu_is_the_exact_one_in_litert(tmp_path):
    """To 1e-6 everywhere, as one operator, which differs from that by tanh by 5e-4."""
    x = keras.Input((None,))
    path = str(tmp_path / "gelu.tflite")
    export_model(keras.Model(x, {"y": tfeff.ops.gelu(x)}), path, "litert", False)
    assert operators(path) == {"GELU"}
    powers = np.logspace(-30, 30, 100_001)
    values = np.concatenate([np.linspace(-12, 12, 2_000_001), powers, -powers])
    values = values.astype("float32")
    # The input of a model has its name, whatever Keras made it.
    (name,) = interpreter(path).get_signature_runner().get_input_details()
    (y,) = run(path, {name: values[None]}).values()
    exact = values * 0.5 * (1 + erf(values.astype("float64") / np.sqrt(2.0)))
    near = np.abs(values) <= 12
    assert np.abs(y[0] - exact)[near].max() <= 1e-6
    np.testing.assert_array_equal(y[0][~near], np.maximum(values[~near], 0.0))


ATTENTIONS = {
    "self": lambda **kw: layers.SelfAttention(4, **kw),
    "one_head": lambda **kw: layers.OneHeadAttention(4, **kw),
    "shared_values": lambda **kw: layers.OneHeadAttention(
        4, key_projection=True, values_by_part=False, alpha=-9.0, **kw
    ),
    "partitioned": lambda **kw: layers.PartitionedAttention(4, **kw),
    **{
        method: lambda method=method, **kw: layers.RelativeAttention(
            4,
            method,
            max_distance=None if method == "xlnet" else 5,
            **kw | ({"num_buckets": 8} if method == "bias" else {}),
        )
        for method in ("bias", "xlnet", "rpe", "shaw")
        + tuple(f"huang{n}" for n in (1, 2, 3, 4))
    },
    "blockwise": lambda **kw: layers.BlockwiseAttention(4, "2:1:1", **kw),
    "permuted": lambda **kw: layers.BlockwiseAttention(
        4, [(0, 2, 1), (0, 2, 1), (2, 1, 0), (1, 2, 0)], **kw
    ),
    "sparse": lambda **kw: layers.SparseAttention(4, stride=3, expressivity=1, **kw),
    "sparse_transformer": lambda **kw: layers.SparseAttention(
        4, stride=4, expressivity=2, pattern="sparse_transformer", **kw
    ),
    "lightweight": lambda **kw: layers.LightweightConv1D(4, 3),
    "dynamic": lambda **kw: layers.DynamicConv1D(4, 3),
    "span_dynamic": lambda **kw: layers.MixedAttention(4, 2, 3, **kw),
    "separable": lambda **kw: layers.MixedAttention(4, 2, 3, "separable", **kw),
}


def functional_model(kind, length=None, **kwargs):
    """A user's own model of one block."""
    hidden = keras.Input((length, 8), name="hidden")
    visible = keras.Input((length,), dtype="int32", name="visible")
    block = layers.EncoderBlock(ATTENTIONS[kind](**kwargs), layers.FeedForward(12))
    outputs = {"y": block(hidden, padding_mask=visible)}
    return randomized(keras.Model({"hidden": hidden, "visible": visible}, outputs))


def hidden_batch(lengths):
    shape = (len(lengths), max(lengths))
    rng = np.random.default_rng(0)
    return {
        "hidden": rng.normal(size=(*shape, 8)).astype("float32"),
        "visible": (np.arange(shape[1]) < np.array(lengths)[:, None]).astype("int32"),
    }


def cases_of_layers():
    """Each attention with LiteRT and ONNX; one is quick."""
    for kind in ATTENTIONS:
        for format in ("litert", "onnx"):
            marks = [NEEDS[format]]
            if (kind, format) != ("one_head", "onnx"):
                marks.append(slow)
            yield pytest.param(kind, format, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("kind, format", cases_of_layers())
def test_own_models_with_any_attention(kind, format, tmp_path):
    model = functional_model(kind)
    config = model.layers[-1].get_config()
    path = str(tmp_path / f"model{ENDINGS[format]}")
    export_model(model, path, format, verbose=False)
    assert model.layers[-1].get_config() == config
    if format == "litert":
        check_own_operators(path)
    call = runner(path)
    for lengths in LENGTHS:
        batch = hidden_batch(lengths)
        check_same(call(batch), model(batch))


_EMPTY = """
import sys, numpy as np, tensorflow as tf
runner = tf.lite.Interpreter(sys.argv[1]).get_signature_runner()
details = runner.get_input_details()
batch = {name: np.zeros((0, 9), details[name]["dtype"]) for name in details}
try:
    runner(**batch)
except RuntimeError as error:
    print(error)
"""


@needs_litert
@pytest.mark.slow
@pytest.mark.parametrize("preset", sorted(presets()))
def test_an_empty_batch_ends_no_process(preset, tmp_path):
    """LiteRT reads beyond the memory of some operators without elements."""
    path = exported(make_encoder(preset), tmp_path, "litert")
    found = subprocess.run([sys.executable, "-c", _EMPTY, path], capture_output=True)
    assert found.returncode == 0, found.stderr[-500:]


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_replaces_nothing(format, tmp_path):
    path = tmp_path / f"model{ENDINGS[format]}"
    path.mkdir()
    (path / "mine").write_text("mine")
    with pytest.raises(ValueError, match="`filepath` must not exist yet. Received"):
        make_encoder().export(path, format=format)
    assert [x.name for x in tmp_path.rglob("*")] == [path.name, "mine"]


def test_an_export_replaces_nothing_that_appears_meanwhile(tmp_path, monkeypatch):
    path = tmp_path / "model.tflite"

    def export(model, filepath, **_):
        pathlib.Path(filepath).write_text("ours")
        path.write_text("theirs")

    monkeypatch.setitem(_EXPORTS, "litert", export)
    with pytest.raises(ValueError, match="`filepath` must not exist yet. Received"):
        make_encoder().export(path, format="litert")
    assert path.read_text() == "theirs"


@pytest.mark.parametrize(
    "name, format, message",
    [
        ("model", "litert", "end in '.tflite', for format='litert'. Received"),
        ("file/model.tflite", "litert", "Received: filepath=.*: Not a directory"),
        ("file/model", "tf_saved_model", "Received: filepath=.*: Not a directory"),
        ("a\udcff.onnx", "onnx", "be UTF-8. Received: filepath="),
    ],
)
def test_paths_that_cannot_be_written_are_named(name, format, message, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=f"`filepath` must (.*)?{message}"):
        make_encoder().export(tmp_path / name, format=format)
    assert [x.name for x in tmp_path.iterdir()] == ["file"]


@pytest.mark.quick("tf_saved_model")
@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_names_the_path(format, tmp_path):
    path = tmp_path / f"model{ENDINGS[format]}"
    encoder = make_encoder()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        with pytest.raises(OSError, match=f"File too large.*, while writing {path}$"):
            encoder.export(path, format=format, verbose=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not list(tmp_path.iterdir())


@needs_litert
@slow
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_keras_own_export_with_any_attention(kind, tmp_path):
    """Without a function of ours, for LiteRT with a known length."""
    import tensorflow as tf

    model = functional_model(kind, length=7)
    builtin = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
    path = str(tmp_path / "model.tflite")
    model.export(path, format="litert", verbose=False, target_spec=builtin)
    check_own_operators(path)
    batch = hidden_batch((7, 4, 0))
    check_same(run(path, batch), model(batch))


@pytest.mark.parametrize(
    "format",
    [
        pytest.param("litert", marks=needs_litert),
        pytest.param("onnx", marks=[needs_onnx, slow]),
    ],
)
def test_an_operator_that_a_format_lacks_is_named_with_its_layer(format, tmp_path):
    hidden = keras.Input((None, 8))
    odd = keras.layers.Activation(keras.ops.erfinv, name="odd")
    outputs = odd(layers.FeedForward(12, name="inner")(hidden))
    model = keras.Model(hidden, outputs, name="mine")
    path = tmp_path / f"model{ENDINGS[format]}"
    with pytest.raises(ValueError, match="Received: Erfinv of mine/odd$") as caught:
        export_model(model, path, format, verbose=False)
    assert len(str(caught.value)) < 200
    assert not path.exists()


@needs_litert
def test_an_index_of_none_is_named(tmp_path):
    hidden = keras.Input((None, 8))
    model = keras.Model(hidden, keras.layers.Lambda(lambda x: x[..., None])(hidden))
    with pytest.raises(ValueError, match=r"StridedSlice of .*`ops.expand_dims` is no"):
        export_model(model, tmp_path / "model.tflite", "litert", verbose=False)


def policies(kind):
    """All layers in mixed precision, by one policy, by a map, or attentions alone."""
    if kind == "one":
        return "mixed_bfloat16"
    whole = "mixed_bfloat16" if kind == "map" else "float32"
    of_attentions = {".*attention.*": keras.DTypePolicy("mixed_bfloat16")}
    return keras.dtype_policies.DTypePolicyMap(
        whole, {} if kind == "map" else of_attentions
    )


@slow
@pytest.mark.parametrize("kind", ["one", "map", "attentions"])
@pytest.mark.parametrize("format", FORMATS[1:])
def test_mixed_precision_is_exported_in_float32(format, kind, tmp_path):
    mixed = make_encoder("bert_base", dtype=policies(kind))
    config = mixed.get_config()
    exact = randomized(make_encoder("bert_base"))
    mixed.set_weights(exact.get_weights())
    batch = batch_of(exact)
    before = mixed(batch)["sequence_output"]
    path = exported(mixed, tmp_path, format)
    check_same(run(path, batch), named_outputs(exact, batch))
    assert mixed.get_config() == config
    np.testing.assert_array_equal(mixed(batch)["sequence_output"], before)


def test_weights_in_double_precision_are_refused(tmp_path):
    encoder = make_encoder("bert_base", dtype="float64")
    with pytest.raises(ValueError, match="float32.* Received: float64 in .*embedding"):
        exported(encoder, tmp_path, "litert")
    assert not any(x.is_file() for x in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    "signature, message",
    [
        ("ids", "must be a dict of `keras.InputSpec` by name"),
        ({"tokens": (None, None)}, "must be a dict of `keras.InputSpec` by name"),
        ({"token_ids": (None,)}, "with as many dimensions"),
        ({"padding_mask": (None, None)}, "must have `token_ids`"),
    ],
)
def test_signatures_that_do_not_fit(signature, message, tmp_path):
    encoder = make_encoder("bert_base")
    if isinstance(signature, dict):
        signature = {
            name: keras.InputSpec(shape=shape, dtype="int32")
            for name, shape in signature.items()
        }
    with pytest.raises(ValueError, match=message):
        exported(encoder, tmp_path, "litert", input_signature=signature)


def test_what_onnx_needs_is_named(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *args: None if name == "tf2onnx" else find_spec(name, *args),
    )
    encoder = make_encoder("bert_base")
    with pytest.raises(ImportError, match=r"pip install 'tfeff\[onnx\]'"):
        exported(encoder, tmp_path, "onnx")


@needs_onnx
def test_onnx_runtime_knows_the_gelu(tmp_path):
    import onnx
    import onnxruntime

    x = keras.Input((None,))
    path, faster = str(tmp_path / "gelu.onnx"), str(tmp_path / "faster.onnx")
    export_model(keras.Model(x, {"y": tfeff.ops.gelu(x)}), path, "onnx", False)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = faster
    session = onnxruntime.InferenceSession(path, options)
    assert [node.op_type for node in onnx.load(faster).graph.node] == ["Gelu"]
    values = np.linspace(-12, 12, 100_001).astype("float32")
    (y,) = session.run(None, {session.get_inputs()[0].name: values[None]})
    exact = values * 0.5 * (1 + erf(values.astype("float64") / np.sqrt(2.0)))
    assert np.abs(y[0] - exact).max() <= 2e-6


@needs_onnx
def test_operators_that_are_written_out_for_onnx(tmp_path):
    """`log1p` and `expm1` keep the digits of small numbers."""
    x = keras.Input((None,))
    outputs = {"log": keras.ops.log1p(x), "exp": keras.ops.expm1(x)}
    path = str(tmp_path / "functions.onnx")
    export_model(keras.Model(x, outputs), path, "onnx", False)
    values = np.concatenate([-np.logspace(-30, -0.1, 999), np.logspace(-30, 1.5, 999)])
    values = values.astype("float32")
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    feed = {session.get_inputs()[0].name: values[None]}
    log, exp = session.run(["log", "exp"], feed)
    np.testing.assert_allclose(log[0], np.log1p(values.astype("float64")), 1e-6)
    np.testing.assert_allclose(exp[0], np.expm1(values.astype("float64")), 2e-6)
    assert_close(exp[0][:1], values[:1], 1e-6)


@pytest.mark.slow
def test_quantized_layers_of_mixed_precision_are_exact_in_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    encoder = make_encoder("bert_tiny", dtype="mixed_bfloat16")
    encoder.quantize("int8")
    policies = [layer.dtype_policy.name for layer in encoder._flatten_layers()]
    export_model(encoder, tmp_path / "model.onnx", format="onnx", verbose=False)
    onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert policies == [layer.dtype_policy.name for layer in encoder._flatten_layers()]


@pytest.mark.parametrize("format", ["onnx", "litert"])
def test_float8_is_named(format, tmp_path):
    encoder = make_encoder("bert_tiny")
    encoder.quantize("float8")
    with pytest.raises(ValueError, match="`model` must not be quantized to float8"):
        export_model(encoder, tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


def test_a_signature_has_the_dtypes_of_the_inputs(tmp_path):
    encoder = tiny("bert_base", num_layers=1)
    ids = keras.InputSpec(shape=(None, None), dtype="int64")
    with pytest.raises(
        ValueError, match="`input_signature` must have the dtypes.*int32"
    ):
        encoder.export(str(tmp_path / "x"), input_signature={"token_ids": ids})
    assert not list(tmp_path.iterdir())
    ids = keras.InputSpec(shape=(None, None))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        encoder.export(
            str(tmp_path / "x"), input_signature={"token_ids": ids}, verbose=False
        )
