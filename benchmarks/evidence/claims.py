"""The papers' claims, as data: who is better than whom, and the paper's figures.

A comparison is a sum of weighted means whose sign is that of the claim: above 0 where
the claim holds. Figures are the papers' own, sentences are ours.
"""

import dataclasses
from collections.abc import Mapping

from evidence.cells import CHEAP_RPE, CONV_RTD, DISTILLED, RTD, STACKED
from evidence.systems import (
    BERT,
    BLOCK_2,
    BLOCK_3,
    ELECTRA,
    METHOD_4,
    NO_POSITION,
    SCRATCH,
    SHATTER,
    SPARSE,
)

AVERAGE = "average"  # Over the tasks of GLUE that the campaign has.
STUDENTS = "distilled"  # The same for the tasks that students have.
TASK_NAMES = {AVERAGE: "mean of GLUE", STUDENTS: "mean of tasks"}
TIMED_METRICS = ("equal_cost", "same_loss")  # They need measured times.
CLOSE = 0.05  # Nats within which two losses are called equal.
CLOSE_SCORE = 0.02  # The same for scores between 0 and 1.


@dataclasses.dataclass(frozen=True)
class Term:
    """A mean over seeds, with its weight in a comparison.

    `metric` is one of the rows', or `mean_loss` of a whole curve, or `equal_cost`: the
    loss when as much time has passed as the cheapest of the comparison takes in all, or
    `same_loss`: the time, as a share of BERT's in all, to the highest of the losses at
    which the comparison's runs end.
    """

    weight: float
    stage: str
    system: str
    task: str = ""
    metric: str = "loss"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A part of a claim.

    Attributes:
        label: what is compared, in words.
        terms: its sum is above 0 where the claim holds.
        tolerance: for claims of equality: what counts as none.
        learnt: losses of those that must have learnt the order of words, or nothing is
            decided: of what is to be the better one, of what is to be as good, and of
            all of whose positions something is said.
    """

    label: str
    terms: tuple[Term, ...]
    tolerance: float | None = None
    learnt: tuple[Term, ...] = ()


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes:
        name: of its page.
        paper, section: where it stands.
        sentence: what it says.
        figure: what the paper measured, by system; `unit` says what.
        comparisons: what must hold here.
        note: what differs here from the paper, beside the size.
    """

    name: str
    paper: str
    section: str
    sentence: str
    unit: str
    figure: Mapping[str, str]
    comparisons: tuple[Comparison, ...]
    note: str = ""


def pretrained(*systems: str) -> tuple[Term, ...]:
    """The losses of systems in pretraining."""
    return tuple(Term(1, "pretraining", system) for system in systems)


def lower(better: str, worse: str, metric: str = "loss") -> Comparison:
    """`better` has the lower loss in pretraining."""
    how = {"mean_loss": ", mean of the curve", "equal_cost": ", equal cost"}
    return Comparison(
        f"{better} below {worse}{how.get(metric, '')}",
        (
            Term(1, "pretraining", worse, metric=metric),
            Term(-1, "pretraining", better, metric=metric),
        ),
        learnt=pretrained(better),
    )


def equal(first: str, second: str) -> Comparison:
    """Both have the same loss in pretraining."""
    label = f"{first} equal to {second}"
    terms = lower(first, second).terms
    return Comparison(label, terms, CLOSE, pretrained(first, second))


def higher(
    better: str,
    worse: str,
    task: str = AVERAGE,
    stage: str = "transfer",
    metric: str = "score",
) -> Comparison:
    """`better` has the higher score."""
    return Comparison(
        f"{better} above {worse}, {TASK_NAMES.get(task, task)}",
        (
            Term(1, stage, better, task, metric),
            Term(-1, stage, worse, task, metric),
        ),
        learnt=pretrained(better),
    )


def same_score(first: str, second: str) -> Comparison:
    """Both have the same average score."""
    terms = higher(first, second).terms
    label = f"{first} equal to {second}, {TASK_NAMES[AVERAGE]}"
    return Comparison(label, terms, CLOSE_SCORE, pretrained(first, second))


