"""The masked language model head of a checkpoint, which its preset keeps."""

from types import SimpleNamespace

import keras
import numpy as np

from tfeff.convert.sources import Source
from tfeff.convert.weights import Weight


class MaskedLMHead:
    """The weights of a head, without the table that it shares with the encoder.

    Args:
        encoder: the encoder.

    Attributes:
        dense: has `kernel` and `bias`.
        norm: has `gamma` and `beta`.
        bias: the variable of the logits' bias.
    """

    def __init__(self, encoder):
        size = encoder.embedding_dim
        self.dense = SimpleNamespace(
            kernel=_variable(encoder.hidden_dim, size), bias=_variable(size)
        )
        self.norm = SimpleNamespace(gamma=_variable(size), beta=_variable(size))
        self.bias = _variable(encoder.vocabulary_size)

    def arrays(self) -> dict[str, np.ndarray]:
        """The values by the names of a preset's head."""
        variables = {
            "dense/kernel": self.dense.kernel,
            "dense/bias": self.dense.bias,
            "norm/gamma": self.norm.gamma,
            "norm/beta": self.norm.beta,
            "bias": self.bias,
        }
        return {
            name: keras.ops.convert_to_numpy(variable)
            for name, variable in variables.items()
        }


def find_head(found: Source, encoder) -> tuple[MaskedLMHead | None, list[Weight]]:
    """The head of a checkpoint and its weights; `None` and none if it has no head.

    A head with a table of its own is not kept.
    """
    is_tied = found.config.get("tie_word_embeddings", True)
    if not is_tied or not hasattr(found.format, "masked_lm_head"):
        return None, []
    head = MaskedLMHead(encoder)
    weights = list(found.format.masked_lm_head(head))
    if not all(weight.name in found.tensors for weight in weights):
        return None, []
    return head, weights


def _variable(*shape):
    return keras.Variable(np.zeros(shape, "float32"))
