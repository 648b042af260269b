"""KerasHub's encoders in KerasHub's presets, of which no code or object is loaded."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tfeff.convert import albert
from tfeff.convert.config import Config
from tfeff.convert.format import Format
from tfeff.convert.keras_weights import read_keras_weights
from tfeff.convert.reading import read_json
from tfeff.convert.weights import Weight, attention_by_heads, part
from tfeff.encoders.preset_layout import ENCODER_CONFIG, TASK_CONFIG, TASK_WEIGHTS

# The beginning of the paths of a task's tensors.
_HEAD = f"{TASK_WEIGHTS}/layers/masked_lm_head"
# KerasHub was called KerasNLP.
_CLASS = re.compile(r"keras_(?:hub|nlp)>(\w+)")
_KINDS = {"TextClassifier": "SequenceClassification", "MaskedLM": "MaskedLM"}
_DTYPES = (
    *("float32", "float16", "bfloat16", "float64"),
    *("mixed_float16", "mixed_bfloat16"),
)
# What may differ between two descriptions of one encoder.
_FREE = ("name", "trainable", "dtype")
# The settings of a task that are used where its head is made, or change nothing.
_OF_TASKS = (
    *_FREE,
    "preprocessor",
    "num_classes",
    "activation",
    "hidden_dim",
    "dropout",
)


class KerasHub(Format):
    """An encoder of KerasHub, with the head of its task.

    Its tensors are named by their paths in `model.weights.h5`, where Keras counts the
    layers of each class.

    Args:
        config: the encoder's configuration.
        task: the task's configuration; `None` without a task.
        task_name: the registered name of the task's class.

    Attributes:
        family: the encoder's usual tokenizers, as of `Source`.
        activation: of the feed-forward networks.
        layer_norm_epsilon: of all layer norms but that of the masked language model.
        pooled: whether it has segments, and a pooler of its own.
        pooler_activation: of the pooler, the encoder's or the classifier's.
        size: the name of its number of tokens.
    """

    family = "bert"
    activation, layer_norm_epsilon = "gelu", 1e-12
    head_activation = "gelu"
    pooled = False
    pooler_activation = "tanh"
    size = "vocabulary_size"

    def __init__(self, config: Config, task: Config | None = None, task_name: str = ""):
        self._task = task
        dense = ["layers/dense", "layers/dense_1"]
        self._projection = dense.pop(0) if self._is_projected(config.values) else None
        pooler, logits = dense[0], f"{TASK_WEIGHTS}/layers/dense"
        if not self.pooled:
            pooler, logits = logits, f"{logits}_1"
        of_pooler = {"pooler": lambda weights: _dense(part(weights), pooler)}
        of_logits = {"logits": lambda weights: _dense(part(weights), logits)}
        self.heads = {"masked_lm": _masked_lm_head} | (of_pooler if self.pooled else {})
        self.tasks = {"SequenceClassification": of_pooler | of_logits}
        self.left_out = {
            rf"({TASK_WEIGHTS}/)?optimizer/": "training state",
            r".*/seed_generator/vars/": "training state",
            # KerasHub 0.25 writes the encoder into both files.
            rf"{TASK_WEIGHTS}/layers/\w+_backbone/": "encoder, again",
            **({f"{pooler}/vars/": "pooler"} if self.pooled else {}),
        }
        kind = self.kind_of(task_name)
        if kind == "MaskedLM":
            self.left_out[f"{_HEAD}/"] = "masked language model head"
        elif kind == "SequenceClassification":
            self.left_out[f"({pooler}|{logits})/vars/"] = "task head"
        elif task is not None:
            self.left_out[f"{TASK_WEIGHTS}/"] = "task head"

    def kind_of(self, name: str) -> str:
        # The name itself for a class that is not KerasHub's, or of another encoder.
        found = _CLASS.fullmatch(name)
        kinds = {f"{self.name}{theirs}": kind for theirs, kind in _KINDS.items()}
        return kinds.get(found[1], name) if found else name

    def heads_of(self, kind: str) -> set[str]:
        masked_lm = {"masked_lm"} if kind == "MaskedLM" else set()
        return masked_lm | {"pooler"} if self.pooled else masked_lm

    def arguments(self, config: Config) -> dict:
        _check_dtype(config)
        config.get("trainable", None)
        return dict(
            vocabulary_size=config.integer(self.size),
            num_layers=config.integer("num_layers"),
            num_heads=config.integer("num_heads"),
            hidden_dim=config.integer("hidden_dim"),
            intermediate_dim=config.integer("intermediate_dim"),
            max_sequence_length=config.integer("max_sequence_length"),
            num_segments=config.integer("num_segments") if self.pooled else 0,
            attention="self",
            feedforward=dict(activation=self.activation),
            dropout=config.rate("dropout"),
            layer_norm_epsilon=self.layer_norm_epsilon,
        )

    def weights(self, encoder) -> Iterator[Weight]:
        embedding = encoder.embedding
        both = "layers/token_and_position_embedding"
        tokens, positions = f"{both}/token_embedding", f"{both}/position_embedding"
        if self.pooled:
            tokens, positions = (
                "layers/reversible_embedding",
                "layers/position_embedding",
            )
            yield Weight(
                embedding.segment_embedding.embeddings, "layers/embedding/vars/0"
            )
        yield Weight(embedding.token_embedding.embeddings, f"{tokens}/vars/0")
        yield Weight(embedding.position_embedding.embeddings, f"{positions}/vars/0")
        yield from _norm(embedding.norm, "layers/layer_normalization")
        if self._projection is not None:
            yield from _dense(embedding.projection, self._projection)
        # One block of each group: its layers are the same block.
        for index, block in enumerate(dict.fromkeys(encoder.blocks)):
            number = f"_{index}" if index else ""
            yield from _block(block, f"layers/transformer_encoder{number}", encoder)

    def head_settings(self, encoder) -> dict:
        return super().head_settings(encoder) | dict(layer_norm_epsilon=1e-5)

    def task_arguments(self, config: Config, kind: str) -> dict:
        task = self._task
        assert task is not None
        if task.integer("num_classes") == 1:
            task.only("activation", None, "linear", default=None)
        task.only("activation", None, "linear", "softmax", default=None)
        size = config.integer("hidden_dim")
        task.only("hidden_dim", None, size, default=None)
        return dict(
            dropout=task.rate("dropout"), pooler_activation=self.pooler_activation
        )

    @staticmethod
    def _is_projected(values):
        return False


class Bert(KerasHub):
    """KerasHub's BERT."""

    name = "Bert"
    activation = "gelu_tanh"
    pooled = True
    pairs = "next"


