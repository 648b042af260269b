"""Contrast of each text with its partner and with the other texts of the batch."""

import keras
from keras import ops

from tfeff.ops.ids import check_integers
from tfeff.ops.masking import MASKED
from tfeff.training.losses import GlobalMean
from tfeff.training.replicas import gather_from_replicas
from tfeff.utils.checks import check_positive
from tfeff.utils.types import Config, DType, Tensor

_LEAST_SQUARE = 1e-14  # The square of a length, as in Keras' `normalize`.


def contrasted(y_true, y_pred, temperature):
    """Logits of each text's candidates, its partner first.

    Args:
        y_true: integer tensor `[B, N]`, as of `InBatchContrast`.
        y_pred: float tensor `[B, N, D]` of embeddings.
        temperature: float.

    Returns:
        Logits `[B, 1 + K (N - 1)]`, with K the rows of all replicas; -1e30 for texts
        that are no candidates.
    """
    check_integers("y_true", y_true, ", as `tfeff.data.sentence_features` gives it")
    rows, texts, size = y_pred.shape
    if texts is not None and texts < 2:
        raise ValueError(
            "`y_pred` must hold at least two texts a row, a text and its partner. "
            f"Received: shape {tuple(y_pred.shape)}"
        )
    # Not `ops.normalize`: its gradient at a row of zeros is NaN where XLA compiles it.
    square = ops.sum(ops.square(y_pred), axis=-1, keepdims=True)
    vectors = y_pred * ops.rsqrt(ops.maximum(square, _LEAST_SQUARE))
    anchors = vectors[:, 0]
    candidates = gather_from_replicas(ops.reshape(vectors[:, 1:], (-1, size)))
    ids = gather_from_replicas(ops.reshape(y_true[:, 1:], (-1,)))
    if rows == 1 and texts == 2 and candidates.shape[0] == 1:
        raise ValueError(
            "`y_pred` must have at least two rows: the partners of the others are what "
            f"a text is contrasted with. Received: shape {tuple(y_pred.shape)}"
        )
    # Equal texts are no negatives, wherever they stand; the own partner comes first.
    equal = ops.any(y_true[:, :2, None] == ids[None, None], axis=1)
    is_negative = ops.logical_and(ops.logical_not(equal), ids >= 0)
    others = ops.matmul(anchors, ops.transpose(candidates))
    partner = ops.sum(anchors * vectors[:, 1], axis=-1, keepdims=True)
    logits = ops.concatenate([partner, others], axis=-1) / temperature
    is_partner = ops.ones_like(partner, dtype="bool")
    is_candidate = ops.concatenate([is_partner, is_negative], axis=-1)
    return ops.where(is_candidate, logits, MASKED)


@keras.saving.register_keras_serializable(package="tfeff")
def contrast_losses(y_true, y_pred, temperature):
    """-log softmax of each text's partner among its candidates, `[B]`."""
    logits = contrasted(y_true, y_pred, temperature)
    return -ops.log_softmax(logits, axis=-1)[:, 0]


@keras.saving.register_keras_serializable(package="tfeff")
def nearest_is_partner(y_true, y_pred):
    """1 where no candidate is nearer to a text than its partner, else 0, `[B]`."""
    logits = contrasted(y_true, y_pred, 1.0)
    # Cosines are above -2, and a batch may have no rows.
    largest = ops.max(logits, axis=-1, initial=-2.0)
    return ops.cast(logits[:, 0] >= largest, "float32")


@keras.saving.register_keras_serializable(package="tfeff")
class InBatchContrast(GlobalMean):
    """Cross-entropy of each text's partner among the partners of the global batch.

        s_ij = cos(h_i, h_j) / τ
        l_i  = -log(exp(s_ii⁺) / Σ_{j ∈ C_i} exp(s_ij))
        loss = Σ_i w_i l_i / Σ_i w_i

    Row `i` holds the embeddings of a text, `h_i`, of its partner `i⁺` and, if there are
    more, of hard negatives. The candidates `C_i` are the own partner and all partners
    and hard negatives of the batch that are other texts than the text and its partner.
    Under a distribution strategy the batch is that of all replicas: embeddings are
    gathered, so that two replicas train as one device with the whole batch.

    With different texts in a batch this is sentence-transformers'
    `MultipleNegativesRankingLoss` with `scale=1/τ`, and SimCSE's loss.

    Args:
        temperature: float above 0, `τ`.
        name, dtype: as of `keras.losses.Loss`.

    Call arguments:
        y_true: integer tensor `[B, N]`, a number for each text: equal for equal texts,
            -1 for texts of padding, which are no candidates.
        y_pred: float tensor `[B, N, D]` of embeddings.
        sample_weight: float tensor `[B]`; `None` means 1 everywhere.

    Returns:
        Scalar: this replica's part of the loss. The parts add up to the loss.

    Raises:
        ValueError: if a row has fewer than two texts, or if a batch is known to be one
            row without hard negatives.

    Example:

    >>> import numpy as np
    >>> embeddings = np.eye(2, dtype="float32")[[[0, 0], [1, 1]]]
    >>> loss = InBatchContrast(temperature=1.0)([[0, 1], [2, 3]], embeddings)
    >>> round(float(loss), 4)  # log(1 + exp(0 - 1))
    0.3133

    Reference:
        Gao et al., "SimCSE: Simple Contrastive Learning of Sentence Embeddings", 2021,
        equations 1, 4 and 5; Henderson et al., "Efficient Natural Language Response
        Suggestion for Smart Reply", 2017, section 4.4.
    """

    def __init__(
        self,
        temperature: float = 0.05,
        name: str = "in_batch_contrast",
        dtype: DType | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.temperature = check_positive("temperature", temperature)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return contrast_losses(y_true, y_pred, self.temperature)

    def get_config(self) -> Config:
        return {**super().get_config(), "temperature": self.temperature}
