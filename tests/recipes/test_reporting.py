"""The papers' tables of finished runs."""

import json
import os
import shutil

import numpy as np
import pytest

import tfeff
from tests.subjects.stores import make_store
from tfeff import storage
from tfeff.datasets import glue_average
from tfeff.recipes import EvaluateSettings, ReportSettings, report
from tfeff.training.run_seal import seal_folder

GLUE = ("CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE")


def write(folder, config, metrics, command="finetune"):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"command": command, **config}))
    (folder / "metrics.json").write_text(json.dumps(metrics))


def write_texts(
    folder,
    task,
    metric="dev_accuracy",
    pretrained="shatter",
    baseline=None,
    **mean,
):
    best = {"metric": metric, "best": {"mean": mean}}
    if baseline is not None:
        best["baseline"] = baseline
    write(folder, {"task": task, "pretrained": pretrained}, best)


def write_questions(
    folder, task, f1, exact_match, pretrained="blockbert", part="dev", **config
):
    config = {"task": task, "pretrained": pretrained, **config}
    scores = {"f1": f1, "exact_match": exact_match}
    metrics = {"task": task, "dev_split": part, **scores}
    metrics["grid"] = {"best": {"mean": scores}}
    write(folder, config, metrics, "answer")
    write_digests(folder, train="x", dev="y")


def write_digests(folder, **digests):
    (folder / "read_data.json").write_text(json.dumps({"examples": digests}))


def write_part(folder, part, f1, exact_match):
    path = folder / "predictions" / part / "metrics.json"
    path.parent.mkdir(parents=True)
    scores = {"f1": f1, "exact_match": exact_match, "examples": "z"}
    path.write_text(json.dumps(scores))


def test_tables_of_the_papers(tmp_path, capsys):
    for index, task in enumerate(GLUE):
        if task != "MNLI":
            write_texts(tmp_path / task, task, dev_accuracy=0.5 + index / 100)
    mnli = {"dev_matched_accuracy": 0.25, "dev_mismatched_accuracy": 0.375}
    write_texts(tmp_path / "MNLI", "MNLI", "dev_matched_accuracy", **mnli)
    # Of two runs the better one counts, of other encoders their own.
    write_texts(tmp_path / "RTE2", "RTE", dev_accuracy=0.625, dev_f1=0.9)
    write_texts(tmp_path / "RTE3", "RTE", dev_accuracy=None)
    write_texts(tmp_path / "bert", "RTE", pretrained="bert", dev_accuracy=0.75)
    write_questions(tmp_path / "squad", "squad1", 0.75, 0.5)
    write_questions(tmp_path / "news", "NewsQA", 0.25, 0.125)
    write_part(tmp_path / "news", "test_half", 0.375, 0.25)
    output = tmp_path / "tables.md"
    found = report(ReportSettings(runs=(f"{tmp_path}/*",), output=str(output)))

    average = (0.5 + 0.51 + 0.52 + 0.53 + 0.54 + 0.25 + 0.56 + 0.625) / 8
    assert found["shatter"]["GLUE"] == {"average": pytest.approx(average)}
    assert found["shatter"]["RTE"] == {"dev_accuracy": 0.625}
    assert found["blockbert"]["NewsQA"] == {"f1": 0.375, "exact_match": 0.25}
    expected = """\
| encoder | CoLA | SST-2 | MRPC | QQP | STS-B | MNLI | QNLI | RTE | GLUE |
|---|---|---|---|---|---|---|---|---|---|
| shatter | 50.0 | 51.0 | 52.0 | 53.0 | 54.0 | 25.0/37.5 | 56.0 | 62.5 | 50.4 |
| bert | – | – | – | – | – | – | – | 75.0 | – |

| encoder | SQuAD1.1 EM / F1 | NewsQA EM / F1 |
|---|---|---|
| blockbert | 50.00 / 75.00 | 25.00 / 37.50 |

| run | encoder | task | score |
|---|---|---|---|
| RTE2 | shatter | RTE | 62.5 |
| RTE | shatter | RTE | 57.0 |
| RTE3 | shatter | RTE | undefined |
"""
    assert output.read_text().replace(f"{tmp_path}/", "") == expected
    assert capsys.readouterr().out == output.read_text()


