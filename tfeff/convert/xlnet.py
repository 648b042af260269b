"""XLNet in Hugging Face's format, without memory of earlier segments."""

from collections.abc import Iterator, Mapping

from tfeff.convert.config import Config, activation_name
from tfeff.convert.format import Format, activation_of
from tfeff.convert.weights import Weight, dense, dense_head, norm
from tfeff.objectives.heads import Head
from tfeff.objectives.permutation_lm import PermutationLM

_POOLED = {
    "pooler": dense_head("sequence_summary.summary"),
    "logits": dense_head("logits_proj"),
}


def _permutation_lm_head(weights: Mapping) -> Iterator[Weight]:
    size = weights["mask_embedding"].shape[0]
    yield Weight(weights["mask_embedding"], "mask_emb", shape=(1, 1, size))
    yield Weight(weights["bias"], "lm_loss.bias")


class XLNet(Format):
    """XLNet."""

    name, prefix = "XLNet", "transformer."
    left_out = {
        r"lm_loss\.": "language model head",
        r"mask_emb$": "first state of the query stream",
        r"sequence_summary\.": "pooler",
        r"(logits_proj|classifier|qa_outputs|start_logits|end_logits|answer_class)\.": (
            "task head"
        ),
    }
    # The length is only a default without a table; `weights` orders the sinusoids.
    free = frozenset({"max_sequence_length", "sinusoid"})
    heads = {"permutation_lm": _permutation_lm_head}
    models = (
        ("LMHeadModel", {"permutation_lm"}),
        ("Model", set()),
    )
    tasks = {
        "SequenceClassification": _POOLED,
        "MultipleChoice": _POOLED,
        "TokenClassification": {"token_logits": dense_head("classifier")},
        "QuestionAnsweringSimple": {"span_logits": dense_head("qa_outputs")},
    }

    def arguments(self, config: Config) -> dict:
        config.only("attn_type", "bi", default="bi")
        config.only("bi_data", False, default=False)
        config.only("same_length", False, default=False)
        config.only("reuse_len", None, default=None)
        config.only("untie_r", True, default=True)
        num_heads, hidden_dim = config.integer("n_head"), config.integer("d_model")
        if "d_head" in config.values:
            config.only("d_head", hidden_dim // num_heads)
        rate = config.rate("dropout", 0.1)
        return dict(
            vocabulary_size=config.integer("vocab_size"),
            num_layers=config.integer("n_layer"),
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=config.integer("d_inner"),
            num_segments=0,
            embedding_layer_norm=False,
            position="none",
            attention=dict(
                name="relative",
                method="xlnet",
                sinusoid="concatenated",
                relative_segments=True,
                max_distance=_clamp(config),
            ),
            feedforward=dict(activation=config.activation("ff_activation")),
            dropout=rate,
            layer_norm_epsilon=config.positive("layer_norm_eps", 1e-12),
        )

    def configuration(self, encoder) -> dict:
        clamp = getattr(encoder.blocks[0].attention, "max_distance", None)
        return dict(
            vocab_size=encoder.vocabulary_size,
            n_layer=encoder.num_layers,
            n_head=encoder.num_heads,
            d_model=encoder.hidden_dim,
            d_inner=encoder.intermediate_dim,
            ff_activation=activation_name(activation_of(encoder)),
            dropout=encoder.dropout,
            layer_norm_eps=encoder.layer_norm_epsilon,
            clamp_len=-1 if clamp is None else clamp,
            attn_type="bi",
            untie_r=True,
        )

    def weights(self, encoder) -> Iterator[Weight]:
        # Biases of projections are in no checkpoint, and stay zero.
        yield Weight(
            encoder.embedding.token_embedding.embeddings, "word_embedding.weight"
        )
        heads = (encoder.num_heads, encoder.hidden_dim // encoder.num_heads)
        shape = (encoder.hidden_dim, *heads)
        for index, block in enumerate(encoder.blocks):
            attention, name = block.attention, f"layer.{index}.rel_attn"
            for key, layer in (
                ("q", attention.query_dense),
                ("k", attention.key_dense),
                ("v", attention.value_dense),
            ):
                yield Weight(layer.kernel, f"{name}.{key}", shape=shape)
            yield Weight(
                attention.relative_dense.kernel,
                f"{name}.r",
                shape=shape,
                rows=_rows(attention, encoder.hidden_dim),
            )
            # The tensor's axes are (output, head, size).
            yield Weight(
                attention.output_dense.kernel, f"{name}.o", shape=shape, axes=(1, 2, 0)
            )
            yield Weight(attention.content_bias, f"{name}.r_w_bias")
            yield Weight(attention.position_bias, f"{name}.r_r_bias")
            yield Weight(attention.segment_bias, f"{name}.r_s_bias")
            yield Weight(attention.segment_embeddings, f"{name}.seg_embed")
            yield from norm(block.attention_norm, f"{name}.layer_norm")
            feedforward = f"layer.{index}.ff"
            yield from dense(
                block.feedforward.intermediate_dense, f"{feedforward}.layer_1"
            )
            yield from dense(block.feedforward.output_dense, f"{feedforward}.layer_2")
            yield from norm(block.feedforward_norm, f"{feedforward}.layer_norm")

    def unused(self, encoder) -> dict[str, tuple[int, ...]]:
        return {"mask_emb": (1, 1, encoder.hidden_dim)}

    def pretraining_heads(self, encoder) -> dict[str, Head]:
        return PermutationLM(encoder).heads()

    def task_arguments(self, config: Config, kind: str) -> dict:
        if kind == "TokenClassification":
            return dict(dropout=0.0)
        config.only("summary_type", "last", default="last")
        config.only("summary_use_proj", True, default=True)
        return dict(
            pooling="last",
            dropout=config.rate("summary_last_dropout", 0.1),
            pooler_activation=config.only("summary_activation", "tanh", default="tanh"),
        )

    def task_configuration(self, arguments: Mapping, kind: str) -> dict:
        if kind in ("TokenClassification", "QuestionAnsweringSimple"):
            return {}
        return dict(
            summary_type="last",
            summary_use_proj=True,
            summary_activation="tanh",
            summary_last_dropout=arguments["dropout"],
        )


def _clamp(config):
    """The distance at which sinusoids are clamped, or `None`."""
    if config.get("clamp_len", -1) == -1:
        return None
    return config.integer("clamp_len")


def _rows(attention, size):
    """The rows of the sinusoids' kernel: in the format, sines precede cosines."""
    if attention.sinusoid == "concatenated":
        return None
    return [half + pair for pair in range(size // 2) for half in (0, size // 2)]
