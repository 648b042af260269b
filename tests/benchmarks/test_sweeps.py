import csv

import pytest
from absl import app, flags
from absl.testing import flagsaver

import tfeff
from tests.benchmarks.scripts import cells, run
from tests.subjects.files import copy_of
from tfeff.recipes.configurations import CONFIGURATIONS

# Hidden sizes that all of a sweep's numbers of heads and widths divide.
WIDTHS = {"small": 64, "medium_small": 192, "base": 96, "large": 64}
# BERT's row of ConvBERT's table has no generator.
BERTS_OBJECTIVE = {"objective": "masked_lm", "generator_ratio": 0.25}


@pytest.fixture(scope="module")
def sweeps(load):
    return load("sweeps.py")


@pytest.fixture
def jobs(sweeps):
    def make(*arguments):
        with flagsaver.flagsaver():
            flags.FLAGS(["sweeps.py", *arguments])
            return list(sweeps["make_jobs"]())

    return make


def test_cells_are_the_papers_settings(sweeps, jobs):
    found = {(job.sweep, job.label): job for job in jobs("--seeds=3")}
    assert len(found) == sum(len(sweep.cells) for sweep in sweeps["SWEEPS"].values())
    job = found["blockbert_heads", "8:2:2"]
    assert job.size == "12 layers of width 768, 1200000 steps of 256 × 512 tokens"
    attention = {"name": "blockwise", "head_blocks": "8:2:2"}
    assert job.settings["override"] == {"attention": attention}
    assert job.settings["seed"] == 3 and job.tasks == ()
    job = found["huang_clipping", "k = 256, windows of 640"]
    assert job.finetune["sequence_length"] == 640
    same = found["huang_clipping", "k = 256"]
    assert job.settings == same.settings != found["huang_clipping", "k = 2"].settings


@pytest.mark.parametrize(
    ("sweep", "label", "name", "own"),
    [
        ("shatter_base", "Shatter", "shatter_base", {}),
        ("shatter_base", "BERT-RPE", "bert_rpe_base", {}),
        ("shatter_large", "BERT", "bert_large", {}),
        ("blockbert_heads", "10:2", "blockbert_n2", {"steps": 1_200_000}),
        ("huang_clipping", "k = 2", "huang4", {}),
        ("convbert_small", "ELECTRA", "convbert_small", {}),
        ("convbert_medium_small", "+BNK", "convbert_medium_small", {}),
        ("convbert_base", "BERT", "convbert_base", BERTS_OBJECTIVE),
        ("albert_sharing", "not-shared, E = 768", "albert_base", {}),
        ("albert_sentences", "NSP", "albert_base", {"objective": "next_sentence"}),
    ],
)
def test_pretraining_is_the_configurations(jobs, sweep, label, name, own):
    paper = {**CONFIGURATIONS[f"{name}_pretrain"].settings, **own}
    for rate in ("dropout", "attention_dropout", "dtype"):  # Left to the flags.
        paper.pop(rate, None)
    (job,) = jobs(f"--sweeps={sweep}", f"--only={label}", "--seeds=0")
    assert {key: job.settings.get(key) for key in paper} == paper


@flagsaver.flagsaver
@pytest.mark.parametrize(
    ("sweep", "task", "name", "metric"),
    [
        ("blockbert_heads", "squad2", "blockbert_finetune_squad", None),
        ("convbert_kernels", "QQP", "convbert_finetune_glue", "--metric=accuracy"),
        ("convbert_base", "STS-B", "convbert_finetune_glue", "--metric=spearman"),
    ],
)
def test_fine_tuning_is_the_configurations(sweeps, jobs, sweep, task, name, metric):
    flags.FLAGS.runs = "runs"
    job = jobs(f"--sweeps={sweep}", f"--tasks={task}")[0]
    paper = {**CONFIGURATIONS[name].settings}
    paper.pop("dropout", None)  # As pretrained.
    if paper.get("sequence_length", 0) is None:  # As pretrained.
        paper["sequence_length"] = job.settings["sequence_length"]
    assert job.finetune == paper
    _, command = sweeps["finetuning"](job, task, "pretrained")
    assert [x for x in command if x.startswith("--metric=")] == [metric] * bool(metric)


