"""The table of presets: their models, papers, sizes and peers."""

from tfeff.encoders.presets import presets

# The model, and the implementations by others that it agrees with, by the start of a
# preset's name.
_MODELS = {
    "bert_rpe": (
        "BERT-RPE: relative embeddings of keys and values",
        "–",
    ),
    "bert_rab": ("BERT-RAB: T5's bias", "Model Garden T5 bias"),
    "bert": ("BERT", "Hugging Face, Model Garden"),
    "no_position": ("BERT without positions", "–"),
    "part_mask": ("Part_Mask: heads × partition", "–"),
    "one_head_softmax": ("1H_Softmax: one score for all parts", "–"),
    "one_head_sigmoid": ("1H_Sigmoid: normalised sigmoid", "–"),
    "part_bias": ("Part_Bias: + partition bias", "–"),
    "shatter": ("Shatter: + partition values", "–"),
    "xlnet": ("XLNet", "Hugging Face, Model Garden"),
    "huang_absolute": ("Absolute: BERT with one segment", "–"),
    "shaw": ("Shaw, keys only", "Hugging Face `relative_key`"),
    "huang1": ("Method 1: factor by distance", "–"),
    "huang2": ("Method 2: signed factor", "–"),
    "huang3": ("Method 3: factor a feature", "–"),
    "huang4": (
        "Method 4: all pairwise products",
        "Hugging Face `relative_key_query`",
    ),
    "blockbert_n2": ("BlockBERT, 2 blocks, heads 10:2", "–"),
    "blockbert_n3": ("BlockBERT, 3 blocks, heads 8:2:2", "–"),
    "sparsebert": ("SparseBERT, fixed pattern", "–"),
    "convbert": ("ConvBERT", "Hugging Face"),
    "albert": ("ALBERT", "Hugging Face, Model Garden"),
    "tinybert": ("TinyBERT: a small BERT", "Hugging Face, Model Garden"),
    "distilbert": ("DistilBERT: half a BERT, no segments", "Hugging Face"),
}


def preset_table() -> str:
    """All presets as a Markdown table.

    Its columns are the preset, the model, the paper, the parameters of the encoder in
    millions, and the implementations by others whose outputs agree on the same weights.

    Example:

    >>> print(preset_table().splitlines()[0])
    | preset | model | paper | parameters | peer |
    """
    rows = [
        "| preset | model | paper | parameters | peer |",
        "|---|---|---|---|---|",
    ]
    for name, preset in presets().items():
        # The longest prefix wins: `bert_rpe_base` is no `bert`.
        kind = max(
            (k for k in _MODELS if name.startswith(f"{k}_")), key=len, default=name
        )
        model, peer = _MODELS[kind]
        millions = f"{preset['parameters'] / 1e6:.1f}M"
        cells = (f"`{name}`", model, preset["source"], millions, peer)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
