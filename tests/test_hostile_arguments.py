"""What every public function makes of arguments that are none: it works or names them.

Left out, since others test them: `tfeff.ops`, which take tensors as Keras' operations
do and leave checks to the layers; `tfeff.convert`, in `tests/convert`; `tfds`, which
needs a network.
"""

import contextlib
import inspect
import json
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.arguments import (
    Stream,
    adapted,
    batches,
    cache,
    compiled,
    described,
    exported,
    frozen,
    generator,
    labelled,
    saved_description,
    saved_lines,
    saved_lora,
    saved_model,
    saved_parquet,
    saved_preset,
    saved_preset_with_head,
    saved_scores,
    saved_table,
    saved_tokenizer,
    saved_words,
    shaw,
    tiny,
)
from tests.subjects.attentions import attention_classes
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff import (
    data,
    datasets,
    encoders,
    export,
    layers,
    objectives,
    plots,
    recipes,
    tasks,
    training,
)
from tfeff.datasets.glue import SCORED_TASKS

HOSTILE = (None, -1, 0, 1.5, "x", [], np.int64(2), float("nan"), 10**30)


class Long(list):
    """A list whose text is that of a whole corpus."""

    def __repr__(self):
        return "the cat, " * 10_000


# A good call of each function; arguments that are functions are made at first use.
SELF = layers.SelfAttention
QUESTION = data.Question("a", "the cat", "the small cat", ("cat",), ((10, 13),))
TEXTS = data.TextExamples(("the cat",), None, np.array([0]), ("x", "y"), ("0",))
SST = datasets.get("SST-2")
REVIEWS = data.TextExamples(("fun",), None, np.array([0]), SST.label_names, ("0",))
WORDS = data.TokenExamples((("the", "cat"),), ([1, 0],), ("O", "B-PER"), ("0",))
IDS = np.full((2, 8), 7, "int32")
CLASSES = np.array([0, 1])
VECTORS = np.ones((2, 3))


