"""Nothing damaged is read from a preset in silence."""

import errno
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

import keras
import keras_hub
import numpy as np
import pytest

import tfeff
from tests.subjects.encoders import TINY
from tests.subjects.sentences import tokenizer
from tfeff.convert import BertTokenizer
from tfeff.data import RobertaTokenizer
from tfeff.data.text.byte_pairs import byte_symbols
from tfeff.encoders import Encoder, EncoderMaskedLM, EncoderMaskedLMPreprocessor
from tfeff.encoders.preset_digests import check_preset
from tfeff.encoders.preset_heads import read_head
from tfeff.encoders.preset_layout import is_weights_file
from tfeff.objectives.heads import Head
from tfeff.tasks import load_pretrained, save_pretrained
from tfeff.utils.digests import FILE_NAME, check_digests, read_digests

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fox", "##es"]


def tiny():
    return Encoder(**{**TINY, "vocabulary_size": 60, "max_sequence_length": 8})


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    path = tmp_path_factory.mktemp("presets") / "preset"
    save_pretrained(tiny(), tokenizer(), path)
    return path


@pytest.fixture
def copy(preset, tmp_path):
    return shutil.copytree(preset, tmp_path / "copy")


def test_on_a_full_disk_an_earlier_preset_stays(tmp_path, monkeypatch):
    preset = tmp_path / "preset"
    preprocessor = EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=8)
    task = EncoderMaskedLM(tiny(), preprocessor)
    task.save_to_preset(str(preset))
    save_pretrained(tiny(), tokenizer(), tmp_path / "encoder")
    before = {path: path.read_bytes() for path in files(tmp_path)}

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    other = BertTokenizer(PIECES)
    rows = EncoderMaskedLMPreprocessor(other, sequence_length=6)
    for saved, name in (
        (tiny(), "encoders.Encoder.save_weights"),
        (tiny(), "encoders.preset_mixins.add_version"),
        (tiny(), "encoders.preset_writing.write_list"),
        (EncoderMaskedLM(tiny(), rows), "encoders.Encoder.save_weights"),
        (EncoderMaskedLM(tiny(), rows), "data.BertTokenizer.save_assets"),
        (rows, "data.BertTokenizer.save_assets"),
        (other, "data.BertTokenizer.save_assets"),
    ):
        folder = str(tmp_path / "encoder" if isinstance(saved, Encoder) else preset)
        with monkeypatch.context() as patch:
            patch.setattr(f"tfeff.{name}", full)
            with pytest.raises(OSError, match=f", while writing {folder}$"):
                saved.save_to_preset(folder)
        assert {path: path.read_bytes() for path in files(tmp_path)} == before
    load_pretrained(preset)


def test_files_that_are_no_preset_stay(tmp_path):
    tfeff.convert.to_huggingface(tiny(), tmp_path / "checkpoint", BertTokenizer(PIECES))
    (tmp_path / "run").mkdir()
    for name in ("config.json", "tokenizer.json", "preprocessor.json"):
        (tmp_path / "run" / name).write_text('{"run_dir": "mine"}')
    before = {path: path.read_bytes() for path in files(tmp_path)}
    rows = EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=8)
    for folder in ("checkpoint", "run"):
        saved = [tiny(), EncoderMaskedLM(tiny(), rows)]
        saved += [BertTokenizer(PIECES), rows] if folder == "run" else []
        for one in saved:
            with pytest.raises(ValueError, match="`preset_dir` must.*json"):
                one.save_to_preset(str(tmp_path / folder))
    assert {path: path.read_bytes() for path in files(tmp_path)} == before


def test_tokenizers_with_several_files_are_saved_again(tmp_path):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [*special, *byte_symbols()]
    folder = str(tmp_path / "preset")
    for _ in range(2):
        vocabulary = {piece: id for id, piece in enumerate(pieces)}
        RobertaTokenizer(vocabulary, []).save_to_preset(folder)
    check_digests(folder)


