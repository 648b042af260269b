"""Tokenizers of run directories, of any kind: there and back."""

import keras_hub
import pytest

import tfeff
from tests.subjects.files import flip_bit
from tests.subjects.sentences import tokenizer
from tfeff.tasks.run_tokenizer import (
    has_run_tokenizer,
    load_run_tokenizer,
    save_run_tokenizer,
)

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "seven", "box", "##es"]


def word_piece():
    return tfeff.convert.BertTokenizer(PIECES, lowercase=True, strip_accents=True)


def with_bos():
    """One that the SentencePiece model alone does not tell."""
    return keras_hub.tokenizers.AlbertTokenizer(proto=tokenizer().proto, add_bos=True)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (tokenizer, "tokenizer.spm"),
        (word_piece, None),
        (lambda: keras_hub.tokenizers.BertTokenizer(PIECES), None),
        (with_bos, "tokenizer"),
    ],
)
def test_there_and_back(make, name, tmp_path):
    given = make()
    assert not has_run_tokenizer(tmp_path)
    save_run_tokenizer(given, tmp_path)
    (path,) = tmp_path.iterdir()
    assert name in (None, path.name)
    assert has_run_tokenizer(tmp_path)
    again = load_run_tokenizer(tmp_path)
    assert type(again) is type(given)
    fingerprint = tfeff.data.tokenizer_fingerprint
    assert fingerprint(again) == fingerprint(given)
    assert list(again("seven boxes")) == list(given("seven boxes"))


def test_damage_is_found(tmp_path):
    save_run_tokenizer(with_bos(), tmp_path)
    flip_bit(tmp_path / "tokenizer" / "assets" / "tokenizer" / "vocabulary.spm", 40, 0)
    with pytest.raises(ValueError, match="vocabulary.spm"):
        load_run_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="must be a tokenizer file"):
        load_run_tokenizer(tmp_path / "nowhere")