RECIPES = [
    *(recipes.answer, recipes.cache, recipes.distill, recipes.embed, recipes.evaluate),
    *(recipes.finetune, recipes.pretrain, recipes.report, recipes.stack),
]
CALLS = {
    # An attention needs a number of heads or parts; those that need more follow.
    **{
        layer: {next(iter(inspect.signature(layer).parameters)): 2}
        for layer in attention_classes()
    },
    layers.BlockwiseAttention: dict(num_heads=2, head_blocks="1:1"),
    layers.Dropout: dict(rate=0.1),
    layers.EncoderBlock: dict(
        attention=lambda: SELF(2), feedforward=lambda: layers.FeedForward(8)
    ),
    layers.EncoderEmbedding: dict(vocabulary_size=9, hidden_dim=8),
    layers.FeedForward: dict(intermediate_dim=8),
    layers.GroupedDense: dict(units=8, num_groups=2),
    layers.LayerwisePooling: dict(blocks=lambda: tiny().blocks),
    layers.MeanPooling: dict(),
    layers.PartitionOfUnityMask: dict(num_parts=2),
    layers.RelativeAttention: dict(num_heads=2, method="shaw", max_distance=3),
    layers.RelativeEmbedding: dict(max_distance=3),
    layers.SegmentPooling: dict(),
    layers.SparseAttention: dict(num_heads=2, expressivity=1),
    layers.TwoStreamBlocks: dict(blocks=lambda: tiny().blocks),
    layers.masked_heads: dict(encoder=tiny, masks=[None]),
    layers.record_layers: dict(),
    layers.register_partition: dict(
        name="hostile", functions=lambda: keras.ops.ones_like
    ),
    encoders.Encoder: dict(
        vocabulary_size=9, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8
    ),
    encoders.EncoderMaskedLM: dict(backbone=tiny),
    encoders.EncoderTextClassifier: dict(backbone=tiny, num_classes=2),
    encoders.build: dict(preset="bert_tiny"),
    encoders.disable_heads: dict(encoder=tiny, heads={0: [1]}),
    encoders.extend_length: dict(encoder=tiny, max_sequence_length=600),
    encoders.merge_lora: dict(model=adapted),
    encoders.register_attention: dict(name="hostile", make=lambda: SELF),
    encoders.swap_positions: dict(encoder=tiny, method="huang4"),
    training.adamw: dict(learning_rate=1e-3, warmup_steps=1, total_steps=4),
    training.AdamW: dict(learning_rate=1e-3),
    training.LinearWarmupDecay: dict(peak_rate=1e-3, warmup_steps=1, total_steps=4),
    training.Grid: dict(directory="g", axes={"rate": [1]}, seeds=[0], metric="m"),
    training.KeepBest: dict(
        evaluate=lambda: lambda model: {"m": 1.0},
        metric="m",
        every_steps=2,
        directory="k",
    ),
    training.TrainingProgress: dict(
        total_steps=4, steps_per_epoch=2, tokens_per_step=2
    ),
    training.double_depth: dict(model=tiny),
    training.head_importance: dict(model=compiled, batches=labelled),
    training.is_finite: dict(model=tiny),
    training.RunDirectory: dict(directory="r", config={}),
    training.Checkpoints: dict(directory="c", steps_per_epoch=1),
    training.StopWhenDiverged: dict(advice="Stop."),
    training.latest_checkpoint: dict(directory="c"),
    training.load_checkpoint: dict(path=saved_model),
    training.save_checkpoint: dict(model=compiled, path="m.keras"),
    training.write_metrics: dict(metrics={"loss": 1.0}, path="m.json"),
    training.check_equal_settings: dict(settings={}),
    objectives.common_maps: dict(student=tiny, teacher=tiny),
    training.distribute: dict(make_dataset=list),
    training.make_strategy: dict(),
    objectives.Distillation: dict(student=tiny, teacher=tiny),
    objectives.copy_head: dict(
        student=lambda: objectives.MaskedLM(tiny()),
        teacher=lambda: objectives.MaskedLM(tiny()),
    ),
    objectives.copy_layers: dict(student=tiny, teacher=tiny),
    objectives.MaskedLM: dict(encoder=tiny),
    objectives.PermutationLM: dict(encoder=tiny),
    objectives.SentencePairPrediction: dict(encoder=tiny),
    objectives.generator_for: dict(encoder=tiny),
    objectives.get: dict(name="masked_lm"),
    objectives.register: dict(objective=objectives.get("masked_lm")),
    objectives.PretrainingObjective: dict(
        name="a", examples=data.MaskedTokens(), make_model=lambda: objectives.MaskedLM
    ),
    objectives.GlobalMeanCrossentropy: dict(),
    objectives.GlobalMeanBinaryCrossentropy: dict(),
    tasks.Classifier: dict(encoder=tiny, num_classes=2),
    tasks.MultipleChoice: dict(encoder=tiny),
    tasks.InBatchContrast: dict(),
    tasks.SentenceEmbedding: dict(encoder=tiny),
    tasks.TokenClassifier: dict(encoder=tiny, num_classes=2),
    tasks.Regressor: dict(encoder=tiny),
    tasks.SpanQA: dict(encoder=tiny),
    datasets.Dataset: dict(name="Own", reader=lambda: print, label_names=("a", "b")),
    datasets.tsv_dataset: dict(name="Own", texts=("a",), label="b"),
    datasets.conll_dataset: dict(name="Own", types=("PER",)),
    datasets.described_dataset: dict(name="Own", folder=saved_description),
    datasets.read_conll: dict(path=saved_words, label_names=("O", "B-PER")),
    datasets.baseline_name: dict(examples=WORDS),
    datasets.baseline_predictions: dict(train=WORDS, examples=WORDS),
    SST.baseline: dict(train=REVIEWS, examples=REVIEWS),
    datasets.phrase_metrics: dict(examples=WORDS, predictions=[[1, 0]]),
    datasets.span_dataset: dict(name="Own", files={"dev": ("a.json",)}),
    datasets.register: dict(dataset=SST),
    datasets.get: dict(name="RTE"),
    datasets.names: dict(),
    SST.read: dict(split="dev", folder="."),
    SST.metrics: dict(examples=REVIEWS, predictions=np.array([0])),
    SST.write_predictions: dict(
        split="test", examples=REVIEWS, predictions=np.array([0]), folder="w"
    ),
    datasets.glue_average: dict(scores=dict.fromkeys(SCORED_TASKS, 0.5)),
    datasets.accuracy: dict(labels=CLASSES, predictions=CLASSES),
    datasets.f1: dict(labels=CLASSES, predictions=CLASSES),
    datasets.macro_f1: dict(labels=CLASSES, predictions=CLASSES),
    datasets.matthews_correlation: dict(labels=CLASSES, predictions=CLASSES),
    datasets.pearson: dict(labels=CLASSES, predictions=CLASSES),
    datasets.spearman: dict(labels=CLASSES, predictions=CLASSES),
    datasets.squad_v1_metrics: dict(questions=[QUESTION], predictions={"a": "cat"}),
    datasets.squad_v2_metrics: dict(questions=[QUESTION], predictions={"a": "cat"}),
    tasks.save_pretrained: dict(model=tiny, tokenizer=tokenizer, path="p"),
    tasks.load_pretrained: dict(path=saved_preset),
    tasks.save_lora: dict(model=adapted, path="l.safetensors"),
    tasks.load_lora: dict(model=frozen, path=saved_lora),
    tasks.load_masked_lm: dict(path=saved_preset_with_head),
    tasks.load_objective: dict(path=saved_preset_with_head, objective="masked_lm"),
    tasks.load_task: dict(path=saved_preset_with_head),
    datasets.write_tsv: dict(values={"a": "b"}, path="j.tsv"),
    datasets.write_json: dict(values={"a": "b"}, path="j.json"),
    data.build_cache: dict(
        documents=DOCUMENTS,
        tokenizer=tokenizer,
        directory="cache",
        sequence_length=16,
        num_threads=1,
        progress=False,
    ),
    data.open_cache: dict(directory=cache),
    data.sample: dict(documents=DOCUMENTS, num_bytes=10),
    data.split: dict(documents=DOCUMENTS, validation_fraction=0.1),
    data.text_files: dict(patterns="*.txt"),
    datasets.read_tsv: dict(path=saved_table, texts=("a",), label="b"),
    datasets.read_mrqa: dict(path="none"),
    datasets.read_race: dict(split="train", folder="."),
    datasets.read_sentences: dict(path=saved_words),
    datasets.read_squad: dict(path="none"),
    data.MaskedTokens: dict(),
    data.PermutedTokens: dict(),
    data.SentencePairs: dict(),
    data.mask_tokens: dict(
        token_ids=IDS,
        seed=0,
        vocabulary_size=9,
        mask_token_id=1,
        special_token_ids=[0, 1],
        max_masks=2,
    ),
    data.permute_targets: dict(
        token_ids=IDS, seed=0, special_token_ids=[0, 1], max_targets=2
    ),
    data.make_span_features: dict(
        questions=[QUESTION], tokenizer=tokenizer, sequence_length=16
    ),
    data.passage_lengths: dict(questions=[QUESTION], tokenizer=tokenizer),
    data.split_words: dict(text=tf.constant(["the cat"])),
    data.ChoiceExamples: dict(
        passages=("p",),
        questions=("q",),
        options=(("a", "b"),),
        labels=[0],
        label_names=("A", "B"),
        ids=("0",),
    ),
    data.Question: dict(
        id="a",
        question="the cat",
        passage="the small cat",
        answers=("cat",),
        spans=((10, 13),),
    ),
    data.SentenceExamples: dict(rows=[("a", "b")]),
    data.SpanExamples: dict(questions=[QUESTION]),
    data.TextExamples: dict(
        first=("a",), second=("b",), labels=[0], label_names=("x", "y"), ids=("0",)
    ),
    data.TokenExamples: dict(
        words=(("a", "b"),), labels=([0, 1],), label_names=("O", "B-X"), ids=("0",)
    ),
    data.sentence_features: dict(
        examples=data.SentenceExamples(rows=[("a", "b")]),
        tokenizer=tokenizer,
        sequence_length=16,
    ),
    data.text_features: dict(examples=TEXTS, tokenizer=tokenizer, sequence_length=16),
    data.token_features: dict(examples=WORDS, tokenizer=tokenizer, sequence_length=16),
    data.json_lines: dict(patterns=saved_lines),
    data.parquet: dict(patterns=saved_parquet),
    data.hugging_face: dict(dataset=Stream()),
    data.save_tokenizer: dict(tokenizer=tokenizer, path="t.spm"),
    data.load_tokenizer: dict(path=saved_tokenizer),
    data.tokenizer_fingerprint: dict(tokenizer=tokenizer),
    data.word_starts: dict(tokenizer=tokenizer),
    data.train_tokenizer: dict(documents=DOCUMENTS, vocabulary_size=60),
    tasks.WordVectors: dict(words=["a", "b"], vectors=VECTORS),
    tasks.read_word_vectors: dict(path="none"),
    data.docstrings: dict(packages=["wave"]),
    tasks.augment: dict(
        examples=TEXTS,
        masked_lm=lambda: objectives.MaskedLM(tiny()),
        tokenizer=tokenizer,
        copies=1,
    ),
    export.save_for_serving: dict(
        model=lambda: objectives.MaskedLM(tiny()), tokenizer=tokenizer, path="e"
    ),
    export.save_version: dict(
        model=lambda: objectives.MaskedLM(tiny()), tokenizer=tokenizer, path="e"
    ),
    export.check_export: dict(path=exported),
    export.versions: dict(path=exported),
    export.export_model: dict(model=tiny, filepath="e"),
    plots.attention_maps: dict(encoder=tiny, batches=batches),
    plots.average_attention: dict(encoder=tiny, batches=batches, path="a.png"),
    plots.attention_heads: dict(encoder=tiny, batches=batches, path="a.png"),
    plots.diagonal_concentration: dict(encoder=tiny, batches=batches, path="a.png"),
    plots.draw_all: dict(encoder=tiny, batches=batches, folder="d"),
    plots.head_maps: dict(encoder=tiny, batches=batches),
    plots.head_similarity: dict(encoder=tiny, batches=batches),
    plots.layer_changes: dict(encoder=tiny, batches=batches),
    plots.layer_stability: dict(encoders=tiny, batches=batches, path="a.png"),
    plots.length_distribution: dict(lengths={"a": [3]}, path="a.png"),
    plots.similar_heads: dict(encoder=tiny, batches=batches, path="a.png"),
    plots.partition_values: dict(encoder=tiny),
    plots.partition_functions: dict(
        encoder=lambda: tiny(attention="partitioned"), path="l.png"
    ),
    plots.relative_tables: dict(encoder=shaw),
    plots.relative_embeddings: dict(encoder=shaw, path="l.png"),
    plots.score_curves: dict(metrics=saved_scores, path="s.png"),
    **{recipe: dict(settings=described(recipe)) for recipe in RECIPES},
}
LEFT_OUT = {
    # Keras' own argument and message.
    (encoders.Encoder, "dtype"),
    (objectives.GlobalMeanCrossentropy, "dtype"),
    (objectives.GlobalMeanBinaryCrossentropy, "dtype"),
    # None is all packages, which takes long.
    (data.docstrings, "packages", "None"),
    # The name is taken by then, with another reach.
    *((layers.register_partition, "reach", x) for x in ("0", "np.int64(2)")),
    # Right in themselves, but not beside the other arguments, which are named.
    (data.mask_tokens, "vocabulary_size", "np.int64(2)"),
    # Where the file comes first: it is not there, which the error says.
    *((datasets.read_mrqa, name) for name in ("skip_mismatched",)),
    (datasets.read_mrqa, "half", "None"),
    *((datasets.read_squad, name) for name in ("skip_mismatched",)),
    # The words are no labels then, which the error says.
    (datasets.read_conll, "label_column", "0"),
    # Right in themselves: the recipe goes on, to what is not there.
    *((recipe, "callbacks", "[]") for recipe in RECIPES),
    *((recipe, name, "None") for recipe in RECIPES for name in ("dataset", "examples")),
    # Right in itself; another such call has written the folder.
    (export.save_for_serving, "encoder", "None"),
    (export.export_model, "input_signature", "None"),
}


