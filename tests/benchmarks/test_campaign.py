import contextlib
import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import scipy.stats
from absl import app, flags
from absl.testing import flagsaver

import tfeff
from tests.benchmarks.campaign_data import write
from tests.benchmarks.campaign_rows import a_cell, a_row
from tests.benchmarks.scripts import FOLDER, cells, run


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
    assert (
        part("division").fraction("") == 0xE3B0C44298FC / 2**48
    )  # SHA-256's known start.


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
    assert questions.cloze([f"{40 * 'word '}and more."]) == []
    # Readers refuse ids that are there twice: the first of equal sentences counts.
    (again,) = questions.cloze([f"{passage} {passage}"])
    asked = again["paragraphs"][0]["qas"]
    assert len({q["id"] for q in asked}) == len(asked)
    another = [q for q in asked if "Another" in q["question"] + q["answers"][0]["text"]]
    assert len(another) == 1
    assert another[0]["answers"][0]["answer_start"] < len(passage)


def test_questions_of_the_real_texts_are_read(part, data_dir, tmp_path):
    part("questions").make(data_dir, tmp_path)
    for path in sorted(tmp_path.iterdir()):
        found = tfeff.datasets.read_squad(path)  # It refuses equal ids.
        assert found.questions
        longest = max(len(q.question.split()) for q in found.questions)
        assert longest <= 45, path  # Words of a gap and its sentence.


def test_cells_come_in_an_order_that_can_be_run(part):
    made = part("cells").make_cells(part("systems").SCALES["full"])
    names = [cell.name for cell in made]
    assert len(set(names)) == len(names)
    assert all(set(cell.needs) <= set(names) for cell in made)
    systems = part("systems").SYSTEMS
    seeds = [c.seed for c in made if c.stage == "pretraining"]
    assert seeds == sorted(seeds) and seeds.count(0) == len(systems) > 30
    assert names[len(systems) + 1] == "pilot/BERT/0.0005/0"
    for cell in made:  # A seed starts from trainings of that seed alone.
        if cell.stage in ("transfer", "questions", "long"):
            assert {made[names.index(need)].seed for need in cell.needs} <= {cell.seed}
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
    assert context.cost("BERT") == 1.0  # Not as it was timed beside itself.
    losses["0.002"] = math.inf  # It has diverged.
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


@pytest.mark.quick("short")
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


def test_a_rate_at_which_a_pilot_diverges_loses(part, tmp_path, monkeypatch):
    from tfeff.training import Diverged

    def run(*_):
        raise Diverged("NaN")

    work = part("work")
    monkeypatch.setattr(work, "run", run)
    make = part("cells").Cell
    settings = ("pretrain", lambda context: {})
    pilot = make("pilot", "BERT", "0.002", 0, *settings)
    outcome = work.perform(pilot, None, str(tmp_path))
    assert outcome["metrics"] == {"loss": math.inf}
    ledger = part("ledger").Ledger(str(tmp_path), "toy")
    ledger.add(vars(pilot), [], a_row(outcome["metrics"]))
    assert ledger.rows()[pilot.name]["metrics"] == {"loss": math.inf}
    with pytest.raises(Diverged):
        work.perform(make("pretraining", "BERT", "", 0, *settings), None, "")


