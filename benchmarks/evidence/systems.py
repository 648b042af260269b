"""The systems that the campaign compares, and the sizes of everything, as data."""

import dataclasses
from collections.abc import Mapping
from typing import Any

# Where one system has a name in several claims.
BERT, SHATTER, METHOD_4 = "BERT", "Shatter", "Method 4"
BLOCK_2, BLOCK_3, SPARSE = "BlockBERT n=2", "BlockBERT n=3", "SparseBERT"
ELECTRA = "BERT, RTD"
NO_POSITION = "No_Position"  # Sees words without their order.
SCRATCH = "From scratch"  # BERT's encoder with random weights.
TWO_LAYERS = "BERT, 2 layers"  # Half of the layers of the scale.


@dataclasses.dataclass(frozen=True)
class System:
    """The settings of a system that differ from BERT's.

    Attributes:
        preset: a name of `tfeff.encoders.presets()`, made small by the scale.
        override: arguments of the encoder.
        settings: settings of `tfeff pretrain`.
        late: whether it learns the order of words late, from absolute positions alone.
        seeds: seeds of its pretraining; three where a paper claims an order.
        cost: an estimate of its step's time over BERT's, until it is measured.
    """

    preset: str
    override: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    late: bool = False
    seeds: int = 2
    cost: float = 1.0


@dataclasses.dataclass(frozen=True)
class Scale:
    """The sizes of a campaign.

    Attributes:
        layers, width, heads: of every encoder.
        vocabulary: pieces of the one tokenizer.
        docstrings: characters of the corpus of documentation strings.
        length, batch_size, steps, eval_every: of pretraining.
        pilot_share: the share of the steps that a pilot has; `late_pilot_share` that of
            the systems that learn order late.
        rates: peak rates, of which a pilot chooses each system's.
        seeds: the most seeds that anything has.
        tuning_rates, tuning_epochs: of tasks; `short_epochs` those of SST-2.
        tasks: of GLUE, or none.
        cloze_epochs, question_epochs: of the two trainings to answer questions.
        lengths: of windows of questions, the first that of pretraining; or none.
        long_lengths, long_tokens: of continued pretraining, or none.
        distil_share: the share of the steps that general distillation has.
        timed_steps, timed_rounds: of the measurement of costs.
        tokens_a_second: of BERT's pretraining on a core, an estimate for `--list`.
        overhead: seconds of a cell that are not training, another.
    """

    layers: int = 4
    width: int = 128
    heads: int = 8
    vocabulary: int = 8000
    docstrings: int = 16_000_000
    length: int = 128
    batch_size: int = 16
    steps: int = 7400
    eval_every: int = 200
    pilot_share: float = 0.1
    late_pilot_share: float = 0.1
    rates: tuple[float, ...] = (5e-4, 1e-3, 2e-3)
    seeds: int = 3
    tuning_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    tuning_epochs: float = 3.0
    short_epochs: float = 1.0
    tasks: tuple[str, ...] = ("CoLA", "MRPC", "STS-B", "RTE", "SST-2")
    cloze_epochs: int = 2
    question_epochs: int = 4
    lengths: tuple[int, ...] = (128, 256, 512)
    long_lengths: tuple[int, ...] = (1024, 2048)
    long_tokens: int = 2_000_000
    distil_share: float = 0.25
    timed_steps: int = 10
    timed_rounds: int = 9
    tokens_a_second: float = 10_000
    overhead: float = 60

    def steps_of(self, share: float) -> int:
        """A share of the steps, in whole intervals between validations."""
        return max(1, round(share * self.steps / self.eval_every)) * self.eval_every


SCALES = {
    "full": Scale(),
    # Absolute positions are learnt within the budget where there are few of them.
    "short": Scale(
        length=32,
        batch_size=64,
        late_pilot_share=0.5,
        tasks=(),
        lengths=(),
        long_lengths=(),
    ),
    "toy": Scale(
        layers=2,
        width=16,
        vocabulary=300,
        docstrings=30_000,
        length=32,
        batch_size=4,
        steps=8,
        eval_every=2,
        pilot_share=0.5,
        late_pilot_share=0.5,
        rates=(1e-3, 2e-3),
        tuning_rates=(1e-3,),
        tuning_epochs=1.0,
        lengths=(32, 48),
        long_lengths=(64,),
        long_tokens=256,
        cloze_epochs=1,
        question_epochs=1,
        distil_share=0.5,
        timed_steps=1,
        timed_rounds=2,
        overhead=20,
    ),
}


