"""Base classes of the models for fine-tuning."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from tfeff import ops as functional
from tfeff.data.finetuning import columns
from tfeff.data.finetuning.text_features import TextFeatures
from tfeff.encoders import Encoder
from tfeff.layers import Dropout, LayerwisePooling, MeanPooling, SegmentPooling
from tfeff.layers.checks import check_activation_name
from tfeff.layers.dense import bert_dense
from tfeff.layers.initializer import bert_initializer
from tfeff.layers.layer import Layer
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import Objective
from tfeff.tasks.encoder_limits import check_known_ids
from tfeff.training.optimizers import AdamW
from tfeff.training.replicas import needs_static_shapes
from tfeff.utils.checks import check_bool, check_choice, check_integer, check_rate

TEXT_POOLINGS = ("cls", "last", "mean", "layerwise")
# Heads of tasks may read pairs of texts, too.
POOLINGS = (*TEXT_POOLINGS, "segments")
# These have no pooler `g(· W + b)` behind them.
_WITHOUT_POOLER = ("layerwise", "segments")


def logits_dtype(encoder: Encoder) -> str:
    """The dtype of a head's outputs: half precision is too coarse to compare them."""
    return keras.backend.result_type(encoder.dtype_policy.variable_dtype, "float32")


class Task(Objective):
    """Base of the models for fine-tuning: an `Objective` with defaults of its own.

    Args:
        encoder, inputs, outputs, **kwargs: as of `tfeff.objectives.Objective`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> hidden = encoder(encoder.input)["sequence_output"]
    >>> Task(encoder, encoder.input, hidden[:, 0]).output_shape
    (None, 128)
    """

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """AdamW for fine-tuning, at a constant rate."""
        return AdamW(1e-5, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)

    def pads_to_longest(self, pad_to_longest: bool | None = None) -> bool:
        """Whether rows are predicted as long as the longest of their batch.

        Args:
            pad_to_longest: the user's choice; by default True, unless that changes the
                outputs or needs a compilation for each length, as on a TPU.
        """
        if pad_to_longest is None:
            return not (self.encoder.length_dependent or needs_static_shapes(self))
        return check_bool("pad_to_longest", pad_to_longest)