def answers(better: str, worse: str, length: int = 256) -> Comparison:
    """`better` answers questions with the higher F1."""
    return higher(better, worse, f"squad-{length}", "questions", "f1")


def distilled(worse: str, better: str = "TinyBERT") -> Comparison:
    """`better` is a better student of a BERT than `worse`."""
    found = higher(better, worse, STUDENTS, "cheaper")
    return dataclasses.replace(found, learnt=pretrained(BERT))


def _f1(weight, system, length):
    return Term(weight, "questions", system, f"squad-{length}", "f1")


def _extension(system, other, short, long):
    """Longer windows help `system` more than they help `other`."""
    return Comparison(
        f"{system} gains more than {other} from {short} to {long} tokens",
        (
            *(_f1(1, system, long), _f1(-1, system, short)),
            *(_f1(-1, other, long), _f1(1, other, short)),
        ),
        learnt=pretrained(system, other),
    )


def _beyond(system, other, length, low, high):
    """The loss of far positions, over that of near ones, is lower for `system`."""

    def term(weight, name, start, end):
        metric = f"loss@{length}[{start}:{end}]"
        return Term(weight, "long", name, "128", metric)

    return Comparison(
        f"{system} loses less than {other} at positions {low} to {high - 1}",
        (
            *(term(1, other, low, high), term(-1, other, 0, 128)),
            *(term(-1, system, low, high), term(1, system, 0, 128)),
        ),
        learnt=pretrained(system, other),
    )


_SHATTER = "Tian et al., Shatter"
_HUANG = "Huang et al., better relative position embeddings"
_BLOCKBERT = "Qiu et al., BlockBERT"
_CONVBERT = "Jiang et al., ConvBERT"
_ALBERT = "Lan et al., ALBERT, by the survey"
_STACKING = "Gong et al., progressive stacking, by the survey"
_TINYBERT = "Jiao et al., TinyBERT, by the survey"
_LOSS = "validation loss in nats"
_F1 = "F1 on SQuAD 1.1"
_GLUE = "GLUE, mean of tasks"
_WINDOWS = "Windows of 128 tokens as in pretraining, extended to 256 and 512."
_ABLATION = "mean of MNLI, MRPC and CoLA"

