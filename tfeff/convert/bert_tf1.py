"""BERT and ALBERT in their authors' format, with TensorFlow 1 variables."""

from collections.abc import Iterator, Mapping

from tfeff.convert.albert import Albert
from tfeff.convert.bert import Bert
from tfeff.convert.config import ACTIVATIONS
from tfeff.convert.tf1_names import (
    TRAINING_STATE,
    heads_in_authors_format,
    in_authors_format,
)
from tfeff.convert.weights import Weight

_LEFT_OUT = TRAINING_STATE | {
    r"cls/predictions/": "masked language model head",
    r"cls/seq_relationship/": "head of pairs",
    r"bert/pooler/": "pooler",
    r"(output_weights|output_bias)$|cls/squad/": "task head",
}
# Replacements in Hugging Face's names, made one after another.
_OF_BERT = {
    r"^(embeddings|encoder|pooler)\.": r"bert.\1.",
}
_OF_ALBERT = {
    r"^embeddings\.": "bert.embeddings.",
    r"^pooler\.": "bert.pooler.dense.",
    r"^predictions\.(dense|LayerNorm)\.": r"cls.predictions.transform.\1.",
    r"^predictions\.": "cls.predictions.",
    r"^sop_classifier\.classifier\.": "cls.seq_relationship.",
    r"^encoder\.albert_layer_groups\.(\d+)\.albert_layers\.0\.": (
        r"encoder.transformer.group_\1.inner_group_0."
    ),
    r"^encoder\.": "bert.encoder.",
    r"\.attention\.LayerNorm\.": ".LayerNorm.",
    r"\.attention\.dense\.": ".attention_1.output.dense.",
    r"\.attention\.": ".attention_1.self.",
    r"\.full_layer_layer_norm\.": ".LayerNorm_1.",
    r"\.ffn\.": ".ffn_1.intermediate.dense.",
    r"\.ffn_output\.": ".ffn_1.intermediate.output.dense.",
}


def is_of_authors(tensors: Mapping) -> bool:
    """Whether the variables are those of a BERT or an ALBERT of TensorFlow 1."""
    return any(name.startswith("bert/encoder/") for name in tensors)


def is_albert(tensors: Mapping) -> bool:
    """Whether the variables are those of an ALBERT, whose layers share them."""
    return any(name.startswith("bert/encoder/transformer/") for name in tensors)


class BertTf1(Bert):
    """BERT. Its GELU is the exact one, as in Hugging Face's copies."""

    left_out = _LEFT_OUT
    heads = heads_in_authors_format(Bert.heads, _OF_BERT)
    tasks = {}

    def weights(self, encoder) -> Iterator[Weight]:
        for weight in super().weights(encoder):
            yield in_authors_format(weight, _OF_BERT)


class AlbertTf1(Albert):
    """ALBERT. Its GELU is that by tanh, as in Hugging Face's copies."""

    activations = ACTIVATIONS | {"gelu": "gelu_tanh"}
    left_out = _LEFT_OUT
    heads = heads_in_authors_format(Albert.heads, _OF_ALBERT)
    tasks = {}

    def weights(self, encoder) -> Iterator[Weight]:
        for weight in super().weights(encoder):
            yield in_authors_format(weight, _OF_ALBERT)
