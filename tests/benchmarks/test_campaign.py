import csv
import importlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.stats
from absl import app, flags
from absl.testing import flagsaver

from tests.benchmarks.campaign_data import write
from tests.benchmarks.scripts import FOLDER, cells, run


@pytest.fixture(scope="module")
def campaign(load):
    return load("campaign.py")


@pytest.fixture(scope="module")
def part(campaign):
    return lambda name: importlib.import_module(f"evidence.{name}")


def a_row(metrics, **others):
    row = {"metrics": metrics, "tokens": 1000, "seconds": 1, "command": "tfeff"}
    return row | {"commit": "c", "machine": "m", "versions": "v"} | others


def a_cell(system, seed, stage="pretraining", task=""):
    return {"stage": stage, "system": system, "task": task, "seed": seed}


def test_parts_of_the_text_are_disjoint_and_always_the_same(part):
    texts = part("texts")
    documents = [f"document {i} of {i * i}" for i in range(2000)]
    parts = texts.split(documents, ["the street", documents[7]])
    assert parts == texts.split(list(documents), ["the street", documents[7]])
    own = [set(parts[name]) for name in ("train", "pilot", "held_out", "ptb")]
    assert sum(map(len, own)) == len(set.union(*own)) == len(documents) + 1
    assert set(parts["final"]) == own[2] | own[3]
    # Where a document goes depends on nothing but itself, and not on its line breaks.
    backwards = texts.split(documents[::-1] + documents, ["the street", documents[7]])
    assert [set(p) for p in backwards.values()] == [set(p) for p in parts.values()]
    assert texts.part_of("a\nb  c") == texts.part_of("a b c")
    assert 5 < len(parts["pilot"]) < 50 and 5 < len(parts["held_out"]) < 50
    assert texts.fraction("") == 0xE3B0C44298FC / 2**48  # SHA-256's known start.


def test_tasks_are_chosen_by_and_judged_by_different_rows(part, tmp_path):
    write(tmp_path / "data")
    folder = tmp_path / "texts"
    folder.mkdir()
    part("texts").split_tasks(tmp_path / "data" / "glue", folder)
    for task, header in (("CoLA", 0), ("MRPC", 1)):
        glue = tmp_path / "data" / "glue" / task
        train = (folder / "choose" / task / "train.tsv").read_bytes().splitlines()
        dev = (folder / "choose" / task / "dev.tsv").read_bytes().splitlines()
        all_rows = (glue / "train.tsv").read_bytes().splitlines()
        assert sorted(train[header:] + dev[header:]) == sorted(all_rows[header:])
        assert train[:header] == dev[:header] == all_rows[:header]
        assert len(dev) > header
        judge = folder / "judge" / task / "dev.tsv"
        assert judge.read_bytes() == (glue / "dev.tsv").read_bytes()


def test_gaps_are_answered_where_the_passage_has_the_words(part):
    questions = part("questions")
    passage = "The first sentence is not so long. Another one comes after that! Short."
    (article,) = questions.cloze([passage])
    (paragraph,) = article["paragraphs"]
    assert paragraph["context"] == passage and len(paragraph["qas"]) == 2
    for question in paragraph["qas"]:
        (answer,) = question["answers"]
        start = answer["answer_start"]
        assert passage[start : start + len(answer["text"])] == answer["text"]
        whole = question["question"].replace("what", answer["text"], 1)
        assert whole in questions.sentences(passage)
    assert questions.cloze([passage]) == [article]


def test_cells_come_in_an_order_that_can_be_run(part):
    made = part("cells").make_cells(part("systems").SCALES["full"])
    names = [cell.name for cell in made]
    assert len(set(names)) == len(names)
    assert all(set(cell.needs) <= set(names) for cell in made)
    systems = part("systems").SYSTEMS
    seeds = [c.seed for c in made if c.stage == "pretraining"]
    assert seeds == sorted(seeds) and seeds.count(0) == len(systems) > 30
    assert names[len(systems) + 1] == "pilot/BERT/0.0005/0"
    for cell in made:  # Nobody learns from what comes from a later seed.
        earlier = [made[names.index(need)].seed for need in cell.needs]
        assert all(seed <= cell.seed for seed in earlier), cell.name


def test_a_scale_of_short_sequences(part):
    scales, cells = part("systems").SCALES, part("cells")
    short, full = scales["short"], scales["full"]
    assert short.length * short.batch_size == full.length * full.batch_size
    made = cells.make_cells(short)
    assert {cell.stage for cell in made} == {
        *("timing", "pilot", "pretraining", "cheaper")
    }
    context = cells.Context(short, "texts", str, lambda name, metric: 0.0)
    steps = {c.name: c.settings(context)["steps"] for c in made if c.stage == "pilot"}
    # What learns order late has pilots that are long enough to see it.
    assert steps["pilot/BERT/0.001/0"] == 3600 and steps["pilot/Shatter/0.001/0"] == 800
    claims = {c.name: c for c in part("deciding").claims_at(made, short)}
    assert "order-of-words" in claims and "shatter-on-glue" not in claims
    assert len(claims["shared-weights"].comparisons) == 3  # GLUE is left out.
    everything = part("deciding").claims_at(cells.make_cells(full), full)
    assert everything == list(part("claims").CLAIMS)
    folders = [part("pages").claims_folder(name) for name in ("full", "short")]
    assert folders == ["claims", "claims_short"]


