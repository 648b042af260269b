import os
from typing import Any

import keras
import keras_hub

from tfeff.compat.layers import StaysFrozen
from tfeff.compat.models import TellsAllWeights
from tfeff.compat.saving import SavedReference, untracked
from tfeff.encoders.adapters import Adapters
from tfeff.encoders.layer_states import layer_states, make_with_states
from tfeff.encoders.own_calls import symbolic_outputs
from tfeff.encoders.preset_mixins import EncoderFiles
from tfeff.encoders.quantization import ChecksBeforeSaving, check_keeps_quantization
from tfeff.encoders.stack import apply_blocks, make_blocks
from tfeff.formats.export_model import export_outputs
from tfeff.layers import EncoderEmbedding
from tfeff.layers.attention import declares
from tfeff.layers.initializer import bert_initializer
from tfeff.layers.record_layers import begin_recording
from tfeff.ops.ids import exact_inputs
from tfeff.utils.checks import check_bool, check_keywords, check_mapping, known_keywords
from tfeff.utils.definitions import check_config
from tfeff.utils.types import Config, DType, Tensor

INPUTS = ("token_ids", "segment_ids", "padding_mask")


@keras.saving.register_keras_serializable(package="tfeff")
class Encoder(
    StaysFrozen,
    TellsAllWeights,
    ChecksBeforeSaving,
    Adapters,
    EncoderFiles,
    keras_hub.models.Backbone,
):
    """A Transformer encoder: one embedding and a stack of one kind of block.

    The papers' models differ in attention, positions and sizes, so every model of tfeff
    is an `Encoder` with some configuration. `tfeff.encoders.build` makes the published
    ones by name.

    As a KerasHub backbone it has `save_to_preset`, `from_preset`, `enable_lora` and
    `quantize`. Weights are initialised as in BERT: kernels and tables by a normal
    distribution of standard deviation 0.02, truncated at two deviations, biases by 0.

    Args:
        vocabulary_size: integer, number of token ids.
        num_layers: integer `L`, number of blocks.
        num_heads: integer, heads of each attention, or parts of a partition;
            divides `hidden_dim`.
        hidden_dim: integer `D`, width of the hidden states.
        intermediate_dim: integer, inner width of the feed-forward networks.
        max_sequence_length: integer, rows of the table of absolute positions. Without
            such a table, sequences may be longer; it is then only the default length
            of data and serving.
        num_segments: integer, number of segment ids; with 1 or 0, for no segment
            table, the embedding does not use them.
        embedding_dim: integer, width of the embedding tables, followed by a projection
            to `hidden_dim` if it differs; `None` means `hidden_dim`.
        attention: a registered name (`tfeff.encoders.attentions()`), a dict with
            that `"name"` and arguments of the attention, or a list of these, one for
            each layer. An argument here counts instead of the encoder's own, a
            `layer_index` too: all layers that have it have the same partition.
        feedforward: dict of arguments of `tfeff.layers.FeedForward`, `activation` and
            `num_groups`; `None` for its defaults.
        position: `"absolute"`, a learnt table; `"sinusoid"`, fixed vectors of any
            length; or `"none"`.
        sharing: the weights that layers share, as in ALBERT: `"none"`, `"attention"`,
            `"feedforward"`, or `"all"`, the norms included.
        sharing_group_size: integer `M`, the number of consecutive layers that share,
            layer `l` being in group `l // M`; divides `num_layers`. `None` means all
            layers. Layers that share weights keep their own index, for a partition,
            unless `attention` has one.
        embedding_layer_norm: whether the sum of the embeddings is normalised.
        layer_norm_epsilon: float added to the variance in every norm.
        dropout: float in [0, 1), dropout rate of the embedding and of both branches of
            the blocks.
        attention_dropout: float in [0, 1), dropout rate of the normalised attention
            scores; `None` means `dropout`. An attention's own `dropout` in `attention`
            replaces it.
        memory_efficient: what the backward pass recomputes instead of saving it:
            nothing (`False`), scores and weights of attentions (`"attention"`), or all
            but the input of each block (`"block"`, or `True`): far less memory, for
            about a third more time. Values and gradients are the same.
        tables_of: an `Encoder` whose embedding tables and embedding norm this one uses
            instead of its own, as a generator does (`tfeff.objectives.generator_for`).
            A model that has both is saved with what they share; otherwise it is not
            part of the config, and a copy has its own tables.
        dtype: dtype or dtype policy, such as `"mixed_bfloat16"`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, T]`: `token_ids`, `segment_ids`, and
            `padding_mask` with 1 at real tokens, which may be bool. Further entries
            are ignored. Ids out of range: see `tfeff.layers.EncoderEmbedding`.

    Returns:
        Dict of `sequence_output`, the last hidden state `[B, T, D]`, and
        `hidden_states`, the list `X^0 … X^L` of `L + 1` tensors `[B, T, D]`, from
        the embedding to the last block.

    Raises:
        TypeError: if an argument is of another type, or not known.
        ValueError: if an argument is out of range, `num_heads` does not divide
            `hidden_dim`, an attention is unknown, a list of attentions does not have
            one entry for each layer, or layers of different attentions are to share
            one.

    Example:

    >>> encoder = Encoder(
    ...     vocabulary_size=100,
    ...     num_layers=2,
    ...     num_heads=4,
    ...     hidden_dim=16,
    ...     intermediate_dim=64,
    ...     attention="one_head",
    ...     position="none",
    ... )
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> outputs = encoder(
    ...     {"token_ids": ones, "segment_ids": ones, "padding_mask": ones}
    ... )
    >>> tuple(outputs["sequence_output"].shape), len(outputs["hidden_states"])
    ((2, 7, 16), 3)

    Reference:
        Devlin et al., "BERT"; Tian et al., "Shatter"; Lan et al., "ALBERT", for
        `embedding_dim` and `sharing`; Qiu et al., "BlockBERT", Table 6, for
        `dropout` and `attention_dropout`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        embedding_dim: int | None = None,
        attention: str | dict | list = "self",
        feedforward: dict | None = None,
        position: str = "absolute",
        sharing: str = "none",
        sharing_group_size: int | None = None,
        embedding_layer_norm: bool = True,
        layer_norm_epsilon: float = 1e-12,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        memory_efficient: bool | str = False,
        tables_of: "Encoder | None" = None,
        dtype: DType | None = None,
        **kwargs: Any,
    ):
        check_keywords("Encoder", kwargs, known_keywords(Encoder))
        check_bool("embedding_layer_norm", embedding_layer_norm)
        if tables_of is not None and not isinstance(tables_of, Encoder):
            raise TypeError(
                "`tables_of` must be an `Encoder`. Received: "
                f"tables_of={tables_of!r:.80}"
            )
        embedding = EncoderEmbedding(
            vocabulary_size,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            embedding_dim=embedding_dim,
            position=position,
            dropout=dropout,
            layer_norm=embedding_layer_norm,
            layer_norm_epsilon=layer_norm_epsilon,
            embeddings_initializer=bert_initializer(),
            tables_of=None if tables_of is None else tables_of.embedding,
            dtype=dtype,
            name="embedding",
        )
        blocks = make_blocks(
            num_layers,
            num_heads,
            hidden_dim,
            intermediate_dim,
            max_sequence_length=max_sequence_length,
            attention=attention,
            feedforward=feedforward,
            sharing=sharing,
            sharing_group_size=sharing_group_size,
            layer_norm_epsilon=layer_norm_epsilon,
            dropout=dropout,
            attention_dropout=attention_dropout,
            memory_efficient=memory_efficient,
            dtype=dtype,
        )
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS
        }
        hidden_states = apply_blocks(
            blocks,
            embedding(inputs["token_ids"], inputs["segment_ids"]),
            padding_mask=inputs["padding_mask"],
            segment_ids=inputs["segment_ids"],
        )
        super().__init__(
            inputs=inputs,
            outputs={
                "sequence_output": hidden_states[-1],
                "hidden_states": hidden_states,
            },
            dtype=dtype,
            **kwargs,
        )
        self._tables_of = SavedReference(tables_of)
        self.embedding: EncoderEmbedding = embedding
        self.token_embedding = embedding.token_embedding
        self.blocks = blocks

        self.vocabulary_size = vocabulary_size
        self.num_layers = len(blocks)
        self.num_heads = int(num_heads)
        self.hidden_dim = embedding.hidden_dim
        self.intermediate_dim = blocks[0].feedforward.intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.embedding_dim = embedding.embedding_dim
        self.attention = untracked(attention)
        self.feedforward = untracked(feedforward)
        self.position = position
        self.sharing = sharing
        self.sharing_group_size = sharing_group_size
        self.embedding_layer_norm = embedding_layer_norm
        self.layer_norm_epsilon = layer_norm_epsilon
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.memory_efficient = blocks[0].memory_efficient
        self.tell_weights()

    @property
    def length_dependent(self) -> bool:
        """Whether more padding changes the outputs, as with blockwise attention.

        Such an encoder needs sequences of one length, in training and afterwards.
        """
        return any(
            declares(block.attention, "length_dependent") for block in self.blocks
        )

    def call(
        self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None
    ) -> dict[str, Any]:
        check_mapping("inputs", inputs, "names to tensors")
        inputs = exact_inputs(inputs, self.input)
        begin_recording()
        return super().call(inputs, training=training, mask=mask)

    def save_to_preset(self, *args: Any, **kwargs: Any) -> None:
        check_keeps_quantization(self)
        super().save_to_preset(*args, **kwargs)

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the encoder as a SavedModel, for LiteRT or for ONNX.

        The file takes `token_ids`, `segment_ids` and `padding_mask`, int32 `[B, T]`,
        and returns `sequence_output` and `hidden_states_0` … `hidden_states_L`, float32
        `[B, T, D]`, by these names. Batches and sequences have any size, unless
        `input_signature` says otherwise. A LiteRT file has LiteRT's own operators
        alone.

        Args:
            filepath: the folder of a SavedModel, or the file, whose name ends in
                `.tflite` for LiteRT.
            format: `"tf_saved_model"`, `"litert"`, `"onnx"`, or another one of Keras.
            verbose: whether Keras prints what it wrote.
            input_signature: dict of a `keras.InputSpec` for each input. Without
                `padding_mask`, all tokens are real; without `segment_ids`, all are of
                the first segment.
            **kwargs: further arguments of `tfeff.export.export_model`.

        Raises:
            ValueError: if the signature does not fit, or the format has no operator for
                a layer, whose path the message has.

        Example:

        ```python
        import keras, tfeff

        encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
        encoder.export("encoder.tflite", format="litert")
        # One text of 128 tokens at a time is faster there.
        shape = keras.InputSpec(shape=(1, 128), dtype="int32")
        encoder.export(
            "encoder_128.tflite",
            format="litert",
            input_signature={"token_ids": shape, "padding_mask": shape},
        )
        ```
        """
        found = symbolic_outputs(self)
        outputs = {"sequence_output": found["sequence_output"]}
        for index, states in enumerate(found["hidden_states"]):
            outputs[f"hidden_states_{index}"] = states
        export_outputs(
            self.name,
            self.input,
            outputs,
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )

    def get_config(self) -> Config:
        check_config(self)
        # Not KerasHub's, in which quantized layers are a map in `dtype`: it loses the
        # dtype of all other layers, and presets are loaded without it.
        config = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **layer_states(self),
        }
        config.update(
            vocabulary_size=self.vocabulary_size,
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            hidden_dim=self.hidden_dim,
            intermediate_dim=self.intermediate_dim,
            max_sequence_length=self.max_sequence_length,
            num_segments=self.num_segments,
            embedding_dim=self.embedding_dim,
            attention=self.attention,
            feedforward=self._feedforward_config(),
            position=self.position,
            sharing=self.sharing,
            sharing_group_size=self.sharing_group_size,
            embedding_layer_norm=self.embedding_layer_norm,
            layer_norm_epsilon=self.layer_norm_epsilon,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            memory_efficient=self.memory_efficient,
            **self._tables_of.config("tables_of"),
        )
        return untracked(config)

    def _feedforward_config(self):
        """The arguments of the feed-forward networks, a function by its name."""
        if not callable((self.feedforward or {}).get("activation")):
            return self.feedforward
        activation = self.blocks[0].feedforward.get_config()["activation"]
        return {**self.feedforward, "activation": activation}

    @classmethod
    def from_config(cls, config: Config) -> "Encoder":
        config = {**config, "dtype": keras.dtype_policies.get(config.get("dtype"))}
        config = SavedReference.revived(cls, config, "tables_of")
        return make_with_states(cls, config)


def foreign_class(config: dict) -> str | None:
    """The class that a preset's configuration names, if it is no encoder of tfeff."""
    name = config.get("registered_name")
    kind = keras.saving.get_registered_object(name) if isinstance(name, str) else None
    return None if isinstance(kind, type) and issubclass(kind, Encoder) else name


def check_encoder(name: str, encoder) -> Encoder:
    """Returns `encoder` if it is one, else raises."""
    if not isinstance(encoder, Encoder):
        raise TypeError(
            f"`{name}` must be a `tfeff.encoders.Encoder`. Received: "
            f"{name}={encoder!r:.80}"
        )
    return encoder


def encoder_of(model) -> Encoder | None:
    """The encoder that a model is, or has as `.encoder`; `None` if there is none."""
    encoder = model if isinstance(model, Encoder) else getattr(model, "encoder", None)
    return encoder if isinstance(encoder, Encoder) else None
