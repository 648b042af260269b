"""Training, saving and loading of tokenizers."""

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import keras
import keras_hub
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.compat.tokenizers import has_vocabulary
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.documents import check_documents, encoded
from tfeff.data.text.word_piece_training import train_word_pieces
from tfeff.storage.arguments import READ, REPLACE, paths
from tfeff.utils.checks import check_bool, check_choice, check_integer, differences
from tfeff.utils.digests import check_file
from tfeff.utils.disks import system_folder
from tfeff.utils.files import write_bytes
from tfeff.utils.paths import check_path
from tfeff.utils.reading import is_there

SPECIAL_NAMES = ("pad_token_id", "cls_token_id", "sep_token_id", "mask_token_id")
FRAME_NAMES = SPECIAL_NAMES[:3]  # The tokens around texts.
_SPECIAL_PIECES = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
_MOST_PIECES = 2**27  # SentencePiece counts in 32 bits, and with 2**31 does not end.
# Entries of a tokenizer's configuration that do not determine its ids.
_NO_SETTINGS = {"name", "trainable", "dtype", "proto"}
# SentencePiece silently drops sentences longer than its limit. Lines are therefore cut
# into parts of at most 1000 characters, at a space if possible.
_PART = re.compile(r"\S.{0,999}(?!\S)|\S{1,1000}")
_MAX_PART_BYTES = 4 * 1000
_MAX_PARTS = 2_000_000
# SentencePiece's sums depend on the number of threads, which is therefore fixed.
_NUM_THREADS = 16


def train_tokenizer(
    documents: Iterable[str],
    vocabulary_size: int = 32_000,
    lowercase: bool = True,
    kind: str = "sentencepiece",
) -> keras_hub.tokenizers.AlbertTokenizer | BertTokenizer:
    """Trains a tokenizer on documents.

    The first ids are those of padding 0, unknown pieces 1, `[CLS]` 2, `[SEP]` 3 and
    `[MASK]` 4; raw text never gives the last three, even if it contains them. Equal
    documents give equal tokenizers.

    SentencePiece trains a unigram language model of pieces. A corpus of more than two
    million lines is reduced to a seeded sample of that size. WordPiece's trainer is not
    public; here, as in the `tokenizers` library, which does it, the most frequent pair
    of neighbouring pieces becomes a piece until there are enough, and BERT's clean-up
    and cuts at punctuation come first. Both leave out the rarest characters, which make
    up 0.05 % of the text. Ctrl-C acts when SentencePiece, which is compiled, has ended.

    Args:
        documents: the corpus.
        vocabulary_size: number of ids, special tokens included. BERT and BlockBERT
            have 30522 of WordPiece, Shatter 32000 of SentencePiece.
        lowercase: whether to fold case. SentencePiece normalises text as Unicode NFKC
            in any case; WordPiece also strips accents if it folds case, as BERT's
            uncased models do.
        kind: `"sentencepiece"` or `"wordpiece"`.

    Returns:
        A KerasHub tokenizer: text to int32 ids, in eager code and in the graph. That
        of WordPiece is a `tfeff.data.BertTokenizer`.

    Raises:
        ValueError: if `documents` is empty, or has too little text or too many distinct
            characters for `vocabulary_size`; the message states the bound. If `kind` is
            unknown.
        TypeError: if an argument has the wrong type, or `documents` cannot be read
            more than once.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    ids = tokenizer("Green wall")
    assert tokenizer.detokenize(ids) == "green wall"

    tokenizer = tfeff.data.train_tokenizer(documents, 60, kind="wordpiece")
    assert "##s" in tokenizer.get_vocabulary()
    ```

    Reference:
        Kudo, "Subword Regularization: Improving Neural Network Translation Models
        with Multiple Subword Candidates", 2018, section 3.2; Wu et al., "Google's
        Neural Machine Translation System", 2016, section 4.1; Sennrich et al., "Neural
        Machine Translation of Rare Words with Subword Units", 2016, section 3.2.
    """
    check_documents(documents)
    check_bool("lowercase", lowercase)
    vocabulary_size = check_integer(
        "vocabulary_size", vocabulary_size, len(_SPECIAL_PIECES) + 1, _MOST_PIECES
    )
    if check_choice("kind", kind, ["sentencepiece", "wordpiece"]) == "wordpiece":
        pieces = train_word_pieces(documents, vocabulary_size, lowercase)
        return BertTokenizer(pieces, lowercase=lowercase, strip_accents=lowercase)
    return _train_sentence_piece(documents, vocabulary_size, lowercase)


def _train_sentence_piece(documents, vocabulary_size, lowercase):
    parts = _parts(documents)
    first = next(parts, None)
    if first is None:
        raise ValueError("`documents` must hold text. Received: no text")

    failures = []  # SentencePiece replaces its iterator's errors by RuntimeError

    def sentences() -> Iterator[str]:
        yield first
        try:
            yield from parts
        except BaseException as error:
            failures.append(error)
            raise

    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(0)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences(),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary_size,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            pad_piece=_SPECIAL_PIECES[0],
            unk_piece=_SPECIAL_PIECES[1],
            bos_piece=_SPECIAL_PIECES[2],
            eos_piece=_SPECIAL_PIECES[3],
            control_symbols=_SPECIAL_PIECES[4:],
            input_sentence_size=_MAX_PARTS,
            shuffle_input_sentence=True,
            max_sentence_length=_MAX_PART_BYTES,
            num_threads=_NUM_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        raise ValueError(_too_small(vocabulary_size, str(error))) from error
    return keras_hub.tokenizers.AlbertTokenizer(proto=model.getvalue())