def test_claims_are_of_cells_that_there_are(part):
    scale = part("systems").SCALES["full"]
    made = {
        (cell.stage, cell.system, cell.task) for cell in part("cells").make_cells(scale)
    }
    claims = part("claims").CLAIMS
    assert len({claim.name for claim in claims}) == len(claims) > 20
    several = {"average": scale.tasks, "distilled": ("CoLA", "MRPC", "SST-2")}
    for claim in claims:
        for comparison in claim.comparisons:
            assert sum(term.weight for term in comparison.terms) == 0
            for term in comparison.terms:
                for task in several.get(term.task, [term.task]):
                    assert (term.stage, term.system, task) in made, comparison.label


def test_a_pilot_chooses_the_rate_and_the_later_stages_read_it(part):
    losses = {"0.0005": 5.0, "0.001": 4.0, "0.002": 4.0}
    context = part("cells").Context(
        part("systems").SCALES["full"],
        "texts",
        lambda name: f"runs/{name}",
        lambda name, metric: losses[name.split("/")[2]],
    )
    assert context.rate("BERT") == 1e-3
    (cell,) = [
        cell
        for cell in part("cells").make_cells(context.scale)
        if cell.name == "pretraining/BERT/0"
    ]
    settings = cell.settings(context)
    assert settings["learning_rate"] == 1e-3
    assert settings["corpus"] == ("texts/train.jsonl",)
    assert settings["validation"] == ("texts/final.jsonl",)
    tokens = settings["steps"] * settings["batch_size"] * settings["sequence_length"]
    assert tokens >= 15e6
    command = part("work").command(cell, context, "runs/x")
    assert command[:3] == ["tfeff", "pretrain", "--run_dir=runs/x"]
    assert "--learning_rate=0.001" in command and "--override=num_heads=8" in command


@pytest.mark.parametrize("scale", ["full", "short", "toy"])
def test_recipes_take_the_settings_of_all_cells(part, scale):
    from tfeff.recipes.pretraining import settle

    cells, work = part("cells"), part("work")
    scale = part("systems").SCALES[scale]
    context = cells.Context(scale, "texts", str, lambda name, metric: 1.0)
    for cell in cells.make_cells(scale):
        if cell.recipe in ("timing", "positions"):
            continue
        given = cell.settings(context)
        settings = work.recipe_settings(cell.recipe, given, "none")
        if cell.recipe in ("pretrain", "stack"):
            settle(settings)


def test_rows_are_written_once(part, tmp_path):
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    points = [{"step": 2, "tokens": 8, "loss": 2.0, "val_loss": 2.5}]
    ledger.add(a_cell("BERT", 0), points, a_row({"loss": 0.1 + 0.2}))
    ledger.add(a_cell("BERT", 1), [], a_row({"loss": 1.0}))
    with pytest.raises(ValueError, match="a row of pretraining/BERT/0 already"):
        ledger.add(a_cell("BERT", 0), points, a_row({"loss": 2.0}))
    rows = ledger.rows()
    assert list(rows) == ["pretraining/BERT/0", "pretraining/BERT/1"]
    assert rows["pretraining/BERT/0"]["metrics"] == {"loss": 0.1 + 0.2}
    assert [p["val_loss"] for p in ledger.curves()["pretraining/BERT/0"]] == [2.5]
    other = part("ledger").Ledger(str(tmp_path), "toy")
    assert other.rows() == {}
    other.add(a_cell("BERT", 0), [], a_row({"loss": 3.0}))
    assert len(ledger.rows()) == 2 and len(other.rows()) == 1
    assert other.curves() == {}


def test_points_without_a_row_are_none(part, tmp_path):
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    point = {"step": 2, "tokens": 8, "loss": 2.0, "val_loss": 2.5}
    ledger.add(a_cell("BERT", 0), [point], a_row({"loss": 2.0}))
    os.remove(ledger.path)  # As if the process had been killed in between.
    assert ledger.curves() == {}
    ledger.add(a_cell("BERT", 0), [point | {"val_loss": 3.0}], a_row({"loss": 2.0}))
    with open(ledger.curves_path, encoding="utf-8", newline="") as file:
        assert [row["val_loss"] for row in csv.DictReader(file)] == ["3.0"]