class Albert(Bert):
    """KerasHub's ALBERT."""

    name, family = "Albert", "albert"
    head_activation = "gelu_tanh"
    pairs = "order"

    def arguments(self, config: Config) -> dict:
        sizes = super().arguments(config)
        config.only("num_inner_repetitions", 1)
        embedding_dim = config.integer("embedding_dim")
        if embedding_dim == sizes["hidden_dim"]:
            raise ValueError(
                f"{config.path!r} asks for a projection of the embedding with "
                f"embedding_dim=hidden_dim={embedding_dim}, which tfeff does not "
                "support"
            )
        sharing = albert.in_groups(config, "num_groups", "num_layers")
        return sizes | sharing | dict(embedding_dim=embedding_dim)

    @staticmethod
    def _is_projected(values):
        return True


class Electra(Bert):
    """KerasHub's ELECTRA."""

    name = "Electra"
    size = "vocab_size"

    def arguments(self, config: Config) -> dict:
        sizes = super().arguments(config)
        return sizes | dict(embedding_dim=config.integer("embedding_dim"))

    @staticmethod
    def _is_projected(values):
        return values.get("embedding_dim") != values.get("hidden_dim")


class DistilBert(KerasHub):
    """KerasHub's DistilBERT."""

    name = "DistilBert"
    pooler_activation = "relu"


class Roberta(KerasHub):
    """KerasHub's RoBERTa: its positions are counted from 0 on."""

    name, family = "Roberta", "roberta"
    layer_norm_epsilon = 1e-5


class XLMRoberta(Roberta):
    """KerasHub's XLM-RoBERTa."""

    name, family = "XLMRoberta", "xlm-roberta"


_ENCODERS = {
    f"{kind.name}Backbone": kind
    for kind in (Bert, Roberta, XLMRoberta, Albert, DistilBert, Electra)
}
NAMES = ", ".join(_ENCODERS)


def keras_hub_class(path: str) -> type[KerasHub] | None:
    """The encoder that `config.json` names; `None` for what tfeff does not read."""
    name = read_json(path).get("registered_name")
    found = _CLASS.fullmatch(name) if isinstance(name, str) else None
    return _ENCODERS.get(found[1]) if found else None


