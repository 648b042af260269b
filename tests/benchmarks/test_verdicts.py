"""The verdicts of the campaign: by hand, by SciPy, and what decides nothing."""

import numpy as np
import pytest
import scipy.stats

from tests.benchmarks.campaign_rows import a_cell, a_cost, a_row


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


def shatter(recorded, *losses):
    """Adds rows of Shatter, one a seed."""
    for seed, loss in enumerate(losses):
        metrics = {"loss": loss, "unigram_entropy": 6.0, "order": 1.0}
        recorded.add(a_cell("Shatter", seed), [], a_row(metrics))


def test_effect_margin_and_deviation_by_hand(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(claims.lower("BERT", "Shatter"), evidence)
    assert found.verdict == "not run" and found.reason == "no rows of Shatter"
    shatter(recorded, 1.0, 1.4)
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(claims.lower("Shatter", "No_Position"), evidence)
    # Effects of 4.0 and 3.8; t of one degree of freedom is 12.706.
    assert found.verdict == "confirmed" and found.seeds == 2
    assert found.effect == pytest.approx(3.9)
    assert found.deviation == pytest.approx(0.02**0.5)
    assert found.margin == pytest.approx(12.706 * 0.1, rel=1e-3)
    assert found.more_seeds is None
    found = verdicts.judge(claims.lower("Shatter", "BERT"), evidence)
    # Effects of 1.0 and 0.8 are within 1.27: each seed more is a degree of freedom.
    assert found.verdict == "not decided"
    margins = [
        scipy.stats.t.ppf(0.975, 1 + more) * (0.02 / (2 + more)) ** 0.5
        for more in range(20)
    ]
    enough = next(more for more, margin in enumerate(margins) if margin < 0.9)
    assert enough > 0 and found.more_seeds == enough
    assert found.more_tokens == pytest.approx(enough * (15_155_200 + 1000))


def test_it_is_a_paired_t_test_whatever_else_is_recorded(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    shatter(recorded, 1.0, 4.0)
    comparison = claims.lower("Shatter", "No_Position")
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(comparison, evidence)
    losses = evidence.values(claims.Term(1, "pretraining", "No_Position"))
    paired = scipy.stats.ttest_rel(
        [losses[0], losses[1]], [1.0, 4.0]
    ).confidence_interval()
    assert found.effect - found.margin == pytest.approx(paired.low)
    assert found.effect + found.margin == pytest.approx(paired.high)
    for seed, loss in enumerate((1.0, 90.0)):  # Not of the comparison.
        metrics = {"loss": loss, "unigram_entropy": 6.0, "order": 1.0}
        recorded.add(a_cell("BERT-RPE", seed), [], a_row(metrics))
    after = verdicts.judge(comparison, verdicts.Evidence(recorded, (), 7400))
    assert after == found


def far_beyond_near(claims):
    """A comparison of what BERT and Shatter lose from near positions to far ones."""
    terms = tuple(
        claims.Term(sign * weight, "long", system, "128", metric)
        for system, sign in (("BERT", 1), ("Shatter", -1))
        for metric, weight in (("far", 1), ("near", -1))
    )
    return claims.Comparison("further", terms)


def test_two_metrics_of_a_system_are_one_effect_a_seed(part, recorded):
    """The loss far off varies, that near by hardly does: they are not independent."""
    verdicts, claims = part("verdicts"), part("claims")
    rng = np.random.default_rng(0)
    for system in ("BERT", "Shatter", "Method 4", "BERT-RAB", "BERT-RPE"):
        for seed in range(3):
            loud = 1.0 if system == "BERT" else 0.01
            near, far = 5 + 0.01 * rng.normal(), 5 + loud * rng.normal()
            metrics = {"near": near, "far": far}
            row = a_row(metrics | {"order": 1.0, "unigram_entropy": 6.0})
            recorded.add(a_cell(system, seed, "long", "128"), [], row)
    evidence = verdicts.Evidence(recorded, (), 7400)
    comparison = far_beyond_near(claims)
    found = verdicts.judge(comparison, evidence)
    effects = sum(
        term.weight * np.array(list(evidence.values(term).values()))
        for term in comparison.terms
    )
    expected = scipy.stats.ttest_1samp(effects, 0).confidence_interval()
    assert found.effect - found.margin == pytest.approx(expected.low)
    assert found.effect + found.margin == pytest.approx(expected.high)
    # Of two systems, whatever the number of terms; the third seed of BERT's
    # pretraining is recorded as little as all of Shatter's, which has no tokens yet.
    own = 2 * found.more_seeds * 1000
    assert found.more_tokens == own + (found.more_seeds + 1) * 15_155_200


def test_a_comparison_is_over_the_seeds_that_all_have(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    metrics = {"loss": 99.0, "unigram_entropy": 6.0}
    recorded.add(a_cell("BERT", 2), [], a_row(metrics))
    evidence = verdicts.Evidence(recorded, (), 7400)
    found = verdicts.judge(claims.lower("BERT", "No_Position"), evidence)
    assert found.seeds == 2 and found.effect == pytest.approx(3.0)
    assert found.deviation == pytest.approx(0.0, abs=1e-9)
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
    # Its second seed is worse by 0.15, BERT's by 0.2.
    assert found.deviation == pytest.approx(0.05 / 2**0.5)
    for claim in claims.CLAIMS:  # So the seed's effect cancels everywhere.
        for comparison in claim.comparisons:
            weights = {}
            for term in comparison.terms:
                group = term.task, term.metric
                weights[group] = weights.get(group, 0) + term.weight
            assert not any(weights.values()), comparison.label


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
    recorded.add(a_cell("BERT, 2 layers", 0, "timing"), [], a_cost(0.6))
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
    assert found.seeds == 2 and found.margin and found.level == 2.2
    # The page tells both kinds of step, and where the times are read.
    page = part("pages")
    assert page.cost_text(claim.comparisons[0].terms[1], evidence) == (
        "0.60 (0.54 to 0.66), then 1.00 (0.90 to 1.10)"
    )
    values = page.values_table(claim, [found] * len(claim.comparisons), evidence)
    where = "time to 2.20 nats, BERT's whole one = 1"
    assert page.label(comparison, found) == f"{comparison.label} ({where})"
    mean = (first + 1) / 2
    assert any(
        line.startswith(f"| BERT | {where} | {mean:.3f} ({first:.3f}, 1.000) |")
        for line in values
    )


def test_times_to_a_loss_that_is_reached_without_order_decide_nothing(part, recorded):
    verdicts, claims = part("verdicts"), part("claims")
    terms = tuple(
        claims.Term(sign, "pretraining", system, metric="same_loss")
        for system, sign in (("BERT", 1), ("Part_Mask", -1))
    )
    evidence = verdicts.Evidence(recorded, (), 7400)  # No_Position ends at 5.1.
    for level, reason in ((4.9, ""), (5.05, "a loss of 5.05 is not 0.1 nats below")):
        found = verdicts.level_without_order(terms, level, evidence)
        assert found == reason or reason and found.startswith(reason)
    losses = claims.lower("BERT", "Part_Mask", "equal_cost").terms
    assert verdicts.level_without_order(losses, 5.05, evidence) == ""


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
        assert found.effect and found.margin is not None
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