def test_runs_that_share_an_encoder_are_told_apart(tmp_path, capsys):
    """Those of other encoders, tasks and columns are not compared; nor is one twice."""
    for name, task, accuracy in (
        ("a", "RTE", 0.5),
        ("b", "RTE", 0.75),
        ("c", "QNLI", 1),
    ):
        write_texts(tmp_path / name, task, dev_accuracy=accuracy)
    write_texts(tmp_path / "d", "RTE", pretrained="bert", dev_accuracy=0.25)
    write_texts(tmp_path / "e", "RTE", "dev_f1", dev_f1=0.125)
    write_questions(tmp_path / "f", "squad1", 0.75, 0.5)
    write_questions(tmp_path / "g", "squad1", 0.5, 0.5)
    alone = [f"{tmp_path}/[acdeg]", f"{tmp_path}/a", f"{tmp_path}/a/"]
    report(ReportSettings(runs=tuple(alone)))
    assert "| run |" not in capsys.readouterr().out
    report(ReportSettings(runs=(f"{tmp_path}/*",)))
    table = capsys.readouterr().out.rpartition("\n\n")[2]
    assert (
        table.replace(f"{tmp_path}/", "")
        == """\
| run | encoder | task | score |
|---|---|---|---|
| b | shatter | RTE dev_accuracy | 75.0 |
| a | shatter | RTE dev_accuracy | 50.0 |
| f | blockbert | SQuAD1.1 EM / F1 | 50.00 / 75.00 |
| g | blockbert | SQuAD1.1 EM / F1 | 50.00 / 50.00 |
"""
    )


def test_the_part_that_a_run_chose_by_is_not_shown(tmp_path, capsys):
    write_questions(tmp_path / "news", "NewsQA", 0.25, 0.125, part="dev_half")
    for part, f1 in (("dev_half", 0.9), ("test_half", 0.5)):
        folder = tmp_path / "news" / "predictions" / part
        folder.mkdir(parents=True)
        scores = {"f1": f1, "exact_match": f1, "examples": part}
        (folder / "metrics.json").write_text(json.dumps(scores))
    settings = ReportSettings(runs=(str(tmp_path / "news"),))
    assert report(settings)["blockbert"]["NewsQA"]["f1"] == 0.5
    assert not capsys.readouterr().err
    shutil.copytree(folder, folder.parent / "test")
    assert report(settings)["blockbert"]["NewsQA"]["f1"] == 0.5
    assert "of its predicted parts, test is shown" in capsys.readouterr().err


def test_questions_of_the_part_that_the_data_set_names(tmp_path):
    """Metrics say of what part they are, where the settings do not."""
    for name, config in (("a", {}), ("b", {"dev_split": "validation"})):
        write_questions(
            tmp_path / name, "Quiz", 0.25, 0.125, name, "validation", **config
        )
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))
    assert set(found["a"]) == set(found["b"])


def test_baselines_are_rows_below(tmp_path, capsys):
    def baseline(kind, **metrics):
        return {"name": f"{kind} baseline", "metrics": metrics}

    low = baseline("majority", dev_accuracy=0.25)
    high = baseline("majority", dev_accuracy=0.5, dev_f1=0.625)
    write_texts(tmp_path / "a", "RTE", dev_accuracy=0.75, baseline=low)
    write_texts(tmp_path / "b", "RTE", pretrained="b", dev_accuracy=1, baseline=high)
    rated = baseline("mean", dev_pearson=None)
    write_texts(tmp_path / "c", "STS-B", "dev_pearson", dev_pearson=0.5, baseline=rated)
    words = baseline("most-frequent-tag", dev_f1=0.375)
    write_texts(tmp_path / "d", "WikiANN", "dev_f1", dev_f1=0.625, baseline=words)
    write_digests(tmp_path / "d", train="x", dev="y")
    write_texts(tmp_path / "old", "CoLA", dev_accuracy=0.5)
    write_questions(tmp_path / "news", "NewsQA", 0.25, 0.125)
    (tmp_path / "news" / "predictions" / "test_half").mkdir(parents=True)
    scores = {"f1": 0.375, "exact_match": 0.25, "examples": "z"}
    scores["baseline"] = baseline("majority", f1=0.125, exact_match=0.0)
    path = tmp_path / "news" / "predictions" / "test_half" / "metrics.json"
    path.write_text(json.dumps(scores))
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))
    assert found["majority baseline"] == {
        "RTE": {"dev_accuracy": 0.5},
        "NewsQA": {"f1": 0.125, "exact_match": 0.0},
    }
    assert (
        capsys.readouterr().out
        == """\
| encoder | CoLA | STS-B | RTE | WikiANN |
|---|---|---|---|---|
| shatter | 50.0 | 50.0 | 75.0 | 62.5 |
| b | – | – | 100.0 | – |
| majority baseline | – | – | 50.0 | – |
| mean baseline | – | undefined | – | – |
| most-frequent-tag baseline | – | – | – | 37.5 |

| encoder | NewsQA EM / F1 |
|---|---|
| blockbert | 25.00 / 37.50 |
| majority baseline | 0.00 / 12.50 |
"""
    )