def _parts(documents: Iterable[str]) -> Iterator[str]:
    for document, _ in encoded(documents):
        # SentencePiece leaves out lines with U+2585, a mark of its own.
        for line in document.replace("\u2585", " ").splitlines():
            yield from _PART.findall(line)


def _too_small(vocabulary_size: int, message: str) -> str:
    text = (
        "`vocabulary_size` must fit the documents. Received: "
        f"vocabulary_size={vocabulary_size}. "
    )
    if bound := re.search(r"value <= (\d+)", message):
        return text + f"The documents are too few: at most {bound[1]} is possible."
    if bound := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return text + (
            f"Their characters alone need {bound[1]}: at least {bound[1]} is needed."
        )
    return text + f"SentencePiece says: {message}"


@paths(path=REPLACE)
def save_tokenizer(
    tokenizer: keras_hub.tokenizers.Tokenizer, path: str | os.PathLike
) -> None:
    """Writes a tokenizer to a file.

    Of SentencePiece it is the model itself, commonly `.spm`; of WordPiece it is JSON,
    with the vocabulary and the settings.

    Args:
        tokenizer: a SentencePiece or WordPiece tokenizer, such as `train_tokenizer`
            returns. KerasHub's `save_to_preset` saves others.
        path: the file to write; its folder must exist.

    Raises:
        TypeError: if the tokenizer is of another kind, or class, than `load_tokenizer`
            reads.
        ValueError: if it has settings that the file would not tell, such as `add_bos`
            of SentencePiece; if the file exists with other content: it stays unchanged.
        OSError: if the file cannot be written; no partial file remains.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    tfeff.data.save_tokenizer(tokenizer, "tokenizer.spm")
    same = tfeff.data.load_tokenizer("tokenizer.spm")
    ```
    """
    path = check_path("path", path)
    content = _content(tokenizer)
    _check_is_read_back(tokenizer, content)
    if is_there(path):
        with open(path, "rb") as file:
            if file.read() == content:
                return
        raise ValueError(
            f"`path` must not exist, or hold the same tokenizer. Received: {path!r}"
        )
    write_bytes(path, content)


def _content(tokenizer) -> bytes:
    if isinstance(getattr(tokenizer, "proto", None), bytes):
        return tokenizer.proto
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        config = keras.saving.serialize_keras_object(tokenizer)
        config["config"]["vocabulary"] = tokenizer.get_vocabulary()
        return json.dumps(config, ensure_ascii=False).encode("utf-8")
    raise TypeError(
        "`tokenizer` must be a SentencePiece or WordPiece tokenizer. Received: "
        f"tokenizer of type {type(tokenizer).__name__}"
    )


