"""Tokenizers' files: settings, and what is refused."""

import json

import pytest

from tests.convert.conversions import GOLDENS, copied
from tests.convert.test_bad_sources import changed
from tfeff.convert import BertTokenizer, convert, load
from tfeff.convert.tokenizer import make_tokenizer


def ids(tokenizer, text):
    return [int(i) for i in tokenizer(text)]


def test_case_without_settings_is_that_of_the_vocabulary(tmp_path):
    for name, expected in ("bert", True), ("bert_pretraining", False):
        source = copied(name, tmp_path)
        (source / "tokenizer_config.json").unlink()
        tokenizer = make_tokenizer(str(source), "bert")
        assert tokenizer.get_config()["lowercase"] is expected
        rows = json.loads((GOLDENS / name / "tokens.json").read_text("utf-8"))
        assert [ids(tokenizer, text) for text, _ in rows] == [row for _, row in rows]


def test_settings_count(tmp_path):
    source = str(
        changed(
            "bert",
            tmp_path,
            "tokenizer_config.json",
            do_lower_case=True,
            strip_accents=False,
            tokenize_chinese_chars=False,
        )
    )
    tokenizer = make_tokenizer(source, "bert")
    config = BertTokenizer.from_config(tokenizer.get_config()).get_config()
    assert config["lowercase"] is True
    assert config["strip_accents"] is False
    assert config["split_on_cjk"] is False


def test_sentencepiece_settings_count(tmp_path):
    source = copied("albert", tmp_path)
    settings = dict(do_lower_case=False, keep_accents=True)
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = make_tokenizer(str(source), "albert")
    plain = make_tokenizer(str(GOLDENS / "albert"), "albert")
    unknown = tokenizer.token_to_id("<unk>")
    assert ids(plain, "The fox") == ids(tokenizer, "the fox")
    assert unknown in ids(tokenizer, "The fox")
    # Composed from a letter and its accent, as the model itself does.
    assert ids(tokenizer, "e\u0301") == ids(tokenizer, "\u00e9")
    assert ids(tokenizer, "caf\u00e9") != ids(tokenizer, "cafe")


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("bert", dict(do_basic_tokenize=False), "do_basic_tokenize=False"),
        ("bert", dict(never_split=["x"]), "never_split="),
        ("bert", dict(do_lower_case="yes"), "do_lower_case='yes'"),
        ("xlnet", dict(remove_space=False), "remove_space=False"),
    ],
)
def test_settings_that_no_tokenizer_has(name, settings, message, tmp_path):
    source = changed(name, tmp_path, "tokenizer_config.json", **settings)
    with pytest.raises(ValueError, match=message):
        convert(source, tmp_path / "preset")


def test_vocabularies_that_are_none(tmp_path):
    source = copied("bert", tmp_path)
    (source / "vocab.txt").write_text("the\nfox\n")
    with pytest.raises(ValueError, match="vocab.txt' must be the vocabulary of a BERT"):
        convert(source, tmp_path / "preset")
    source = copied("albert", tmp_path)
    (source / "spiece.model").write_bytes(b"no model")
    with pytest.raises(ValueError, match="spiece.model' must be the SentencePiece"):
        convert(source, tmp_path / "preset")


def test_an_encoder_is_loaded_without_its_vocabulary(tmp_path):
    source = copied("bert", tmp_path)
    (source / "vocab.txt").write_text("the\nfox\n")
    assert load(source).vocabulary_size == 220


def test_a_vocabulary_larger_than_the_table(tmp_path):
    source = copied("bert", tmp_path)
    vocabulary = (source / "vocab.txt").read_text()
    words = "".join(f"word{index}\n" for index in range(220))
    (source / "vocab.txt").write_text(vocabulary + words)
    with pytest.raises(ValueError, match="no more ids than the embedding has rows"):
        convert(source, tmp_path / "preset")


def test_bert_tokenizer_in_a_graph(tmp_path):
    import tensorflow as tf

    tokenizer = make_tokenizer(str(GOLDENS / "bert"), "bert")
    rows = json.loads((GOLDENS / "bert" / "tokens.json").read_text("utf-8"))
    dataset = tf.data.Dataset.from_tensor_slices([text for text, _ in rows])
    for tokens, (_, expected) in zip(dataset.map(tokenizer), rows):
        assert tokens.numpy().tolist() == expected
    assert BertTokenizer.from_config(tokenizer.get_config()).to_lower