@flagsaver.flagsaver
def test_the_same_pretraining_has_the_same_folder(sweeps, jobs):
    found = jobs("--sweeps=huang_clipping", "--tasks=squad1")
    flags.FLAGS.runs = "runs"
    commands = {}
    for job in found:
        folder, command = sweeps["pretraining"](job, ["a.txt"], ["b.txt"])
        assert commands.setdefault(folder, command) == command
        _, command = sweeps["finetuning"](job, "squad1", folder)
        assert f"--seeds={job.seed}" in command and command[2] == "answer"
    assert len(commands) == 2 * 9 and len(found) == 2 * 12


def test_smaller_sizes_keep_proportions(jobs):
    small = ("--layers=2", "--steps=40", "--override=dropout=0")
    small += ("--pretrain=sequence_length=32", "--pretrain=tokenizer=t.json")
    (job,) = jobs(
        "--sweeps=albert_widths", "--only=not-shared, E = 64", "--width=96", "--seeds=0"
    )
    assert job.settings["override"] == {
        "sharing": "none",
        "hidden_dim": 96,
        "intermediate_dim": 384,
        "embedding_dim": 8,
    }
    only = "--only=k = 256, windows of 576"
    (job,) = jobs("--sweeps=huang_clipping", only, "--seeds=0", *small)
    assert job.finetune["sequence_length"] == 36
    size = "2 layers of width 768, 40 steps of 160 × 32 tokens"
    assert job.size == f"{size}, dropout=0, tokenizer=t.json"
    assert job.settings["override"]["dropout"] == 0
    assert not {"warmup_steps", "eval_every", "tokenizer_kind"} & set(job.settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sweeps=all"], "--sweeps must be among .*'all'"),
        (["--only=13:0"], "--only must be among .*13:0"),
        (["--tasks=WNLI"], "--tasks must be among .*WNLI"),
        (["--finetune=rate=3"], "--finetune must be settings .*rate"),
        (["--sweeps=albert_widths", "--width=100"], "--width must give whole .* 8.33"),
        (["--pretrain=sequence_length=30", "--sweeps=huang_clipping"], "33.75"),
    ],
)
def test_bad_flags(jobs, arguments, message):
    with pytest.raises(app.UsageError, match=message):
        jobs(*arguments)


@pytest.mark.slow
def test_every_cell_can_be_built(sweeps, jobs):
    checked = 0
    for name in sweeps["SWEEPS"]:
        preset = jobs(f"--sweeps={name}", "--seeds=0")[0].settings["preset"]
        size = max((s for s in WIDTHS if preset.endswith(f"_{s}")), key=len)
        found = jobs(f"--sweeps={name}", "--seeds=0", f"--width={WIDTHS[size]}")
        settings = {job.label: job.settings for job in found}
        assert sweeps["refusals"](settings) == [], name
        checked += len(settings)
    assert checked > 60


@pytest.mark.slow
def test_a_sweep_runs_once_and_is_reported(tmp_path):
    text = tmp_path / "text.txt"
    lines = tfeff.data.docstrings(["keras"], max_characters=60_000)
    text.write_text("\n\n".join(" ".join(t.split()) for t in lines), encoding="utf-8")
    arguments = ["--sweeps=blockbert_heads", "--only=12:0", "--only=10:2", "--seeds=0"]
    arguments += [f"--corpus={text}", f"--validation={copy_of(text)}"]
    arguments += ["--layers=1", "--steps=4", f"--results={tmp_path / 'results'}"]
    for setting in ("sequence_length=16", "batch_size=2", "vocabulary_size=400"):
        arguments.append(f"--pretrain={setting}")
    folders = f"--runs={tmp_path / 'runs'}"
    refused = run("sweeps.py", *arguments, folders, "--width=32")
    assert refused.returncode == 1
    assert "blockbert_heads, 12:0: " in refused.stdout + refused.stderr
    assert not (tmp_path / "runs").exists() and not (tmp_path / "results").exists()
    for _ in range(2):
        result = run("sweeps.py", *arguments, folders, "--width=24")
        assert result.returncode == 0, result.stderr
    with open(
        tmp_path / "results" / "sweeps.csv", encoding="utf-8", newline=""
    ) as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "loss"]
    assert [row["label"] for row in rows] == ["12:0", "10:2"]
    report = (tmp_path / "results" / "sweeps.md").read_text(encoding="utf-8")
    (line,) = (x for x in report.splitlines() if x.startswith("| 10:2 |"))
    assert len(cells(line)) == 3
    assert (tmp_path / "results" / "sweeps_blockbert_heads_0.png").exists()
    listed = run("sweeps.py", *arguments, "--width=24", "--list").stdout.splitlines()
    assert len(listed) == 2 and all(line.endswith("| done") for line in listed)
