"""`tfeff answer` as a user runs it: to the end, again, and misused."""

import dataclasses
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

import tfeff
from tfeff.recipes import AnswerSettings, ReportSettings, answering, report

REPOSITORY = Path(__file__).resolve().parents[2]
PATHS = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, PATHS))}
PASSAGE = "The  small cat\twatched seven boxes; a tiger followed the green house."
ANSWERS = ["seven boxes", "a tiger", "The  small cat"]


def write_squad(path, impossible):
    questions = [
        {
            "id": f"q{i}",
            "question": f"What was it, {i}?",
            "answers": [{"text": text, "answer_start": PASSAGE.index(text)}],
        }
        for i, text in enumerate(ANSWERS)
    ]
    if impossible:
        questions.append(
            {"id": "none", "question": "Who?", "answers": [], "is_impossible": True}
        )
    data = [{"paragraphs": [{"context": PASSAGE, "qas": questions}]}]
    path.write_text(json.dumps({"version": "1.1", "data": data}))
    return path


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A run directory with the preset of a very small encoder."""
    documents = [PASSAGE, "What was it, 0 1 2? Who?"] * 3
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=42)
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=42,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=24,
    )
    path = tmp_path_factory.mktemp("run")
    tfeff.tasks.save_pretrained(encoder, tokenizer, path / "preset")
    return path


def run(*flags):
    return subprocess.run(
        [sys.executable, "-m", "tfeff", "answer", *flags],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("task", ["squad1", "squad2"])
def test_from_the_files_to_answers(task, pretrained, tmp_path):
    file = write_squad(tmp_path / "squad.json", impossible=task == "squad2")
    folder = tmp_path / "runs" / task
    flags = [
        f"--task={task}",
        f"--run_dir={folder}",
        f"--train={file}",
        f"--dev={file}",
        f"--pretrained={pretrained}",
        "--sequence_length=40",
        "--stride=9",
        "--batch_sizes=3",
        "--learning_rates=1e-3,1e-2",
        "--steps=4",
        "--eval_every=2",
        "--layer_decay=0.8",
        "--plots",
    ]
    result = run(*flags)
    assert result.returncode == 0, result.stderr
    assert "length extension: pretrained on 24 tokens" in result.stdout
    metrics = json.loads((folder / "metrics.json").read_text())
    assert f"f1: {metrics['f1']:.4f}" in result.stdout
    best = metrics["grid"]["best"]
    assert best["mean"]["f1"] == pytest.approx(metrics["f1"])
    assert len(metrics["grid"]["rows"]) == 2
    rows = (Path(best["folder"]) / "dev_metrics.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["step", "2", "4"]

    questions = tfeff.datasets.read_squad(file).questions
    predictions = json.loads((folder / "predictions.json").read_text())
    if task == "squad1":
        scores = tfeff.datasets.squad_v1_metrics(questions, predictions)
        assert not (folder / "null_odds.json").exists()
    else:
        odds = json.loads((folder / "null_odds.json").read_text())
        scores = tfeff.datasets.squad_v2_metrics(questions, predictions, odds)
    assert scores["f1"] == pytest.approx(100 * metrics["f1"])
    assert scores.get("exact", scores.get("exact_match")) == pytest.approx(
        100 * metrics["exact_match"]
    )

    answer = tf.saved_model.load(str(folder / "export" / "1")).signatures["answer"]
    served = answer(
        question=tf.constant([question.question for question in questions]),
        passage=tf.constant([question.passage for question in questions]),
    )
    texts = [text.decode() for text in served["answer"].numpy()]
    assert texts == [predictions[question.id] for question in questions]

    assert (folder / "plots" / "average_attention.png").exists()
    encoder, _ = tfeff.tasks.load_pretrained(folder)  # As a teacher's.
    assert encoder.max_sequence_length == 40
    shutil.rmtree(folder / "preset")  # Runs of before had none.
    shutil.rmtree(folder / "plots")
    (folder / "SHA256SUMS").unlink()
    changed = (folder / "predictions.json").stat().st_mtime_ns
    again = run(*flags, "--predict_split=test_new", f"--test={file}")
    assert again.returncode == 0, again.stderr
    new = folder / "predictions" / "test_new" / "predictions.json"
    assert json.loads(new.read_text()).keys() == predictions.keys()
    assert (folder / "predictions.json").stat().st_mtime_ns == changed
    assert (folder / "preset").exists()
    assert (folder / "plots" / "average_attention.png").exists()
    written = (folder / "predictions.json").read_bytes()
    (folder / "predictions.json").unlink()
    assert run(*flags, f"--dev={tmp_path / 'gone.json'}").returncode != 0
    assert run(*flags).returncode == 0
    assert (folder / "predictions.json").read_bytes() == written
    (folder / "export" / "1" / "saved_model.pb").unlink()
    damaged = run(*flags)
    assert damaged.returncode != 0 and "to have it made again" in damaged.stderr
    shutil.rmtree(folder / "export")
    assert run(*flags).returncode == 0
    other = run(*flags, "--steps=5")
    assert other.returncode != 0
    assert "steps: there 4, now 5" in other.stderr


def test_all_questions_are_predicted(tmp_path, capsys):
    file = write_squad(tmp_path / "squad.json", impossible=False)
    text = file.read_text().replace('"answer_start": 0', '"answer_start": 1')
    file.write_text(text)
    settings = AnswerSettings(
        run_dir="run", train=file, dev=file, pretrained="preset", skip_mismatched=True
    )
    squad = tfeff.datasets.get("SQuAD1.1")
    found = {
        is_predicted: answering.read(settings, squad, "dev", "dev", is_predicted)
        for is_predicted in (False, True)
    }
    assert [question.id for question in found[False]] == ["q0", "q1"]
    assert "1 questions left out" in capsys.readouterr().out
    assert [question.id for question in found[True]] == ["q0", "q1", "q2"]
    assert found[True][2].answers == ("The  small cat",)
    # Also where none is at its place; but there is nothing to train on.
    file.write_text(re.sub('"answer_start": [0-9]+', '"answer_start": 1', text))
    wanted = answering.read(settings, squad, "dev", "dev", is_predicted=True)
    assert sorted(question.id for question in wanted) == ["q0", "q1", "q2"]
    with pytest.raises(ValueError, match="`dev` must hold questions with answers at"):
        answering.read(settings, squad, "dev", "dev", is_predicted=False)
    file.write_text(text.replace('"id": "q2"', '"id": "q0"'))
    assert len(answering.read(settings, squad, "dev", "dev", is_predicted=False)) == 2
    with pytest.raises(ValueError, match="ids must differ. Received: 'q0' twice"):
        answering.read(settings, squad, "dev", "dev", is_predicted=True)


def test_a_reader_need_not_tell_what_was_wrong(capsys):
    question = tfeff.data.Question("q", "Who?", "Ada wrote it.")
    found = tfeff.data.SpanExamples([], mismatched=[question])
    dataset = tfeff.datasets.span_dataset(
        "Own",
        {"dev": ("dev.json",)},
        read_file=lambda path, skip_mismatched=False: found,
    )
    settings = AnswerSettings(run_dir="run", train="x", dev=__file__, pretrained="p")
    read = functools.partial(answering.read, settings, dataset, "dev", "dev")
    assert read(is_predicted=True) == (question,)
    assert not capsys.readouterr().out
    with pytest.raises(ValueError, match="`dev` must hold questions with answers at"):
        read(is_predicted=False)


@pytest.mark.slow
def test_halves_of_mrqa_as_blockbert_uses_them(pretrained, tmp_path):
    """One half chooses, the other is predicted and scored; windows as pretrained."""
    start = PASSAGE.index("seven boxes")
    found = {"text": "seven boxes", "char_spans": [[start, start + 10]]}
    for split, count in (("train", 4), ("dev", 5)):
        questions = [
            {
                "qid": f"{split}{i}",
                "question": f"What was it, {i}?",
                "answers": ["seven boxes"],
                "detected_answers": [found],
            }
            for i in range(count)
        ]
        (tmp_path / "mrqa" / split).mkdir(parents=True)
        path = tmp_path / "mrqa" / split / "NewsQA.jsonl"
        path.write_text(json.dumps({"context": PASSAGE, "qas": questions}))
    folder = tmp_path / "run"
    result = run(
        "--config=blockbert_finetune_mrqa",
        "--task=NewsQA",
        f"--run_dir={folder}",
        f"--train={tmp_path / 'mrqa'}",
        f"--dev={tmp_path / 'mrqa'}",
        f"--pretrained={pretrained}",
        "--learning_rates=1e-3",
        "--batch_sizes=2",
        "--stride=9",
        "--steps=2",
        "--eval_every=1",
    )
    assert result.returncode == 0, result.stderr
    config = json.loads((folder / "config.json").read_text())
    assert config["sequence_length"] is None and config["epochs"] == [4]
    assert (folder / "cells" / "batch_size=2,learning_rate=0.001,seed=0").is_dir()
    dataset = tfeff.datasets.get("NewsQA")
    for split, predicted in (
        ("dev_half", folder),
        ("test_half", folder / "predictions" / "test_half"),
    ):
        examples = dataset.read(split, tmp_path / "mrqa")
        texts = json.loads((predicted / "predictions.json").read_text())
        assert set(texts) == {question.id for question in examples.questions}
        metrics = json.loads((predicted / "metrics.json").read_text())
        scores = dataset.metrics(examples, texts)
        assert {n: metrics[n] for n in scores} == pytest.approx(scores)
    found = report(ReportSettings(runs=(str(folder),)))
    assert found[str(pretrained)]["NewsQA"] == pytest.approx(scores)  # Those of test.


@pytest.mark.slow
def test_a_missing_file_is_said_before_anything_is_made(pretrained, tmp_path):
    file = tmp_path / "none.json"
    result = run(
        f"--run_dir={tmp_path / 'run'}",
        f"--train={file}",
        f"--dev={file}",
        f"--pretrained={pretrained}",
    )
    assert result.returncode != 0
    assert f"must exist. Received: train='{file}'" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("squad3", "Did you mean 'SQuAD"),
        ("MNLI", "task='MNLI', a data set of `TextExamples`"),
    ],
)
def test_other_tasks_are_refused(task, message, pretrained, tmp_path):
    result = run(
        f"--task={task}",
        f"--run_dir={tmp_path / 'run'}",
        "--train=x",
        "--dev=x",
        f"--pretrained={pretrained}",
    )
    assert result.returncode != 0
    assert message in result.stderr
    assert not (tmp_path / "run").exists()


def test_files_without_answers_are_to_predict(tmp_path):
    squad = tfeff.datasets.get("SQuAD1.1")
    file = write_squad(tmp_path / "squad.json", impossible=False)
    record = json.loads(file.read_text())
    for question in record["data"][0]["paragraphs"][0]["qas"]:
        del question["answers"]
    file.write_text(json.dumps(record))
    settings = AnswerSettings(run_dir="run", train=file, dev=file, pretrained="preset")
    assert len(answering.read(settings, squad, "test", "dev", is_predicted=True)) == 3
    for given in ("train", "dev"):
        with pytest.raises(ValueError, match=f"`{given}` must hold `answers` to"):
            answering.read(settings, squad, given, given, is_predicted=False)


def test_predicted_questions_of_train_are_those_of_its_file(
    tmp_path, pretrained, capsys
):
    squad = tfeff.datasets.get("SQuAD2.0")
    settings = AnswerSettings(
        run_dir="run",
        task="squad2",
        train=write_squad(tmp_path / "train.json", impossible=True),
        dev=write_squad(tmp_path / "dev.json", impossible=False),
        pretrained=pretrained,
        sequence_length=24,
        stride=4,
        predict_split="train",
    )
    models = tfeff.tasks.load_pretrained(pretrained)
    task = answering.make_task(settings, squad, "f1", *models)
    assert len(task.to_predict.questions) == len(task.train.questions) == 4
    assert "3 of 3 different texts of dev are in train, too" in capsys.readouterr().out
    settings = dataclasses.replace(settings, test=settings.dev, train_examples=2)
    task = answering.make_task(settings, squad, "f1", *models)
    assert len(task.train.questions) == 2
    assert "3 of 3 different texts of test are in dev, too" in capsys.readouterr().out