# What may be anything: names of losses are Keras', the others are of no use beside the
# other arguments.
ANYTHING = {
    (training.make_strategy, "tpu"),
    (data.mask_tokens, "word_starts"),
    *((objectives.GlobalMeanCrossentropy, "name"),),
    *((objectives.GlobalMeanBinaryCrossentropy, "name"),),
    *((tasks.InBatchContrast, "name"),),
}

# Their good calls, which come first, train or export.
LONG = (
    objectives.Distillation,
    export.save_for_serving,
    export.save_version,
    export.check_export,
    export.versions,
)


@pytest.mark.parametrize(
    "function",
    [pytest.param(x, marks=pytest.mark.slow) if x in LONG else x for x in CALLS],
    ids=lambda function: function.__name__,
)
def test_names_what_it_does_not_take(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A name that is registered here is gone after the test.
    for module in ("encoders.attentions", "layers.partition_registry"):
        registry = sys.modules[f"tfeff.{module}"]
        monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    good = {
        name: value() if inspect.isfunction(value) else value
        for name, value in CALLS[function].items()
    }
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    wrong = []
    for name in names:
        if (function, name) in LEFT_OUT:
            continue
        accepted = []
        for value in HOSTILE:
            if (function, name, repr(value)) in LEFT_OUT:
                continue
            try:
                result = function(**good | {name: value})
                if isinstance(result, contextlib.AbstractContextManager):
                    with result:  # Some check when they are entered.
                        pass
            except (ValueError, TypeError) as error:
                # A path of text that is there or not is right in itself.
                is_path = isinstance(value, str) and "'x'" in str(error)
                is_named = f"`{name}`" in str(error) or f"`{name}[" in str(error)
                if not (is_named or is_path):
                    wrong.append(f"{name}={value!r}: {error}")
            except Exception as error:
                wrong.append(f"{name}={value!r}: {type(error).__name__} {error}")
            else:
                accepted.append(value)
                if isinstance(result, (keras.layers.Layer, keras.losses.Loss)):
                    json.dumps(keras.saving.serialize_keras_object(result))
        if len(accepted) == len(HOSTILE) and (function, name) not in ANYTHING:
            wrong.append(f"{name} may be anything")
    assert not wrong, "\n".join(wrong)
    for name in names:
        if name != "dtype":  # Keras' own message.
            _check_long(function, good, name)


def _check_long(function, good, name):
    """Raises if the message about a value whose text is long has all of it."""
    try:
        result = function(**good | {name: Long(["the cat"] * 3)})
        if isinstance(result, contextlib.AbstractContextManager):
            with result:
                pass
    except (TypeError, ValueError) as error:
        assert len(str(error)) < 3000, name


def test_all_public_functions_are_called():
    known = {
        "layers": {"partitions"},
        # Preprocessors have the arguments of KerasHub's.
        "encoders": {
            *("EncoderMaskedLMPreprocessor", "EncoderTextClassifierPreprocessor"),
            *("attentions", "presets"),
        },
        # Errors, a model's class, and what has no arguments or runs a whole training.
        "training": {
            *("Diverged", "DistributedModel", "LostWorker", "lost_workers_named"),
            *("HeadImportance", "train_by_stacking"),
        },
        # Its seed is below; bases of a user's classes.
        "objectives": {"ReplacedTokenDetection", "names", "Head", "Objective"},
        "tasks": {"Task"},
        # Classes that others make; what reads logits of such a class; a tokenizer,
        # whose arguments are KerasHub's.
        "data": {
            *("BertTokenizer", "RobertaTokenizer", "XLMRobertaTokenizer"),
            *("XLNetTokenizer", "Cache", "Examples", "SpanAnswer"),
            *("best_spans", "damage_named", "tfds"),
        },
        "datasets": set(),
        "export": set(),
        "plots": {"AttentionMaps", "LayerChanges", "learning_curves"},
        "recipes": {f"{recipe.__name__.capitalize()}Settings" for recipe in RECIPES},
    }
    for module, others in known.items():
        module = getattr(tfeff, module)
        called = {
            function.__name__
            for function in CALLS
            if getattr(module, function.__name__, None) is function
        }
        public = {n for n in module.__all__ if callable(getattr(module, n))}
        assert public - called == others, module.__name__


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_recipes_take_settings_of_their_own_alone(recipe):
    for other in {*RECIPES} - {recipe}:
        with pytest.raises(TypeError, match="`settings` must be"):
            recipe(described(other))


@pytest.mark.parametrize("seed", [np.int64(2), np.uint8(2), 2])
def test_seeds_of_numpy_are_those_of_python(seed):
    ones = np.ones((4, 50), "float32")
    layer = layers.Dropout(0.5, seed=seed)
    expected = layers.Dropout(0.5, seed=2)(ones, training=True)
    np.testing.assert_array_equal(layer(ones, training=True), expected)
    assert json.dumps(layer.get_config()["seed"]) == "2"
    options = dict(special_token_ids=[0, 1])
    masked = dict(vocabulary_size=9, mask_token_id=1, max_masks=2, **options)
    for function, arguments in (
        (data.mask_tokens, masked),
        (data.permute_targets, dict(max_targets=2, **options)),
    ):
        for one, other in zip(
            function(IDS, seed, **arguments), function(IDS, 2, **arguments)
        ):
            np.testing.assert_array_equal(one, other)
    encoder = tiny()
    model = objectives.ReplacedTokenDetection(generator(encoder), encoder, seed=seed)
    assert json.dumps(model.get_config()["seed"]) == "2"


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "x"])
def test_wrong_seeds_of_layers_are_named(seed):
    with pytest.raises((ValueError, TypeError), match="`seed` must be an integer"):
        layers.Dropout(0.5, seed=seed)