def test_an_encoder_does_not_get_the_head_of_another(tmp_path):
    folder = str(tmp_path / "preset")
    rows = EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=8)
    EncoderMaskedLM(tiny(), rows).save_to_preset(folder)
    with pytest.raises(ValueError, match="have no heads.*task.weights.h5"):
        tiny().save_to_preset(folder)
    EncoderMaskedLM(tiny(), rows).save_to_preset(folder)


def test_a_vocabulary_that_kerashub_reads_is_compared(tmp_path):
    rows = EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=8)
    EncoderMaskedLM(tiny(), rows).save_to_preset(str(tmp_path / "task"))
    save_pretrained(tiny(), tokenizer(), tmp_path / "encoder")
    for folder in (tmp_path / "task", tmp_path / "encoder"):
        for name in ("assets/tokenizer/vocabulary.spm", "tokenizer.json"):
            content = (folder / name).read_bytes()
            flip(folder / name, len(content) // 2)
            for make in (
                keras_hub.models.MaskedLM,
                EncoderMaskedLM,
                EncoderMaskedLMPreprocessor,
            ):
                with pytest.raises(ValueError, match=f"is damaged.*{name}"):
                    make.from_preset(str(folder))
            (folder / name).write_bytes(content)
        keras_hub.models.MaskedLM.from_preset(str(folder))


def test_a_damaged_list_of_digests_is_named_before_a_file_is_replaced(copy):
    (copy / FILE_NAME).write_text("x")
    before = {path: path.read_bytes() for path in files(copy)}
    with pytest.raises(ValueError, match="SHA256SUMS is damaged: its lines"):
        tiny().save_to_preset(str(copy))
    assert {path: path.read_bytes() for path in files(copy)} == before


def test_other_files_of_a_preset_cause_no_warning(tmp_path):
    folder = str(tmp_path)
    rows = EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=8)
    EncoderMaskedLM(tiny(), rows).save_to_preset(folder)
    (tmp_path / "README.md").write_text("A card.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EncoderMaskedLM.from_preset(folder)


def test_an_empty_list_of_digests_is_damage(copy):
    (copy / FILE_NAME).write_text("")
    with pytest.raises(ValueError, match="SHA256SUMS is damaged: it is empty"):
        load_pretrained(copy)


def test_parts_of_a_preset_are_saved_again(tmp_path):
    folder = str(tmp_path / "preset")
    rows = EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=8)
    EncoderMaskedLM(tiny(), rows).save_to_preset(folder)
    EncoderMaskedLMPreprocessor(tokenizer(), sequence_length=6).save_to_preset(folder)
    check_digests(folder)
    EncoderMaskedLM.from_preset(folder)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def flip(path, place, bit=0):
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)
        file.seek(place)
        file.write(bytes([byte[0] ^ 1 << bit]))


def test_the_digests_name_all_files(preset):
    names = [str(path.relative_to(preset)) for path in files(preset)]
    assert sorted([*read_digests(str(preset)), FILE_NAME]) == names
    assert len(names) == 6
    command = ["sha256sum", "--check", "--strict", FILE_NAME]
    assert subprocess.run(command, cwd=preset, capture_output=True).returncode == 0


@pytest.mark.quick("Path")
@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_folders_are_strings_or_paths(kind, tmp_path):
    folder = kind(tmp_path / "preset")
    tiny().save_to_preset(folder)
    BertTokenizer(PIECES).save_to_preset(folder)
    assert len(read_digests(str(folder))) > 3
    Encoder.from_preset(folder)
    BertTokenizer.from_preset(str(folder))  # KerasHub takes strings alone.
    save_pretrained(tiny(), tokenizer(), kind(tmp_path / "other"))
    load_pretrained(kind(tmp_path / "other"))


