from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from tfeff.data.finetuning.token_features import TokenFeatures
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.layers.dense import bert_dense
from tfeff.layers.dropout import Dropout
from tfeff.objectives.heads import Head
from tfeff.tasks.encoder_limits import check_known_ids
from tfeff.tasks.task import Task, check_class_names, logits_dtype
from tfeff.utils.checks import check_integer, check_rate
from tfeff.utils.types import Config


@keras.saving.register_keras_serializable(package="tfeff")
class TokenClassifier(Task):
    """Classification of each token, such as named-entity recognition.

        z = dropout(X^L) W + b                  [T, num_classes]

    Trained on batches of `(inputs, labels, weights)`: `labels` are integers `[B, T]`,
    and `weights` `[B, T]` are 0 at tokens that have no label (which other libraries
    mark by the label -100): padding, special tokens, and the pieces of a word but its
    first. The loss is the mean cross-entropy over all weighted tokens of the global
    batch, the same on one device and on many. `tfeff.data.token_features` makes such
    batches of sentences of words, and `labels` gives the label of each word.

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        num_classes: integer, at least 2.
        dropout: float in [0, 1), rate on the last hidden state.
        label_names: the names of the classes, or `None`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, T]`: `token_ids`, `segment_ids`,
            `padding_mask` (1 = real token).

    Returns:
        Logits `[B, T, num_classes]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`, or `num_classes` is
            not an integer.
        ValueError: if an argument is out of range, or `label_names` are not one for
            each class.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = TokenClassifier(encoder, 3, label_names=["O", "B-PER", "I-PER"])
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> logits = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> tuple(logits.shape)
    (2, 7, 3)

    Reference:
        Devlin et al., "BERT", section 5.3.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_classes: int,
        dropout: float = 0.1,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        num_classes = check_integer("num_classes", num_classes, 2)
        dropout = check_rate("dropout", dropout)
        label_names = check_class_names(label_names, num_classes)
        hidden = encoder(encoder.input)["sequence_output"]
        dtype = encoder.dtype_policy
        hidden = Dropout(dropout, dtype=dtype, name="dropout")(hidden)
        logits = bert_dense(num_classes, dtype=logits_dtype(encoder), name="logits")
        super().__init__(encoder, encoder.input, logits(hidden), **kwargs)
        self.num_classes = num_classes
        self.dropout = float(dropout)
        self.label_names = label_names

    def labels(
        self,
        features: TokenFeatures,
        batch_size: int = 32,
        pad_to_longest: bool | None = None,
    ) -> list[np.ndarray]:
        """The likeliest label of each word, that of its first token.

        Args:
            features: from `tfeff.data.token_features`.
            batch_size: integer, rows in a batch.
            pad_to_longest: whether rows are as long as the longest of their batch. By
                default they are, unless the encoder depends on the padded length or
                the model is compiled for each length, as on a TPU. It changes the
                outputs of convolutions that read padding (`mask_conv=False`).

        Returns:
            For each sentence `[W]` int32, as `tfeff.datasets.phrase_metrics` takes
            them: indices of the classes.

        Raises:
            TypeError: if `features` are others.
            ValueError: if `batch_size` is below 1, or `features` have ids that the
                encoder has no rows for.
        """
        if not isinstance(features, TokenFeatures):
            raise TypeError(
                "`features` must be from `tfeff.data.token_features`. "
                f"Received: features={features!r:.80}"
            )
        batch_size = check_integer("batch_size", batch_size)
        padded = self.pads_to_longest(pad_to_longest)
        batches = features.dataset(
            batch_size, shuffle=False, repeat=False, pad_to_longest=padded
        )
        rows = []
        for inputs, *_ in batches:
            inputs = {name: value.numpy() for name, value in inputs.items()}
            check_known_ids(inputs["token_ids"], self.encoder)
            logits = self.predict_on_batch(inputs)[:batch_size]
            classes = np.asarray(logits, "float32").argmax(-1)
            more = features.sequence_length - classes.shape[1]
            rows.append(np.pad(classes.astype("int32"), [(0, 0), (0, more)]))
        return features.of_words(np.concatenate(rows))

    def heads(self) -> dict[str, Head]:
        return {"token_logits": Head.of(self.get_layer("logits"))}

    def get_config(self) -> Config:
        names = self.label_names
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "label_names": None if names is None else list(names),
        }
