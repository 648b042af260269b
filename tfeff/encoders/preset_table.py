"""The table of presets: their models, papers, sizes, references and peers."""

from tfeff.encoders.presets import presets

# By the start of a preset's name: the model, the module of `tests/reference` that has
# its equations, and the implementations by others that it agrees with.
_MODELS = {
    "bert_rpe": (
        "BERT-RPE: relative embeddings of keys and values",
        "relative",
        "–",
    ),
    "bert_rab": ("BERT-RAB: T5's bias", "relative", "Model Garden T5 bias"),
    "bert": ("BERT", "attention", "Hugging Face, Model Garden"),
    "no_position": ("BERT without positions", "attention", "–"),
    "part_mask": ("Part_Mask: heads × partition", "attention", "–"),
    "one_head_softmax": ("1H_Softmax: one score for all parts", "attention", "–"),
    "one_head_sigmoid": ("1H_Sigmoid: normalised sigmoid", "attention", "–"),
    "part_bias": ("Part_Bias: + partition bias", "attention", "–"),
    "shatter": ("Shatter: + partition values", "attention", "–"),
    "xlnet": ("XLNet", "relative, two_stream", "Hugging Face, Model Garden"),
    "huang_absolute": ("Absolute: BERT with one segment", "attention", "–"),
    "shaw": ("Shaw, keys only", "relative", "Hugging Face `relative_key`"),
    "huang1": ("Method 1: factor by distance", "relative", "–"),
    "huang2": ("Method 2: signed factor", "relative", "–"),
    "huang3": ("Method 3: factor a feature", "relative", "–"),
    "huang4": (
        "Method 4: all pairwise products",
        "relative",
        "Hugging Face `relative_key_query`",
    ),
    "blockbert_n2": ("BlockBERT, 2 blocks, heads 10:2", "blockwise", "–"),
    "blockbert_n3": ("BlockBERT, 3 blocks, heads 8:2:2", "blockwise", "–"),
    "sparsebert": ("SparseBERT, fixed pattern", "blockwise", "–"),
    "convbert": ("ConvBERT", "convolution", "Hugging Face"),
    "albert": ("ALBERT", "attention", "Hugging Face, Model Garden"),
    "tinybert": ("TinyBERT: a small BERT", "attention", "Hugging Face, Model Garden"),
    "distilbert": ("DistilBERT: half a BERT, no segments", "attention", "Hugging Face"),
}


def preset_table() -> str:
    """All presets as a Markdown table.

    Its columns are the preset, the model, the paper, the parameters of the encoder in
    millions, the module of `tests/reference` with the literal equations, and the
    implementations by others whose outputs agree on the same weights.

    Example:

    >>> print(preset_table().splitlines()[0])
    | preset | model | paper | parameters | reference | peer |
    """
    rows = [
        "| preset | model | paper | parameters | reference | peer |",
        "|---|---|---|---|---|---|",
    ]
    for name, preset in presets().items():
        # The longest prefix wins: `bert_rpe_base` is no `bert`.
        kind = max(
            (k for k in _MODELS if name.startswith(f"{k}_")), key=len, default=name
        )
        model, reference, peer = _MODELS[kind]
        millions = f"{preset['parameters'] / 1e6:.1f}M"
        cells = (f"`{name}`", model, preset["source"], millions, reference, peer)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
