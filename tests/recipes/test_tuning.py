"""One training of a task from Python: data sets as objects, parts, early ends."""

import contextlib
import csv
import dataclasses
import json
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tfeff.recipes import (
    AnswerSettings,
    DistillSettings,
    FinetuneSettings,
    answer,
    distill,
    finetune,
    finetuning,
)
from tfeff.recipes.task_model import head_arguments
from tfeff.recipes.tuning import best_model, make_grid

TEXTS = [f"{i} green bottles hanging on the wall" for i in range(16)]


def read(split, folder):
    return tfeff.data.TextExamples(
        first=tuple(TEXTS),
        second=None,
        labels=np.arange(16) % 2,
        label_names=("even", "odd"),
        ids=tuple(str(i) for i in range(16)),
    )


SKILL = tfeff.datasets.Dataset(
    name="Bottles",
    reader=read,
    label_names=("even", "odd"),
    metric_names=("f1", "accuracy"),
)
BOTTLES = tfeff.datasets.Dataset(
    name="Bottles", reader=read, label_names=("even", "odd"), metric_names=("f1",)
)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    tokenizer = tfeff.data.train_tokenizer(TEXTS * 4, 30)
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=36,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=24,
    )
    path = tmp_path_factory.mktemp("pretrained") / "preset"
    tfeff.tasks.save_pretrained(encoder, tokenizer, path)
    return str(path)


def settings(run_dir, pretrained, **changes):
    return FinetuneSettings(
        **{
            "run_dir": str(run_dir),
            "task": "Bottles",
            "data": ".",
            "pretrained": pretrained,
            "batch_sizes": (4,),
            "learning_rates": (1e-3,),
            "steps": 4,
            "eval_every": 2,
            "dropout": 0.0,
            "head_dropout": 0.0,
        }
        | changes
    )


def cell(run_dir):
    (folder,) = (run_dir / "cells").iterdir()
    with open(folder / "dev_metrics.csv", encoding="utf-8", newline="") as file:
        return folder, list(csv.DictReader(file))


@pytest.mark.slow
def test_a_cell_that_was_killed_goes_on_in_weights_and_biases(
    pretrained, tmp_path, monkeypatch
):
    class Logger(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            if len(ids) == 1:
                raise OSError("pulled the plug")

    def init(**settings):
        ids.append(settings["id"])
        return contextlib.nullcontext()

    ids, wandb = [], types.ModuleType("wandb")
    wandb.run, wandb.init, wandb.Logger = None, init, Logger
    Logger.__module__ = "wandb"
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    tried = settings(tmp_path / "run", pretrained, callbacks=("wandb.Logger",))
    with pytest.raises(OSError, match="plug"):
        finetune(tried, BOTTLES)
    finetune(tried, BOTTLES)
    assert len(ids) == 2 and len(ids[0]) == 8 and ids[0] == ids[1]


@pytest.mark.slow
def test_a_data_set_that_is_not_registered_in_parts(pretrained, tmp_path, capsys):
    weights = []
    for run_dir, changes in (
        (tmp_path / "whole", {}),
        (tmp_path / "parts", {"batch_sizes": (2,), "accumulation_steps": 2}),
    ):
        finetune(settings(run_dir, pretrained, **changes), BOTTLES)
        model = tfeff.training.load_checkpoint(str(run_dir / "model.keras"))
        weights.append(model.get_weights())
        assert json.loads((run_dir / "config.json").read_text())["task"] == "Bottles"
    assert "Bottles: 16 examples to train on" in capsys.readouterr().out
    assert cell(tmp_path / "whole")[1] == cell(tmp_path / "parts")[1]
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)
    whole = settings("x", "y", steps=None, accumulation_steps=2)
    assert whole.num_steps(16, 8, 3.0) == 6


@pytest.mark.slow
def test_a_training_ends_where_nothing_better_comes(pretrained, tmp_path, capsys):
    changes = {"patience": 2, "eval_every": 1, "steps": 50, "learning_rates": (1e-9,)}
    finetune(settings(tmp_path / "run", pretrained, **changes), BOTTLES)
    _, rows = cell(tmp_path / "run")
    assert [row["evaluations_since_best"] for row in rows] == ["0", "1", "2"]
    text, told = capsys.readouterr()
    lines = [line for line in told.splitlines() if " dev_f1 " in line]
    # A line for each new value, and at the end.
    assert [line.split()[1] for line in (lines[0], lines[-1])] == ["1/50", "3/50"]
    assert "best at step 1 of 50" in text
    assert "nothing better came: the training ended at 3" in text