def test_an_average_with_an_undefined_metric_is_undefined(tmp_path, capsys):
    for task in GLUE:
        metric = "dev_matched_accuracy" if task == "MNLI" else "dev_accuracy"
        write_texts(tmp_path / task, task, metric, **{metric: 0.5})
    write_texts(tmp_path / "b", "RTE", pretrained="b", dev_accuracy=None)
    shutil.rmtree(tmp_path / "STS-B")
    write_texts(tmp_path / "STS-B", "STS-B", "dev_pearson", dev_pearson=None)
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))
    assert np.isnan(found["shatter"]["GLUE"]["average"])
    row = capsys.readouterr().out.splitlines()[-2]
    assert row.startswith("| shatter |") and row.endswith("| 50.0 | undefined |")


def test_columns_are_of_one_metric(tmp_path, capsys):
    def baseline(**metrics):
        return {"name": "majority baseline", "metrics": metrics}

    first = dict(dev_accuracy=0.5, baseline=baseline(dev_accuracy=0.625, dev_f1=0.75))
    write_texts(tmp_path / "a", "MRPC", **first)
    second = dict(dev_f1=0.75, baseline=baseline(dev_accuracy=0.625, dev_f1=0.875))
    write_texts(tmp_path / "b", "MRPC", "dev_f1", **second)
    write_texts(tmp_path / "c", "MRPC", pretrained="bert", dev_accuracy=0.25)
    write_questions(tmp_path / "dev", "NewsQA", 0.75, 0.5)
    write_questions(tmp_path / "half", "NewsQA", 0.875, 0.75)
    write_part(tmp_path / "half", "test_half", 0.25, 0.125)
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))
    assert found["shatter"] == {
        "MRPC dev_accuracy": {"dev_accuracy": 0.5},
        "MRPC dev_f1": {"dev_f1": 0.75},
    }
    assert found["blockbert"]["NewsQA test_half"] == {"f1": 0.25, "exact_match": 0.125}
    assert (
        capsys.readouterr().out
        == """\
| encoder | MRPC dev_accuracy | MRPC dev_f1 |
|---|---|---|
| shatter | 50.0 | 75.0 |
| bert | 25.0 | – |
| majority baseline | 62.5 | 87.5 |

| encoder | NewsQA dev EM / F1 | NewsQA test_half EM / F1 |
|---|---|---|
| blockbert | 50.00 / 75.00 | 12.50 / 25.00 |
"""
    )


def write_own(folder, data, pretrained, task="Weather", **digests):
    """A run on a task with files of one's own."""
    best = {"metric": "dev_accuracy", "best": {"mean": {"dev_accuracy": 0.5}}}
    config = {"task": task, "pretrained": pretrained, "data": data}
    write(folder, config, best)
    if digests:
        write_digests(folder, **digests)


def test_columns_are_of_one_language(tmp_path):
    """WikiANN has a folder for each; GLUE is the same everywhere."""
    write_own(tmp_path / "a", "ner/wikiann_en", "bert", "WikiANN", train="x", dev="en")
    write_own(tmp_path / "b", "ner/wikiann_de/", "bert", "WikiANN", train="y", dev="de")
    write_own(tmp_path / "c", "here/glue", "bert", "RTE")
    write_own(tmp_path / "d", "glue_data", "bert", "RTE")
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))["bert"]
    names = ["RTE", *(f"WikiANN dev_accuracy wikiann_{x}" for x in ("de", "en"))]
    assert sorted(found) == names


