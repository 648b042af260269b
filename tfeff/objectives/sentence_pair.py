from typing import Any

import keras

from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.layers.dense import bert_dense
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm_head import make_masked_lm_head
from tfeff.objectives.objective import Objective, mask_positions_input, token_metrics
from tfeff.training.losses import GlobalMeanCrossentropy
from tfeff.utils.checks import check_bool, check_choice
from tfeff.utils.types import Config

# The names of the objectives, and of the heads in presets, by the kind of classes.
OBJECTIVES = {"order": "sentence_order", "next": "next_sentence"}


@keras.saving.register_keras_serializable(package="tfeff")
class SentencePairPrediction(Objective):
    """Predicts whether two segments belong together: sentence order or next sentence.

    The last hidden state at the first position, `[CLS]`, goes through BERT's pooler
    and a dense layer with two classes:

        z = tanh(X^L[0] W_p + b_p) W + b

    The data define the classes, see `tfeff.data.SentencePairs`: with
    `kind="order"` (ALBERT) class 1 is swapped segments, with `kind="next"` (BERT) a
    second segment from elsewhere. By default the model also learns masked
    language modelling, as in both papers:

        loss = mean over pairs + mean over masked positions

    each over the global batch.

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        masked_lm: whether the masked tokens are predicted, too, as in
            `tfeff.objectives.MaskedLM`.
        kind: what the classes are, `"order"` or `"next"`: that of the data. It changes
            nothing but the name of the head in a preset.
        activation: of the head of masked language modelling, as in
            `tfeff.objectives.MaskedLM`.
        layer_norm_epsilon: float, likewise.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of the encoder's inputs, integer tensors `[B, T]` `token_ids`,
            `segment_ids` and `padding_mask`, and, with `masked_lm`,
            `mask_positions` `[B, M]`.

    Returns:
        Dict of logits: `sentence` `[B, 2]` and, with `masked_lm`, `masked_lm`
        `[B, M, V]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`, or `masked_lm` is
            not a bool.
        ValueError: if `kind` is neither, or another argument is out of range.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("albert_base", vocabulary_size=100,
    ...     num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> model = SentencePairPrediction(encoder, masked_lm=False)
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> logits = model(
    ...     {"token_ids": ones, "segment_ids": ones, "padding_mask": ones}
    ... )
    >>> tuple(logits["sentence"].shape)
    (2, 2)

    Reference:
        Lan et al., "ALBERT", section 3.1, inter-sentence coherence loss; Devlin et
        al., "BERT", section 3.1, task 2.
    """

    def __init__(
        self,
        encoder: Encoder,
        masked_lm: bool = True,
        kind: str = "order",
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        check_bool("masked_lm", masked_lm)
        check_choice("kind", kind, sorted(OBJECTIVES))
        inputs = dict(encoder.input)
        hidden = encoder(encoder.input)["sequence_output"]
        dtype = encoder.dtype_policy
        pooler = bert_dense(
            encoder.hidden_dim, activation="tanh", dtype=dtype, name="pooler"
        )
        classifier = bert_dense(2, dtype=dtype, name="sentence")
        outputs = {"sentence": classifier(pooler(hidden[:, 0]))}
        head = make_masked_lm_head(
            encoder, activation=activation, layer_norm_epsilon=layer_norm_epsilon
        )
        if masked_lm:
            inputs["mask_positions"] = mask_positions_input()
            outputs["masked_lm"] = head(hidden, inputs["mask_positions"])
        super().__init__(encoder, inputs, outputs, **kwargs)
        self.masked_lm = masked_lm
        self.kind = kind
        self.head_settings = head.settings
        self.output_weights = {name: 1.0 for name in outputs}

    def default_loss(self) -> Any:
        return {name: GlobalMeanCrossentropy() for name in self.output_weights}

    def default_metrics(self) -> Any:
        return {name: token_metrics() for name in self.output_weights}

    def heads(self) -> dict[str, Head]:
        heads = {
            "pooler": Head.of(
                self.get_layer("pooler"), pooling="cls", activation="tanh"
            ),
            OBJECTIVES[self.kind]: Head.of(self.get_layer("sentence")),
        }
        if self.masked_lm:
            heads["masked_lm"] = self.get_layer("head").as_head()
        return heads

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "masked_lm": self.masked_lm,
            "kind": self.kind,
            **self.head_settings,
        }
