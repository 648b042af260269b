from typing import Any

import keras
from keras import ops

from tfeff.compat.saving import untracked
from tfeff.encoders import Encoder, extend_length
from tfeff.encoders.encoder import check_encoder
from tfeff.encoders.layer_names import weight_names
from tfeff.encoders.layer_states import layer_states
from tfeff.encoders.own_calls import has_own_call, symbolic_outputs
from tfeff.objectives.binary_metrics import binary_metrics
from tfeff.objectives.discriminator_head import PARTS, as_head, discriminator_layers
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm_head import HEAD_SETTINGS, make_masked_lm_head
from tfeff.objectives.objective import (
    TARGET_MEAN,
    Objective,
    OptionError,
    as_columns,
    mask_positions_input,
    token_metrics,
)
from tfeff.objectives.token_replacement import TokenReplacement, at_positions
from tfeff.training.losses import GlobalMeanBinaryCrossentropy, GlobalMeanCrossentropy
from tfeff.training.optimizers import AdamW, adamw
from tfeff.training.target_weights import (
    check_targets,
    target_weights,
    weights_of_examples,
)
from tfeff.utils.checks import check_positive
from tfeff.utils.types import Config, Tensor

# Arguments of both networks that a loaded model may have.
_OF_BOTH = {"dropout", "attention_dropout", "dtype", "memory_efficient"}