def test_columns_are_of_the_same_examples(tmp_path):
    digests = {name: name * 64 for name in "abc"}

    def found():
        table = report(ReportSettings(runs=(f"{tmp_path}/*",)))
        return {name.removeprefix("Weather dev_accuracy") for name in table["bert"]}

    write_own(tmp_path / "1", "v1/own", "bert", train="x", dev=digests["a"])
    write_own(tmp_path / "2", "copy/", "bert", train="y", dev=digests["a"])
    assert found() == {""}
    write_own(tmp_path / "3", "other", "bert", train="x", dev=digests["b"])
    assert found() == {" own", " other"}
    write_own(tmp_path / "4", "v2/own", "bert", train="x", dev=digests["c"])
    assert found() == {" v1/own", " v2/own", " other"}
    # Edited in its place.
    write_own(tmp_path / "7", "v1/own", "bert", train="x", dev=digests["c"][::-1] + "d")
    assert len(found()) == 4
    (tmp_path / "7" / "read_data.json").write_text('{"examples": 3}')
    with pytest.raises(ValueError, match="/7', whose metrics are damaged"):
        found()
    (tmp_path / "7" / "read_data.json").unlink()
    with pytest.raises(ValueError, match="/7', it has no read_data.json"):
        report(ReportSettings(runs=(str(tmp_path / "7"),)))


def test_the_average_is_of_one_metric_a_task(tmp_path):
    for task in GLUE:
        metric = "dev_matched_accuracy" if task == "MNLI" else "dev_accuracy"
        write_texts(tmp_path / task, task, metric, **{metric: 0.5})
    write_texts(tmp_path / "f1", "MRPC", "dev_f1", dev_f1=0.9)
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))["shatter"]
    first = tfeff.datasets.get("MRPC").metric_names[0]
    expected = (7 * 0.5 + found[f"MRPC dev_{first}"][f"dev_{first}"]) / 8
    assert found["GLUE"]["average"] == pytest.approx(expected)


def test_what_is_no_finished_run_is_named(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    write(tmp_path / "mlm", {"objective": "masked_lm"}, {"loss": 3.0}, "pretrain")
    # As `embed` leaves it, which chooses by another metric of the same task.
    config = {"task": "STS-B", "pretrained": "shatter"}
    best = {"metric": "dev_spearman", "best": {"mean": {"dev_spearman": 0.9}}}
    write(tmp_path / "embed", config, {"untrained": {}, **best}, "embed")
    untrained = {"untrained": {"dev_spearman": 0.9}}
    write(tmp_path / "untrained", config, untrained, "embed")
    config = {"task": "RTE", "teacher": "bert", "student": "tiny"}
    write(tmp_path / "distil", config, {"accuracy": 0.5}, "distill")
    (tmp_path / "notes.txt").touch()
    left_out = {
        "distil": "whose config.json is of `tfeff distill`",
        "embed": "whose config.json is of `tfeff embed`",
        "mlm": "whose config.json is of `tfeff pretrain`",
        "notes.txt": "it has no config.json",
        "run": "it has no config.json",
        "untrained": "whose config.json is of `tfeff embed`",
    }
    for name, reason in left_out.items():
        with pytest.raises(ValueError, match=f"`runs` must be .*/{name}', {reason}"):
            report(ReportSettings(runs=(str(tmp_path / name),)))
    with pytest.raises(ValueError, match=r"`runs` must be .*\*'\], without one"):
        report(ReportSettings(runs=(f"{tmp_path}/*",)))
    for none in ("none", "none*", "none/*"):
        with pytest.raises(ValueError, match="`runs` must .*none.*there is nothing"):
            report(ReportSettings(runs=(f"{tmp_path}/{none}",)))
    with pytest.raises(ValueError, match="`runs` must be a list of at least one"):
        report(ReportSettings(runs=()))
    capsys.readouterr()
    write_texts(tmp_path / "sts", "STS-B", "dev_pearson", dev_pearson=0.5)
    found = report(ReportSettings(runs=(f"{tmp_path}/*",)))
    assert found == {"shatter": {"STS-B": {"dev_pearson": 0.5}}}
    assert capsys.readouterr().err.splitlines() == [
        f"{tmp_path}/{name} is left out: {reason}" for name, reason in left_out.items()
    ]


def test_the_output_replaces_no_file_of_a_run(tmp_path):
    write_texts(tmp_path / "a", "RTE", dev_accuracy=0.5)
    before = (tmp_path / "a" / "metrics.json").read_bytes()
    for output in (tmp_path / "a" / "metrics.json", f"file://{tmp_path}/a/config.json"):
        settings = ReportSettings(runs=(f"{tmp_path}/*",), output=str(output))
        with pytest.raises(ValueError, match=f"`output` must not replace.*{output}"):
            report(settings)
    assert (tmp_path / "a" / "metrics.json").read_bytes() == before
    for name in ("metrics.json", "new.md"):  # Of a run that a glob leaves out, too.
        path = tmp_path / "b" / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "metrics.json").write_text("{}")
        settings = ReportSettings(runs=(f"{tmp_path}/*",), output=str(path))
        if name == "metrics.json":
            with pytest.raises(ValueError, match="`output` must not replace.*/b/"):
                report(settings)
    assert (tmp_path / "b" / "metrics.json").read_text() == "{}"


