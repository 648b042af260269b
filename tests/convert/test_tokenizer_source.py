"""`load_tokenizer`: one tokenizer from all that holds it, and what holds none."""

import json
import shutil

import pytest
import sentencepiece
import tensorflow as tf

import tfeff
from tests.convert.conversions import GOLDENS
from tests.subjects.sentences import DOCUMENTS
from tfeff.convert import load_tokenizer
from tfeff.convert.tokenizer import make_tokenizer
from tfeff.tasks.run_tokenizer import save_run_tokenizer

JSON = GOLDENS.parent / "tokenizer_goldens"
TEXT = "The cats sat, 12 of them: naïve ones!"


def ids(tokenizer):
    return tf.convert_to_tensor(tokenizer(TEXT)).numpy().tolist()


@pytest.fixture(scope="module")
def pieces():
    return make_tokenizer(str(GOLDENS / "bert"), "bert")


@pytest.mark.parametrize(
    ("family", "file"),
    [("bert", "vocab.txt"), ("albert", "spiece.model"), ("xlnet", "spiece.model")],
)
def test_a_checkpoint_and_its_vocabulary(family, file, tmp_path):
    expected = make_tokenizer(str(GOLDENS / family), family)
    settings = "tokenizer_config.json"
    for name in (file, settings):  # No weights, and no config.json.
        shutil.copy(GOLDENS / family / name, tmp_path)
    for source in (GOLDENS / family, tmp_path, tmp_path / file):
        found = load_tokenizer(source)
        assert type(found) is type(expected)
        assert ids(found) == ids(expected)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "bert_cased", "roberta"])
def test_tokenizer_json_alone_under_any_name(family, tmp_path):
    expected = make_tokenizer(str(JSON / family), family.partition("_")[0])
    shutil.copy(JSON / family / "tokenizer.json", tmp_path / "of-mine.json")
    for source in (
        JSON / family,
        JSON / family / "tokenizer.json",
        tmp_path / "of-mine.json",
    ):
        assert ids(load_tokenizer(source)) == ids(expected)


def test_a_vocabulary_under_any_name(tmp_path, pieces):
    shutil.copy(GOLDENS / "bert" / "vocab.txt", tmp_path / "words.txt")
    assert ids(load_tokenizer(tmp_path / "words.txt")) == ids(pieces)


def test_presets_runs_and_files_of_tfeff(tmp_path, pieces):
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=pieces.vocabulary_size(),
        hidden_dim=4,
        num_heads=2,
        intermediate_dim=4,
        num_layers=1,
    )
    run = tmp_path / "run"
    tfeff.tasks.save_pretrained(encoder, pieces, run / "preset")
    pieces.save_to_preset(str(tmp_path / "alone"))
    (tmp_path / "earlier").mkdir()
    save_run_tokenizer(pieces, str(tmp_path / "earlier"))
    sentence_pieces = make_tokenizer(str(GOLDENS / "albert"), "albert")
    tfeff.data.save_tokenizer(sentence_pieces, tmp_path / "tokenizer.spm")
    for source, expected in (
        (run, pieces),
        (f"{run}@4", pieces),
        (run / "preset", pieces),
        (run / "preset" / "tokenizer.json", pieces),
        (tmp_path / "alone", pieces),
        (tmp_path / "earlier", pieces),
        (tmp_path / "tokenizer.spm", sentence_pieces),
    ):
        assert ids(load_tokenizer(source)) == ids(expected), source


def test_what_holds_no_tokenizer_is_named(tmp_path):
    (tmp_path / "pieces").mkdir()
    choices = r"must be a preset, a run or RUN@STEP; a SentencePiece model"
    message = f"{choices}.*no file or folder. Did you mean 'pieces'"
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path / "peices")
    with pytest.raises(ValueError, match=f"{choices}.*which holds pieces$"):
        load_tokenizer(tmp_path)
    (tmp_path / "vocab.txt").touch()
    with pytest.raises(ValueError, match=f"{choices}.*vocab.txt' is empty"):
        load_tokenizer(tmp_path / "vocab.txt")
    (tmp_path / "other.json").write_text('{"cat": 1}')
    with pytest.raises(ValueError, match="other.json' must be .* It has no 'model'"):
        load_tokenizer(tmp_path / "other.json")
    (tmp_path / "text.spm").write_text("No model.")
    with pytest.raises(ValueError, match="must be a whole SentencePiece model"):
        load_tokenizer(tmp_path / "text.spm")
    with pytest.raises(TypeError, match="`source` must be a path. Received: source=3"):
        load_tokenizer(3)


def test_a_model_of_sentencepiece_as_it_trains_by_default(tmp_path):
    """Its pieces are others than ALBERT's; the message says how to train those."""
    (tmp_path / "corpus.txt").write_text("\n".join(DOCUMENTS))
    wanted = {
        "pad_id": 0,
        "unk_id": 1,
        "bos_id": -1,
        "eos_id": -1,
        "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
    }
    for name, settings in (("plain", {}), ("own", wanted)):
        sentencepiece.SentencePieceTrainer.train(
            input=str(tmp_path / "corpus.txt"),
            model_prefix=str(tmp_path / name),
            vocab_size=60,
            hard_vocab_limit=False,
            **settings,
        )
    with pytest.raises(ValueError, match=r"lacks \['<pad>', '\[CLS\]'.*pad_id=0"):
        load_tokenizer(tmp_path / "plain.model")
    assert len(load_tokenizer(tmp_path / "own.model")("the cat"))


@pytest.mark.parametrize(
    ("file", "beside", "message"),
    [
        ("merges.txt", {}, "must have vocab.json, .* It has merges.txt"),
        (
            "vocab.txt",
            {"tokenizer_config.json": {"tokenizer_class": "XLNetTokenizer"}},
            "must have spiece.model, .* It has vocab.txt",
        ),
        (
            "vocab.txt",
            {"tokenizer_config.json": {"tokenizer_class": "CamembertTokenizer"}},
            "must have tokenizer.json, .* It has vocab.txt",
        ),
        (
            "spiece.model",
            {"config.json": {"tokenizer_class": "BertTokenizer"}},
            "must have vocab.txt, .* It has spiece.model",
        ),
    ],
)
def test_a_file_that_its_class_does_not_read_is_named(file, beside, message, tmp_path):
    (tmp_path / file).write_text("#version: 0.2\n")
    for name, content in beside.items():
        (tmp_path / name).write_text(json.dumps(content))
    for source in (tmp_path / file, tmp_path):
        with pytest.raises(ValueError, match=f"{message}.*'tokenizer_class' in 'tok"):
            load_tokenizer(source)


def test_a_damaged_preset_is_named(tmp_path, pieces):
    folder = tmp_path / "preset"
    pieces.save_to_preset(str(folder))
    (folder / "assets" / "tokenizer" / "vocabulary.txt").unlink()
    with pytest.raises(ValueError, match="is damaged.*vocabulary.txt"):
        load_tokenizer(folder)
    (folder / "SHA256SUMS").unlink()
    with (
        pytest.warns(UserWarning, match="no SHA256SUMS"),
        pytest.raises(ValueError, match="must hold a whole KerasHub tokenizer"),
    ):
        load_tokenizer(folder)
