"""ALBERT in Hugging Face's format."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert
from tfeff.convert.config import ACTIVATIONS, Config
from tfeff.convert.format import Format
from tfeff.convert.weights import Weight, dense, dense_head, masked_lm_head, norm

_DEFAULTS = dict(
    hidden_act="gelu_new", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)
_POOLED = {"pooler": dense_head("pooler"), "logits": dense_head("classifier")}


class Albert(Format):
    """ALBERT.

    Attributes:
        activations: tfeff's activations by their names in the format.
    """

    name, prefix = "Albert", "albert."
    activations = ACTIVATIONS
    left_out = {
        r"pooler\.": "pooler",
        r"predictions\.": "masked language model head",
        r"sop_classifier\.": "sentence order head",
        r"(classifier|qa_outputs)\.": "task head",
        r"embeddings\.(position|token_type)_ids$": "buffer",
    }
    pairs = "order"
    heads = {
        "masked_lm": masked_lm_head(
            "predictions.dense", "predictions.LayerNorm", "predictions.bias"
        ),
        "pooler": dense_head("pooler"),
        "sentence_order": dense_head("sop_classifier.classifier"),
    }
    models = (
        ("ForPreTraining", {"masked_lm", "pooler", "sentence_order"}),
        ("ForMaskedLM", {"masked_lm"}),
        ("Model", {"pooler"}),
        ("Model", set()),
    )
    tasks = bert.Bert.tasks | {
        "SequenceClassification": _POOLED,
        "MultipleChoice": _POOLED,
    }

    def arguments(self, config: Config) -> dict:
        config = config.with_defaults(**_DEFAULTS)
        config.only("position_embedding_type", "absolute", default="absolute")
        sizes = bert.sizes(config, self.activations)
        embedding_dim = config.integer("embedding_size", 128)
        if embedding_dim == sizes["hidden_dim"]:
            raise ValueError(
                f"{config.path!r} asks for a projection of the embedding with "
                f"embedding_size=hidden_size={embedding_dim}, which tfeff does not "
                "support"
            )
        return shared(config, sizes) | dict(embedding_dim=embedding_dim)

    def configuration(self, encoder) -> dict:
        group_size = encoder.sharing_group_size or encoder.num_layers
        return bert.configured_sizes(encoder) | dict(
            embedding_size=encoder.embedding_dim,
            max_position_embeddings=encoder.max_sequence_length,
            num_hidden_groups=encoder.num_layers // group_size,
            inner_group_num=1,
        )

    def weights(self, encoder) -> Iterator[Weight]:
        yield from bert.embedding(encoder)
        yield from dense(
            encoder.embedding.projection, "encoder.embedding_hidden_mapping_in"
        )
        # One block of each group: its layers are the same block.
        for group, block in enumerate(dict.fromkeys(encoder.blocks)):
            layer = f"encoder.albert_layer_groups.{group}.albert_layers.0"
            yield from bert.attention_projections(block.attention, f"{layer}.attention")
            yield from dense(block.attention.output_dense, f"{layer}.attention.dense")
            yield from norm(block.attention_norm, f"{layer}.attention.LayerNorm")
            yield from dense(block.feedforward.intermediate_dense, f"{layer}.ffn")
            yield from dense(block.feedforward.output_dense, f"{layer}.ffn_output")
            yield from norm(block.feedforward_norm, f"{layer}.full_layer_layer_norm")

    def task_arguments(self, config: Config, kind: str) -> dict:
        return dict(dropout=config.rate("classifier_dropout_prob", 0.1))

    def task_configuration(self, arguments: Mapping, kind: str) -> dict:
        if kind == "QuestionAnswering":
            return {}
        return dict(classifier_dropout_prob=arguments["dropout"])


def shared(config: Config, sizes: dict) -> dict:
    """The arguments of an encoder whose layers share weights in groups."""
    config.only("inner_group_num", 1, default=1)
    return sizes | dict(
        max_sequence_length=config.integer("max_position_embeddings", 512),
        attention="self",
        **in_groups(config, "num_hidden_groups", "num_hidden_layers"),
    )


def in_groups(config: Config, groups: str, layers: str) -> dict:
    """The arguments of `Encoder` by which layers share weights in groups.

    Args:
        config: the configuration.
        groups, layers: the names of their numbers. One group is the default.
    """
    count, num_layers = config.integer(groups, 1), config.integer(layers)
    if num_layers % count:
        raise ValueError(
            f"In {config.path!r}: `{groups}` must divide `{layers}`. "
            f"Received: {groups}={count}, {layers}={num_layers}"
        )
    return dict(sharing="all", sharing_group_size=num_layers // count)
