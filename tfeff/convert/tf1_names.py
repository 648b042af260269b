"""Names of weights in the programs of BERT's authors, and of those that followed."""

import dataclasses
import re
from collections.abc import Mapping

from tfeff.convert.format import HeadWeights
from tfeff.convert.weights import Weight

TRAINING_STATE = {
    r".*/(adam_[mv]|\w*Optimizer(_\d+)?)$": "training state",
    r"global_step$": "training state",
}
# Replacements in Hugging Face's names, made one after another.
_OF_ALL = {
    r"layer\.(\d+)": r"layer_\1",
    r"seq_relationship\.weight$": "seq_relationship.output_weights",
    r"(seq_relationship|predictions)\.bias$": r"\1.output_bias",
    r"(LayerNorm\w*)\.weight$": r"\1.gamma",
    r"(LayerNorm\w*)\.bias$": r"\1.beta",
    r"_embeddings\.weight$": "_embeddings",
    r"\.weight$": ".kernel",
    r"\.": "/",
}


def in_authors_format(weight: Weight, names: Mapping[str, str]) -> Weight:
    """A weight of Hugging Face's format in that of TensorFlow 1.

    Matrices have Keras' layout, but for that of pairs, which has PyTorch's.

    Args:
        weight: the weight with the tensor's name in Hugging Face's format.
        names: what replaces regular expressions in that name, one after another,
            before what all programs have alike.
    """
    name = weight.name
    for pattern, new in {**names, **_OF_ALL}.items():
        name = re.sub(pattern, new, name)
    if name.endswith("output_weights"):
        return dataclasses.replace(weight, name=name)
    return dataclasses.replace(weight, name=name, axes=None, shape=None)


def heads_in_authors_format(
    heads: HeadWeights, names: Mapping[str, str]
) -> HeadWeights:
    """The heads in the format of TensorFlow 1, from those in Hugging Face's.

    Args:
        heads: of a format of Hugging Face's.
        names: as of `in_authors_format`.
    """

    def head(describe):
        return lambda weights: (
            in_authors_format(weight, names) for weight in describe(weights)
        )

    return {name: head(describe) for name, describe in heads.items()}