def test_every_flipped_byte_is_found_and_named(tmp_path):
    """All bytes of the small files, 1000 of the weights."""
    encoder = tiny()
    save_pretrained(encoder, BertTokenizer(PIECES), tmp_path / "preset")
    count = 0
    for path in files(tmp_path / "preset"):
        large = path.name == "model.weights.h5"
        count += flipped(path, tmp_path / "preset", encoder, 1000 if large else None)
    assert count > 2500


def test_flipped_bytes_of_a_sentencepiece_model(copy):
    path = copy / "assets" / "tokenizer" / "vocabulary.spm"
    assert flipped(path, copy, tiny(), 300) == 300


def flipped(path, preset, encoder, count):
    """Flips `count` bytes of a file, or all, one at a time; returns how many."""
    size, generator = path.stat().st_size, np.random.default_rng(0)
    places = range(size) if count is None else generator.choice(size, count, False)
    # A flip in the list of digests blames a file that it names, or the list.
    name = "" if path.name == FILE_NAME else path.name
    for place in map(int, places):
        bit = int(generator.integers(8))
        flip(path, place, bit)
        with pytest.raises(ValueError, match=f"is damaged.*{name}"):
            # As `load_pretrained` does, without making an encoder each time.
            if path.name == "model.weights.h5":
                encoder.load_weights(path)
            elif path.name == FILE_NAME:
                check_preset(str(preset), is_weights_file)
            load_pretrained(preset)
        flip(path, place, bit)
    load_pretrained(preset)
    return len(places)


def test_damage_is_found_by_whatever_reads_the_preset(copy):
    readers = {
        "config.json": [load_pretrained, Encoder.from_preset],
        "metadata.json": [load_pretrained, Encoder.from_preset],
        "model.weights.h5": [
            load_pretrained,
            Encoder.from_preset,
            keras_hub.models.Backbone.from_preset,
            lambda folder: tiny().load_weights(f"{folder}/model.weights.h5"),
        ],
        "tokenizer.json": [load_pretrained],
        "assets/tokenizer/vocabulary.spm": [load_pretrained],
    }
    for name, functions in readers.items():
        place = (copy / name).stat().st_size // 2
        flip(copy / name, place)
        for read in functions:
            with pytest.raises(ValueError, match=f"differ from SHA256SUMS: {name}"):
                read(str(copy))
        flip(copy / name, place)
    # Every file but the list itself, and a flip in that is found by all.
    assert len(readers) == len(files(copy)) - 1
    flip(copy / FILE_NAME, 3)
    with pytest.raises(ValueError, match="damaged"):
        load_pretrained(copy)


