"""What plain Keras does without the workarounds of `tfeff.compat` and its classes.

Each test here wants of Keras what tfeff does itself. As long as Keras does not, it
fails as expected; once it passes, the run fails (`strict`), and the workaround that it
names may go.
"""

import ast
import collections
import contextlib
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.versions import needs_word_steps
from tfeff.compat import layers, models, optimizers, tokenizers
from tfeff.training.coordination import coordination_service

wants = pytest.mark.xfail(
    strict=True, raises=(AssertionError, tf.errors.InvalidArgumentError)
)
TWO = ["CPU:0", "CPU:1"]


def dense(units=1):
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)])


def compiled(make_optimizer, devices=TWO, **settings):
    reduction = tf.distribute.ReductionToOneDevice()
    with tf.distribute.MirroredStrategy(devices, reduction).scope():
        model = dense()
        model.compile(make_optimizer(), "mse", jit_compile=False, **settings)
    return model


SEVERAL_STEPS = """
import keras, numpy as np, tensorflow as tf
cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False, steps_per_execution=2)
model.fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=2, verbose=0)
"""


@pytest.mark.slow
@pytest.mark.xfail(strict=True, raises=AssertionError)
def test_several_steps_an_execution_run_on_several_replicas():
    """`DistributedModel`'s loop; keras-team/keras#19246."""
    # In a process of its own: collective operations that fail end all later ones.
    result = subprocess.run(
        [sys.executable, "-c", SEVERAL_STEPS], capture_output=True, text=True
    )
    assert "You must feed a value" not in result.stderr
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])


@pytest.mark.parametrize("devices", [TWO[:1], pytest.param(TWO, marks=wants)])
def test_the_gradient_of_the_whole_batch_is_clipped(devices):
    """`OpenAdamW.clip` and `sum_over_replicas`. On one replica it is."""
    model = compiled(
        lambda: keras.optimizers.SGD(1.0, global_clipnorm=1.0), devices=devices
    )
    dense = model.layers[0]
    dense.kernel.assign(np.zeros((2, 1)))
    dense.bias.trainable = False
    # The gradients of the two examples are large and of opposite signs.
    x = np.array([[1.0, 0.0], [3.0, 0.0]], "float32")
    y = np.array([[3.0], [-1.1]], "float32")
    model.fit(x, y, batch_size=2, verbose=0)
    gradient = np.mean(-2 * x[:, :1] * y)
    assert abs(gradient) < 1
    np.testing.assert_allclose(dense.kernel.numpy()[0], -gradient, rtol=1e-4)


@wants
def test_a_saved_model_goes_on_with_the_dropout_that_it_would_have_had(tmp_path):
    """`DistributedModel.save_own_variables`."""
    model = keras.Sequential([keras.Input((50,)), keras.layers.Dropout(0.5, seed=1)])
    ones = np.ones((1, 50))
    model(ones, training=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    expected = np.asarray(model(ones, training=True))
    np.testing.assert_array_equal(np.asarray(again(ones, training=True)), expected)


@wants
def test_inputs_by_name_are_found_by_name():
    """`exact_inputs` of `tfeff.ops.ids`."""
    inputs = {"a": keras.Input((1,), name="a"), "c": keras.Input((1,), name="c")}
    model = keras.Model(inputs, inputs["a"] - 2 * inputs["c"])
    ones = np.ones((1, 1), "float32")
    given = {"a": ones, "b": 5 * ones, "c": ones}
    np.testing.assert_allclose(np.asarray(model(given)), -ones)


@wants
def test_layers_serialize_an_object_that_they_share_once():
    """`shared_config`."""
    table = keras.layers.Dense(2)
    first, second = (keras.layers.serialize(table) for _ in range(2))
    made = [keras.layers.deserialize(config) for config in (first, second)]
    assert "shared_object_id" in first or made[0] is made[1]


@wants
def test_a_layer_that_another_refers_to_is_part_of_it():
    """`SavedReference`."""
    layer, other = keras.layers.Dense(2), keras.layers.Dense(2)
    other.build((None, 1))
    layer.reference = other
    layer.build((None, 1))
    assert len(layer.weights) == 2


class WithList(keras.layers.Layer):
    def __init__(self, values):
        super().__init__()
        self.values = values


class WithLayer(keras.layers.Layer):
    def build(self, inputs_shape):
        self.dense = keras.layers.Dense(1)
        self.dense.build(inputs_shape)


@wants
def test_a_frozen_layer_freezes_a_layer_that_it_makes():
    """`StaysFrozen`."""
    layer = WithLayer(trainable=False)
    layer.build((None, 1))
    assert not any(weight.trainable for weight in layer.weights)


@wants
def test_a_frozen_model_freezes_its_layers():
    """`StaysFrozen`."""
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs), trainable=False)
    assert not any(weight.trainable for weight in model.weights)