def read_keras_hub_preset(
    directory: str, kind: type[KerasHub]
) -> tuple[KerasHub, Config, dict[str, Any]]:
    """The format, the configuration and the tensors of a preset.

    Args:
        directory: the preset.
        kind: the class of its encoder, as `keras_hub_class` gives it.

    Raises:
        ValueError: if a file is missing or damaged, or the task is of another encoder.
    """
    _, config = keras_object(os.path.join(directory, ENCODER_CONFIG))
    tensors: dict[str, Any] = dict(read_keras_weights(directory, "model"))
    path = os.path.join(directory, TASK_CONFIG)
    if not os.path.exists(path):
        if os.path.exists(os.path.join(directory, TASK_WEIGHTS)):
            raise ValueError(
                f"{directory!r} must have {TASK_CONFIG!r} beside {TASK_WEIGHTS!r}. It "
                "is missing"
            )
        return kind(config), config, tensors
    name, task = keras_object(path)
    if os.path.exists(os.path.join(directory, TASK_WEIGHTS)):
        found = read_keras_weights(directory, "task")
        tensors |= {f"{TASK_WEIGHTS}/{n}": tensor for n, tensor in found.items()}
    form = kind(config, task, name)
    of_model: dict[str, Any] = {"architectures": [name]}
    if form.kind_of(name) in _KINDS.values():
        _check_same_encoder(task, config)
        task.warn_of_others(_OF_TASKS)
    if form.kind_of(name) == "SequenceClassification":
        of_model["num_labels"] = task.integer("num_classes")
    return form, Config(config.values | of_model, config.path), tensors


def keras_object(path: str) -> tuple[str, Config]:
    """The registered name and the settings of an object of Keras in a JSON file.

    Raises:
        ValueError: if the file has no such object.
    """
    values = read_json(path)
    name, config = values.get("registered_name"), values.get("config")
    if not isinstance(name, str) or not isinstance(config, dict):
        raise ValueError(
            f"{path!r} must describe an object of KerasHub by 'registered_name' and "
            f"'config'. It has registered_name={name!r}, config={config!r:.80}"
        )
    return name, Config(config, path)


def _check_same_encoder(task, config):
    """Raises if the task is of an encoder with other settings."""
    encoder = task.get("backbone", None)
    own = encoder.get("config") if isinstance(encoder, dict) else None
    if not isinstance(own, dict):
        raise ValueError(f"{task.path!r} must have its 'backbone'. It is damaged")
    names = sorted({*own, *config.values}.difference(_FREE))
    if different := [n for n in names if own.get(n) != config.values.get(n)]:
        raise ValueError(
            f"{task.path!r} must be of the encoder in {config.path!r}. It has other "
            f"{', '.join(different)}"
        )


def _check_dtype(config):
    """Raises if the weights are quantized."""
    dtype = config.get("dtype", None)
    if isinstance(dtype, dict) and dtype.get("class_name") == "DTypePolicy":
        policy = dtype.get("config")
        dtype = policy.get("name") if isinstance(policy, dict) else policy
    if dtype is not None and dtype not in _DTYPES:
        raise ValueError(
            f"{config.path!r} asks for dtype={dtype!r:.80}, which tfeff does not "
            f"support. It supports: {', '.join(_DTYPES)}"
        )


def _block(block, name, encoder):
    place = f"{name}/_self_attention_layer/{{}}_dense/vars"
    names = (f"{place}/0", f"{place}/1")
    yield from attention_by_heads(block.attention, encoder, *names)
    yield from _norm(block.attention_norm, f"{name}/_self_attention_layer_norm")
    feedforward = block.feedforward
    yield from _dense(
        feedforward.intermediate_dense, f"{name}/_feedforward_intermediate_dense"
    )
    yield from _dense(feedforward.output_dense, f"{name}/_feedforward_output_dense")
    yield from _norm(block.feedforward_norm, f"{name}/_feedforward_layer_norm")


def _masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    yield from _dense(part(weights, "dense"), f"{_HEAD}/_intermediate_dense")
    yield from _norm(part(weights, "norm"), f"{_HEAD}/_intermediate_layer_norm")
    yield Weight(weights["bias"], f"{_HEAD}/vars/0")


def _dense(layer, name):
    yield Weight(layer.kernel, f"{name}/vars/0")
    yield Weight(layer.bias, f"{name}/vars/1")


def _norm(layer, name):
    yield Weight(layer.gamma, f"{name}/vars/0")
    yield Weight(layer.beta, f"{name}/vars/1")