def test_an_output_of_before_is_replaced_in_a_finished_run(tmp_path):
    write_texts(tmp_path / "a", "RTE", dev_accuracy=0.5)
    seal_folder(str(tmp_path / "a"))
    new = tmp_path / "a" / "tables.md"
    for _ in range(2):
        report(ReportSettings(runs=(f"{tmp_path}/*",), output=str(new)))
        assert "50.0" in new.read_text()
    for name in ("metrics.json", "SHA256SUMS"):
        settings = ReportSettings(
            runs=(f"{tmp_path}/*",), output=str(tmp_path / "a" / name)
        )
        with pytest.raises(ValueError, match=f"`output` must not replace.*{name}"):
            report(settings)


@pytest.mark.parametrize("recipe", ["report", "evaluate"])
def test_an_output_that_cannot_be_written_is_found_before_the_work(tmp_path, recipe):
    wrong = {"report": {"runs": ("none",)}, "evaluate": {"corpus": ("none",)}}
    cls = {"report": ReportSettings, "evaluate": EvaluateSettings}[recipe]
    (tmp_path / "file").touch()
    below = [tmp_path / name for name in ("none/a.json", "file/a.json", "")]
    for output in (*below, f"file://{tmp_path}", "/proc/a.json"):
        settings = cls(output=str(output), **wrong[recipe])
        with pytest.raises(ValueError, match=f"`output` must be a file .*{output}"):
            getattr(tfeff.recipes, recipe)(settings)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "metrics",
    [
        {"metric": "dev_f1", "best": {}},
        {"metric": "dev_f1", "best": None},
        {"metric": "dev_f1", "best": {"mean": {"dev_f1": "high"}}},
        {"metric": "dev_f1", "best": {"mean": {"dev_f1": 1}}, "baseline": {}},
        {
            "metric": "dev_f1",
            "best": {"mean": {"dev_f1": 1}},
            "baseline": {"name": [], "metrics": {"dev_f1": 0}},
        },
        {"dev_split": "dev", "grid": {}},
        {"grid": {"best": {"mean": {"f1": 0.5, "exact_match": 0.5}}}},
        {"dev_split": "dev", "grid": {"best": {"mean": {"f1": 0.5}}}},
        {"dev_split": "dev", "grid": {"best": {"mean": {"f1": 1, "exact_match": []}}}},
    ],
)
def test_metrics_that_are_damaged_are_named_by_a_glob_too(tmp_path, metrics):
    command = "answer" if "grid" in metrics else "finetune"
    write(tmp_path / "run", {"task": "RTE", "pretrained": "bert"}, metrics, command)
    with pytest.raises(
        ValueError, match="`runs` must be .*/run', whose metrics are da"
    ):
        report(ReportSettings(runs=(f"{tmp_path}/*",)))
    (tmp_path / "run" / "metrics.json").write_text("{")
    with pytest.raises(ValueError, match="run/metrics.json is not valid JSON"):
        report(ReportSettings(runs=(f"{tmp_path}/*",)))


