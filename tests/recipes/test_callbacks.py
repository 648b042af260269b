"""Keras callbacks by name: a module of the user's, in every command that trains."""

import json

import keras
import pytest

import tfeff
from tests.subjects.files import copy_of
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.command import flags, main
from tfeff.recipes import FinetuneSettings, PretrainSettings, finetune, pretrain
from tfeff.recipes.callbacks import Callbacks, find_callback
from tfeff.recipes.run_settings import RunSettings

TRACKER = '''
import json
import keras


class Tracker(keras.callbacks.Callback):
    """Writes what it sees to a file."""

    def __init__(self, path, every=1, tags=()):
        super().__init__()
        self.path, self.every, self.tags = path, every, tags

    def note(self, kind, number, logs):
        with open(self.path, "a") as file:
            values = {name: float(value) for name, value in (logs or {}).items()}
            file.write(json.dumps([kind, number, values, *self.tags]) + "\\n")

    def on_train_begin(self, logs=None):
        self.note("begin", 0, logs)

    def on_train_batch_end(self, batch, logs=None):
        if (batch + 1) % self.every == 0:
            self.note("step", batch + 1, logs)

    def on_epoch_end(self, epoch, logs=None):
        self.note("epoch", epoch, logs)


class Falling(keras.callbacks.LearningRateScheduler):
    def __init__(self):
        super().__init__(lambda epoch: 0.1 / (1 + epoch))


class NoCallback:
    pass
'''
TRAINING = ["answer", "distill", "finetune", "pretrain", "stack"]


