"""What the campaign's cells are trained on, and what they are chosen and judged by."""

import pytest

COSTS = {
    "BERT, RTD": 1.5,
    "ConvBERT, RTD": 2.0,
    "BERT-RPE": 1.6,
    "Shatter": 1.2,
    "BERT, 2 layers": 0.6,
}


@pytest.fixture(name="settings")
def _settings(part):
    """From the name of a cell to its settings, at the full scale."""
    cells, scale = part("cells"), part("systems").SCALES["full"]
    made = {cell.name: cell for cell in cells.make_cells(scale)}

    def metric(name, of):
        stage, system, *rest = name.split("/")
        if stage == "timing":
            return COSTS[system]
        # The middle rate is the best one.
        return abs(float(rest[0]) - scale.rates[1])

    context = cells.Context(scale, "texts", lambda name: f"runs/{name}", metric)
    return lambda name: made[name].settings(context)


def test_pilots_choose_by_other_documents_than_those_that_judge(settings, part):
    scale = part("systems").SCALES["full"]
    pilot = settings(f"pilot/BERT/{scale.rates[0]:g}/0")
    assert pilot["validation"] == ("texts/pilot.jsonl",)
    final = settings("pretraining/BERT/2")
    assert final["corpus"] == ("texts/train.jsonl",)
    assert final["validation"] == ("texts/final.jsonl",)
    assert final["learning_rate"] == scale.rates[1] and final["seed"] == 2
    assert final["warmup_steps"] == final["steps"] // 10


def test_equal_costs(settings, part):
    """As many steps of what costs more as cost what all of the other do."""
    steps = part("systems").SCALES["full"].steps
    for name, share in {
        "BERT, RTD, equal cost": 1 / 1.5,
        "ConvBERT, RTD, equal cost": 1 / 2.0,
        "BERT-RPE, equal cost": 1.2 / 1.6,
    }.items():
        found = settings(f"cheaper/{name}/1")
        assert found["steps"] == pytest.approx(share * steps, rel=0.05)
        assert found["validation"] == ("texts/final.jsonl",) and found["seed"] == 1
        assert found["warmup_steps"] == found["steps"] // 10


@pytest.mark.parametrize(("name", "share"), [("half", 1 / 2), ("quarter", 1 / 4)])
def test_stacking_costs_what_all_layers_do(name, share, settings, part):
    steps = part("systems").SCALES["full"].steps
    found = settings(f"cheaper/Stacking, {name}/0")
    (switch,) = found["switch_steps"]
    assert switch / found["steps"] == pytest.approx(share, rel=0.06)
    cost = 0.6 * switch + found["steps"] - switch
    assert cost == pytest.approx(steps, rel=0.03)
    assert found["doublings"] == 1 and "num_layers" not in found["override"]
    assert (
        found["num_layers"] == settings("pretraining/BERT/0")["override"]["num_layers"]
    )


def test_tasks_start_from_the_pretraining_of_their_seed(settings, part):
    found = settings("transfer/BERT/RTE/2")
    assert found["data"] == "texts/choose" and found["seeds"] == (2,)
    assert found["pretrained"] == "runs/pretraining/BERT/2"
    assert settings(f"transfer/{part('systems').SCRATCH}/RTE/1")["pretrained"] == (
        part("systems").SCRATCH
    )
    cheaper = settings("cheaper/BERT, RTD, equal cost/RTE/1")
    assert cheaper["pretrained"] == "runs/cheaper/BERT, RTD, equal cost/1"


def test_questions_come_after_gaps_and_are_judged_by_others(settings):
    gaps = settings("questions/BERT/cloze-256/2")
    assert gaps["train"] == "texts/cloze-train.json"
    assert gaps["dev"] == "texts/cloze-choose.json" and gaps["test"] is None
    assert gaps["pretrained"] == "runs/pretraining/BERT/2"
    real = settings("questions/BERT/squad-256/2")
    assert real["train"] == "texts/squad-train.json"
    assert real["dev"] == "texts/squad-choose.json"
    assert real["test"] == "texts/squad-judge.json"
    assert real["pretrained"] == "runs/questions/BERT/cloze-256/2"
    for found in (gaps, real):
        assert found["sequence_length"] == 256 and found["stride"] == 128
        assert found["seeds"] == (2,)


def test_each_ablation_leaves_out_its_losses(settings):
    weights = ("hidden_weight", "attention_weight", "embedding_weight")

    def left_out(name):
        return {weight for weight in weights if settings(name).get(weight) == 0}

    for name, expected in {
        "TinyBERT": set(),
        "No Trm": {"hidden_weight", "attention_weight"},
        "No Attn": {"attention_weight"},
        "No Hidn": {"hidden_weight"},
        "No Embd": {"embedding_weight"},
    }.items():
        assert left_out(f"cheaper/{name}/general/0") == expected
        assert left_out(f"cheaper/{name}/CoLA/0") == expected
        found = settings(f"cheaper/{name}/CoLA/0")
        assert found["student"] == f"runs/cheaper/{name}/general/0"
        assert found["teacher"] == "runs/transfer/BERT/CoLA/0"
        assert found["data"] == "texts/choose" and "label_weight" not in found
    general = settings("cheaper/TinyBERT/general/1")
    assert general["teacher"] == "runs/pretraining/BERT/1" and general["seed"] == 1
    labels = settings("cheaper/No Pred/CoLA/0")
    assert labels["student"] == "runs/cheaper/TinyBERT/general/0"
    assert (labels["prediction_weight"], labels["label_weight"]) == (0.0, 1.0)
    fresh = settings("cheaper/No GD/CoLA/0")
    assert fresh["student"] == general["student"] == "bert_base"
    assert "runs/" not in fresh["student"]


def test_a_continued_training_starts_from_its_seed(settings):
    found = settings("long/Shatter/1024/1")
    assert found["pretrained"] == "runs/pretraining/Shatter/1"
    assert found["sequence_length"] == 1024 and found["seed"] == 1


def test_effects_are_above_0_where_a_claim_holds(part):
    """Of those whose terms are differences of differences."""
    claims = part("claims")

    def effect(comparison, values):
        return sum(
            term.weight * values[term.system, term.task, term.metric]
            for term in comparison.terms
        )

    gains = claims._extension("A", "B", 128, 512)
    f1 = {("A", 128): 0.30, ("A", 512): 0.50, ("B", 128): 0.40, ("B", 512): 0.35}
    values = {(name, f"squad-{n}", "f1"): f for (name, n), f in f1.items()}
    assert effect(gains, values) == pytest.approx(0.25)

    far = claims._beyond("A", "B", 1024, 512, 1024)
    near, beyond = "loss@1024[0:128]", "loss@1024[512:1024]"
    losses = {("A", near): 4.5, ("A", beyond): 5.0, ("B", near): 4.0, ("B", beyond): 6}
    values = {(name, "128", metric): x for (name, metric), x in losses.items()}
    assert effect(far, values) == pytest.approx(1.5)

    better = claims.lower("A", "B")
    values = {("A", "", "loss"): 4.0, ("B", "", "loss"): 5.0}
    assert effect(better, values) == pytest.approx(1.0)
    score = claims.higher("A", "B", "RTE")
    values = {("A", "RTE", "score"): 0.7, ("B", "RTE", "score"): 0.6}
    assert effect(score, values) == pytest.approx(0.1)