@pytest.mark.parametrize("error", [None, RuntimeError("no disk")])
def test_two_slots_do_not_run_one_lost_folder_at_a_time(
    part, tmp_path, monkeypatch, capsys, error
):
    schedule, make = part("schedule"), part("cells").Cell
    places = part("places").Places("toy", "x", str(tmp_path), str(tmp_path))
    pretrained = make("pretraining", "Shatter", "", 0, "pretrain", dict)
    tasks = [
        make("transfer", "Shatter", task, 0, "finetune", dict, (pretrained.name,))
        for task in ("CoLA", "MRPC")
    ]
    places.ledger.add(vars(pretrained), [], a_row({"loss": 1.0}))
    started, together = [], []

    def perform(self, cell, folder, core):
        assert cell.name not in self.running
        self.running[cell.name] = None
        together.append(len(self.running))
        started.append(cell.name)
        time.sleep(0.2)
        os.makedirs(os.path.join(folder, "preset"))
        del self.running[cell.name]
        if error and len(started) == 1:
            raise error
        return {"metrics": {"loss": 1.0}}

    def record(cell, outcome, places):
        places.ledger.add(vars(cell), [], a_row(outcome["metrics"]))

    monkeypatch.setattr(schedule.Campaign, "perform", perform)
    monkeypatch.setattr(schedule, "record", record)
    monkeypatch.setattr(schedule.signal, "signal", lambda *_: None)
    campaign = schedule.Campaign(
        tasks, {cell.name: cell for cell in (pretrained, *tasks)}, places
    )
    with pytest.raises(SystemExit) if error else contextlib.nullcontext():
        campaign.run(2, None)
    # The other slot goes on behind an error of the first.
    rows = {pretrained.name, *(cell.name for cell in tasks[bool(error) :])}
    assert set(places.ledger.rows()) == rows
    assert started[0] == pretrained.name and started.count(pretrained.name) == 1
    assert max(together) <= 2
    assert ("no disk" in capsys.readouterr().out) is bool(error)


@pytest.mark.parametrize(
    "loss, is_left", [(1.04, False), (1.9, True), (math.nan, True)]
)
def test_nothing_begins_with_what_is_not_its_row(
    part, tmp_path, monkeypatch, capsys, loss, is_left
):
    """As an unstable training may end elsewhere where it is made again."""
    schedule, make = part("schedule"), part("cells").Cell
    places = part("places").Places("toy", "x", str(tmp_path), str(tmp_path))
    first = make("pretraining", "BERT", "", 0, "pretrain", dict)
    then = make("cheaper", "Short", "", 0, "distill", dict, (first.name,))
    last = make("cheaper", "Short", "CoLA", 0, "distill", dict, (then.name,))
    for cell in (first, then):
        places.ledger.add(vars(cell), [], a_row({"loss": 1.0}))
        os.makedirs(os.path.join(places.run(cell.name), "preset"))
    outcome = json.dumps({"metrics": {"loss": loss}})
    Path(f"{places.run(first.name)}.json").write_text(outcome)
    monkeypatch.setattr(
        schedule.Campaign, "perform", lambda *_: {"metrics": {"loss": 1.0}}
    )
    monkeypatch.setattr(
        schedule,
        "record",
        lambda cell, *_: places.ledger.add(vars(cell), [], a_row({"loss": 1.0})),
    )
    monkeypatch.setattr(schedule.signal, "signal", lambda *_: None)
    campaign = schedule.Campaign(
        [last], {c.name: c for c in (first, then, last)}, places
    )
    with pytest.raises(SystemExit) if is_left else contextlib.nullcontext():
        campaign.run(1, None)
    assert (last.name in places.ledger.rows()) is not is_left
    message = f"{first.name} has a loss of {loss:.3f}, not 1.000"
    assert (message in capsys.readouterr().out) is is_left


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


def test_a_row_has_the_commit_of_its_outcome(part, tmp_path):
    folder = str(tmp_path)
    places = part("places").Places("toy", folder, folder, folder)
    cells = part("cells").make_cells(places.scale)
    first, second = [cell for cell in cells if cell.stage == "pretraining"][:2]
    outcome = {"metrics": {"loss": 1.0}, "curve": [], "tokens": 8}
    rate = {"loss": 1.0}
    for cell in cells:  # What settings of the two depend on.
        if cell.stage == "pilot":
            places.ledger.add(vars(cell), [], a_row(rate))
    part("recording").record(first, outcome | {"commit": "abc"}, places)
    part("recording").record(second, outcome, places)  # One of an earlier version.
    rows = places.ledger.rows()
    assert [rows[c.name]["commit"] for c in (first, second)] == ["abc", "unknown"]