@keras.saving.register_keras_serializable(package="tfeff")
class ReplacedTokenDetection(Objective):
    """Replaced-token detection: find the tokens that a small generator replaced.

    The generator, a masked language model, draws a token for every masked position;
    the discriminator reads the text with the draws in it and predicts for each token
    whether it was replaced. A draw that equals the original token counts as original.

        x̂ = text with s ~ softmax(z / τ) at the masked positions
        d_t = g(X^L_t W + b) w + c                           of the discriminator
        loss = mean over masked positions of the generator's cross-entropy
             + λ · mean over real tokens of the sigmoid cross-entropy of d

    Real tokens are all but padding, including `[CLS]` and `[SEP]`, as in the authors'
    code. Both means are over the global batch. The weights of the batch tell which
    slots of masked positions are used; the others replace nothing. The draws pass no
    gradient.

    Trained on `tfeff.data.MaskedTokens`; the papers' masking is
    `MaskedTokens(mask_share=0.85, random_share=0.0)`. The pretrained encoder is
    `encoder`, the discriminator.

    Args:
        generator: a `tfeff.encoders.Encoder`; `tfeff.objectives.generator_for` makes
            one that shares the discriminator's embedding tables.
        discriminator: the `tfeff.encoders.Encoder` to pretrain.
        discriminator_weight: float `λ` > 0.
        temperature: float `τ` > 0.
        seed: integer, of the draws; `None` for one drawn by Keras.
        activation: `g`, by a name of Keras'; `"gelu_tanh"` is GELU by tanh.
        generator_head: dict of the settings of the generator's head, `activation` and
            `layer_norm_epsilon` of `tfeff.objectives.MaskedLM`; `None` for its
            defaults.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: as of `tfeff.objectives.MaskedLM`. A call gets no weights: slots at
            position 0, which holds `[CLS]`, replace nothing. `fit` and `evaluate`
            move slots of weight 0 there.

    Returns:
        Dict of `masked_lm`, the generator's logits `[B, M, V]`; `replaced`, the
        discriminator's logits `[B, T]`; `samples`, the draws `[B, M]` int32.

    Raises:
        TypeError: if `generator` or `discriminator` is not an `Encoder`, or
            `generator_head` is not a dict.
        ValueError: if their vocabularies differ, they are one and the same, a number is
            not positive, or an activation or a setting of the head is unknown.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> model = ReplacedTokenDetection(
    ...     tfeff.objectives.generator_for(encoder, ratio=1 / 2), encoder
    ... )
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> outputs = model(
    ...     {
    ...         "token_ids": ones,
    ...         "segment_ids": ones,
    ...         "padding_mask": ones,
    ...         "mask_positions": ones[:, :1],
    ...     }
    ... )
    >>> tuple(outputs["replaced"].shape)
    (2, 7)

    Reference:
        Clark et al., "ELECTRA", sections 2 and 3; Jiang et al., "ConvBERT",
        sections 4.1 and 6.2.
    """

    encoder_argument = "discriminator"

    def __init__(
        self,
        generator: Encoder,
        discriminator: Encoder,
        discriminator_weight: float = 50.0,
        temperature: float = 1.0,
        seed: int | None = None,
        activation: str = "gelu",
        generator_head: dict | None = None,
        **kwargs: Any,
    ):
        check_encoder("generator", generator)
        check_encoder("discriminator", discriminator)
        discriminator_weight = check_positive(
            "discriminator_weight", discriminator_weight
        )
        if generator is discriminator:
            raise ValueError(
                "`generator` must be another encoder than `discriminator`. "
                "Received: the same object"
            )
        if generator.vocabulary_size != discriminator.vocabulary_size:
            raise ValueError(
                "`generator` must have the vocabulary of `discriminator`. Received: "
                f"generator.vocabulary_size={generator.vocabulary_size}, "
                f"discriminator.vocabulary_size={discriminator.vocabulary_size}"
            )
        replacement = TokenReplacement(
            temperature, seed, dtype=discriminator.dtype_policy, name="replacement"
        )
        hidden_layer, output_layer = discriminator_layers(discriminator, activation)
        settings = _check_settings(generator_head)
        head = make_masked_lm_head(generator, name="generator_head", **settings)

        inputs = {**generator.input, "mask_positions": mask_positions_input()}
        logits = head(
            generator(generator.input)["sequence_output"], inputs["mask_positions"]
        )
        replaced, samples = replacement(
            inputs["token_ids"], inputs["mask_positions"], logits
        )
        hidden = discriminator(
            {
                "token_ids": replaced,
                "segment_ids": inputs["segment_ids"],
                "padding_mask": inputs["padding_mask"],
            }
        )["sequence_output"]
        outputs = {
            "masked_lm": logits,
            "replaced": output_layer(hidden_layer(hidden))[..., 0],
            "samples": samples,
        }
        super().__init__(discriminator, inputs, outputs, **kwargs)
        self.generator = generator
        self.discriminator_weight = float(discriminator_weight)
        self.temperature = replacement.temperature
        self.seed = None if seed is None else int(seed)
        self.activation = activation
        self.generator_head = head.settings
        self.output_weights = {"masked_lm": 1.0, "replaced": self.discriminator_weight}

    @property
    def share_embeddings(self) -> bool:
        """Whether both networks have the same embedding tables."""
        return self.generator.token_embedding is self.encoder.token_embedding

    def heads(self) -> dict[str, Head]:
        """The discriminator's head, and the generator with its own."""
        layers = [self.get_layer(f"discriminator_{part}") for part in PARTS]
        shared = {id(weight) for weight in self.encoder.weights}
        own = {
            f"encoder/{name}": weight
            for name, weight in weight_names(self.generator).items()
            if id(weight) not in shared
        }
        head = self.get_layer("generator_head").as_head()
        own |= {f"head/{name}": weight for name, weight in head.weights.items()}
        return {
            "replaced_token": as_head(layers, self.activation),
            "generator": Head(own, head.settings),
        }

    def exported(self) -> Any:
        """The discriminator's inputs and output: nothing is drawn in the text."""
        if has_own_call(self):
            nothing = ops.zeros_like(self.encoder.input["token_ids"][:, :1])
            outputs = self({**self.encoder.input, "mask_positions": nothing})
            return self.encoder.input, {"replaced": outputs["replaced"]}
        logits = symbolic_outputs(self.encoder)["sequence_output"]
        for part in PARTS:
            logits = self.get_layer(f"discriminator_{part}")(logits)
        return self.encoder.input, {"replaced": logits[..., 0]}

    def default_optimizer(self) -> AdamW:
        """The optimizer of ConvBERT small."""
        return adamw(
            3e-4, warmup_steps=10_000, total_steps=1_000_000, bias_correction=False
        )

    def default_loss(self) -> Any:
        return {
            "masked_lm": GlobalMeanCrossentropy(),
            "replaced": GlobalMeanBinaryCrossentropy(),
        }

    def default_metrics(self) -> Any:
        return {"masked_lm": token_metrics(), "replaced": binary_metrics(TARGET_MEAN)}

    def prepare_batch(self, data: Any) -> Any:
        return _unused_at_zero(data)

    def target_weights(
        self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None
    ) -> Any:
        """Weights of both networks' targets; given ones by output stay as they are."""
        if isinstance(sample_weight, dict):
            return sample_weight
        real = ops.cast(x["padding_mask"], "float32")
        examples = weights_of_examples(sample_weight, x["mask_positions"])
        return {
            "masked_lm": target_weights(sample_weight, x["mask_positions"]),
            "replaced": real * ops.cast(target_weights(examples, real), "float32"),
        }

    def compute_loss(
        self,
        x: Tensor = None,
        y: Tensor = None,
        y_pred: Tensor = None,
        sample_weight: Tensor | None = None,
        training: bool | None = True,
    ) -> Tensor:
        check_targets(y)
        sample_weight = self.target_weights(x, y, sample_weight)
        y, y_pred = _split_targets(x, y, y_pred)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def compute_metrics(
        self, x: Tensor, y: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> dict[str, Any]:
        sample_weight = self.target_weights(x, y, sample_weight)
        y, y_pred = _split_targets(x, y, y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _as_columns(self, *parts):
        """`as_columns` of the output of the detector alone."""
        columns = as_columns(*(part.get("replaced") for part in parts))
        return [
            {**part, "replaced": column}
            for part, column in zip(parts, columns, strict=True)
        ]

    def get_config(self) -> Config:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "generator": keras.saving.serialize_keras_object(self.generator),
            "discriminator": keras.saving.serialize_keras_object(self.encoder),
            "share_embeddings": self.share_embeddings,
            "discriminator_weight": self.discriminator_weight,
            "temperature": self.temperature,
            "seed": self.seed,
            "activation": self.activation,
            "generator_head": untracked(self.generator_head),
            **layer_states(self),
        }

    @classmethod
    def of_encoder(
        cls, encoder: keras.Model, config: Config
    ) -> "ReplacedTokenDetection":
        config = dict(config)
        generator = config["generator"]
        if config.pop("share_embeddings"):
            inner = {**generator["config"], "tables_of": encoder}
            generator = {**generator, "config": inner}
        config["generator"] = keras.saving.deserialize_keras_object(generator)
        return super().of_encoder(encoder, config)

    @classmethod
    def with_options(cls, config: Config, options: Config) -> Config:
        """The rest of the configuration, whose generator gets the options, too.

        Raises:
            OptionError: if the generator cannot have one of them.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if "swap_positions" in given:
            raise OptionError(
                "`swap_positions` must be None for a model of replaced tokens, whose "
                "generator keeps its positions. "
                f"Received: swap_positions={given['swap_positions']!r}"
            )
        generator = keras.saving.deserialize_keras_object(config["generator"])
        inner = generator.get_config()
        for name in _OF_BOTH & set(given):
            inner[name] = given[name]
        old, new = inner["max_sequence_length"], given.get("sequence_length", 0)
        if new > old:
            if inner["position"] == "absolute" and not config["share_embeddings"]:
                raise OptionError(
                    f"`sequence_length` must be at most {old}, the rows of the "
                    "generator's own table of positions. "
                    f"Received: sequence_length={new}"
                )
            # A shared table is the discriminator's, which already has this length.
            bare = type(generator).from_config({**inner, "position": "none"})
            longer = extend_length(bare, new).get_config()
            inner.update(max_sequence_length=new, attention=longer["attention"])
        return {**config, "generator": {**config["generator"], "config": inner}}


def _check_settings(generator_head):
    """Returns the settings of the generator's head, or raises."""
    settings = {} if generator_head is None else generator_head
    if not isinstance(settings, dict):
        raise TypeError(
            "`generator_head` must be a dict of settings. "
            f"Received: generator_head={generator_head!r}"
        )
    if not set(settings) <= {*HEAD_SETTINGS}:
        raise ValueError(
            "`generator_head` must have no other settings than `activation` and "
            f"`layer_norm_epsilon`. Received: generator_head={generator_head!r}"
        )
    return settings


def _unused_at_zero(data):
    """The batch, with position 0 in the slots of weight 0."""
    x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
    if weights is None:
        return data
    positions = x["mask_positions"]
    unused = ops.equal(target_weights(weights, positions), 0)
    return {**x, "mask_positions": ops.where(unused, 0, positions)}, y, weights


def _split_targets(x, y, y_pred):
    """Labels and logits of generator and discriminator, by output."""
    length = ops.shape(x["token_ids"])[1]
    samples = y_pred["samples"]
    wrong = ops.cast(samples != ops.cast(y, samples.dtype), "float32")
    return (
        {"masked_lm": y, "replaced": at_positions(wrong, x["mask_positions"], length)},
        {name: y_pred[name] for name in ("masked_lm", "replaced")},
    )