def test_a_tokenizer_of_tfeff_checks_its_own_files(tmp_path):
    encoder, pieces = tiny(), BertTokenizer(PIECES)
    folder = str(tmp_path / "preset")
    pieces.save_to_preset(folder)
    encoder.save_to_preset(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_pretrained(folder)
    for name in ("assets/tokenizer/vocabulary.txt", "tokenizer.json"):
        flip(f"{folder}/{name}", 20)
        for cls in (BertTokenizer, keras_hub.tokenizers.Tokenizer):
            with pytest.raises(ValueError, match=f"differ from SHA256SUMS: {name}"):
                cls.from_preset(folder)
        # The encoder is whole.
        Encoder.from_preset(folder)
        flip(f"{folder}/{name}", 20)


@pytest.mark.parametrize("what", ["preset", "KerasHub's tokenizer"])
def test_what_has_no_digest_is_loaded_with_a_warning(what, copy):
    if what == "preset":  # As earlier versions saved it.
        os.remove(copy / FILE_NAME)
        message = f"copy has no {FILE_NAME}: .* cannot be checked"
    else:  # KerasHub's tokenizers know nothing of digests.
        for path in files(copy):
            path.unlink()
        tiny().save_to_preset(str(copy))
        tokenizer().save_to_preset(str(copy))
        message = f"{FILE_NAME} in .* does not name assets/tokenizer/vocabulary.spm, "
    with pytest.warns(UserWarning, match=message):
        load_pretrained(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda config: None,
        lambda config: {n: x for n, x in config.items() if n != "config"},
        lambda config: config | {"config": None},
        lambda config: config | {"config": config["config"] | {"num_heads": "a"}},
        lambda config: config | {"config": config["config"] | {"attention": None}},
        lambda config: config | {"config": config["config"] | {"frozen_layers": 3}},
        "{",
        b"\xff",
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_damaged_configuration_without_digests(change, copy):
    os.remove(copy / FILE_NAME)
    path = copy / "config.json"
    if callable(change):
        change = json.dumps(change(json.loads(path.read_text())))
    path.write_bytes(change if isinstance(change, bytes) else change.encode())
    for read in (Encoder.from_preset, load_pretrained):
        with pytest.raises(ValueError, match="copy"):
            read(str(copy))


def test_wrong_arguments_are_no_damage(copy):
    with pytest.raises(TypeError, match="num_layer"):
        Encoder.from_preset(str(copy), num_layer=3)


def test_what_the_system_or_a_layer_refuses_is_no_damage(copy, monkeypatch):
    """A whole preset that cannot be opened, or whose attention needs something."""

    def raising(error):
        def init(self, *_, **__):
            raise error

        return init

    for error in (PermissionError(13, "Permission denied"), OSError(24, "Too many")):
        with monkeypatch.context() as patch:
            patch.setattr("h5py.File.__init__", raising(error))
            for read in (Encoder.from_preset, load_pretrained):
                with pytest.raises(type(error), match=error.strerror):
                    read(str(copy))
    with monkeypatch.context() as patch:
        patch.setattr("tfeff.layers.SelfAttention.__init__", raising(KeyError("TAB")))
        for read in (Encoder.from_preset, load_pretrained):
            with pytest.raises(ValueError, match="copy cannot .*own fails.*TAB"):
                read(str(copy))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_vocabulary_with_a_piece_twice_is_named(tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "hill"]
    tokenizer = BertTokenizer(pieces)
    encoder = Encoder(**TINY | {"vocabulary_size": len(pieces)})
    save_pretrained(encoder, tokenizer, tmp_path / "preset")
    os.remove(tmp_path / "preset" / FILE_NAME)
    path = tmp_path / "preset" / "assets" / "tokenizer" / "vocabulary.txt"
    path.write_text(path.read_text().replace("hill", "the"))
    with pytest.raises(ValueError, match="preset.* is damaged: Tokens in"):
        load_pretrained(tmp_path / "preset")


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64", "datetime64[s]"])
def test_heads_that_are_no_floats_are_refused(dtype):
    head = Head.of(keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)]))
    arrays = {name: np.ones(w.shape, "int64") for name, w in head.weights.items()}
    with pytest.raises(ValueError, match=f"{re.escape(dtype)}, not float32"):
        head.assign({name: array.astype(dtype) for name, array in arrays.items()})


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_heads_without_digests(tmp_path):
    """Each byte, with a bit of it changed: other arrays, or a ValueError."""
    head, path = tmp_path / "pooler_head.npz", str(tmp_path)
    np.savez(head, kernel=np.ones((2, 2), "float32"))
    refused = 0
    for place in range(head.stat().st_size):
        for bit in (0, 3, 6):
            flip(head, place, bit)
            try:
                found = read_head(path, "pooler")
            except ValueError:
                refused += 1
            else:
                (array,) = found.values()
                assert array.size or array.dtype != np.float32
            flip(head, place, bit)
    assert refused > head.stat().st_size
    assert read_head(path, "pooler")["kernel"].tolist() == [[1, 1], [1, 1]]


