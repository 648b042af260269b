"""KerasHub's tasks and preprocessors of an `Encoder`.

KerasHub finds them by `backbone_cls`, so that its own
`keras_hub.models.TextClassifier.from_preset` and the like take presets of tfeff.
"""

from typing import Any

import keras
import keras_hub

from tfeff.compat.layers import StaysFrozen
from tfeff.compat.tokenizers import LengthOfPreset
from tfeff.encoders.encoder import Encoder, check_encoder
from tfeff.encoders.layer_states import layer_states, make_with_states
from tfeff.encoders.preset_digests import check_beside, check_settings_and_assets
from tfeff.encoders.preset_layout import TASK_FILES, TASK_WEIGHTS
from tfeff.encoders.preset_mixins import ReadsURL
from tfeff.encoders.preset_writing import (
    check_no_heads,
    replaced_when_whole,
    reserve_weights,
)
from tfeff.encoders.quantization import ChecksBeforeSaving, check_keeps_quantization
from tfeff.layers.checks import check_activation
from tfeff.layers.dense import bert_dense
from tfeff.layers.dropout import Dropout
from tfeff.layers.initializer import bert_initializer
from tfeff.ops.ids import exact_inputs
from tfeff.storage.arguments import WRITE, paths
from tfeff.utils.checks import check_integer, check_keywords, check_rate, known_keywords
from tfeff.utils.types import Activation, Config

# The entry of a task's configuration that holds its quantized and frozen layers.
_STATES = "states"


class _EncoderTask(StaysFrozen, ChecksBeforeSaving, ReadsURL):
    """Checks of what a task saves, its digests, and what its layers have become."""

    backbone_cls = Encoder

    def call(self, inputs, training=None, mask=None):
        if isinstance(inputs, dict):
            inputs = exact_inputs(inputs, self.input)
        return super().call(inputs, training=training, mask=mask)

    def get_config(self):
        states = layer_states(self)
        if not self.trainable:
            states["trainable"] = False
        return {**super().get_config(), **({_STATES: states} if states else {})}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        states = config.pop(_STATES, {})
        # KerasHub gives a new head to callers that pass `num_classes`.
        if "num_classes" not in config:
            config |= states
        make = super().from_config
        return make_with_states(lambda **arguments: make(arguments), config)

    @paths(preset_dir=WRITE)
    def save_to_preset(self, preset_dir, *args, **kwargs):
        """As `keras_hub.models.Task.save_to_preset`, with digests, also to a URL."""
        check_keeps_quantization(self)
        check_no_heads(preset_dir, replaced=[TASK_WEIGHTS])
        with replaced_when_whole(preset_dir) as whole:
            super().save_to_preset(whole, *args, **kwargs)

    def save_task_weights(self, filepath):
        others = set(map(id, self.backbone.weights))
        reserve_weights(filepath, [w for w in self.weights if id(w) not in others])
        super().save_task_weights(filepath)

    def load_task_weights(self, filepath):
        check_beside(filepath, lambda name: name in TASK_FILES)
        super().load_task_weights(filepath)


def _saved_whole(task: type) -> Any:
    """KerasHub's class of a task with what `_EncoderTask` adds to it."""
    # KerasHub writes the names of bases into a preset, as of its tasks.
    return type(task.__name__, (_EncoderTask, task), {})


_TextClassifier: Any = _saved_whole(keras_hub.models.TextClassifier)
_MaskedLM: Any = _saved_whole(keras_hub.models.MaskedLM)


def _check(task, backbone, preprocessor, keywords):
    check_keywords(task.__name__, keywords, known_keywords(task) | {"compile"})
    check_encoder("backbone", backbone)
    if preprocessor is not None and not callable(preprocessor):
        raise TypeError(
            "`preprocessor` must be a preprocessor of KerasHub or None. "
            f"Received: preprocessor={preprocessor!r:.80}"
        )


