"""The comparisons of `cpu.py`, with the goals and the ratios of the papers."""

from typing import NamedTuple

TASKS = ("train", "inference")
DTYPES = ("float32", "mixed_bfloat16")


class Case(NamedTuple):
    """Our contenders, and those whose fastest they are compared with.

    `goals` has, by task and contender of ours, the ratio to reach and the paper's.
    """

    ours: tuple[str, ...]
    others: tuple[str, ...]
    goals: dict[tuple[str, str], tuple[float | None, float | None]]
    lengths: tuple[int, ...] = (128, 512, 1024)
    tasks: tuple[str, ...] = TASKS


BERT_PEERS = ("keras_hub:bert", "model_garden:bert", "hugging_face:bert")
# The papers' figures: BlockBERT's tables 2 and 7, over RoBERTa on GPUs; ConvBERT's
# table 9, mixed attention over self-attention on a CPU, by its count of operations
# both without output projections.
CASES = {
    "bert": Case(
        ("tfeff:bert_base", "tfeff:shatter_base"),
        BERT_PEERS,
        {
            ("train", "tfeff:bert_base"): (0.95, None),
            ("train", "tfeff:shatter_base"): (0.82, None),
        },
    ),
    "albert": Case(
        ("tfeff:albert_base",),
        ("model_garden:albert", "hugging_face:albert"),
        {("train", "tfeff:albert_base"): (0.9, None)},
    ),
    "xlnet": Case(
        ("tfeff:xlnet_base",),
        ("model_garden:xlnet", "hugging_face:xlnet"),
        {("train", "tfeff:xlnet_base"): (0.9, None)},
    ),
    "xlnet_two_streams": Case(
        ("tfeff:xlnet_two_streams",),
        ("model_garden:xlnet_two_streams", "hugging_face:xlnet_two_streams"),
        {("train", "tfeff:xlnet_two_streams"): (0.9, None)},
        tasks=("train",),
    ),
    "convbert": Case(
        ("tfeff:convbert_base",),
        ("hugging_face:convbert",),
        {("train", "tfeff:convbert_base"): (0.7, None)},
    ),
    "blockbert": Case(
        ("tfeff:blockbert_n2_base", "tfeff:blockbert_n3_base"),
        ("tfeff:bert_base",),
        {
            ("train", "tfeff:blockbert_n2_base"): (0.75, 0.777),
            ("train", "tfeff:blockbert_n3_base"): (0.7, 0.749),
            ("inference", "tfeff:blockbert_n2_base"): (None, 0.722),
            ("inference", "tfeff:blockbert_n3_base"): (None, 0.696),
        },
        lengths=(1024,),
    ),
    **{
        f"mixed_{part}": Case(
            (f"tfeff:mixed {part}",),
            (f"tfeff:self {part}",),
            {("inference", f"tfeff:mixed {part}"): goal},
            lengths=(512,),
            tasks=("inference",),
        )
        for part, goal in (
            ("core", (0.65, 0.73)),
            ("attention", (0.65, None)),
            ("block", (None, None)),
        )
    },
}
SIZES = ("tokens", "layers", "width", "vocabulary", "dropout", "rounds", "environment")
COMPARISON = ("case", "task", "dtype", "length")
SETTINGS = (*COMPARISON, *SIZES, "machine")