def test_heads_that_the_system_refuses_to_read_are_not_damaged(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(24, "Too many open files")

    np.savez(tmp_path / "pooler_head.npz", kernel=np.ones((2, 2), "float32"))
    monkeypatch.setattr("numpy.load", refuse)
    with pytest.raises(OSError, match="Too many .*, while reading .*pooler_head.npz"):
        read_head(str(tmp_path), "pooler")


def test_what_is_saved_again_is_whole(copy):
    encoder = tiny()
    encoder.save_to_preset(str(copy))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, _ = load_pretrained(copy)
    np.testing.assert_array_equal(again.get_weights()[0], encoder.get_weights()[0])
    # Others' files are neither hashed nor forgotten.
    flip(copy / "tokenizer.json", 5)
    encoder.save_to_preset(str(copy))
    with pytest.raises(ValueError, match="differ from SHA256SUMS: tokenizer.json"):
        load_pretrained(copy)
    flip(copy / "tokenizer.json", 5)
    (copy / "README.md").write_text("A card that a hub adds.")
    load_pretrained(copy)
    (copy / "assets" / "tokenizer" / "vocabulary.spm").write_bytes(b"other")
    with pytest.raises(ValueError, match=f"changed on purpose, delete {FILE_NAME}"):
        load_pretrained(copy)


def test_weights_in_several_files(tmp_path):
    encoder, folder = tiny(), str(tmp_path / "preset")
    encoder.save_to_preset(folder, max_shard_size=2e-6)
    names = [name for name in read_digests(folder) if is_weights_file(name)]
    assert "model.weights.json" in names and len(names) > 2
    again = Encoder.from_preset(folder)
    np.testing.assert_array_equal(again.get_weights()[-1], encoder.get_weights()[-1])
    flip(f"{folder}/{names[1]}", 2000)
    with pytest.raises(ValueError, match=f"differ from SHA256SUMS: {names[1]}"):
        Encoder.from_preset(folder)


@pytest.mark.slow
def test_a_converted_checkpoint_has_digests(tmp_path):
    goldens = os.path.join(os.path.dirname(__file__), "..", "convert", "goldens")
    tfeff.convert.convert(os.path.join(goldens, "albert"), tmp_path / "preset")
    names = {str(p.relative_to(tmp_path / "preset")) for p in files(tmp_path)}
    assert set(read_digests(str(tmp_path / "preset"))) == names - {FILE_NAME}
    flip(tmp_path / "preset" / "assets" / "tokenizer" / "vocabulary.spm", 700)
    with pytest.raises(
        ValueError, match="differ from SHA256SUMS: assets/tokenizer/vocabulary.spm"
    ):
        load_pretrained(tmp_path / "preset")


def test_messages_name_the_version_that_saved_a_preset(copy, monkeypatch):
    """What a later version adds to a configuration is no damage."""
    metadata = json.loads((copy / "metadata.json").read_text())
    assert metadata["tfeff_version"] == tfeff.__version__
    monkeypatch.setattr(tfeff, "__version__", "9.1")
    newer = tiny()
    newer.save_to_preset(copy)
    monkeypatch.undo()
    config = json.loads((copy / "config.json").read_text())
    config["config"]["ability_of_9"] = 1
    (copy / "config.json").write_text(json.dumps(config))
    (copy / FILE_NAME).unlink()
    expected = rf"newer version .*\(tfeff 9.1 saved it, this is {tfeff.__version__}\)"
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=expected):
        Encoder.from_preset(copy)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=expected):
        load_pretrained(copy)


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="the system cannot reserve room"
)
def test_a_full_disk_leaves_the_process_alive(tmp_path):
    """HDF5 would end it, and with it a model that is nowhere else."""
    program = [sys.executable, "-m", "tests.subjects.full_disk_preset", str(tmp_path)]
    process = subprocess.run(program, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout.splitlines() == [
        f"[Errno 27] File too large, while writing {tmp_path / 'preset'}",
        "saved when there is room",
    ]
    load_pretrained(tmp_path / "preset")