def _relative(method: str, **others) -> dict:
    return {"attention": {"name": "relative", "method": method, **others}}


def _mixed(convolution: str) -> dict:
    return {"attention": {"name": "mixed", "convolution": convolution}}


def _blocks(heads: str) -> dict:
    return {"attention": {"name": "blockwise", "head_blocks": heads}}


_RTD = {"objective": "replaced_token", "bias_correction": False}
_CONVBERT: dict[str, dict] = {
    "ConvBERT": {},
    "+BNK": _mixed("none"),
    "Separable": _mixed("separable"),
    "Dynamic": _mixed("dynamic"),
    "Lightweight": _mixed("lightweight"),
}
# In the order in which they are run.
SYSTEMS = {
    BERT: System("bert_base", late=True, seeds=3),
    SHATTER: System("shatter_base", seeds=3, cost=1.1),
    NO_POSITION: System("no_position_base", seeds=3),
    "Part_Mask": System("part_mask_base", seeds=3, cost=1.1),
    "1H_Softmax": System("one_head_softmax_base", seeds=3),
    "1H_Sigmoid": System("one_head_sigmoid_base", seeds=3),
    "Part_Bias": System("part_bias_base", seeds=3, cost=1.1),
    "BERT-RPE": System("bert_rpe_base", seeds=3, cost=1.6),
    "BERT-RAB": System("bert_rab_base", seeds=3, cost=1.1),
    METHOD_4: System("huang4_base", seeds=3, cost=1.8),
    BLOCK_2: System("blockbert_n2_base", _blocks("6:2"), late=True, seeds=3, cost=0.9),
    ELECTRA: System("bert_base", settings=_RTD, late=True, seeds=3, cost=1.5),
    "ConvBERT, RTD": System(
        "convbert_base", settings=_RTD, late=True, seeds=3, cost=1.7
    ),
    "ALBERT, all shared": System("albert_base", late=True, seeds=3),
    "Shaw": System("shaw_base", seeds=3, cost=1.4),
    **{
        f"Method {n}": System(f"huang{n}_base", seeds=3, cost=cost)
        for n, cost in ((1, 1.1), (2, 1.1), (3, 4.0))
    },
    "Absolute + method 4": System("bert_base", _relative("huang4"), seeds=3, cost=1.8),
    BLOCK_3: System(
        "blockbert_n3_base", _blocks("6:1:1"), late=True, seeds=3, cost=0.9
    ),
    # The paper's stride of 128 in sequences of 512, in proportion.
    SPARSE: System(
        "sparsebert_base",
        {"attention": {"name": "sparse", "stride": 32, "expressivity": 8}},
        late=True,
        seeds=3,
    ),
    **{
        f"{label}, RTD": System(
            "convbert_base", override, _RTD, late=True, seeds=3, cost=1.6
        )
        for label, override in _CONVBERT.items()
        if label != "ConvBERT"
    },
    **{
        label: System("convbert_base", override, late=True, cost=1.2)
        for label, override in _CONVBERT.items()
    },
    **{
        f"ALBERT, {label}": System("albert_base", override, late=True)
        for label, override in (
            ("shared attention", {"sharing": "attention"}),
            ("shared FFN", {"sharing": "feedforward"}),
            ("groups of 2", {"sharing_group_size": 2}),
        )
    },
    "XLNet, masking": System("xlnet_base", cost=1.7),
    "XLNet, permutation": System(
        "xlnet_base", settings={"objective": "permutation_lm"}, cost=2.5
    ),
}
# Timed beside them: what stacking trains at first.
TIMED = {**SYSTEMS, TWO_LAYERS: System("bert_base", cost=0.6)}


def settings_of(name: str, scale: Scale) -> dict[str, Any]:
    """The settings of a system's pretraining, but for text, rate, steps and seed."""
    system = TIMED[name]
    layers = scale.layers // 2 if name == TWO_LAYERS else scale.layers
    return {
        "preset": system.preset,
        "override": {
            "num_layers": layers,
            "hidden_dim": scale.width,
            "embedding_dim": scale.width,
            "num_heads": scale.heads,
            "intermediate_dim": 4 * scale.width,
            "dropout": 0.0,  # About two passes over the text.
            **system.override,
        },
        "vocabulary_size": scale.vocabulary,
        "sequence_length": scale.length,
        "batch_size": scale.batch_size,
        **system.settings,
    }