@pytest.mark.parametrize("name", ["task", "pretrained"])
def test_names_that_are_damaged_are_told(tmp_path, name):
    metrics = {"metric": "dev_f1", "best": {"mean": {"dev_f1": 1}}}
    config = {"task": "RTE", "pretrained": "bert", name: -1}
    write(tmp_path / "run", config, metrics)
    with pytest.raises(ValueError, match=r"metrics are damaged \(TypeError: -1 is no"):
        report(ReportSettings(runs=(str(tmp_path / "run"),)))


def test_the_average_needs_all_eight_tasks():
    scores = {task: index / 10 for index, task in enumerate(GLUE)}
    assert glue_average(scores | {"WNLI": 9.0}) == pytest.approx(0.35)
    with pytest.raises(TypeError, match="`scores` must be numbers. .*RTE='high'"):
        glue_average(scores | {"RTE": "high"})
    del scores["QQP"]
    with pytest.raises(ValueError, match="Received: none of QQP"):
        glue_average(scores)


def test_runs_at_urls(tmp_path, monkeypatch):
    monkeypatch.setattr(make_store(tmp_path / "store", monkeypatch), "lag", 0)
    for task in ("RTE", "CoLA"):
        write_texts(tmp_path / task, task, dev_accuracy=0.75)
        storage.publish(tmp_path / task, f"store://bucket/glue-{task}")
    storage.publish(tmp_path / "RTE", "store://bucket/other")
    here = report(ReportSettings(runs=(f"{tmp_path}/[RC]*",)))
    assert report(ReportSettings(runs=("store://bucket/glue-*",))) == here
    one = report(ReportSettings(runs=("store://bucket/other",)))
    assert one == {"shatter": {"RTE": here["shatter"]["RTE"]}}
    with pytest.raises(ValueError, match=r"`.*` must exist.*store://bucket/none-\*"):
        report(ReportSettings(runs=("store://bucket/none-*",)))


def test_a_folder_with_brackets_is_no_glob(tmp_path):
    write_texts(tmp_path / "rte[1]", "RTE", dev_accuracy=0.9)
    write_texts(tmp_path / "rte1", "RTE", dev_accuracy=0.5)
    (row,) = report(ReportSettings(runs=(str(tmp_path / "rte[1]"),))).values()
    assert list(row.values()) == [{"dev_accuracy": 0.9}]


def test_questions_are_compared_on_the_same_ones_by_the_mean_of_the_seeds(tmp_path):
    for name, digest, mean in (("a", "1", 0.4), ("b", "2", 0.9), ("c", "1", 0.3)):
        best = {"mean": {"f1": mean, "exact_match": mean}}
        metrics = {"task": "SQuAD1.1", "f1": 0.99, "exact_match": 0.99}
        metrics |= {"dev_split": "dev", "grid": {"best": best}}
        write(
            tmp_path / name,
            {"task": "SQuAD1.1", "pretrained": name},
            metrics,
            "answer",
        )
        write_digests(tmp_path / name, train="0", dev=digest)
    found = report(ReportSettings(runs=(str(tmp_path / "*"),)))
    columns = {name: set(row) for name, row in found.items()}
    assert columns["a"] == columns["c"] != columns["b"]
    for name, mean in (("a", 0.4), ("b", 0.9), ("c", 0.3)):
        assert list(found[name].values()) == [{"f1": mean, "exact_match": mean}]

    # A part that is predicted has the digest of its own examples.
    for name, digest in (("a", "3"), ("b", "3"), ("c", "4")):
        path = tmp_path / name / "predictions" / "test_half" / "metrics.json"
        path.parent.mkdir(parents=True)
        scores = {"f1": 0.5, "exact_match": 0.25, "examples": digest}
        path.write_text(json.dumps(scores))
    found = report(ReportSettings(runs=(str(tmp_path / "*"),)))
    columns = {name: set(row) for name, row in found.items()}
    assert columns["a"] == columns["b"] != columns["c"]