@pytest.mark.parametrize(
    ("effect", "margin", "tolerance", "verdict"),
    [
        (0.2, 0.1, None, "confirmed"),
        (-0.2, 0.1, None, "contradicted"),
        (0.1, 0.1, None, "not decided"),
        (-0.05, 0.1, None, "not decided"),
        (0.01, 0.03, 0.05, "confirmed"),
        (-0.03, 0.03, 0.05, "not decided"),
        (-0.2, 0.1, 0.05, "contradicted"),
    ],
)
def test_the_rule(part, effect, margin, tolerance, verdict):
    assert part("verdicts").decide(effect, margin, tolerance) == verdict


LOSSES = {
    "BERT": (2.0, 2.2),
    "No_Position": (5.0, 5.2),
    "Part_Mask": (2.1, 2.3),
    "1H_Softmax": (2.1, 2.1),
}


@pytest.fixture
def recorded(part, tmp_path):
    """A ledger of made-up losses, with curves of two points."""
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    for system, losses in LOSSES.items():
        for seed, loss in enumerate(losses):
            curve = [
                {"step": step, "tokens": step * 2048, "loss": 6.0, "val_loss": value}
                for step, value in ((3700, 5.5), (7400, loss))
            ]
            row = a_row(
                {"loss": loss, "unigram_entropy": 6.0},
                tokens=15_155_200,
                command="tfeff pretrain --learning_rate=0.001 --steps=7400",
            )
            ledger.add(a_cell(system, seed), curve, row)
    for system, cost in (("BERT", 1.0), ("Part_Mask", 2.0)):
        ledger.add(a_cell(system, 0, "timing"), [], a_row({"cost": cost}))
    return ledger


