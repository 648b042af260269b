"""DistilBERT in Hugging Face's format."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert
from tfeff.convert.config import Config, activation_name
from tfeff.convert.format import Format, activation_of
from tfeff.convert.weights import Weight, dense, dense_head, masked_lm_head, norm

_POOLED = {"pooler": dense_head("pre_classifier"), "logits": dense_head("classifier")}


class DistilBert(Format):
    """DistilBERT."""

    name, prefix = "DistilBert", "distilbert."
    left_out = {
        r"vocab_(transform|layer_norm|projector)\.": "masked language model head",
        r"(pre_classifier|classifier|qa_outputs)\.": "task head",
        r"embeddings\.position_ids$": "buffer",
    }
    heads = {
        "masked_lm": masked_lm_head(
            "vocab_transform", "vocab_layer_norm", "vocab_projector.bias"
        )
    }
    models = (
        ("ForMaskedLM", {"masked_lm"}),
        ("Model", set()),
    )
    tasks = bert.Bert.tasks | {
        "SequenceClassification": _POOLED,
        "MultipleChoice": _POOLED,
    }

    def arguments(self, config: Config) -> dict:
        # The checkpoint has a table of positions even if `sinusoidal_pos_embds` is set.
        config.only("pruned_heads", {}, default={})
        return dict(
            vocabulary_size=config.integer("vocab_size"),
            num_layers=config.integer("n_layers"),
            num_heads=config.integer("n_heads"),
            hidden_dim=config.integer("dim"),
            intermediate_dim=config.integer("hidden_dim"),
            max_sequence_length=config.integer("max_position_embeddings", 512),
            num_segments=0,
            attention="self",
            feedforward=dict(activation=config.activation("activation")),
            **bert.rates(config, "dropout", "attention_dropout"),
            layer_norm_epsilon=1e-12,
        )

    def configuration(self, encoder) -> dict:
        return dict(
            vocab_size=encoder.vocabulary_size,
            n_layers=encoder.num_layers,
            n_heads=encoder.num_heads,
            dim=encoder.hidden_dim,
            hidden_dim=encoder.intermediate_dim,
            max_position_embeddings=encoder.max_sequence_length,
            activation=activation_name(activation_of(encoder)),
            dropout=encoder.dropout,
            attention_dropout=encoder.blocks[0].attention.dropout,
        )

    def weights(self, encoder) -> Iterator[Weight]:
        yield from bert.embedding(encoder)
        for index, block in enumerate(encoder.blocks):
            layer = f"transformer.layer.{index}"
            attention, feedforward = block.attention, block.feedforward
            yield from dense(attention.query_dense, f"{layer}.attention.q_lin")
            yield from dense(attention.key_dense, f"{layer}.attention.k_lin")
            yield from dense(attention.value_dense, f"{layer}.attention.v_lin")
            yield from dense(attention.output_dense, f"{layer}.attention.out_lin")
            yield from norm(block.attention_norm, f"{layer}.sa_layer_norm")
            yield from dense(feedforward.intermediate_dense, f"{layer}.ffn.lin1")
            yield from dense(feedforward.output_dense, f"{layer}.ffn.lin2")
            yield from norm(block.feedforward_norm, f"{layer}.output_layer_norm")

    def task_arguments(self, config: Config, kind: str) -> dict:
        if kind == "TokenClassification":
            return dict(dropout=config.rate("dropout", 0.1))
        return dict(
            dropout=config.rate("seq_classif_dropout", 0.2), pooler_activation="relu"
        )

    def task_configuration(self, arguments: Mapping, kind: str) -> dict:
        if kind not in ("SequenceClassification", "MultipleChoice"):
            return {}
        return dict(seq_classif_dropout=arguments["dropout"])
