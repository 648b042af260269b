"""Ctrl-C loses no step of fine-tuning and of distillation on a task."""

import shutil

import numpy as np
import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.signals import Signal
from tfeff.recipes import (
    DistillSettings,
    FinetuneSettings,
    data_record,
    distill,
    finetune,
)

SIZES = dict(vocabulary_size=60, hidden_dim=8, intermediate_dim=8, num_heads=2)


@pytest.fixture
def folder(tmp_path):
    """An encoder, and texts with labels."""
    encoder = tfeff.encoders.build("bert_tiny", num_layers=1, **SIZES)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), tmp_path / "preset")
    lines = [f"{text}\t{index % 2}" for index, text in enumerate(DOCUMENTS[:8])]
    (tmp_path / "SST-2").mkdir()
    for split in ("train", "dev"):
        text = "\n".join(["sentence\tlabel", *lines])
        (tmp_path / "SST-2" / f"{split}.tsv").write_text(text)
    return tmp_path


def fine_tuning(folder, run_dir, **changes):
    return FinetuneSettings(
        **dict(
            run_dir=str(folder / run_dir),
            task="SST-2",
            data=str(folder),
            pretrained=str(folder / "preset"),
            sequence_length=16,
            batch_sizes=(4,),
            learning_rates=(1e-2, 1e-3),
            steps=5,
            eval_every=2,
        )
        | changes
    )


def check_same_files(one, other, names):
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def check_same_weights(folder):
    ended, whole = (
        tfeff.training.load_checkpoint(str(folder / run / "model.keras"), compile=False)
        for run in ("ended", "whole")
    )
    for one, other in zip(ended.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"lora_rank": 2, "save_lora": True}, {"strategy": "mirrored"}],
    ids=["plain", "lora", "mirrored"],
)
def test_fine_tuning(folder, changes, capsys):
    finetune(fine_tuning(folder, "whole", **changes))
    settings = fine_tuning(folder, "ended", **changes)
    for step in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            finetune(settings, callbacks=[lambda step=step: Signal(step)])
    assert not list((folder / "ended").glob("cells/*/metrics.json"))
    (cell,) = (folder / "ended" / "cells").iterdir()
    assert (cell / "interrupted" / "SHA256SUMS").is_file()
    train = folder / "SST-2" / "train.tsv"
    text = train.read_text()
    train.write_text(f"{text}\none more\t1")
    with pytest.raises(ValueError, match=r"has read other examples \(train\) than"):
        finetune(settings)
    train.write_text(text)
    # As a save leaves it that is killed between its two renames.
    (cell / "interrupted").rename(cell / "interrupted.replaced-1234")
    capsys.readouterr()
    with pytest.raises(KeyboardInterrupt):  # A cell that has come to its end is kept.
        finetune(settings, callbacks=[lambda: Signal(5)])
    assert len(list((folder / "ended").glob("cells/*/metrics.json"))) == 1
    finetune(settings)
    assert "  it goes on from step 3 of" in capsys.readouterr().out
    cells = sorted(path.name for path in (folder / "whole" / "cells").glob("*=*"))
    for name in cells:
        folders = [folder / run / "cells" / name for run in ("ended", "whole")]
        files = [sorted(path.name for path in cell.iterdir()) for cell in folders]
        assert files[0] == files[1] and "interrupted" not in files[0]
        check_same_files(*folders, ("metrics.json", "dev_metrics.csv"))
    check_same_weights(folder)


@pytest.mark.slow
def test_distillation_on_a_task(folder, monkeypatch):
    finetune(fine_tuning(folder, "teacher", learning_rates=(1e-2,), steps=2))

    def settings(run_dir):
        return DistillSettings(
            run_dir=str(folder / run_dir),
            stage="task",
            task="SST-2",
            data=str(folder),
            teacher=str(folder / "teacher"),
            student=str(folder / "preset"),
            sequence_length=16,
            batch_size=4,
            steps=4,
            prediction_steps=5,
            eval_every=2,
        )

    whole = distill(settings("whole"))
    seen = []

    class Counted(Signal):
        """Of the second training alone, once the first one is over."""

        def on_train_begin(self, logs=None):
            seen.append(self.params["steps"])

        def on_train_batch_end(self, batch, logs=None):
            if self.params["steps"] == 5:
                super().on_train_batch_end(batch, logs)

    for callback in (Signal(3), Counted(3)):
        with pytest.raises(KeyboardInterrupt):
            distill(settings("ended"), callbacks=[callback])
    assert seen == [4, 5]
    with monkeypatch.context() as changed:
        changed.setattr(data_record, "_digests", lambda path: {"model": f"new {path}"})
        with pytest.raises(ValueError, match="the encoder of `(teacher|student)` has"):
            distill(settings("ended"))
    ended = folder / "ended"
    saved = ended / "interrupted"
    saved.rename(ended / "interrupted.replaced-1234")
    assert distill(settings("ended")) == whole
    assert not list(ended.glob("interrupted*"))
    check_same_files(ended, folder / "whole", ("metrics.json", "dev_metrics.csv"))
    check_same_weights(folder)
    for name in ("preset", "export"):
        shutil.rmtree(ended / name)
        assert distill(settings("ended")) == whole
    tfeff.tasks.load_pretrained(ended)
    assert tfeff.export.versions(ended / "export")
    (ended / "SHA256SUMS").unlink()
    (ended / "preset" / "model.weights.h5").write_bytes(b"")
    with pytest.raises(ValueError, match="preset is damaged.*to have it made again"):
        distill(settings("ended"))