@pytest.mark.parametrize("rate", [1, 1.0, -0.1, float("nan"), None])
def test_dropout_of_everything_is_an_error(rate):
    error = TypeError if rate is None else ValueError
    with pytest.raises(
        error, match="`rate` must be a finite number of at least 0 and below 1"
    ):
        layers.Dropout(rate)


def test_dropout_takes_no_shape_that_it_would_not_read():
    with pytest.raises(ValueError, match="`noise_shape` must be None"):
        layers.Dropout(0.5, noise_shape=(1, 5))


METHODS = {
    "TextFeatures.dataset": (
        lambda: data.text_features(TEXTS, tokenizer(), 16).dataset,
        dict(batch_size=2),
    ),
    "TokenFeatures.dataset": (
        lambda: data.token_features(WORDS, tokenizer(), 16).dataset,
        dict(batch_size=2),
    ),
    "SpanFeatures.dataset": (
        lambda: data.make_span_features([QUESTION], tokenizer(), 16).dataset,
        dict(batch_size=2),
    ),
    "SentenceFeatures.dataset": (
        lambda: (
            data.sentence_features(
                data.SentenceExamples([("a", "b")]), tokenizer(), 16
            ).dataset
        ),
        dict(batch_size=2),
    ),
    "SentenceEmbedding.embed": (
        lambda: tasks.SentenceEmbedding(tiny()).embed,
        dict(texts=["a"], tokenizer=tokenizer()),
    ),
}


@pytest.mark.parametrize("value", ["no", 3, None])
@pytest.mark.parametrize("method", METHODS)
def test_methods_take_no_word_for_a_bool(method, value):
    make, good = METHODS[method]
    method = make()
    names = [
        name
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.annotation is bool
    ]
    assert names
    for name in names:
        with pytest.raises(TypeError, match=f"`{name}` must be True or False"):
            method(**good | {name: value})


@pytest.mark.parametrize(
    ("function", "name"),
    [
        pytest.param(function, name, id=f"{function.__name__}.{name}")
        for function in CALLS
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation in (bool, bool | None)
    ],
)
def test_a_word_is_no_bool(function, name, tmp_path, monkeypatch):
    """Such as "no", which is true."""
    monkeypatch.chdir(tmp_path)
    good = {
        key: value() if inspect.isfunction(value) else value
        for key, value in CALLS[function].items()
    }
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must .*Received: "):
        function(**good | {name: "no"})