def test_effect_margin_and_deviation_by_hand(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(claims.lower("BERT", "No_Position"), evidence)
    assert found.verdict == "confirmed" and found.seeds == 2
    assert found.effect == pytest.approx(3.0)
    # The second seed is worse by 0.2, 0.2, 0.2 and 0, by 0.15 in the mean: squares
    # 2 × (3 × 0.025² + 0.075²) over 3 degrees of freedom; t of them is 3.182.
    assert found.deviation == pytest.approx(0.005**0.5)
    assert found.margin == pytest.approx(3.182 * 0.005**0.5, rel=1e-3)
    assert found.more_seeds is None
    found = verdicts.judge(claims.lower("BERT", "Part_Mask"), evidence)
    assert found.verdict == "not decided"
    # An effect of 0.1; each seed of the two adds a degree of freedom.
    margins = [
        scipy.stats.t.ppf(0.975, 3 + more) * (0.005 * 2 / (2 + more)) ** 0.5
        for more in range(20)
    ]
    enough = next(more for more, margin in enumerate(margins) if margin < 0.1)
    assert enough > 1 and found.more_seeds == enough
    assert found.more_tokens == pytest.approx(2 * enough * 15_155_200)
    found = verdicts.judge(claims.lower("BERT", "Shatter"), evidence)
    assert found.verdict == "not run" and found.reason == "no rows of Shatter"


def test_a_seeds_effect_is_no_deviation(part):
    rest = part("verdicts").rest
    values = {"a": {0: 1.0, 1: 1.5}, "b": {0: 3.0, 1: 3.5}, "c": {1: 9.0}}
    # A system with one seed has no rest.
    assert rest(values) == (pytest.approx(0.0, abs=1e-20), 1)
    values["b"][1] = 3.1  # The seed's effect is 0.3: four rests of 0.1.
    assert rest(values) == (pytest.approx(0.04), 1)
    assert rest({"a": values["a"]})[1] == 0
    assert rest({}) == (0.0, 0)


def test_all_that_do_not_stand_out_are_pooled(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    for seed, loss in enumerate((1.0, 2.2)):
        metrics = {"loss": loss, "unigram_entropy": 6.0, "order": 1.0}
        recorded.add(a_cell("Shatter", seed), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    quiet = verdicts.judge(claims.lower("BERT", "No_Position"), evidence)
    loud = verdicts.judge(claims.lower("Shatter", "No_Position"), evidence)
    # Second seeds are worse by 0.2, 0.2, 0.2, 0 and 1.2, by 0.36 in the mean.
    squares = 2 * (3 * 0.08**2 + 0.18**2 + 0.42**2)
    assert quiet.deviation == loud.deviation == pytest.approx((squares / 4) ** 0.5)


def test_a_system_that_stands_out_is_judged_by_a_paired_t_test(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    quiet = claims.lower("BERT", "No_Position")
    before = verdicts.judge(quiet, verdicts.Evidence(recorded, (), 7400))
    for seed, loss in enumerate((1.0, 4.0)):
        metrics = {"loss": loss, "unigram_entropy": 6.0, "order": 1.0}
        recorded.add(a_cell("Shatter", seed), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    assert verdicts.judge(quiet, evidence) == before
    loud = verdicts.judge(claims.lower("Shatter", "No_Position"), evidence)
    losses = evidence.values(claims.Term(1, "pretraining", "No_Position"))
    paired = scipy.stats.ttest_rel(
        [losses[0], losses[1]], [1.0, 4.0]
    ).confidence_interval()
    assert loud.effect - loud.margin == pytest.approx(paired.low)
    assert loud.effect + loud.margin == pytest.approx(paired.high)
    for seed, loss in enumerate((1.0, 90.0)):  # Not of the comparison.
        metrics = {"loss": loss, "unigram_entropy": 6.0, "order": 1.0}
        recorded.add(a_cell("BERT-RPE", seed), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    assert verdicts.judge(quiet, evidence) == before
    found = verdicts.judge(claims.lower("Shatter", "No_Position"), evidence)
    assert found == loud


def test_what_stands_out_by_the_last_loss_does_at_equal_cost(part, recorded):
    """Two timed systems alone have no others to stand out from."""
    verdicts, claims = part("verdicts"), part("claims")
    for seed, loss in enumerate((1.0, 4.0)):
        curve = [
            {"step": step, "tokens": step * 2048, "loss": 6.0, "val_loss": value}
            for step, value in ((3700, 5.0), (7400, loss))
        ]
        metrics = {"loss": loss, "unigram_entropy": 6.0, "order": 1.0}
        recorded.add(a_cell("Shatter", seed), curve, a_row(metrics))
    recorded.add(a_cell("Shatter", 0, "timing"), [], a_row({"cost": 1.0}))
    evidence = verdicts.Evidence(recorded, (), 7400)
    comparison = claims.lower("BERT", "Shatter", "equal_cost")
    by_system = evidence.by_system("", "equal_cost", 1.0)
    assert verdicts.outliers(by_system) == []
    found = verdicts.judge(comparison, evidence)
    own = [evidence.values(term, 1.0) for term in comparison.terms]
    assert [len(values) for values in own] == [2, 2]
    gaps = [own[0][seed] - own[1][seed] for seed in range(2)]
    assert found.deviation == pytest.approx(abs(gaps[0] - gaps[1]) / 2)


def test_what_stands_out(part):
    """Second seeds are worse by 0.2, 0.2, 0.2, 0 and what is tried."""
    outliers = part("verdicts").outliers
    quiet = {name: dict(enumerate(losses)) for name, losses in LOSSES.items()}
    for gap, expected in ((1.2, []), (1.6, ["Shatter"]), (-1.6, ["Shatter"])):
        assert outliers(quiet | {"Shatter": {0: 1.0, 1: 1.0 + gap}}) == expected
    two = {"Shatter": {0: 1.0, 1: 9.0}, "RPE": {0: 1.0, 1: 90.0}, "RAB": {1: 5.0}}
    assert outliers(quiet | two) == ["RPE", "Shatter"]
    assert outliers(quiet) == outliers({}) == outliers({"a": {0: 1.0, 1: 2.0}}) == []


def test_a_comparison_is_over_the_seeds_that_all_have(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    metrics = {"loss": 99.0, "unigram_entropy": 6.0}
    recorded.add(a_cell("BERT", 2), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(claims.lower("BERT", "No_Position"), evidence)
    assert found.seeds == 2 and found.effect == pytest.approx(3.0)
    assert found.deviation == pytest.approx(0.005**0.5)
    recorded.add(a_cell("Shatter", 2), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(claims.lower("No_Position", "Shatter"), evidence)
    assert found.verdict == "not run" and "no seed" in found.reason


def test_a_seed_is_the_same_in_all_stages(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    for seed, loss in enumerate((1.0, 1.15)):
        recorded.add(a_cell("Stacking", seed, "cheaper"), [], a_row({"loss": loss}))
    comparison = claims.Comparison(
        "Stacking below BERT",
        (
            claims.Term(1, "pretraining", "BERT"),
            claims.Term(-1, "cheaper", "Stacking"),
        ),
    )
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(comparison, evidence)
    # The second seed is worse by 0.2, 0.2, 0.2, 0 and 0.15, by 0.15 in the mean.
    squares = 2 * (3 * 0.025**2 + 0.075**2)
    assert found.deviation == pytest.approx((squares / 4) ** 0.5)
    for claim in claims.CLAIMS:  # So the seed's effect cancels everywhere.
        for comparison in claim.comparisons:
            weights = {}
            for term in comparison.terms:
                group = term.task, term.metric
                weights[group] = weights.get(group, 0) + term.weight
            assert not any(weights.values()), comparison.label


def test_another_objectives_loss_has_no_part_in_the_deviation(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    comparison = claims.lower("BERT", "No_Position")
    before = verdicts.judge(comparison, verdicts.Evidence(recorded, (), 7400))
    for seed, loss in enumerate((20.0, 30.0)):
        for system in ("BERT, RTD", "XLNet, permutation"):
            recorded.add(a_cell(system, seed), [], a_row({"loss": loss}))
    after = verdicts.judge(comparison, verdicts.Evidence(recorded, (), 7400))
    assert after == before


def test_equal_cost_reads_the_dearer_curve_earlier(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    evidence = verdicts.Evidence(recorded, (), 7400)
    comparison = claims.lower("BERT", "Part_Mask", "equal_cost")
    # Part_Mask has had 3700 steps in the time of BERT's 7400.
    assert verdicts.judge(comparison, evidence).effect == pytest.approx(5.5 - 2.1)
    points = [{"step": 0, "val_loss": 4.0}, {"step": 10, "val_loss": 2.0}]
    assert verdicts.crossing(points, "step", 5, "val_loss") == 3.0
    assert verdicts.crossing(points, "val_loss", 2.5, "step") == 7.5
    assert verdicts.crossing(points, "step", 99, "val_loss") is None


def test_time_to_the_same_loss(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    recorded.add(a_cell("BERT, 2 layers", 0, "timing"), [], a_row({"cost": 0.6}))
    for seed, loss in enumerate((1.8, 1.9)):
        curve = [
            {"step": step, "tokens": step * 2048, "loss": 6.0, "val_loss": value}
            for step, value in ((1850, 5.7), (3700, 5.0), (7400, loss))
        ]
        command = "tfeff stack --switch_steps=3700 --steps=7400"
        row = a_row({"loss": loss, "unigram_entropy": 6.0}, command=command)
        recorded.add(a_cell("Stacking, half", seed, "cheaper"), curve, row)
    evidence = verdicts.Evidence(recorded, (), 7400)
    times = [p["time"] for p in evidence.over_time("cheaper/Stacking, half/0")]
    assert times == pytest.approx([0.15, 0.3, 0.8])
    (claim,) = (claim for claim in claims.CLAIMS if claim.name == "stacking")
    comparison = claim.comparisons[2]
    assert comparison.label == "Stacking, half before BERT at the same loss"
    # The highest last loss is 2.2, of BERT's second seed, whose time is 1.
    first = 0.5 + 0.5 * (5.5 - 2.2) / (5.5 - 2.0)
    own = [0.3 + 0.5 * (5.0 - 2.2) / (5.0 - loss) for loss in (1.8, 1.9)]
    found = verdicts.judge(comparison, evidence)
    assert found.effect == pytest.approx((first + 1 - sum(own)) / 2)
    assert found.seeds == 2 and found.margin


def test_nothing_is_decided_of_what_has_learnt_nothing(part, tmp_path):
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    for system, loss in (("BERT", 5.95), ("No_Position", 5.99)):
        for seed in range(2):
            metrics = {"loss": loss + seed * 1e-6, "unigram_entropy": 6.0}
            ledger.add(a_cell(system, seed), [], a_row(metrics))
    for system, score in (("BERT", 0.7), ("From scratch", 0.69)):
        for seed in range(2):
            metrics = {"score": score, "baseline": 0.7}
            ledger.add(a_cell(system, seed, "transfer", "RTE"), [], a_row(metrics))
    verdicts, claims = part("verdicts"), part("claims")
    evidence = verdicts.Evidence(ledger, ("RTE",), 7400)
    found = verdicts.judge(claims.lower("BERT", "No_Position"), evidence)
    assert found.verdict == "not decided" and "unigram entropy" in found.reason
    for task in ("RTE", "average"):
        comparison = claims.higher("BERT", "From scratch", task)
        found = verdicts.judge(comparison, evidence)
        assert found.verdict == "not decided" and "baseline" in found.reason
    comparison = claims.higher("BERT", "From scratch")
    evidence = verdicts.Evidence(ledger, ("RTE", "CoLA"), 7400)
    assert verdicts.judge(comparison, evidence).verdict == "not run"


def test_what_has_not_learnt_the_order_of_words_decides_nothing(part, tmp_path):
    ledger = part("ledger").Ledger(str(tmp_path), "full")

    def add(system, loss):
        for seed in range(2):
            metrics = {"loss": loss + seed * 1e-6, "unigram_entropy": 6.6}
            ledger.add(a_cell(system, seed), [], a_row(metrics))

    verdicts, claims = part("verdicts"), part("claims")

    def judge(comparison):
        return verdicts.judge(comparison, verdicts.Evidence(ledger, (), 7400))

    for system, loss in (
        ("BERT", 6.08),
        ("Shatter", 4.27),
        ("Part_Mask", 4.5),
        ("BlockBERT n=2", 6.07),
        ("BlockBERT n=3", 6.09),
    ):
        add(system, loss)
    found = judge(claims.equal("Shatter", "BERT"))
    assert found.verdict == "not decided" and "No_Position is not run" in found.reason
    add("No_Position", 6.1)
    for comparison in (
        claims.equal("Shatter", "BERT"),
        claims.equal("BERT", "Shatter"),
        claims.lower("BERT", "Part_Mask"),
        claims.lower("BERT", "No_Position"),
        claims.equal("BlockBERT n=2", "BERT"),
        claims.lower("BlockBERT n=2", "BlockBERT n=3"),
    ):
        found = judge(comparison)
        assert found.verdict == "not decided" and found.more_seeds is None
        assert "BERT" in found.reason.split(" has not learnt the order of words")[0]
        assert found.effect and found.margin
    assert judge(claims.lower("Shatter", "BERT")).verdict == "confirmed"
    assert judge(claims.lower("Part_Mask", "Shatter")).verdict == "contradicted"
    for pair, which in (
        (("Shatter", "Part_Mask"), "better"),
        (("Part_Mask", "Shatter"), "worse"),
    ):
        found = judge(claims.equal(*pair))
        assert found.verdict == "contradicted" and which in found.reason
    assert judge(claims.lower("Shatter", "No_Position")).verdict == "confirmed"
    # Scores, and losses of far positions: what BERT cannot lose, it does not keep.
    for seed in range(2):
        for system, score in (("BERT", 0.6), ("Shatter", 0.8), ("BERT, RTD", 0.7)):
            metrics = {"score": score + seed * 1e-6, "baseline": 0.5}
            ledger.add(a_cell(system, seed, "transfer", "RTE"), [], a_row(metrics))
        for system, near, far in (("BERT", 6.1, 6.2), ("Shatter", 4.2, 4.2)):
            metrics = {
                "loss@1024[0:128]": near,
                "loss@1024[128:256]": far + seed * 1e-6,
            }
            ledger.add(a_cell(system, seed, "long", "128"), [], a_row(metrics))
    (long,) = (claim for claim in claims.CLAIMS if claim.name == "long-documents")
    for comparison in (claims.higher("BERT", "BERT, RTD", "RTE"), long.comparisons[0]):
        found = judge(comparison)
        assert found.verdict == "not decided"
        assert found.reason.startswith("BERT has not learnt the order of words")
    for better in ("Shatter", "BERT, RTD"):
        assert judge(claims.higher(better, "BERT", "RTE")).verdict == "confirmed"


def test_what_is_measured_of_order_decides(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    for system, loss, order in (("Shatter", 4.9, 2.0), ("Part_Bias", 4.5, 0.05)):
        for seed in range(2):
            metrics = {"loss": loss + seed * 0.2, "unigram_entropy": 6.0}
            metrics["order"] = order + seed * 0.02
            recorded.add(a_cell(system, seed), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    # Shatter's loss is not 0.1 nats below No_Position's, Part_Bias' is.
    found = verdicts.judge(claims.lower("Part_Bias", "Shatter"), evidence)
    assert found.verdict == "not decided"
    assert found.reason == (
        "Part_Bias has not learnt the order of words in this budget: its loss rises by "
        "0.060 nats without it"
    )
    found = verdicts.judge(claims.lower("Shatter", "No_Position"), evidence)
    assert "learnt the order" not in found.reason


def test_tokens_change_places(part):
    generator = np.random.default_rng(0)
    ids = np.array([[2, *range(10, 40), 4, 3, 0, 0], [2, 3, *[0] * 33]])
    places = np.array([[5, 7, 0], [0, 0, 0]])
    weights = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    inputs = {"token_ids": ids.copy(), "mask_positions": places}
    moved = part("measuring").shuffled(inputs, weights, (0, 2, 3, 4), generator)
    np.testing.assert_array_equal(inputs["token_ids"], ids)  # A copy.
    new = moved["token_ids"]
    np.testing.assert_array_equal(new[1], ids[1])
    stays = [0, 5, 7, 31, 32, 33, 34]
    np.testing.assert_array_equal(new[0, stays], ids[0, stays])
    np.testing.assert_array_equal(np.sort(new[0]), np.sort(ids[0]))
    assert np.mean(new[0] != ids[0]) > 0.6


def test_a_claim_is_as_good_as_its_worst_comparison(part):
    verdicts = part("verdicts")

    def combine(*found):
        return verdicts.combine([verdicts.Verdict(verdict) for verdict in found])

    yes, no, still, none = "confirmed", "contradicted", "not decided", "not run"
    assert combine(yes, yes) == yes
    assert combine(yes, still, no) == no
    assert combine(yes, still) == combine(yes, none) == still
    assert combine(none, none) == none


def test_pages_of_made_up_rows(part, recorded, tmp_path):
    scale = part("systems").SCALES["full"]
    written = part("pages").write_pages(recorded, str(tmp_path), scale)
    names = [path.rsplit("/", 1)[-1] for path in written]
    assert names[0] == "order-of-words.md" and names[-1] == "README.md"
    page = (tmp_path / "claims" / "order-of-words.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    assert lines[0].startswith("# Without positions an encoder learns far less")
    assert "**Verdict: not decided.**" in lines
    assert (
        "In the paper: validation loss in nats: BERT about 2, No_Position above 6."
        in page
    )
    assert "15.2 million tokens in sequences of 128" in page
    assert (
        "| BERT below No_Position | +3.000 | 0.225 | 0.071 | 2 | confirmed |  |"
        in lines
    )
    (open_line,) = (x for x in lines if x.startswith("| BERT below Part_Mask |"))
    assert cells(open_line)[-1] == (
        "the effect is within the margin; 4 more seeds of each, 121 million tokens, "
        "would decide an effect and a deviation of this size"
    )
    assert "| BERT | loss | 2.100 (2.000, 2.200) | 0.001 | 3.500 | 1.00 |" in lines
    assert "![" in page and (tmp_path / "claims" / "order-of-words.png").exists()
    summary = (tmp_path / "claims" / "README.md").read_text(encoding="utf-8")
    rows = [cells(x) for x in summary.splitlines() if x.startswith("| ")][1:]
    assert len(rows) == len(part("claims").CLAIMS)
    verdicts = {row[0]: row[3] for row in rows}
    assert verdicts["Shatter reaches BERT's validation loss."] == "not run"
    assert "10 cells are recorded" in summary
    (effects,) = (row[4] for row in rows if row[0].endswith("(order-of-words.md)"))
    assert "BERT below No_Position: +3.000 ± 0.225, confirmed; " in effects


def test_effects_say_which_way_equality_fails(part):
    verdicts = part("verdicts")
    (claim,) = (x for x in part("claims").CLAIMS if x.name == "shatter-and-bert")
    reason = "the first is the better one"
    found = verdicts.Verdict(verdicts.CONTRADICTED, 1.0, 0.5, 0.2, 3, reason=reason)
    assert part("pages").effects_text(claim, [found]) == (
        "Shatter equal to BERT within 0.05: +1.000 ± 0.500, the first is the better one"
    )


@flagsaver.flagsaver
def test_hours_of_cells(campaign, part, recorded, capsys):
    flags.FLAGS(["campaign.py", "--cells=pretraining/*/0", "--list"])
    flags.FLAGS.results = os.path.dirname(recorded.path)
    campaign["main"]([])
    out = capsys.readouterr().out.splitlines()
    assert "pretraining/BERT/0 | done | 0.00 hours" in out
    (line,) = (x for x in out if x.startswith("pretraining/Shatter/0 "))
    cell = next(
        cell
        for cell in part("cells").make_cells(part("systems").SCALES["full"])
        if cell.name == "pretraining/Shatter/0"
    )
    hours = (1.15 * cell.tokens / 10_000 + 60) / 3600  # Validations take time, too.
    assert line == f"pretraining/Shatter/0 | to do | {hours:.2f} hours"
    (total,) = (x for x in out if x.startswith("in all "))
    assert total.endswith("with --processes=1")
    (line,) = (x for x in out if x.startswith("faster-than-rab | "))
    # Of three seeds and pilots of three systems, those of No_Position decide, too.
    assert line.startswith("faster-than-rab | 2 of 18 cells done | ")


@flagsaver.flagsaver
def test_the_cells_of_a_claim(campaign, part, capsys):
    scale = part("systems").SCALES["full"]
    cells = {cell.name: cell for cell in part("cells").make_cells(scale)}
    claims = {claim.name: claim for claim in part("claims").CLAIMS}
    for claim in claims.values():
        names = part("deciding").cells_of(claim, cells, scale)
        assert all(set(cells[name].needs) <= names for name in names), claim.name
    found = part("deciding").cells_of(claims["pretraining-transfers"], cells, scale)
    assert "questions/BERT/cloze-256/1" in found  # What is read starts from it.
    assert {f"transfer/From scratch/{task}/2" for task in scale.tasks} <= found
    assert "pretraining/No_Position/0" in found and "pretraining/Shatter/0" not in found
    found = part("deciding").cells_of(claims["shatter-for-its-cost"], cells, scale)
    assert {x for x in found if x.startswith("timing/")} == {
        f"timing/{system}/0" for system in ("BERT", "Shatter", "BERT-RAB", "BERT-RPE")
    }
    flags.FLAGS(["campaign.py", "--claims=one-head", "--cells=long/Shatter/128/0"])
    places = part("places").Places("full", "", "", "")
    chosen = campaign["choose"](cells, places)
    own = part("deciding").cells_of(claims["one-head"], cells, scale)
    assert chosen == own | {"long/Shatter/128/0"}


@flagsaver.flagsaver
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cells=pilot/GPT/*"], "--cells must match .*pilot/GPT"),
        (["--claims=two-heads"], "--claims must be of order-of-words, .*two-heads"),
        (["--data=nowhere"], "--data=nowhere holds no text/ptb_sample.txt"),
    ],
)
def test_bad_flags(campaign, arguments, message, tmp_path):
    folders = [f"--runs={tmp_path / 'runs'}", f"--results={tmp_path / 'results'}"]
    flags.FLAGS(["campaign.py", *arguments, *folders])
    with pytest.raises(app.UsageError, match=message):
        campaign["main"]([])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_every_system_can_be_built(part):
    from tfeff.recipes import PretrainSettings
    from tfeff.recipes.pretraining import make_model, settle

    for scale in part("systems").SCALES.values():
        for name in part("systems").TIMED:
            settings = part("systems").settings_of(name, scale)
            settings["vocabulary_size"] = 300
            whole = settle(PretrainSettings(run_dir="none", **settings))
            assert make_model(whole).encoder.num_layers in (scale.layers, 1, 2), name


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The flags of a campaign on small data, in folders of its own."""
    folder = tmp_path_factory.mktemp("campaign")
    write(folder / "data")
    return folder, [
        "--scale=toy",
        f"--data={folder / 'data'}",
        f"--runs={folder / 'runs'}",
        f"--results={folder / 'results'}",
    ]


@pytest.mark.slow
def test_a_campaign_that_is_killed_goes_on_to_the_same_numbers(part, toy):
    folder, arguments = toy
    wanted = ["--cells=p*/BERT/*0", "--processes=2"]
    metrics = folder / "runs" / "toy" / "pretraining-BERT-0" / "metrics.csv"
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(
            [sys.executable, str(FOLDER / "campaign.py"), *arguments, *wanted],
            env=os.environ | {"PYTHONPATH": str(FOLDER.parent)},
        )
        while process.poll() is None and not metrics.exists():
            time.sleep(0.05)
        process.send_signal(number)
        process.wait()
    result = run("campaign.py", *arguments, *wanted)
    assert result.returncode == 0, result.stdout + result.stderr
    ledger = part("ledger").Ledger(str(folder / "results"), "toy")
    assert len(ledger.rows()) == 3 and "3 of 3 cells are done" in result.stdout
    assert len(ledger.curves()["pretraining/BERT/0"]) == 4
    result = run("campaign.py", *arguments, *wanted)
    assert "begins" not in result.stdout and len(ledger.rows()) == 3
    # The same without a kill.
    result = run("campaign.py", *arguments, "--cells=pretraining/BERT/0", "--check")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "pretraining/BERT/0: equal to the last digit" in result.stdout
    with open(ledger.path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[-1]["metrics"] = json.dumps(json.loads(rows[-1]["metrics"]) | {"loss": 1.0})
    changed = folder / "changed"
    changed.mkdir()
    for name in ("campaign_curves.csv", "campaign_texts_toy.json"):
        (changed / name).write_bytes((folder / "results" / name).read_bytes())
    with open(changed / "campaign.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    name = part("ledger").name_of(rows[-1])
    flags_of = [*arguments, f"--results={changed}", f"--cells={name}", "--check"]
    result = run("campaign.py", *flags_of)
    assert result.returncode == 1 and "loss 1.0 there" in result.stdout


@pytest.mark.slow
def test_every_kind_of_cell_runs(part, toy):
    folder, arguments = toy
    patterns = (
        "timing/BERT*/0",
        "timing/Shatter/0",
        "p*/BERT/*0",
        "pilot/BERT-RPE/*",
        "transfer/From scratch/STS-B/0",
        "transfer/BERT/CoLA/0",
        "questions/BERT/*-48/0",
        "cheaper/Stacking, half/0",
        "cheaper/BERT-RPE, equal cost/0",
        "cheaper/TinyBERT/general/0",
        "cheaper/TinyBERT/CoLA/0",
        "cheaper/No [PG]*/CoLA/0",
        "long/BERT/*/0",
    )
    for pattern in patterns:
        result = run("campaign.py", *arguments, f"--cells={pattern}")
        assert result.returncode == 0, result.stdout + result.stderr
    rows = part("ledger").Ledger(str(folder / "results"), "toy").rows()
    assert "order" in rows["pretraining/BERT/0"]["metrics"]
    assert "order" in rows["cheaper/Stacking, half/0"]["metrics"]
    assert rows["transfer/BERT/CoLA/0"]["metrics"]["learning_rate"] == 1e-3
    assert "score" in rows["cheaper/No Pred/CoLA/0"]["metrics"]
    assert "f1" in rows["questions/BERT/squad-48/0"]["metrics"]
    assert "loss@64[32:64]" in rows["long/BERT/32/0"]["metrics"]
    assert rows["long/BERT/64/0"]["command"].startswith("tfeff pretrain --run_dir=")
    assert all(row["commit"] and row["machine"] for row in rows.values())
