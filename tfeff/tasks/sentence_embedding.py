from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from tfeff.data.finetuning.sentence_features import texts_alone
from tfeff.data.finetuning.text_features import text_features
from tfeff.data.text.tokenizers import check_tokenizer
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.encoders.own_calls import has_own_call, symbolic_outputs
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import TARGET_MEAN
from tfeff.tasks.encoder_limits import check_length, check_vocabulary
from tfeff.tasks.groups import group_of, grouped_inputs
from tfeff.tasks.in_batch_contrast import (
    InBatchContrast,
    contrast_losses,
    nearest_is_partner,
)
from tfeff.tasks.task import TEXT_POOLINGS, Task, make_pooling, without_defaults
from tfeff.utils.checks import check_bool, check_choice, check_integer, check_positive
from tfeff.utils.types import Config


@keras.saving.register_keras_serializable(package="tfeff")
class SentenceEmbedding(Task):
    """Embeddings of texts, near to each other by cosine where the meanings are.

        h = X^L[0]                              pooling="cls"
        h = X^L[last]                           pooling="last"
        h = MeanPooling(X^L)                    pooling="mean"
        h = LayerwisePooling(X^0 … X^L)         pooling="layerwise"
        h / ‖h‖                                 with normalize=True

    Trained on `tfeff.data.sentence_features(...).dataset(...)` by contrast within the
    batch (`tfeff.tasks.InBatchContrast`): each text's partner must be nearer to
    it than the partners of the other texts. Partners are the second texts of pairs, or,
    for texts alone, the text itself under another dropout mask. The batch is that of
    all replicas; `accumulation_steps` is refused, as parts of a batch have fewer
    negatives. The metric `accuracy` is the share of texts to which no candidate is
    nearer than the partner.

    Without any training it gives the embeddings that the encoder has.

    Args:
        encoder: a `tfeff.encoders.Encoder`. To train on texts alone it needs dropout.
        pooling: `"mean"`, over all tokens that are not padding; `"cls"`, the first
            position; `"last"`, the last that is not padding; or `"layerwise"`.
        temperature: float above 0, by which cosines are divided in the loss.
        sequence_length: integer, most tokens of a text where `embed` and
            `tfeff.export.save_for_serving` are given none; `None` for the encoder's
            `max_sequence_length`.
        normalize: whether the embeddings have length 1, in float32, so that their
            products are cosines. The loss is the same.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, N, T]`, any number N of texts:
            `token_ids`, `segment_ids`, `padding_mask` (1 = real token).

    Returns:
        Embeddings `[B, N, D]`, of any length, or of 1 with `normalize=True`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`, or `temperature` no
            number.
        ValueError: if an argument is out of range, `sequence_length` beyond a table of
            absolute positions, or `pooling="layerwise"` and the encoder's attention is
            a convolution, which has no queries.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = SentenceEmbedding(encoder)
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 2, 7), dtype="int32")
    >>> h = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> tuple(h.shape)
    (2, 2, 128)

    Reference:
        Gao et al., "SimCSE: Simple Contrastive Learning of Sentence Embeddings", 2021;
        Reimers and Gurevych, "Sentence-BERT: Sentence Embeddings using Siamese
        BERT-Networks", 2019.
    """

    def __init__(
        self,
        encoder: Encoder,
        pooling: str = "mean",
        temperature: float = 0.05,
        sequence_length: int | None = None,
        normalize: bool = False,
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        check_choice("pooling", pooling, TEXT_POOLINGS)
        temperature = check_positive("temperature", temperature)
        if sequence_length is not None:
            sequence_length = check_length(encoder, sequence_length)
        normalize = check_bool("normalize", normalize)
        pool = _make_pooling(encoder, pooling, normalize)
        inputs, rows = grouped_inputs()
        vectors = pool(rows, encoder(rows))
        outputs = group_of(encoder)([vectors, inputs["token_ids"]])
        super().__init__(encoder, inputs, outputs, **kwargs)
        self.pooling = pooling
        self.temperature = temperature
        self.sequence_length = sequence_length
        self.normalize = normalize
        self._pool = pool

    def heads(self) -> dict[str, Head]:
        if self.pooling != "layerwise":
            return {}
        start = Head({"initial_vector": self.get_layer("pooler").initial_vector})
        return {"layerwise_pooler": start}

    def default_loss(self) -> keras.losses.Loss:
        return InBatchContrast(self.temperature)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        wrapper = keras.metrics.MeanMetricWrapper
        return [
            wrapper(contrast_losses, name=TARGET_MEAN, temperature=self.temperature),
            wrapper(nearest_is_partner, name="accuracy"),
        ]

    def compile(self, *args: Any, accumulation_steps: int = 1, **kwargs: Any) -> None:
        """As `tfeff.training.DistributedModel.compile`, for batches in one part.

        Raises:
            ValueError: if `accumulation_steps` is not 1: texts would be contrasted
                with those of their part of the batch alone.
        """
        if accumulation_steps != 1:
            raise ValueError(
                "`accumulation_steps` must be 1: the other texts of a batch are what "
                "each is contrasted with, and a part has fewer. "
                f"Received: accumulation_steps={accumulation_steps}"
            )
        super().compile(*args, **kwargs)

    def embed(
        self,
        texts: Sequence[str],
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int | None = None,
        batch_size: int = 32,
        normalize: bool = False,
    ) -> np.ndarray:
        """The embeddings of texts.

        Where convolutions read padding (`mask_conv=False`), as those of published
        ConvBERTs, an embedding depends on the longest text of its batch.

        Args:
            texts: a list of strings, none of them empty or white space alone.
            tokenizer: the KerasHub tokenizer of the encoder.
            sequence_length: integer, most tokens of a text, `[CLS]` and `[SEP]`
                included; longer ones are cut. Default: the model's own, or else the
                encoder's `max_sequence_length`.
            batch_size: integer, texts in a batch.
            normalize: whether embeddings have length 1, so that their products are
                cosines; those of a model with `normalize=True` have in any case.

        Returns:
            Float32 array `[N, D]`.

        Raises:
            ValueError: if there are no texts, one is empty, a number is out of range,
                `sequence_length` beyond a table of absolute positions, or the tokenizer
                has more ids than the encoder.
            TypeError: if an argument is of another type.

        Example:
        ```python
        import numpy as np
        import tfeff

        texts = ["a sunny day", "a day in the sun", "the cat sat on a mat"]
        tokenizer = tfeff.data.train_tokenizer(texts, vocabulary_size=20)
        encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=20, num_layers=1)
        model = tfeff.tasks.SentenceEmbedding(encoder)
        embeddings = model.embed(texts, tokenizer, normalize=True)
        cosines = embeddings @ embeddings.T
        np.testing.assert_allclose(np.diag(cosines), 1, rtol=1e-5)
        ```
        """
        if sequence_length is None:
            sequence_length = self.sequence_length or self.encoder.max_sequence_length
        check_length(self.encoder, sequence_length)
        check_tokenizer(tokenizer)
        check_vocabulary("tokenizer", tokenizer, self.encoder)
        normalize = check_bool("normalize", normalize)
        batch_size = check_integer("batch_size", batch_size)
        features = text_features(texts_alone(texts), tokenizer, sequence_length)
        padded = self.pads_to_longest()
        batches = features.dataset(
            batch_size, shuffle=False, repeat=False, pad_to_longest=padded
        ).map(lambda rows: {name: x[:, None] for name, x in rows.items()})
        vectors = self.predict(batches, verbose=0)
        vectors = vectors[: len(features), 0].astype("float32")
        if not normalize:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1)

    def exported(self) -> tuple[dict, dict]:
        # One text a row: there is nothing to group.
        rows = self.encoder.input
        if has_own_call(self):
            alone = {name: ops.expand_dims(x, 1) for name, x in rows.items()}
            return rows, {"embeddings": ops.squeeze(self(alone), 1)}
        return rows, {"embeddings": self._pool(rows, symbolic_outputs(self.encoder))}

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "pooling": self.pooling,
            "temperature": self.temperature,
            **without_defaults(
                sequence_length=(self.sequence_length, None),
                normalize=(self.normalize, False),
            ),
        }


def _make_pooling(encoder, pooling, normalize):
    """As `make_pooling`, with vectors of length 1 where that is wanted."""
    pool = make_pooling(encoder, pooling)
    if not normalize:
        return pool
    # Squares may overflow in half precision.
    unit = keras.layers.UnitNormalization(dtype="float32", name="unit_length")
    return lambda rows, outputs: unit(pool(rows, outputs))