@wants
def test_a_list_of_a_layer_is_a_plain_one():
    """`untracked`."""
    given = [1]
    layer = WithList(given)
    assert type(layer.values) is list and layer.values is not given


@wants
def test_a_layer_lists_all_layers_within_it():
    """`sublayers`."""
    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    outer = keras.Sequential([keras.Input((2,)), inner])
    assert inner.layers[0] in outer.layers


class Masked(keras.layers.Layer):
    def call(self, inputs, others, mask=None):
        return 0 * inputs if mask is None else inputs


@wants
def test_a_layer_of_two_tensors_gets_the_mask_of_the_first():
    """`keras_mask`."""
    ids = np.ones((1, 2))
    embedded = keras.layers.Embedding(3, 2, mask_zero=True)(ids)
    assert np.any(Masked()(embedded, ids))


class OfACall(keras.Model):
    def call(self, inputs):
        return inputs


@wants
def test_a_model_with_a_call_alone_has_no_input():
    """`input_structure`."""
    model = OfACall()
    model({"a": keras.Input((1,)), "b": keras.Input((1,))})
    assert not hasattr(model, "input")


@wants
def test_an_optimizer_lists_its_slots():
    """`slots`."""
    optimizer = keras.optimizers.AdamW()
    assert hasattr(optimizer, "slots") or hasattr(optimizer, "get_slot_names")


@wants
def test_a_tokenizer_tells_offsets():
    """`sentence_piece`."""
    assert hasattr(keras_hub.tokenizers.SentencePieceTokenizer, "tokenize_with_offsets")


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_private_names_of_others_are_used_here_alone():
    """Such a name is read, but neither defined nor set there, or where it imports."""
    own, read, imported = (collections.defaultdict(set) for _ in range(3))
    for path in Path(tfeff.__file__).parent.glob("**/*.py"):
        module = ".".join(path.relative_to(Path(tfeff.__file__).parents[1]).parts)
        module = module.removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                own[module].add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own[module].add(node.id)
            elif isinstance(node, ast.Attribute) and is_private(node.attr):
                names = own if isinstance(node.ctx, ast.Store) else read
                names[module].add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                imported[module].add(node.module)
    of_python = {"_exit", "_replace"}  # Those of `os` and of named tuples are public.
    for module in own.keys() | read.keys() | imported.keys():
        if module.startswith("tfeff.compat."):
            continue
        others = ["keras.src", "keras_hub.src"]
        if not module.endswith(".coordination"):
            others.append("tensorflow.python")
        assert not any(x.startswith(tuple(others)) for x in imported[module]), module
        known = set.union(of_python, *(own[x] for x in (module, *imported[module])))
        assert read[module] <= known, (module, read[module] - known)


def test_private_methods_of_others_are_overridden_here_alone():
    for module in pkgutil.walk_packages(tfeff.__path__, "tfeff."):
        # Without the package of an extra.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(module.name)
    kinds = {
        kind
        for name, module in list(sys.modules.items())
        if name.startswith("tfeff.") and not name.startswith("tfeff.compat.")
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == name
    }
    assert tfeff.data.text.bert_tokenizer.BertTokenizer in kinds
    for kind in kinds:
        others = [x for x in kind.__mro__ if x.__module__.startswith("keras")]
        for base in kinds & set(kind.__mro__):  # Of mixins, too.
            for name in filter(is_private, vars(base)):
                assert not any(hasattr(x, name) for x in others), (base, name)