CLAIMS = (
    Claim(
        "order-of-words",
        *(_SHATTER, "Section 3, Figure 1"),
        "Without positions an encoder learns far less than BERT, and a partition of "
        "the relative positions closes much of the gap.",
        *(_LOSS, {BERT: "about 2", NO_POSITION: "above 6"}),
        (
            lower(BERT, NO_POSITION),
            lower("Part_Mask", NO_POSITION),
            lower(BERT, "Part_Mask"),
        ),
    ),
    Claim(
        "one-head",
        *(_SHATTER, "Section 3.2, Figure 1"),
        "One head with a softmax is slightly worse than many with the partition, and "
        "the L2-normalised sigmoid is better than both.",
        *("order in Figure 1", {"best to worst": "1H_Sigmoid, Part_Mask, 1H_Softmax"}),
        (
            lower("Part_Mask", "1H_Softmax"),
            lower("1H_Sigmoid", "1H_Softmax"),
            lower("1H_Sigmoid", "Part_Mask"),
        ),
    ),
    Claim(
        "partition-embeddings",
        *(_SHATTER, "Section 3.3, Figure 1"),
        "The bias of the partition lowers the loss, and its part in the values lowers "
        "it further.",
        *("order in Figure 1", {"best to worst": "Shatter, Part_Bias, 1H_Sigmoid"}),
        (lower("Part_Bias", "1H_Sigmoid"), lower(SHATTER, "Part_Bias")),
        "The paper calls Shatter and Part_Bias close, and Shatter at least as good "
        "(Section A.3, on GLUE); here Shatter must be below.",
    ),
    Claim(
        "shatter-and-bert",
        *(_SHATTER, "Section 3.3, Figure 1"),
        "Shatter reaches BERT's validation loss.",
        *(_LOSS, {BERT: "about 2", SHATTER: "the same"}),
        (equal(SHATTER, BERT),),
    ),
    Claim(
        "rpe-is-best",
        *(_SHATTER, "Section A.2, Figure 4"),
        "With equal steps relative position embeddings are better than BERT, RAB and "
        "Shatter at all times.",
        *("order in Figure 4", {"best": "BERT-RPE"}),
        tuple(
            lower("BERT-RPE", other, metric)
            for metric in ("loss", "mean_loss")
            for other in (BERT, "BERT-RAB", SHATTER)
        ),
        "The end and the mean of the curve are judged; whether it is the lowest at "
        "each time, the picture shows.",
    ),
    Claim(
        "faster-than-rab",
        *(_SHATTER, "Section A.2, Figure 4"),
        "Shatter converges faster than BERT with a relative attention bias.",
        *("order in Figure 4", {"first": "Shatter, then BERT-RAB"}),
        (lower(SHATTER, "BERT-RAB", "mean_loss"),),
    ),
    Claim(
        "shatter-for-its-cost",
        *(_SHATTER, "Sections 1 and 5.1, Table 1"),
        "In equal time Shatter learns more than the models with learnt relative "
        "positions, and than BERT.",
        *("hours of pretraining on a TPU v3",),
        {
            SHATTER: "45",
            BERT: "53",
            "BERT-RAB": "64",
            "XLNet": "123",
            "BERT-RPE": "206",
        },
        (
            lower(SHATTER, BERT, "equal_cost"),
            lower(SHATTER, "BERT-RAB", "equal_cost"),
            Comparison(
                f"Shatter below {CHEAP_RPE}",
                (
                    Term(1, "cheaper", CHEAP_RPE),
                    Term(-1, "pretraining", SHATTER),
                ),
                learnt=pretrained(SHATTER),
            ),
        ),
        "Time is that of one core of a processor. BERT-RPE has a training of its own, "
        "of as many steps as take Shatter's time; the curves of the others are read "
        "when it is over.",
    ),
    Claim(
        "shatter-on-glue",
        *(_SHATTER, "Section 5.2.1, Tables 2 and 6"),
        "On GLUE, RPE is best, then Shatter, then BERT; of Shatter's variants "
        "Part_Bias is best, then 1H_Sigmoid, then Part_Mask.",
        *("CoLA, MRPC, STS-B, RTE of the development set",),
        {
            "BERT-RPE": "84.4, 92.1, 86.4, 74.0",
            SHATTER: "84.0, 92.1, 85.8, 67.9",
            BERT: "83.6, 89.7, 85.6, 65.3",
            "Part_Bias": "84.2, 92.3, 84.2, 62.8",
            "1H_Sigmoid": "79.8, 91.3, 83.3, 61.7",
            "Part_Mask": "69.4, 81.9, 43.5, 55.2",
        },
        (
            higher("BERT-RPE", SHATTER),
            higher(SHATTER, BERT),
            higher("Part_Bias", "1H_Sigmoid"),
            higher("1H_Sigmoid", "Part_Mask"),
        ),
        "The mean is of CoLA, MRPC, STS-B, RTE and SST-2. CoLA counts by Matthews' "
        "correlation, in the paper by accuracy.",
    ),
    Claim(
        "pretraining-transfers",
        *("all", "the premise of all papers"),
        "What is learnt in pretraining helps on tasks, and to answer questions.",
        *("–", {}),
        (higher(BERT, SCRATCH), answers(BERT, SCRATCH)),
    ),
    Claim(
        "shatter-extends",
        *(_SHATTER, "Section 5.2.2, Table 3"),
        "Windows longer than the sequences of pretraining help Shatter and method 4, "
        "whose positions are relative, more than BERT.",
        *(f"{_F1}, from 512 to 1024 tokens",),
        {BERT: "90.0, 86.6", SHATTER: "89.6, 89.6", "BERT-RPE": "91.0, 91.0"},
        tuple(
            _extension(system, BERT, 128, long)
            for system in (SHATTER, METHOD_4)
            for long in (256, 512)
        ),
        _WINDOWS,
    ),
    Claim(
        "relative-methods",
        *(_HUANG, "Section 4.1, Table 2"),
        "To answer questions, methods 3 and 4 are best, then Shaw's embeddings, which "
        "are better than absolute positions; method 1 is worse than those.",
        *(_F1,),
        {
            BERT: "88.59",
            "Shaw": "89.37",
            "Method 1": "87.96",
            "Method 2": "88.86",
            "Method 3": "90.50",
            METHOD_4: "90.53",
        },
        (
            answers(METHOD_4, BERT),
            answers("Method 3", BERT),
            answers(METHOD_4, "Shaw"),
            answers("Method 3", "Shaw"),
            answers("Shaw", BERT),
            answers(BERT, "Method 1"),
        ),
        "Windows of 256 tokens.",
    ),
    Claim(
        "relative-methods-on-glue",
        *(_HUANG, "Section 4.2, Table 3"),
        "GLUE tells little between absolute positions and method 4; method 3 alone is "
        "worse, on MRPC.",
        *("F1 on MRPC", {BERT: "88.40", METHOD_4: "88.88", "Method 3": "82.86"}),
        (
            same_score(METHOD_4, BERT),
            higher(BERT, "Method 3", "MRPC"),
        ),
    ),
    Claim(
        "added-relative-positions",
        *(_HUANG, "Section 4.4, Table 5"),
        "Method 4 improves a model of absolute positions.",
        *("F1 on SQuAD 1.1, large", {BERT: "93.15", METHOD_4: "93.55"}),
        (lower("Absolute + method 4", BERT),),
        "The paper puts method 4 into a pretrained model; here both are pretrained.",
    ),
    Claim(
        "blocks-lose-little",
        *(_BLOCKBERT, "Section 4.1, Table 2"),
        "Two blocks have the perplexity of full attention, and three are worse than "
        "two.",
        *("validation perplexity, 512 tokens",),
        {BERT: "3.58", BLOCK_2: "3.56", BLOCK_3: "3.71"},
        (equal(BLOCK_2, BERT), lower(BLOCK_2, BLOCK_3)),
    ),
    Claim(
        "blocks-and-sparse",
        *(_BLOCKBERT, "Section 4.2, Table 3"),
        "To answer questions, two blocks are better than three, and three than the "
        "fixed pattern of a Sparse Transformer.",
        *(_F1, {BERT: "91.48", BLOCK_2: "90.77", BLOCK_3: "89.64", SPARSE: "88.09"}),
        (answers(BLOCK_2, BLOCK_3), answers(BLOCK_3, SPARSE)),
        "The Sparse Transformer's stride is 32 instead of 128, expressivity 8 instead "
        "of 32, for sequences of 128 tokens.",
    ),
    Claim(
        "replaced-tokens",
        *(_CONVBERT, "Section 6.4, Table 7, and ELECTRA"),
        "Detecting replaced tokens teaches more than predicting masked ones, with "
        "equal steps and at equal cost.",
        *(f"{_GLUE}, at equal cost", {BERT: "75.1", ELECTRA: "79.7"}),
        (
            higher(ELECTRA, BERT),
            Comparison(
                "BERT, RTD above BERT, equal cost",
                (
                    Term(1, "cheaper", RTD, AVERAGE, "score"),
                    Term(-1, "transfer", BERT, AVERAGE, "score"),
                ),
            ),
        ),
    ),
    Claim(
        "span-based-convolution",
        *(_CONVBERT, "Section 4.3, Tables 1 and 2"),
        "Span-based dynamic convolution is better than none, with equal steps and at "
        "equal cost, than a dynamic and than a separable one; a separable one is worse "
        "than none.",
        *(_GLUE,),
        {
            ELECTRA: "80.4",
            "+BNK, RTD": "80.6",
            "Separable, RTD": "78.2",
            "Dynamic, RTD": "80.6",
            "ConvBERT, RTD": "81.4",
        },
        (
            higher("ConvBERT, RTD", ELECTRA),
            higher(CONV_RTD, RTD, stage="cheaper"),
            higher("ConvBERT, RTD", "+BNK, RTD"),
            higher("ConvBERT, RTD", "Dynamic, RTD"),
            higher("Dynamic, RTD", "Separable, RTD"),
            higher(ELECTRA, "Separable, RTD"),
        ),
    ),
    Claim(
        "bottleneck",
        *(_CONVBERT, "Section 4.3, Table 1"),
        "Half of the heads in a bottleneck do not hurt.",
        *(_GLUE, {ELECTRA: "80.4", "+BNK, RTD": "80.6"}),
        (same_score("+BNK, RTD", ELECTRA),),
    ),
    Claim(
        "convolution-masked",
        *(_CONVBERT, "Section 6.4, Table 7"),
        "Mixed attention helps with masked language modelling, too.",
        *(_GLUE, {BERT: "75.1", "ConvBERT": "75.9"}),
        (lower("ConvBERT", BERT), lower("ConvBERT", "+BNK")),
        "The paper has no bottleneck without convolution (+BNK) by masking. Here it "
        "tells what the convolution adds to it.",
    ),
    Claim(
        "shared-weights",
        *(_ALBERT, "Parameter sharing experiments"),
        "Layers that share weights are worse, and sharing feed-forward networks hurts "
        "more than sharing attention.",
        *("mean of five tasks, E = 768",),
        {
            BERT: "82.3",
            "ALBERT, shared attention": "81.6",
            "ALBERT, shared FFN": "79.5",
            "ALBERT, all shared": "79.8",
        },
        (
            lower(BERT, "ALBERT, all shared"),
            lower("ALBERT, shared attention", "ALBERT, shared FFN"),
            lower("ALBERT, groups of 2", "ALBERT, all shared"),
            higher(BERT, "ALBERT, all shared"),
        ),
    ),
    Claim(
        "stacking",
        *(_STACKING, "Algorithm 1 and switching time"),
        "Layers that are doubled by copying reach a loss in less time than all from "
        "scratch.",
        *(_GLUE, {"baseline": "77.4", "stacking": "78.4"}),
        tuple(
            Comparison(
                f"{label} {how}",
                (
                    Term(1, "pretraining", BERT, metric=metric),
                    Term(-1, "cheaper", label, metric=metric),
                ),
                learnt=(Term(1, "cheaper", label),),
            )
            for metric, how in (
                ("loss", "below BERT, equal cost"),
                ("same_loss", "before BERT at the same loss"),
            )
            for label in STACKED
        ),
        "Two layers are doubled after half or a quarter of the steps, of which there "
        "are as many as take BERT's time. The time to the same loss is a share of that "
        "of BERT's pretraining; the loss is the highest at which one of the compared "
        "runs ends.",
    ),
    Claim(
        "distillation-losses",
        *(_TINYBERT, "Table 6"),
        "Each of TinyBERT's losses helps, those of the Transformer's layers most.",
        *(_ABLATION,),
        {
            "TinyBERT": "75.3",
            "No Embd": "74.1",
            "No Pred": "73.5",
            "No Hidn": "72.9",
            "No Attn": "71.0",
            "No Trm": "56.3",
        },
        tuple(
            distilled(other)
            for other in DISTILLED
            if other not in ("TinyBERT", "No GD")
        )
        + tuple(distilled("No Trm", other) for other in ("No Embd", "No Pred")),
        "The mean is of CoLA, MRPC and SST-2; without augmented examples.",
    ),
    Claim(
        "general-distillation",
        *(_TINYBERT, "Table 5"),
        "A student that was distilled in general first is better on tasks.",
        *(_ABLATION, {"TinyBERT": "75.3", "No GD": "72.5"}),
        (distilled("No GD"),),
        "The mean is of CoLA, MRPC and SST-2; without augmented examples.",
    ),
    Claim(
        "long-documents",
        *("Huang et al. and Shatter", "Sections 4.3 and 5.2.2"),
        "Relative positions go beyond the length of pretraining without training, "
        "absolute ones do not.",
        *("–", {}),
        tuple(_beyond(system, BERT, 1024, 128, 256) for system in (SHATTER, METHOD_4)),
        "Loss of positions 128 to 255, less that of 0 to 127, in sequences of 1024 "
        "tokens after pretraining with 128.",
    ),
)