def test_points_without_a_row_are_none(part, tmp_path):
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    point = {"step": 2, "tokens": 8, "loss": 2.0, "val_loss": 2.5}
    ledger.add(a_cell("BERT", 0), [point], a_row({"loss": 2.0}))
    os.remove(ledger.path)  # As if the process had been killed in between.
    assert ledger.curves() == {}
    ledger.add(a_cell("BERT", 0), [point | {"val_loss": 3.0}], a_row({"loss": 2.0}))
    with open(ledger.curves_path, encoding="utf-8", newline="") as file:
        assert [row["val_loss"] for row in csv.DictReader(file)] == ["3.0"]


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
    line = "| BERT below No_Position | +3.000 | 0.000 | 0.000 | 2 | confirmed |  |"
    assert line in lines
    (open_line,) = (x for x in lines if x.startswith("| BERT below Part_Mask |"))
    paired = scipy.stats.ttest_1samp([0.1, 0.15], 0).confidence_interval()
    margin = (paired.high - paired.low) / 2
    assert cells(open_line)[1:4] == ["+0.125", f"{margin:.3f}", "0.035"]
    assert cells(open_line)[-1] == (
        "the effect is within the margin; 1 more seed of all, 30 million tokens of "
        "pretraining that are not recorded, would decide an effect and a deviation of "
        "this size"
    )
    own = "| BERT | loss | 2.100 (2.000, 2.200) | 0.001 | 3.500 | 1.00 (0.90 to 1.10) |"
    assert own in lines
    assert "| BERT, pretraining | 0, 1 | 15.2 | m | c |" in lines
    assert "![" in page and (tmp_path / "claims" / "order-of-words.png").exists()
    summary = (tmp_path / "claims" / "README.md").read_text(encoding="utf-8")
    rows = [cells(x) for x in summary.splitlines() if x.startswith("| ")][1:]
    assert len(rows) == len(part("claims").CLAIMS)
    verdicts = {row[0]: row[3] for row in rows}
    assert verdicts["Shatter reaches BERT's validation loss."] == "not run"
    assert "10 cells are recorded" in summary
    (effects,) = (row[4] for row in rows if row[0].endswith("(order-of-words.md)"))
    assert "BERT below No_Position: +3.000 ± 0.000, confirmed; " in effects


def test_a_mean_of_tasks_has_the_rows_of_all(part, tmp_path):
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    tasks = part("systems").SCALES["full"].tasks
    for task in tasks:
        row = a_row({"score": 0.5}, tokens=100 if task == "CoLA" else 0)
        ledger.add(a_cell("BERT", 0, "transfer", task), [], row)
    evidence = part("verdicts").Evidence(ledger, tasks, 7400)
    term = part("claims").Term(1, "transfer", "BERT", "average", "score")
    assert len(evidence.names(term)) == len(tasks) == 5
    assert evidence.tokens([term], 3) == 200.0  # Of two seeds more.


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
    assert not any(x.startswith("again") for x in out)
    (total,) = (x for x in out if x.startswith("in all "))
    assert total.endswith("with --processes=1")
    (line,) = (x for x in out if x.startswith("faster-than-rab | "))
    # Of three seeds and pilots of three systems, those of No_Position decide, too.
    assert line.startswith("faster-than-rab | 2 of 18 cells done | ")


@flagsaver.flagsaver
def test_hours_of_lost_folders(campaign, recorded, tmp_path, capsys):
    results = os.path.dirname(recorded.path)
    command = ["campaign.py", "--cells=transfer/BERT/CoLA/0", "--list"]
    flags.FLAGS(command)
    found = []
    for runs in (tmp_path / "none", tmp_path / "runs"):
        flags.FLAGS.results, flags.FLAGS.runs = results, str(runs)
        campaign["main"]([])
        out = capsys.readouterr().out.splitlines()
        found.append([line for line in out if line.startswith("again, ")])
        (tmp_path / "runs" / "full" / "pretraining-BERT-0" / "preset").mkdir(
            parents=True, exist_ok=True
        )
    assert found == [["again, for the folders of 1: 0.0 hours of a core"], []]


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
    from tfeff.recipes.pretraining import settle
    from tfeff.recipes.pretraining_model import make_model

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