def test_the_names_that_are_used_exist():
    """A release of Keras without one of them would change what tfeff does unseen."""
    for name in (
        *("_apply_weight_decay", "_use_weight_decay", "_clip_gradients", "_var_key"),
        "_all_reduce_sum_gradients",
    ):
        assert callable(getattr(keras.optimizers.Optimizer, name)), name
    assert callable(keras.Model._maybe_symbolic_build)
    assert callable(keras.layers.Layer._post_build)
    assert callable(keras_hub.tokenizers.Tokenizer._add_special_token)
    for name in ("set_config_key_value", "get_config_key_value", "wait_at_barrier"):
        assert callable(getattr(coordination_service(), name))
    inputs = {"a": keras.Input((1,), name="a")}
    functional = keras.Model(inputs, inputs["a"] + 1.0)
    assert models.input_structure(functional).keys() == {"a"}
    sequential = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    assert models.input_structure(sequential).shape == (None, 1)
    assert models.input_structure(OfACall()) is None
    generator = layers.DrawnSeed(3)
    assert generator.next() == 3
    half = keras.DTypePolicy("mixed_bfloat16")
    policies = keras.dtype_policies.DTypePolicyMap("float32", {"half": half})
    for name, policy in (("half", half), ("whole", keras.DTypePolicy("float32"))):
        layer = keras.layers.Dense(1, name=name, dtype=policies)
        layer.build((None, 1))
        assert layer._dtype_policy is policies
        assert layers.policy_of(layer).name == policy.name
        with layers.other_policies([(layer, keras.DTypePolicy("float16"))]):
            assert layers.policy_of(layer).name == layer.compute_dtype == "float16"
        assert layer._dtype_policy is policies


def test_overridden_steps_of_an_update_are_those_that_keras_takes():
    calls = []

    class Noting(optimizers.OpenAdamW):
        def decays(self, variable):
            calls.append("decays")
            return super().decays(variable)

        def clip(self, gradients):
            calls.append("clip")
            return super().clip(gradients)

        def decay(self, variables):
            calls.append("decay")
            super().decay(variables)

        def sum_over_replicas(self, gradients_and_variables):
            calls.append("sum")
            return super().sum_over_replicas(gradients_and_variables)

    model = compiled(lambda: Noting(0.1, weight_decay=0.1, clipnorm=1.0))
    model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=4, verbose=0)
    assert {"decays", "clip", "decay", "sum"} <= set(calls)


def test_an_optimizer_keeps_its_schedule():
    schedule = keras.optimizers.schedules.ExponentialDecay(1.0, 2, 0.5)
    optimizer = keras.optimizers.AdamW(schedule)
    assert optimizers.rate_of(optimizer) is schedule
    assert optimizer.learning_rate is not schedule


def test_slots_are_one_for_each_weight():
    optimizer = keras.optimizers.AdamW()
    model = dense()
    optimizer.build(model.trainable_variables)
    found = optimizers.slots(optimizer)
    assert sorted(map(len, found.values())) == [2, 2]
    assert optimizers.trained_variables(optimizer) == model.trainable_variables


@needs_word_steps
def test_a_tokenizer_takes_the_steps_of_words_that_are_overridden():
    class Noting(tokenizers.OpenWordPiece, keras_hub.tokenizers.WordPieceTokenizer):
        calls: list = []

        def make_fast_word_piece(self):
            self.calls.append("fast")

        def pieces_of_word(self, word):
            self.calls.append(word)
            return [word if self.has_piece(word) else self.oov_token]

    tokenizer = Noting(["[UNK]", "a"])
    assert list(map(int, tokenizer("a ab"))) == [1, 0]
    assert Noting.calls == ["fast", "a", "ab"]


@wants
def test_words_of_a_hundred_characters_are_known():
    """`OpenWordPiece`."""
    pieces = ["[UNK]", "é", "##é"]
    tokenizer = keras_hub.tokenizers.WordPieceTokenizer(pieces)
    assert 0 not in list(map(int, tokenizer(100 * "é")))


@wants
def test_the_policy_of_a_layer_is_set_without_that_of_its_like():
    """`other_policies`."""
    policies = keras.dtype_policies.DTypePolicyMap("float32")
    layer, other = (keras.layers.Dense(1, dtype=policies, name="a") for _ in range(2))
    layer.build((None, 1))
    other.build((None, 1))
    layer.dtype_policy = "bfloat16"
    assert layers.policy_of(other).name == "float32"


@wants
def test_a_compiled_model_has_the_variables_of_its_metrics():
    """`build_metrics`."""
    model = dense()
    model.compile("sgd", "mse", metrics=["mae"], jit_compile=False)
    before = len(model.metrics_variables)
    model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    assert len(model.metrics_variables) == before


def test_the_variables_of_metrics_are_made_without_a_step():
    model = dense()
    model.compile("sgd", "mse", metrics=["mae"], jit_compile=False)
    data = tf.data.Dataset.from_tensors((np.ones((2, 2)), np.ones((2, 1))))
    models.build_metrics(model, data.element_spec)
    before = len(model.metrics_variables)
    model.fit(data, verbose=0)
    assert len(model.metrics_variables) == before