class PooledTask(Task):
    """A task whose head reads one vector a sequence.

        v = g(X^L[0] W + b)                     `"cls"`
        v = g(X^L[last] W + b)                  `"last"`
        v = g(MeanPooling(X^L) W + b)           `"mean"`
        v = LayerwisePooling(X^0 … X^L)         `"layerwise"`
        v = SegmentPooling(X^L)                 `"segments"`
        z = dropout(v) W' + b'

    Args:
        encoder: the `tfeff.encoders.Encoder`.
        num_outputs: integer, the size of `z`.
        pooling: `"cls"`, the first position; `"last"`, the last that is not padding;
            `"mean"`, over all that are not padding; `"layerwise"`; or `"segments"`, of
            pairs.
        dropout: float in [0, 1), rate on `v`.
        pooler_activation: `g`, by a name of Keras'; `"gelu_tanh"` is GELU by tanh.
        inputs: the model's inputs; default: the encoder's.
        rows: the encoder's inputs `[B', T]`, computed from `inputs`.
        finish: maps `z` `[B', num_outputs]` to the model's output.
        **kwargs: `name` and `trainable`.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_outputs: int,
        pooling: str,
        dropout: float,
        pooler_activation: str,
        /,
        inputs=None,
        rows=None,
        finish=lambda z: z,
        **kwargs,
    ):
        check_choice("pooling", pooling, POOLINGS)
        dropout = check_rate("dropout", dropout)
        activation = check_activation_name("pooler_activation", pooler_activation)
        if pooling in _WITHOUT_POOLER and pooler_activation != "tanh":
            raise ValueError(
                f"`pooler_activation` must be left out with `pooling={pooling!r}`, "
                "which has none. "
                f"Received: pooler_activation={pooler_activation!r}"
            )
        dtype = encoder.dtype_policy
        rows = encoder.input if rows is None else rows
        vector = make_pooling(encoder, pooling)(rows, encoder(rows))
        if pooling not in _WITHOUT_POOLER:
            pooler = bert_dense(
                encoder.hidden_dim, activation=activation, dtype=dtype, name="pooler"
            )
            vector = pooler(vector)
        vector = Dropout(dropout, dtype=dtype, name="dropout")(vector)
        logits = bert_dense(num_outputs, dtype=logits_dtype(encoder), name="logits")
        outputs = finish(logits(vector))
        inputs = encoder.input if inputs is None else inputs
        super().__init__(encoder, inputs, outputs, **kwargs)
        self.pooling = pooling
        self.dropout = float(dropout)
        self.pooler_activation = pooler_activation

    def predicted(
        self, features: TextFeatures, batch_size: int, pad_to_longest: bool | None
    ) -> np.ndarray:
        """The outputs for all examples, `[N]` or `[N, C]`, float32, in their order.

        Args:
            features: of the kind of the model's inputs.
            batch_size: examples in a batch.
            pad_to_longest: as in `pads_to_longest`.
        """
        is_right: Any = isinstance(features, TextFeatures) and (
            (features.num_choices is None) is (len(self.input["token_ids"].shape) == 2)
        )
        if not is_right:
            raise TypeError(
                "`features` must be from `tfeff.data.text_features`, of examples for "
                f"a {type(self).__name__}. Received: features={features!r:.80}"
            )
        check_known_ids(features.token_ids, self.encoder)
        batches = features.dataset(
            check_integer("batch_size", batch_size),
            shuffle=False,
            repeat=False,
            pad_to_longest=self.pads_to_longest(pad_to_longest),
        ).map(lambda inputs, *_: inputs)
        # The last batch is filled up with rows of padding.
        return self.predict(batches, verbose=0)[: len(features)].astype("float32")

    def heads(self):
        logits = self.get_layer("logits")
        if self.pooling == "segments":
            return {"logits": Head.of(logits)}
        pooler = self.get_layer("pooler")
        if self.pooling == "layerwise":
            start = Head({"initial_vector": pooler.initial_vector})
            return {"layerwise_pooler": start, "logits": Head.of(logits)}
        settings = {"pooling": self.pooling, "activation": self.pooler_activation}
        return {"pooler": Head.of(pooler, **settings), "logits": Head.of(logits)}

    def get_config(self):
        config = super().get_config()
        config.update(
            pooling=self.pooling,
            dropout=self.dropout,
            pooler_activation=self.pooler_activation,
        )
        return config


class SoftmaxTask(PooledTask):
    """A pooled task that chooses: its outputs are logits `[B, C]`."""

    def probabilities(
        self,
        features: TextFeatures,
        batch_size: int = 32,
        pad_to_longest: bool | None = None,
    ) -> np.ndarray:
        """The probability of each class or option, softmax(z), for each example.

        Args:
            features: from `tfeff.data.text_features`.
            batch_size: integer, examples in a batch.
            pad_to_longest: whether rows are as long as the longest of their batch. By
                default they are, unless the encoder depends on the padded length or
                the model is compiled for each length, as on a TPU.

        Returns:
            `[N, C]` float32, in the order of the examples.

        Raises:
            TypeError: if `features` are others.
            ValueError: if `batch_size` is below 1, or `features` have ids that the
                encoder has no rows for.

        Example:

        >>> import tfeff
        >>> films = ["great fun", "far too long", "fun"]
        >>> tokenizer = tfeff.data.train_tokenizer(films * 9, vocabulary_size=18)
        >>> examples = tfeff.data.TextExamples(films)
        >>> features = tfeff.data.text_features(examples, tokenizer, 8)
        >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=18)
        >>> tfeff.tasks.Classifier(encoder, 2).probabilities(features).shape
        (3, 2)
        """
        logits = self.predicted(features, batch_size, pad_to_longest)
        return keras.ops.convert_to_numpy(keras.ops.softmax(logits))


def make_pooling(encoder: Encoder, pooling: str):
    """A function that makes one vector `[B, D]` a sequence; `[B, 4 D]` of segments.

    Args:
        encoder: the `tfeff.encoders.Encoder`.
        pooling: one of `POOLINGS`.

    Returns:
        A function of the encoder's inputs `[B, T]` and of its outputs for them.
    """
    check_choice("pooling", pooling, POOLINGS)
    dtype = encoder.dtype_policy
    if pooling == "cls":
        return lambda rows, outputs: outputs["sequence_output"][:, 0]
    if pooling == "layerwise":
        layer = LayerwisePooling(
            encoder, initializer=bert_initializer(), dtype=dtype, name="pooler"
        )
        return lambda rows, outputs: layer(
            outputs["hidden_states"], padding_mask=rows["padding_mask"]
        )
    if pooling == "segments":
        layer = SegmentPooling(dtype=dtype, name="segments")
        return lambda rows, outputs: layer(
            outputs["sequence_output"], rows["segment_ids"], rows["padding_mask"]
        )
    if pooling == "mean":
        layer = MeanPooling(dtype=dtype, name="mean")
    else:
        layer = _LastToken(dtype=dtype, name="last_token")
    return lambda rows, outputs: layer(outputs["sequence_output"], rows["padding_mask"])


@keras.saving.register_keras_serializable(package="tfeff")
class _LastToken(Layer):
    """The hidden state of each sequence's last token that is not padding.

    A sequence of padding alone gets its first hidden state.
    """

    keeps_positions = False

    def call(self, hidden, padding_mask):
        real = ops.cast(padding_mask != 0, "int32")
        position = ops.cumsum(ops.ones_like(real), axis=1) - 1
        last = ops.max(position * real, axis=1, keepdims=True, initial=0)
        return functional.gather_positions(hidden, last)[:, 0]

    def compute_output_spec(self, hidden, padding_mask):
        return keras.KerasTensor((hidden.shape[0], hidden.shape[-1]), hidden.dtype)


def without_defaults(**values):
    """The values that are not the default, from pairs of a value and its default."""
    return {name: x for name, (x, default) in values.items() if x != default}


def check_class_names(
    label_names: Sequence[str] | None, count: int
) -> tuple[str, ...] | None:
    """Returns the names of the classes, or raises unless each has one."""
    if label_names is None:
        return None
    try:
        names = columns.check_label_names(label_names)
    except (TypeError, ValueError):
        names = ()
    if len(names) != count:
        raise ValueError(
            f"`label_names` must be {count} strings, different and of Unicode text. "
            f"Received: label_names={label_names!r:.200}"
        )
    return names
