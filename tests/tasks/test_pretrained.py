"""Presets of an encoder and its tokenizer: there and back, and what may be wrong."""

import json
import shutil

import keras
import numpy as np
import pytest

import tfeff
from tests.checks.encoder import batch_of
from tests.subjects.encoders import TINY, quantize_only
from tests.subjects.sentences import tokenizer
from tfeff.tasks import load_pretrained, save_pretrained

TEXT = "A tiger watched seven boxes"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run directory with a preset in it, and the encoder."""
    config = {**TINY, "vocabulary_size": 60, "max_sequence_length": 8, "dropout": 0.3}
    encoder = tfeff.encoders.Encoder(**config)
    run = tmp_path_factory.mktemp("runs") / "run"
    save_pretrained(encoder, tokenizer(), run / "preset")
    (run / "config.json").write_text(json.dumps({"seed": 0}))
    return run, encoder


def output(encoder):
    hidden = encoder(batch_of(encoder, (8, 3), 8))["sequence_output"]
    return np.asarray(keras.ops.convert_to_numpy(hidden), "float32")


def test_there_and_back(saved):
    run, encoder = saved
    for path in (run, str(run / "preset")):
        again, pieces = load_pretrained(path)
        np.testing.assert_array_equal(output(again), output(encoder))
        assert again.get_config() == encoder.get_config()
        assert list(pieces(TEXT)) == list(tokenizer()(TEXT))
    assert pieces.mask_token_id == 4


def test_overrides(saved):
    run, encoder = saved
    with pytest.warns(UserWarning, match="from 8 to 12 rows"):
        longer, _ = load_pretrained(run, 12, dropout=0.1, dtype="mixed_bfloat16")
    assert (longer.max_sequence_length, longer.dropout) == (12, 0.1)
    assert longer.blocks[0].dropout == longer.embedding.dropout == 0.1
    assert longer.dtype_policy.name == "mixed_bfloat16"
    np.testing.assert_allclose(output(longer), output(encoder), atol=0.1)
    shorter, _ = load_pretrained(run, 5, dropout=0.0)
    assert (shorter.max_sequence_length, shorter.dropout) == (8, 0.0)
    assert shorter.blocks[0].attention.dropout == 0.0
    apart, _ = load_pretrained(run, attention_dropout=0.2)
    assert (apart.dropout, apart.attention_dropout) == (0.3, 0.2)
    for value in ("block", "attention", False):
        recomputing, _ = load_pretrained(run, memory_efficient=value)
        assert recomputing.memory_efficient == value
    with pytest.raises(ValueError, match="`memory_efficient` must be.*'some'"):
        load_pretrained(run, memory_efficient="some")
    assert apart.blocks[0].dropout == 0.3 and apart.blocks[0].attention.dropout == 0.2


def test_other_positions_come_before_more_of_them(saved, recwarn):
    run, encoder = saved
    swapped, _ = load_pretrained(run, 12, swap_positions="huang4")
    assert not [w for w in recwarn.list if "rows" in str(w.message)]  # No table grows.
    assert (swapped.position, swapped.max_sequence_length) == ("none", 12)
    expected = tfeff.encoders.swap_positions(encoder, "huang4")
    attention = swapped.blocks[0].attention
    assert attention.max_distance == expected.blocks[0].attention.max_distance == 7
    np.testing.assert_array_equal(output(swapped), output(expected))
    with pytest.raises(ValueError, match="`swap_positions` must be one of.*'huang5'"):
        load_pretrained(run, swap_positions="huang5")


@pytest.mark.parametrize(
    "change", [{"sequence_length": 12}, {"swap_positions": "huang4"}]
)
def test_what_a_quantized_encoder_cannot_become(change, saved, tmp_path):
    _, encoder = saved
    quantized = tfeff.encoders.Encoder.from_config(encoder.get_config())
    quantize_only(quantized, "query", "int8")
    save_pretrained(quantized, tokenizer(), tmp_path / "int8")
    ((name, value),) = change.items()
    message = f"`{name}` must fit the encoder of path=.*int8.*{name}={value!r}.*query"
    with pytest.raises(ValueError, match=message):
        load_pretrained(tmp_path / "int8", **change)


@pytest.mark.slow
def test_steps_of_a_run(saved, tmp_path):
    _, encoder = saved
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    tfeff.data.save_tokenizer(tokenizer(), run / "tokenizer.spm")
    models = {
        2: tfeff.objectives.MaskedLM(encoder),
        30: tfeff.tasks.Classifier(encoder, 2),
        31: keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]),
    }
    for step, model in models.items():
        model.compile()
        path = run / "checkpoints" / f"step-{step:08}.keras"
        tfeff.training.save_checkpoint(model, str(path))
    for step in (2, 30):
        again, pieces = load_pretrained(f"{run}@{step}")
        np.testing.assert_array_equal(output(again), output(encoder))
        assert again.get_config() == encoder.get_config()
        assert list(pieces(TEXT)) == list(tokenizer()(TEXT))
    with pytest.warns(UserWarning, match="from 8 to 12 rows"):
        longer, _ = load_pretrained(f"{run}@2", 12, dropout=0.1, dtype="mixed_bfloat16")
    assert (longer.max_sequence_length, longer.dropout) == (12, 0.1)
    assert longer.dtype_policy.name == "mixed_bfloat16"
    with pytest.raises(
        ValueError, match="`path` .*: step 3 of .*, which has those of steps 2, 30"
    ):
        load_pretrained(f"{run}@3")
    with pytest.raises(ValueError, match="step 3 of nowhere, which has none"):
        load_pretrained("nowhere@3")
    with pytest.raises(ValueError, match="a run that pretrains an encoder"):
        load_pretrained(f"{run}@31")
    # Of what cannot be read nobody has asked for steps.
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "checkpoints").touch()
    for path in (tmp_path / "loop", tmp_path / "odd", "x" * 300):
        with pytest.raises(ValueError, match="`path` must be a preset"):
            load_pretrained(path)
    # A folder of that name is a folder.
    save_pretrained(encoder, tokenizer(), tmp_path / "run@3")
    load_pretrained(tmp_path / "run@3")


def test_heads_of_another_encoder_do_not_stay(saved, tmp_path):
    """KerasHub's way to save replaces the encoder of a folder alone."""
    _, encoder = saved
    path = tmp_path / "classifier"
    save_pretrained(tfeff.tasks.Classifier(encoder, 2), tokenizer(), path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    other = tfeff.encoders.Encoder.from_config(encoder.get_config())
    for model in (other, tfeff.encoders.EncoderTextClassifier(other, 2)):
        with pytest.raises(ValueError, match="`preset_dir` must .*logits_head.npz"):
            model.save_to_preset(str(path))
    for file, content in before.items():
        assert file.read_bytes() == content
    other.save_to_preset(str(tmp_path / "other"))
    other.save_to_preset(str(tmp_path / "other"))


def test_nothing_is_overwritten(saved, tmp_path):
    run, encoder = saved
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="`path` must not exist"):
        save_pretrained(encoder, tokenizer(), tmp_path)
    for arguments, name in (
        ((tokenizer(), tokenizer()), "model"),
        ((encoder, encoder), "tokenizer"),
    ):
        with pytest.raises(TypeError, match=f"`{name}`"):
            save_pretrained(*arguments, tmp_path / "new")
    small = tfeff.encoders.Encoder(**{**TINY, "vocabulary_size": 59})
    with pytest.raises(ValueError, match="60 ids, 59 rows"):
        save_pretrained(small, tokenizer(), tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_that_is_not_finished(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="without .*tokenizer.json"):
        load_pretrained(tmp_path)
    for step in (200, 400):
        (tmp_path / "checkpoints" / f"step-{step:08d}.keras").touch()
    with pytest.raises(
        ValueError, match=r"not finished.* steps 200, 400: its encoder is '.*@400'$"
    ):
        load_pretrained(tmp_path)
    (tmp_path / "preset").mkdir()  # A finished one, whose preset lacks files.
    with pytest.raises(ValueError, match="without .*tokenizer.json"):
        load_pretrained(tmp_path)


def test_a_preset_that_is_no_folder_is_named(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-00000003.keras").touch()
    (tmp_path / "preset").symlink_to(tmp_path / "gone")
    with pytest.raises(ValueError, match="a run whose preset/ is a file, or a link"):
        load_pretrained(tmp_path)


def test_a_preset_is_replaced_where_it_is_asked_for(saved, tmp_path):
    run, encoder = saved
    path = tmp_path / "new" / "preset"
    model = tfeff.objectives.MaskedLM(encoder)
    save_pretrained(model, tokenizer(), path, overwrite=True)
    files = {x.name for x in path.iterdir()}
    with pytest.raises(ValueError, match="exist yet. .*Give overwrite=True to replace"):
        save_pretrained(encoder, tokenizer(), path)
    assert {x.name for x in path.iterdir()} == files
    link = tmp_path / "link"
    link.symlink_to(path)
    for destination in (path, link):
        save_pretrained(encoder, tokenizer(), destination, overwrite=True)
        assert {x.name for x in path.iterdir()} == {
            x.name for x in (run / "preset").iterdir()
        }
    np.testing.assert_array_equal(output(load_pretrained(link)[0]), output(encoder))
    assert link.is_symlink() and [x.name for x in path.parent.iterdir()] == ["preset"]
    with pytest.raises(TypeError, match="`overwrite` must be True or False"):
        save_pretrained(encoder, tokenizer(), path, overwrite=1)


@pytest.mark.parametrize(
    "kind", ["notes.txt", "notes/", "assets/notes.txt", "", "file"]
)
def test_what_is_no_preset_is_not_replaced(saved, tmp_path, kind):
    run, encoder = saved
    path = tmp_path / "mine"
    if kind == "file":
        path.write_text("mine")
    elif not kind:
        path.mkdir()
    else:
        shutil.copytree(run / "preset", path)
        if kind.endswith("/"):
            (path / kind).mkdir()
        else:
            (path / kind).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    reason = (
        kind.rstrip("/").replace("file", "no folder") or "no SHA256SUMS and no conf"
    )
    for overwrite in (False, True):
        expected = f"`path` must be new, or .*which (has|is) {reason}"
        if not overwrite:
            expected = "`path` must not exist yet. Received: path='[^']*'$"
        with pytest.raises(ValueError, match=expected):
            save_pretrained(encoder, tokenizer(), path, overwrite=overwrite)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(ValueError, match="which has preset"):
        save_pretrained(encoder, tokenizer(), run, overwrite=True)


def test_what_convert_reads_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert").mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / "bert" / name).write_text("{}")
    # No warning of missing digests comes before it.
    for load in (load_pretrained, tfeff.encoders.Encoder.from_preset):
        with pytest.raises(ValueError, match="of Hugging Face, of which `tfeff conv"):
            load("bert")
        with pytest.raises(ValueError, match=r"no trained .*build\('bert_base'\)"):
            load("bert_base")
    for name in ("bert-base-uncased", "someone/bert"):
        with pytest.raises(ValueError, match=f"no folder.*`tfeff convert {name} "):
            load_pretrained(name)
    with pytest.raises(ValueError, match="no folder$"):
        load_pretrained(tmp_path / "absent")


def test_what_is_missing_is_named(saved, tmp_path):
    run, _ = saved
    preset = tmp_path / "copy"
    with pytest.raises(TypeError, match="`path` must be a path"):
        load_pretrained(3)
    for dtype in ("floaty", 3):
        with pytest.raises(ValueError, match=f"`dtype` must be .* dtype={dtype!r}"):
            load_pretrained(run, dtype=dtype)
    with pytest.raises(ValueError, match="`dropout`.*1.5"):
        load_pretrained(run, dropout=1.5)
    with pytest.raises(TypeError, match="`sequence_length`.*'9'"):
        load_pretrained(run, "9")
    with pytest.raises(ValueError, match="copy', no folder"):
        load_pretrained(preset)
    for name, what in (
        ("config.json", "an encoder"),
        ("tokenizer.json", "its tokenizer"),
        ("model.weights.h5", "its weights"),
    ):
        shutil.copytree(run / "preset", preset)
        (preset / name).unlink()
        with pytest.raises(ValueError, match=f"without .*{what}"):
            load_pretrained(preset)
        # A copy that somebody has left there does not count.
        shutil.copy(run / "preset" / name, preset / f"{name}.bak")
        with pytest.raises(ValueError, match=f"without .*{what}"):
            load_pretrained(preset)
        shutil.rmtree(preset)
    shutil.copytree(run / "preset", preset)
    weights = (preset / "model.weights.h5").read_bytes()
    (preset / "model.weights.h5").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ValueError, match="encoder.*damaged"):
        load_pretrained(preset)
    (preset / "model.weights.h5").write_bytes(weights)
    config = (preset / "tokenizer.json").read_text()
    without_class = json.loads(config)
    del without_class["class_name"]
    (preset / "tokenizer.json").write_text(json.dumps(without_class))
    (preset / "SHA256SUMS").unlink()
    with (
        pytest.warns(UserWarning, match="SHA256SUMS"),
        pytest.raises(ValueError, match=r"`path` must.*tokenizer\.json must name"),
    ):
        load_pretrained(preset)
    (preset / "tokenizer.json").write_text(config)
    vocabulary = preset / "assets" / "tokenizer" / "vocabulary.spm"
    for content in (b"", b"version https://git-lfs.github.com/spec/v1\n"):
        vocabulary.write_bytes(content)
        with pytest.raises(ValueError, match="`path` must hold a whole KerasHub toke"):
            load_pretrained(preset)
    (preset / "config.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        load_pretrained(preset)
    other = json.dumps({"registered_name": "keras_hub>BertBackbone"})
    (preset / "config.json").write_text(other)
    with pytest.raises(ValueError, match="of 'keras_hub>BertBackbone', which is none"):
        load_pretrained(preset)
