"""Training, saving and loading of tokenizers."""

import pathlib

import keras_hub
import numpy as np
import pytest
import sentencepiece
import tensorflow_text

import tfeff
from tests.subjects import sentence_pieces
from tests.subjects.corpus import make_documents, token_lists
from tfeff.data import (
    XLNetTokenizer,
    load_tokenizer,
    save_tokenizer,
    tokenizer_fingerprint,
    train_tokenizer,
)


def test_special_tokens(tokenizer):
    assert tokenizer.vocabulary_size() == 120
    pieces = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.get_vocabulary()[:5] == pieces
    ids = "pad_token_id", "cls_token_id", "sep_token_id", "mask_token_id"
    assert [getattr(tokenizer, name) for name in ids] == [0, 2, 3, 4]


def test_raw_text_never_gives_control_tokens(tokenizer):
    for text in ("[MASK]", "a [MASK] b", "<pad>", "[cls]<unk>[SEP]", "<s></s>"):
        assert not {0, 2, 3, 4} & set(np.asarray(tokenizer(text)).tolist())


def test_tensorflow_text_and_sentencepiece_agree(tokenizer, documents):
    """The cache is made by one, what is served by the other."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    served = tensorflow_text.SentencepieceTokenizer(model=tokenizer.proto)
    assert served.tokenize(documents).to_list() == processor.encode(documents)
    assert token_lists(tokenizer, documents) == processor.encode(documents)


def test_lowercase(documents):
    lower = train_tokenizer(documents, 100)
    assert list(lower("THE Time")) == list(lower("the time"))
    mixed = [d.title() for d in documents] + documents
    cased = train_tokenizer(mixed, 150, lowercase=False)
    assert list(cased("THE Time")) != list(cased("the time"))


def test_equal_documents_give_equal_tokenizers(tokenizer, documents):
    again = train_tokenizer(iter_again(documents), 120)
    assert again.proto == tokenizer.proto


class iter_again:
    def __init__(self, documents):
        self.documents = documents

    def __iter__(self):
        return iter(self.documents)


def test_long_lines_are_not_dropped():
    """SentencePiece leaves out lines above a limit; ours are cut, not left out."""
    short = make_documents(50, 20)
    long = " ".join(["zqzq"] * 30_000)
    vocabulary = "".join(train_tokenizer([*short, long], 100).get_vocabulary())
    assert "zqzq" in vocabulary
    unbroken = "漢" * 30_000
    vocabulary = "".join(train_tokenizer([*short, unbroken], 100).get_vocabulary())
    assert "漢" in vocabulary


def test_lines_with_a_mark_of_sentencepiece_are_not_dropped():
    texts = ["zebra quokka"] * 9
    plain = tfeff.data.train_tokenizer(texts, 15)
    marked = tfeff.data.train_tokenizer([x.replace(" ", "▅") for x in texts], 15)
    assert tokenizer_fingerprint(marked) == tokenizer_fingerprint(plain)


def test_a_corpus_that_is_too_small_says_what_works():
    documents = ["some words here", "and some more words there"]
    with pytest.raises(ValueError, match="vocabulary_size=32000.*at most") as caught:
        train_tokenizer(documents)
    largest = int(str(caught.value).split("at most ")[1].split()[0])
    assert train_tokenizer(documents, largest).vocabulary_size() == largest
    with pytest.raises(ValueError, match=f"at most {largest} "):
        train_tokenizer(documents, largest + 1)


def test_too_many_characters_says_what_is_needed():
    documents = ["abcdefghijklmnopqrstuvwxyz " * 5]
    with pytest.raises(ValueError, match="vocabulary_size=10.*at least") as caught:
        train_tokenizer(documents, 10)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert train_tokenizer(documents, least).vocabulary_size() == least


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        ([], ValueError, "`documents` must hold text"),
        ([" ", "\n\n"], ValueError, "`documents` must hold text"),
        ("text", TypeError, "one string, documents"),
        ((d for d in ["text"]), TypeError, "generator"),
        (5, TypeError, "int"),
        (["text", b"bytes"], TypeError, "document 1 of type bytes"),
        (["text", "half \ud800"], ValueError, r"document 1 with '\\ud800'.* 5"),
        ([__file__], ValueError, "must hold texts.*names of files. .*text_files"),
        ([pathlib.Path("a.txt")], ValueError, "must hold texts.*names of files"),
    ],
)
def test_bad_documents(documents, error, message):
    with pytest.raises(error, match=message):
        train_tokenizer(documents, 50)


@pytest.mark.parametrize(
    ("size", "error"),
    [(5, ValueError), (2 * 10**9, ValueError), (True, TypeError), (9.0, TypeError)],
)
def test_bad_vocabulary_size(size, error):
    with pytest.raises(error, match="`vocabulary_size`"):
        train_tokenizer(["text"], size)


def test_save_and_load(tokenizer, documents, tmp_path):
    path = tmp_path / "a.spm"
    save_tokenizer(tokenizer, path)
    loaded = load_tokenizer(path)
    assert token_lists(loaded, documents) == token_lists(tokenizer, documents)
    assert tokenizer_fingerprint(loaded) == tokenizer_fingerprint(tokenizer)
    save_tokenizer(loaded, path)  # the same content is no conflict


def test_saving_overwrites_nothing(tokenizer, tmp_path):
    path = tmp_path / "precious"
    path.write_text("precious")
    with pytest.raises(ValueError, match="`path` must not exist.*precious"):
        save_tokenizer(tokenizer, path)
    assert path.read_text() == "precious"
    with pytest.raises(OSError):
        save_tokenizer(tokenizer, tmp_path / "no" / "folder.spm")
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]
    with pytest.raises(TypeError, match="`tokenizer`.*str"):
        save_tokenizer("a.spm", tmp_path / "b.spm")


TEXTS = tfeff.data.TextExamples(("a cat",))
SENTENCES = tfeff.data.SentenceExamples([("a cat",)])
WORDS = tfeff.data.TokenExamples([("a", "cat")], None, ("O",), ("0",))
QUESTIONS = [tfeff.data.Question("0", "a", "cat")]


@pytest.mark.parametrize(
    "read",
    [
        lambda tokenizer: tfeff.data.build_cache(["a cat"], tokenizer, "cache"),
        lambda tokenizer: tfeff.data.text_features(TEXTS, tokenizer, 8),
        lambda tokenizer: tfeff.data.sentence_features(SENTENCES, tokenizer, 8),
        lambda tokenizer: tfeff.data.token_features(WORDS, tokenizer, 8),
        lambda tokenizer: tfeff.data.make_span_features(QUESTIONS, tokenizer, 8),
    ],
    ids=["cache", "texts", "sentences", "words", "spans"],
)
def test_a_tokenizer_gives_ids_alone_and_has_special_tokens(read, tokenizer):
    albert, word_piece = (
        keras_hub.tokenizers.AlbertTokenizer,
        keras_hub.tokenizers.WordPieceTokenizer,
    )
    for settings in ({"sequence_length": 8}, {"add_bos": True}, {"dtype": "string"}):
        ((name, value),) = settings.items()
        with pytest.raises(ValueError, match=f"^`tokenizer` must .*{name}={value!r}$"):
            read(albert(tokenizer.proto, **settings))
    bare = word_piece(["[PAD]", "[UNK]", "a", "cat"], oov_token="[UNK]")
    with pytest.raises(TypeError, match="^`tokenizer` must .* without .*cls_token_id"):
        read(bare)


@pytest.mark.parametrize("settings", [{"add_bos": True}, {"sequence_length": 8}])
def test_settings_that_the_file_does_not_tell(tokenizer, tmp_path, settings):
    given = keras_hub.tokenizers.AlbertTokenizer(tokenizer.proto, **settings)
    ((name, value),) = settings.items()
    with pytest.raises(ValueError, match=f"`tokenizer`.*Received: {name}={value}$"):
        save_tokenizer(given, tmp_path / "a.spm")
    assert list(tmp_path.iterdir()) == []


def test_classes_that_the_file_does_not_tell(tokenizer, tmp_path):
    symbols = ["<cls>", "<sep>", "<pad>", "<mask>"]
    proto = sentence_pieces.trained(["one two three"] * 9, 16, control_symbols=symbols)
    for given in (
        XLNetTokenizer(proto),
        keras_hub.tokenizers.SentencePieceTokenizer(tokenizer.proto),
    ):
        with pytest.raises(TypeError, match=f"`tokenizer`.*{type(given).__name__}"):
            save_tokenizer(given, tmp_path / "a.spm")
    assert list(tmp_path.iterdir()) == []


def test_loading_what_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"`path`.*none\.spm"):
        load_tokenizer(tmp_path / "none.spm")
    with pytest.raises(TypeError, match="`path`"):
        load_tokenizer(3)
    with pytest.raises(ValueError, match="is a folder. `tfeff.convert.load_tokenizer`"):
        load_tokenizer(tmp_path)


def test_every_truncation_is_noticed(tokenizer, tmp_path):
    path = tmp_path / "cut.spm"
    proto = tokenizer.proto
    # The pieces come first: cuts between two of them leave a file that parses.
    for size in [*range(0, 2000, 7), len(proto) // 2, len(proto) - 1]:
        path.write_bytes(proto[:size])
        with pytest.raises(ValueError, match=r"`path`.*cut\.spm"):
            load_tokenizer(path)


def test_loading_a_model_without_special_tokens(tmp_path, documents):
    path = tmp_path / "plain.model"
    path.write_bytes(sentence_pieces.trained(documents, 100))
    with pytest.raises(ValueError, match=r"plain\.model.*it lacks .*pad_id=0"):
        load_tokenizer(str(path))


def test_fingerprints(tokenizer, documents):
    fingerprint = tokenizer_fingerprint(tokenizer)
    assert len(fingerprint) == 64
    same = keras_hub.tokenizers.AlbertTokenizer(tokenizer.proto, name="other")
    assert tokenizer_fingerprint(same) == fingerprint
    others = [
        train_tokenizer(documents, 119),
        keras_hub.tokenizers.AlbertTokenizer(tokenizer.proto, add_bos=True),
        keras_hub.tokenizers.SentencePieceTokenizer(tokenizer.proto),
        word_piece(["the"]),
        word_piece(["a"]),
    ]
    assert len({fingerprint, *map(tokenizer_fingerprint, others)}) == 6
    with pytest.raises(TypeError, match="`tokenizer`.*str"):
        tokenizer_fingerprint("spm")


def word_piece(words):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return keras_hub.tokenizers.BertTokenizer(special + words)