@pytest.fixture(autouse=True)
def _tracker(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_tracker.py").write_text(TRACKER)
    monkeypatch.syspath_prepend(tmp_path / "modules")


def seen(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def small(folder, **settings):
    (folder / "text.txt").write_text("\n\n".join(DOCUMENTS * 4), encoding="utf-8")
    tfeff.data.save_tokenizer(tokenizer(), folder / "tokenizer.spm")
    return dict(
        run_dir=str(folder / "run"),
        corpus=(str(folder / "text.txt"),),
        validation=(copy_of(folder / "text.txt"),),
        tokenizer=str(folder / "tokenizer.spm"),
        vocabulary_size=60,
        sequence_length=12,
        batch_size=2,
        eval_every=2,
        override={"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 8},
        preset="bert_tiny",
        **settings,
    )


@pytest.mark.parametrize("name", TRAINING)
def test_every_command_that_trains_has_the_flag(name):
    settings = main._load(main.COMMANDS[name].settings)
    assert issubclass(settings, RunSettings)
    assert "  --callbacks=TEXT\n" in flags.usage(name, settings)


@pytest.mark.slow
def test_a_run_is_tracked_and_goes_on(tmp_path):
    """The next start goes on with the next epoch, also with another callback."""
    path = tmp_path / "seen.jsonl"
    text = f"my_tracker.Tracker({str(path)!r}, every=2, tags=['a, b', None])"
    flag = f"--callbacks={text}"
    values = flags.parse(PretrainSettings, ["--run_dir=x", flag])
    assert values.callbacks == (text,)
    assert "callbacks" not in values.config()

    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise OSError("pulled the plug")

    settings = small(tmp_path, steps=4)
    with pytest.raises(OSError, match="plug"):
        pretrain(PretrainSettings(**settings, callbacks=(text,)), callbacks=[Stop()])
    pretrain(PretrainSettings(**settings, callbacks=(text,)))
    found = seen(path)
    kinds = [(kind, number) for kind, number, *_ in found]
    expected = [("begin", 0), ("step", 2), ("epoch", 0)]
    assert kinds == [*expected, ("begin", 0), ("step", 2), ("epoch", 1)]
    assert all(tags == ["a, b", None] for _, _, _, *tags in found)
    assert {"loss", "val_loss", "learning_rate"} <= set(found[2][2])
    pretrain(PretrainSettings(**settings))  # It is finished: nothing is to be seen.
    assert seen(path) == found


@pytest.mark.slow
def test_each_training_of_a_grid_has_its_own_callback(tmp_path):
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=60,
        hidden_dim=8,
        num_heads=2,
        intermediate_dim=8,
        max_sequence_length=12,
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer(), tmp_path / "preset")
    (tmp_path / "SST-2").mkdir()
    rows = [f"{text}\t{i % 2}" for i, text in enumerate(DOCUMENTS[:4])]
    for split in ("train", "dev"):
        table = tmp_path / "SST-2" / f"{split}.tsv"
        table.write_text("\n".join(["sentence\tlabel", *rows]), encoding="utf-8")
    path, made = tmp_path / "seen.jsonl", []

    def make():
        made.append(keras.callbacks.Callback())
        return made[-1]

    settings = FinetuneSettings(
        run_dir=str(tmp_path / "run"),
        task="SST-2",
        data=str(tmp_path),
        pretrained=str(tmp_path / "preset"),
        learning_rates=(1e-3, 1e-4),
        steps=2,
        eval_every=1,
        callbacks=(f"my_tracker.Tracker({str(path)!r})",),
    )
    finetune(settings, callbacks=[make])
    found = seen(path)
    assert [kind for kind, *_ in found] == ["begin", "step", "step", "epoch"] * 2
    assert all("dev_accuracy" in logs for kind, _, logs in found if kind != "begin")
    assert len(made) == 2


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (ValueError, "must be package.Class or .*no package and class", "Tracker"),
        (ValueError, "with literal values.*", "my_tracker.Tracker(open('x'))"),
        (ValueError, "with literal values", "my_tracker.Tracker(**{'path': 1})["),
        (ValueError, "with literal values", "my_tracker.Tracker({[]: 1})"),
        (ValueError, "with literal values", "__import__('os').system('true')"),
        (ValueError, "pip install no_such_tracker", "no_such_tracker.keras.Logger"),
        (ValueError, "Did you mean 'Tracker'", "my_tracker.Traker('x')"),
        (ValueError, r"class of keras\.callbacks.*'\.$", "keras.callbacks.Nope"),
        (TypeError, "classes of Keras callbacks", "my_tracker.NoCallback"),
        (TypeError, "classes of Keras callbacks", "os.getcwd()"),
        (ValueError, r"Tracker\(path, every=1.*missing.*'path'", "my_tracker.Tracker"),
        (ValueError, "unexpected keyword.*'often'", "my_tracker.Tracker('x', often=3)"),
        (ValueError, "not set the learning rate", "keras.callbacks.ReduceLROnPlateau"),
        (ValueError, "the recipe has a schedule", "my_tracker.Falling()"),
        (ValueError, "leave the weights", "keras.callbacks.BackupAndRestore('x')"),
        (ValueError, "leave the weights", "keras.callbacks.SwapEMAWeights()"),
        (
            ValueError,
            "leave the weights.*`patience` ends",
            "keras.callbacks.EarlyStopping(restore_best_weights=True)",
        ),
    ],
)
def test_what_is_no_callback_is_named_before_any_work(error, message, text, tmp_path):
    with pytest.raises(error, match=message):
        find_callback(text)
    settings = PretrainSettings(**small(tmp_path, steps=2), callbacks=(text,))
    with pytest.raises(error, match=message):
        pretrain(settings)
    assert not (tmp_path / "run").exists()


def test_objects_that_are_no_callbacks_are_named(tmp_path):
    settings = PretrainSettings(run_dir="run")
    for wrong in (keras.callbacks.Callback(), 3, {}):
        with pytest.raises(TypeError, match="`callbacks` must be a list"):
            Callbacks(settings, wrong)
    with pytest.raises(TypeError, match="`callbacks` must be Keras callbacks"):
        Callbacks(settings, ["my_tracker.Tracker"])
    falling = keras.callbacks.ReduceLROnPlateau
    for wrong in (falling, falling(patience=2)):
        with pytest.raises(ValueError, match="`callbacks` must not set the learning"):
            Callbacks(settings, [wrong])
    stop = keras.callbacks.EarlyStopping
    for wrong in (keras.callbacks.SwapEMAWeights, stop(restore_best_weights=True)):
        with pytest.raises(ValueError, match="`callbacks` must leave the weights"):
            Callbacks(settings, [wrong])
    Callbacks(settings, [stop, stop(patience=2)])
    find_callback("keras.callbacks.EarlyStopping(patience=2)")
    late = Callbacks(settings, [lambda: stop(restore_best_weights=True)])
    with (
        pytest.raises(ValueError, match="`callbacks` must leave the weights"),
        late.of_training(str(tmp_path), {}),
    ):
        pass
    made = Callbacks(settings, [dict])
    with (
        pytest.raises(TypeError, match="`callbacks` must be Keras callbacks"),
        made.of_training(str(tmp_path), {}),
    ):
        pass