@pytest.mark.slow
def test_an_interrupted_training_gives_the_terminal_back(
    pretrained, tmp_path, capsys, monkeypatch
):
    class Interrupts(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    output = sys.stdout
    with pytest.raises(KeyboardInterrupt):
        finetune(settings(tmp_path / "run", pretrained), BOTTLES, [Interrupts])
    told = capsys.readouterr().err
    assert told.rfind("\x1b[?25l") < told.rfind("\x1b[?25h")  # The cursor is shown.
    assert sys.stdout is output


@pytest.mark.slow
def test_what_a_callback_ends_is_told(pretrained, tmp_path, capsys):
    class Limit(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 2

    finetune(settings(tmp_path / "run", pretrained, steps=9), BOTTLES, [Limit])
    text = capsys.readouterr().out
    assert "a callback ended the training at step 3\n" in text
    assert "nothing better came" not in text


@pytest.mark.slow
def test_the_newest_weights_are_kept_where_no_metric_is_defined(
    pretrained, tmp_path, capsys
):
    def read_one_class(split, folder):
        examples = read(split, folder)
        labels = examples.labels if split == "train" else np.zeros(16, "int64")
        return dataclasses.replace(examples, labels=labels)

    dataset = tfeff.datasets.Dataset(
        name="Bottles",
        reader=read_one_class,
        label_names=("even", "odd"),
        metric_names=("matthews_correlation", "accuracy"),
    )
    found = finetune(settings(tmp_path / "run", pretrained), dataset)
    assert np.isnan(found["best"]["mean"]["dev_matthews_correlation"])
    text = capsys.readouterr().out
    assert text.count("the labels of dev are all equal: even of right") == 1
    assert "newest at step 4 of 4: dev_matthews_correlation undefined" in text


@pytest.mark.slow
def test_epochs_and_decays_are_axes_where_there_are_several(pretrained, tmp_path):
    changes = dict(steps=None, epochs=(0.25, 0.5), weight_decay=(0.01, 0.1))
    changes |= dict(global_clipnorm=None, epsilon=1e-8, beta_1=0.8, beta_2=0.99)
    tried = settings(tmp_path / "run", pretrained, metric="accuracy", **changes)
    summary = finetune(tried, SKILL)
    assert sorted(folder.name for folder in (tmp_path / "run" / "cells").iterdir()) == [
        f"learning_rate=0.001,batch_size=4,epochs={epochs},weight_decay={decay},seed=0"
        for epochs in (0.25, 0.5)
        for decay in (0.01, 0.1)
    ]
    assert summary["metric"] == "dev_accuracy"
    for row in summary["rows"]:
        with open(f"{row['folder']}/dev_metrics.csv", newline="") as file:
            steps = [int(line["step"]) for line in csv.DictReader(file)]
        assert steps[-1] == 4 * row["setting"]["epochs"]
        optimizer = tfeff.training.load_checkpoint(
            f"{row['folder']}/model.keras"
        ).optimizer
        assert optimizer.weight_decay == row["setting"]["weight_decay"]
        assert optimizer.global_clipnorm is None and optimizer.epsilon == 1e-8
        assert (optimizer.beta_1, optimizer.beta_2) == (0.8, 0.99)
    # With steps, all numbers of epochs are one; a single value adds nothing to names.
    of_steps = settings("x", "y", epochs=(3, 10), weight_decay=0.1)
    grid = make_grid(types.SimpleNamespace(path=str), of_steps, "f1", batch_size=(4,))
    assert list(grid.axes) == ["batch_size"]


def test_a_cell_gets_its_seed_and_the_settings(pretrained, monkeypatch):
    """In the weights, the order and the optimizer, without a step of training."""
    changes = dict(sequence_length=40, layer_decay=0.8, warmup=0.5, steps=10)
    tried = settings("x", pretrained, bias_correction=False, patience=3, **changes)
    models = tfeff.tasks.load_pretrained(pretrained, sequence_length=40)
    task = finetuning.make_task(tried, BOTTLES, *models)
    task = dataclasses.replace(task, copies_segments=True)
    kernel = np.ones((16, 16), "float32")
    pooler = {"kernel": kernel, "bias": kernel[0], "activation": np.array("tanh")}
    head = head_arguments(tried, BOTTLES, task.train.examples)
    callbacks = types.SimpleNamespace(
        of_training=lambda *_, **__: contextlib.nullcontext([])
    )
    tuning = finetuning.make_tuning(
        *(tried, task, head, {"pooler": pooler}),
        *(tf.distribute.get_strategy(), callbacks),
    )
    made = [tuning.make_model(seed, None) for seed in (0, 1)]
    for model in made:
        np.testing.assert_array_equal(model.get_layer("pooler").kernel, kernel)
        table = np.asarray(model.encoder.embedding.segment_embedding.embeddings)
        np.testing.assert_array_equal(table[0], table[1])
    rows = [np.asarray(m.encoder.embedding.position_embedding.embeddings) for m in made]
    assert (rows[0][:24] == rows[1][:24]).all()
    assert (rows[0][24:] != rows[1][24:]).any()
    one, other = (
        next(iter(tuning.make_batches(16, seed)))[0]["token_ids"] for seed in (0, 1)
    )
    assert (np.asarray(one) != np.asarray(other)).any()

    class Stopped(Exception):
        pass

    def stop(model, *_, **__):
        raise Stopped(model)

    monkeypatch.setattr(tfeff.tasks.Classifier, "fit", stop)
    heads = []
    for seed in (0, 1):
        with pytest.raises(Stopped) as stopped:
            tuning.train("folder", learning_rate=1e-3, batch_size=4, seed=seed)
        (model,) = stopped.value.args
        heads.append(np.asarray(model.get_layer("logits").kernel))
    assert (heads[0] != heads[1]).any()
    optimizer = model.optimizer
    assert (optimizer.layer_decay, optimizer.bias_correction) == (0.8, False)
    assert optimizer._learning_rate.warmup_steps == 5


def test_data_sets_that_do_not_fit_are_named(pretrained, tmp_path):
    bad = settings(tmp_path / "run", pretrained, task="Cans")
    with pytest.raises(ValueError, match="`task` must be the name.*'Cans'.*'Bottles'"):
        finetune(bad, BOTTLES)
    with pytest.raises(TypeError, match="`dataset` must be a `Dataset`"):
        finetune(bad, "Bottles")
    other = settings(tmp_path / "run", pretrained, metric="acuracy")
    with pytest.raises(ValueError, match="`metric` must be .* mean 'accuracy'"):
        finetune(other, SKILL)
    questions = AnswerSettings(
        run_dir=str(tmp_path / "run"),
        task="Bottles",
        train="x",
        dev="x",
        pretrained=pretrained,
    )
    with pytest.raises(ValueError, match="`task` must be one of .*`TextExamples`"):
        answer(questions, BOTTLES)
    general = DistillSettings(
        run_dir=str(tmp_path / "run"), teacher=pretrained, student="bert_tiny"
    )
    with pytest.raises(ValueError, match="`dataset` can be given with `stage='task'`"):
        distill(general, BOTTLES)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_questions_and_distillation_in_parts(pretrained, tmp_path):
    passage = "7 green bottles hanging on the wall"
    answers = [{"text": "the wall", "answer_start": passage.index("the wall")}]
    questions = [
        {"id": str(i), "question": "hanging on what", "answers": answers}
        for i in range(6)
    ]
    data = [{"paragraphs": [{"context": passage, "qas": questions}]}]
    file = tmp_path / "walls.json"
    file.write_text(json.dumps({"version": "1.1", "data": data}))
    names = (file.name,)
    spans = tfeff.datasets.span_dataset("Walls", {"train": names, "dev": names})
    found = answer(
        AnswerSettings(
            run_dir=str(tmp_path / "qa"),
            task="Walls",
            train=str(file),
            dev=str(file),
            pretrained=pretrained,
            sequence_length=24,
            stride=4,
            batch_sizes=(2,),
            accumulation_steps=2,
            patience=1,
            steps=3,
            eval_every=1,
        ),
        spans,
    )
    assert found["task"] == "Walls"
    finetune(settings(tmp_path / "teacher", pretrained), BOTTLES)
    metrics = distill(
        DistillSettings(
            run_dir=str(tmp_path / "student"),
            stage="task",
            teacher=str(tmp_path / "teacher"),
            student=pretrained,
            task="Bottles",
            data=".",
            sequence_length=24,
            batch_size=2,
            accumulation_steps=2,
            patience=1,
            steps=2,
            prediction_steps=3,
            eval_every=1,
        ),
        BOTTLES,
    )
    assert "f1" in metrics["student"]


def test_a_cell_without_its_model_is_named(tmp_path):
    summary = {"best": {"folder": str(tmp_path)}}
    with pytest.raises(ValueError, match="is missing: delete the folder to have the c"):
        best_model(summary)
    (tmp_path / "model.keras").touch()
    assert best_model(summary) == str(tmp_path / "model.keras")