class _Rows(LengthOfPreset, ReadsURL):
    """Checks of the rows that a preprocessor makes, ahead of KerasHub's class."""

    backbone_cls = Encoder
    tokenizer_cls = keras_hub.tokenizers.Tokenizer

    def __init__(self, tokenizer, *args, **kwargs):
        # KerasHub's own tokenizers of RoBERTa and XLM-RoBERTa do not name theirs.
        names_one = hasattr(tokenizer, "sep_token_id")
        if not names_one or getattr(tokenizer, "pair_separators", 1) != 1:
            raise ValueError(
                "`tokenizer` must have one separator between the texts of a pair, as "
                "KerasHub's preprocessors do; `tfeff.data.text_features` makes rows of "
                f"others. Received: tokenizer={tokenizer!r}"
            )
        super().__init__(tokenizer, *args, **kwargs)

    @paths(preset_dir=WRITE)
    def save_to_preset(self, preset_dir):
        """As `keras_hub.models.Preprocessor.save_to_preset`, also to a URL."""
        with replaced_when_whole(preset_dir) as whole:
            super().save_to_preset(whole)

    # KerasHub's own classes call these two alone.
    def load_preset_assets(self, preset):
        check_settings_and_assets(preset)
        super().load_preset_assets(preset)

    @classmethod
    def check_before_loading(cls, loader):
        check_settings_and_assets(loader.preset)


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderTextClassifierPreprocessor(
    _Rows, keras_hub.models.TextClassifierPreprocessor
):
    """Texts and pairs as rows `[CLS] first [SEP] second [SEP]` for a classifier.

    The rows are those of `tfeff.data.text_features`. `from_preset` makes them as long
    as the preset's encoder reads, unless it is given `sequence_length`.

    Args:
        tokenizer: the KerasHub tokenizer of the encoder, but neither RoBERTa's nor
            XLM-RoBERTa's, whose pairs have two separators.
        **kwargs: as of `keras_hub.models.TextClassifierPreprocessor`, such as
            `sequence_length`.

    Example:

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog"]
    >>> preprocessor = EncoderTextClassifierPreprocessor(
    ...     tfeff.data.BertTokenizer(pieces), sequence_length=6
    ... )
    >>> [int(id) for id in preprocessor("cat dog")["token_ids"]]
    [2, 5, 6, 3, 0, 0]
    """


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderTextClassifier(_TextClassifier):
    """KerasHub's `TextClassifier` of an `Encoder`, with BERT's pooler.

        v = tanh(X^L[0] W + b)
        z = g(dropout(v) W' + b')               [num_classes]

    `tfeff.tasks.Classifier` is the same model for tfeff's own training, which knows
    several devices and exports; this one takes texts in `fit` and `predict`.

    Args:
        backbone: a `tfeff.encoders.Encoder`.
        num_classes: integer, at least 2.
        preprocessor: an `EncoderTextClassifierPreprocessor`, or `None` for inputs that
            are token ids already.
        activation: `g`, by a name of Keras'; `None` for logits.
        dropout: float in [0, 1), rate on `v`.
        **kwargs: `name`, `trainable` and `compile`.

    Raises:
        TypeError: if an argument has the wrong type, such as a backbone that is no
            `Encoder`, or does not exist.
        ValueError: if an argument is out of range.

    Example:
    ```python
    import keras_hub
    import tfeff

    films = ["great fun", "far too long"]
    tokenizer = tfeff.data.train_tokenizer(films * 9, vocabulary_size=17)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=17, num_layers=1, max_sequence_length=16
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")

    model = keras_hub.models.TextClassifier.from_preset("preset", num_classes=2)
    model.fit(films, [1, 0], verbose=0)
    model.save_to_preset("films")
    model = keras_hub.models.TextClassifier.from_preset("films")
    assert model.predict(films, verbose=0).shape == (2, 2)
    ```

    Reference:
        Devlin et al., "BERT", section 4.1.
    """

    preprocessor_cls = EncoderTextClassifierPreprocessor

    def __init__(
        self,
        backbone: Encoder,
        num_classes: int,
        preprocessor: Any = None,
        activation: Activation | None = None,
        dropout: float = 0.1,
        **kwargs: Any,
    ):
        _check(EncoderTextClassifier, backbone, preprocessor, kwargs)
        dtype = backbone.dtype_policy
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.num_classes = check_integer("num_classes", num_classes, 2)
        self.activation = check_activation("activation", activation)
        self.dropout = check_rate("dropout", dropout)
        inputs = backbone.input
        first = backbone(inputs)["sequence_output"][:, 0]
        pooler = bert_dense(
            backbone.hidden_dim, activation="tanh", name="pooler", dtype=dtype
        )
        vector = Dropout(dropout, dtype=dtype, name="dropout")(pooler(first))
        logits = bert_dense(
            self.num_classes, activation=activation, name="logits", dtype=dtype
        )
        super().__init__(inputs=inputs, outputs=logits(vector), **kwargs)

    def get_config(self) -> Config:
        config = super().get_config()
        config.get(_STATES, config)["num_classes"] = self.num_classes
        return {
            **config,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
        }


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderMaskedLMPreprocessor(_Rows, keras_hub.models.MaskedLMPreprocessor):
    """Texts and pairs as rows in which some tokens are masked, by KerasHub.

    `from_preset` makes rows as long as the preset's encoder reads, unless it is given
    `sequence_length`.

    Args:
        tokenizer: the KerasHub tokenizer of the encoder, but neither RoBERTa's nor
            XLM-RoBERTa's, whose pairs have two separators.
        **kwargs: as of `keras_hub.models.MaskedLMPreprocessor`, such as
            `mask_selection_rate`.

    Example: see `EncoderMaskedLM`.
    """


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderMaskedLM(_MaskedLM):
    """KerasHub's `MaskedLM` of an `Encoder`.

        z = LayerNorm(gelu(X^L[m] W + b)) Eᵀ + c        [V] a masked position

    The head is new: `tfeff.tasks.load_masked_lm` reads the one that a preset keeps.
    KerasHub's default loss is a mean over all slots of a row, of which the unused ones
    have weight 0; that of `tfeff.objectives.MaskedLM` is one over the masked tokens.

    Args:
        backbone: a `tfeff.encoders.Encoder`.
        preprocessor: an `EncoderMaskedLMPreprocessor`, or `None` for inputs that are
            token ids and `mask_positions` already.
        **kwargs: `name`, `trainable` and `compile`.

    Raises:
        TypeError: if `backbone` is no `Encoder`, or an argument does not exist.

    Example:
    ```python
    import keras_hub
    import tfeff

    texts = ["seven green bottles", "hanging on the wall"]
    tokenizer = tfeff.data.train_tokenizer(texts * 9, vocabulary_size=22)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=22, num_layers=1, max_sequence_length=16
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")

    model = keras_hub.models.MaskedLM.from_preset("preset")
    model.fit(texts, verbose=0)
    ```

    Reference:
        Devlin et al., "BERT", section 3.1.
    """

    preprocessor_cls = EncoderMaskedLMPreprocessor

    def __init__(self, backbone: Encoder, preprocessor: Any = None, **kwargs: Any):
        _check(EncoderMaskedLM, backbone, preprocessor, kwargs)
        self.backbone = backbone
        self.preprocessor = preprocessor
        head = keras_hub.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding,
            intermediate_activation="gelu",
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            kernel_initializer=bert_initializer(),
            dtype=backbone.dtype_policy,
            name="mlm_head",
        )
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        outputs = backbone(backbone.input)
        super().__init__(
            inputs={**backbone.input, "mask_positions": positions},
            outputs=head(outputs["sequence_output"], positions),
            **kwargs,
        )