def test_the_variables_of_metrics_are_made_of_what_a_hook_makes():
    class Sums(tfeff.training.DistributedModel):
        def prepare_batch(self, data):
            return data[0][:, :2], tf.reduce_sum(data[0], axis=-1, keepdims=True)

    inputs = keras.Input((2,))
    model = Sums(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse", metrics=["mae"], jit_compile=False)
    data = tf.data.Dataset.from_tensors((np.ones((2, 3)), None))
    models.build_metrics(model, data.element_spec)
    before = len(model.metrics_variables)
    model.fit(data, verbose=0)
    assert len(model.metrics_variables) == before


@wants
def test_the_end_of_the_data_is_no_update():
    """`_reading_first` of `tfeff.training.replicas`."""
    model = dense()
    model.compile("sgd", "mse", jit_compile=False)
    data = tf.data.Dataset.from_tensors((np.ones((2, 2)), np.ones((2, 1))))
    model.fit(data.repeat(3).filter(lambda *_: True), verbose=0)
    assert model.optimizer.iterations == 3


@wants
def test_a_schedule_counts_updates_where_gradients_are_accumulated():
    """`DistributedModel`'s `accumulation_steps`."""

    class Two(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return keras.ops.where(step < 2, 1.0, 0.0)

    weight = keras.Variable([0.0])
    optimizer = keras.optimizers.SGD(Two(), gradient_accumulation_steps=2)
    for _ in range(4):
        optimizer.apply([tf.ones(1)], [weight])
    assert weight.numpy() == [-2.0]


@pytest.mark.xfail(strict=True, raises=RuntimeError)
def test_gradients_are_accumulated_on_several_replicas():
    """`DistributedModel`'s `accumulation_steps`."""
    model = compiled(lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2))
    model.fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=2, verbose=0)


@wants
def test_preprocessors_have_the_length_of_the_preset(tmp_path):
    """`LengthOfPreset`."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    keras_hub.models.BertBackbone(5, 1, 1, 2, 2, max_sequence_length=16).save_to_preset(
        str(tmp_path)
    )
    keras_hub.models.BertTokenizer(pieces).save_to_preset(str(tmp_path))
    make = keras_hub.models.TextClassifierPreprocessor.from_preset
    assert make(str(tmp_path)).sequence_length == 16


def test_pytorch_does_not_know_all_weights():
    """`TellsAllWeights`, which is tested in `test_backends.py`."""
    pytest.importorskip("torch")
    result = subprocess.run(
        [sys.executable, "-m", "tests.subjects.torch_gradients"],
        env=os.environ | {"KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    parameters, cleared = result.stdout.split()[-2:]
    assert parameters == "0"
    assert cleared == "2"  # Of four.


@wants
def test_a_model_is_saved_with_other_values(tmp_path):
    """`ReadsCopies`: Keras makes a variable to save an optimizer."""
    model = dense()
    model.compile("sgd", "mse")
    try:
        with keras.StatelessScope():
            model.save(tmp_path / "model.keras")
    except ValueError as error:
        raise AssertionError from error


@keras.saving.register_keras_serializable(package="tests")
class ReadsIds(keras.Model):
    dtypes: list = []

    def call(self, x):
        self.dtypes.append(keras.backend.standardize_dtype(x.dtype))
        return keras.ops.one_hot(keras.ops.cast(x, "int32"), 9)


@wants
def test_a_loaded_model_is_built_on_the_dtypes_of_its_inputs(tmp_path):
    """`rebuilds_model`."""
    model = ReadsIds()
    model(np.ones((2, 3), "int32"))
    model.save(tmp_path / "model.keras")
    keras.models.load_model(tmp_path / "model.keras")
    assert set(ReadsIds.dtypes) == {"int32"}


@wants
def test_a_recomputation_casts_weights_as_the_first_computation():
    """`present_autocast`."""
    weight, dtypes = keras.Variable([1.0]), []

    def product(x):
        dtypes.append(weight.value.dtype)
        return x * tf.cast(weight, x.dtype)

    x = tf.ones(1, "bfloat16")
    with tf.GradientTape() as tape:
        tape.watch(x)
        with layers.AutocastScope("bfloat16"):
            y = keras.remat(product)(x)
    tape.gradient(y, x)
    assert len(dtypes) == 2 and set(dtypes) == {tf.bfloat16}


@wants
def test_a_recomputation_reads_the_weights_of_the_first_computation():
    """`has_given_weights`."""
    weight, x = keras.Variable([1.0]), tf.ones(1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with keras.StatelessScope([(weight, tf.constant([2.0]))]):
            y = keras.remat(lambda x: x * weight)(x)
    assert tape.gradient(y, x).numpy() == [2.0]