@paths(path=READ)
def load_tokenizer(
    path: str | os.PathLike,
) -> keras_hub.tokenizers.Tokenizer:
    """Reads a tokenizer that `save_tokenizer` wrote.

    Args:
        path: the file. `tfeff.convert.load_tokenizer` reads folders.

    Returns:
        A tokenizer equal to the one that was saved. Of SentencePiece it is an
        `AlbertTokenizer`.

    Raises:
        ValueError: if the file is missing, a folder, damaged, or lacks a special token.

    Example: see `save_tokenizer`.
    """
    path = check_path("path", path)
    if os.path.isdir(path):
        raise ValueError(
            f"`path` must be a tokenizer file. Received: {path!r}, which is a folder. "
            "`tfeff.convert.load_tokenizer` reads those of presets, runs and published "
            "tokenizers"
        )
    check_file(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ValueError(
            f"`path` must be a tokenizer file. Received: {path!r}: {error.strerror}"
        ) from error
    return _from_content(path, content)


def _check_is_read_back(tokenizer, content):
    """Raises unless `load_tokenizer` makes an equal tokenizer of the content."""
    same = None
    with contextlib.suppress(ValueError):
        same = _from_content("", content)
    if type(same) is not type(tokenizer):
        raise TypeError(
            "`tokenizer` must be of KerasHub's class `AlbertTokenizer`, or a WordPiece "
            "tokenizer that Keras can load. Received: tokenizer of type "
            f"{type(tokenizer).__name__}"
        )
    if tokenizer_fingerprint(same) != tokenizer_fingerprint(tokenizer):
        lost = differences(tokenizer.get_config(), same.get_config())
        raise ValueError(
            "`tokenizer` must have no settings that its file does not tell. Received: "
            + ", ".join(f"{n}={v!r}" for n, v, _ in lost if n not in _NO_SETTINGS)
        )


def _from_content(path, content):
    if content.startswith(b"{"):  # No SentencePiece model does.
        return _load_word_piece(path, content)
    try:
        model = ModelProto.FromString(content)
        # A file truncated between two pieces still parses, but lacks the last fields.
        if not (model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
            raise ValueError("it is truncated")
        # Of any name is the piece of what is unknown.
        lacks = {*_SPECIAL_PIECES} - {"<unk>", *(piece.piece for piece in model.pieces)}
        if lacks:
            raise ValueError(
                f"it lacks {sorted(lacks)}. `tfeff.data.train_tokenizer` adds them, "
                "and SentencePiece's own trainer with `pad_id=0, unk_id=1, bos_id=-1, "
                "eos_id=-1, control_symbols=['[CLS]', '[SEP]', '[MASK]']`"
            )
        return keras_hub.tokenizers.AlbertTokenizer(proto=content)
    except Exception as error:
        raise ValueError(
            f"`path` must be a whole SentencePiece model with {_SPECIAL_PIECES}. "
            f"Received: {path!r}: {error}"
        ) from error


def _load_word_piece(path, content):
    try:
        tokenizer = keras.saving.deserialize_keras_object(json.loads(content))
        if not isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
            raise ValueError(f"it is of a {type(tokenizer).__name__}")
    except Exception as error:
        raise ValueError(
            f"`path` must be a whole WordPiece tokenizer. Received: {path!r}: {error}"
        ) from error
    return tokenizer


def tokenizer_fingerprint(tokenizer: keras_hub.tokenizers.Tokenizer) -> str:
    """SHA-256 of everything that determines a tokenizer's ids.

    It covers the class, the settings and the vocabulary files, but not the name.

    Args:
        tokenizer: any KerasHub tokenizer.

    Returns:
        64 hexadecimal digits.

    Raises:
        TypeError: if `tokenizer` is not a KerasHub tokenizer.

    Example:

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat"]
    >>> len(tokenizer_fingerprint(tfeff.data.BertTokenizer(pieces)))
    64
    """
    check_tokenizer(tokenizer)
    config = {k: v for k, v in tokenizer.get_config().items() if k not in _NO_SETTINGS}
    checksum = hashlib.sha256(type(tokenizer).__name__.encode("utf-8"))
    checksum.update(json.dumps(config, sort_keys=True, default=str).encode("utf-8"))
    with system_folder() as directory:
        tokenizer.save_assets(directory)
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), "rb") as file:
                checksum.update(hashlib.sha256(file.read()).digest())
    return checksum.hexdigest()


def check_tokenizer(tokenizer) -> None:
    """Raises unless this is a tokenizer of KerasHub."""
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise TypeError(
            "`tokenizer` must be a KerasHub tokenizer. Received: tokenizer of type "
            f"{type(tokenizer).__name__}"
        )


def special_token_ids(
    tokenizer: keras_hub.tokenizers.Tokenizer, names: Sequence[str] = SPECIAL_NAMES
) -> dict[str, int]:
    """The ids of a tokenizer's special tokens; raises where it lacks one.

    It also raises unless the tokenizer gives the ids of a text, and no others.
    """
    check_tokenizer(tokenizer)
    missing = [name for name in names if getattr(tokenizer, name, None) is None]
    if missing:
        kind = type(tokenizer).__name__
        ours = kind in ("RobertaTokenizer", "XLMRobertaTokenizer")
        raise TypeError(
            f"`tokenizer` must be a KerasHub tokenizer with {names}. "
            f"Received: tokenizer of type {kind} without {missing}"
            f"{f'. `tfeff.data.{kind}` has them' if ours else ''}"
        )
    for name in ("add_bos", "add_eos"):
        if value := getattr(tokenizer, name, None):
            raise ValueError(
                "`tokenizer` must add no marks by itself. Received: tokenizer with "
                f"{name}={value!r}"
            )
    check_gives_ids(tokenizer)
    return {name: int(getattr(tokenizer, name)) for name in names}


def check_gives_ids(tokenizer: keras_hub.tokenizers.Tokenizer) -> None:
    """Raises if a tokenizer pads or truncates, or gives strings."""
    if (length := getattr(tokenizer, "sequence_length", None)) is not None:
        raise ValueError(
            "`tokenizer` must neither pad nor truncate. Received: tokenizer with "
            f"sequence_length={length}"
        )
    if tokenizer.compute_dtype == "string":
        raise ValueError(
            "`tokenizer` must give ids. Received: tokenizer with dtype='string'"
        )


def restore_kernels(tokenizer: keras_hub.tokenizers.Tokenizer) -> None:
    """Makes a tokenizer usable again after the program's seed was set.

    `tf.random.set_seed`, and therefore `keras.utils.set_random_seed`, drops
    TensorFlow's cached kernels, including the model of a SentencePiece tokenizer.
    """
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        tokenizer.set_proto(tokenizer.proto)


def restore_vocabulary(tokenizer: keras_hub.tokenizers.Tokenizer) -> None:
    """As `restore_kernels`, where KerasHub reads the vocabulary from them."""
    if not has_vocabulary(tokenizer):
        restore_kernels(tokenizer)
