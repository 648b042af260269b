"""Tokenizers described by tokenizer.json, the file of the `tokenizers` library."""

import collections
import contextlib
import json
import os

import tokenizers

from tfeff.convert.config import Config
from tfeff.data.finetuning.packing import num_separators

_NAME = "tokenizer.json"
_FAMILIES = {"WordPiece": "bert", "BPE": "roberta"}
_UNIGRAM = {"<cls>": "xlnet", "[CLS]": "albert", "<s>": "xlm-roberta"}
_POST_PROCESSORS = (
    "BertProcessing",
    "RobertaProcessing",
    "TemplateProcessing",
    "ByteLevel",
    "Sequence",
)
# Entries that change a text, beside the normalizer and the model, or the ids.
_AROUND: dict[str, list | None] = dict(
    added_tokens=[], post_processor=None, truncation=None, padding=None
)
_NO_MODEL = dict(type="WordLevel", vocab={}, unk_token="")


class TokenizerJson:
    """A checkpoint's `tokenizer.json`.

    Args:
        path: the file, or the one that the values are made of.
        values: its content; `None` to read it.

    Raises:
        ValueError: if the `tokenizers` library cannot read it, or its vocabulary does
            not have the ids 0 to V − 1.

    Attributes:
        family: `"bert"`, `"roberta"`, `"albert"`, `"xlnet"` or `"xlm-roberta"`, by its
            model and the names of its pieces.
        vocabulary: the pieces in the order of their ids.
    """

    def __init__(self, path: str, values: dict | None = None):
        self.path = path
        self.values = Config.read(path).values if values is None else values
        whole = _read(path, self.values)
        kind = type(whole.model).__name__
        self.model = self.part("model", self.values["model"] | {"type": kind})
        self.model.only("type", "WordPiece", "BPE", "Unigram")
        ids = whole.get_vocab(with_added_tokens=False)
        self.vocabulary = sorted(ids, key=ids.__getitem__)
        missing = set(range(len(ids))).difference(ids.values())
        doubled: list[str] = []
        if kind == "Unigram":  # A list, in which the last of a piece counts.
            pieces = collections.Counter(piece for piece, _ in self.model.get("vocab"))
            doubled = [piece for piece, count in pieces.items() if count > 1]
        if missing or doubled:
            received = f"{doubled[0]!r} twice" if doubled else f"no id {min(missing)}"
            raise ValueError(
                f"{path!r} must have {len(ids)} different pieces with the ids from 0, "
                f"each once. Received: {received}"
            )
        named = [f for piece, f in _UNIGRAM.items() if piece in ids]
        self.family = _FAMILIES.get(kind) or [*named, "albert"][0]

    @classmethod
    def find(cls, directory: str) -> "TokenizerJson | None":
        """The `tokenizer.json` in a checkpoint's folder; None if it has none."""
        path = os.path.join(directory, _NAME)
        return cls(path) if os.path.exists(path) else None

    def part(self, name: str, values=None) -> Config:
        """An object within the file; its messages name it."""
        values = self.values.get(name) if values is None else values
        return Config(values or {}, f"{self.path}: {name}")

    def reference(self, **changes) -> tokenizers.Tokenizer:
        """The library's tokenizer, with other values in the file.

        Special tokens within texts are text, none are added, and texts are neither cut
        nor padded: tfeff does all this by its own settings.
        """
        values = self.values | _AROUND | changes
        return tokenizers.Tokenizer.from_str(json.dumps(values))

    def word_piece_settings(self) -> dict:
        """The settings of a WordPiece tokenizer as in tokenizer_config.json.

        Raises:
            ValueError: if the file describes none of BERT's.
        """
        self.model.only("type", "WordPiece")
        self.model.only("unk_token", "[UNK]", default="[UNK]")
        self.model.only("continuing_subword_prefix", "##", default="##")
        self.model.only("max_input_chars_per_word", 100, default=100)
        normalizer = self.part("normalizer")
        _, last = composing(normalizer.values)
        normalizer = Config(last, normalizer.path)
        normalizer.only("type", "BertNormalizer")
        self.part("pre_tokenizer").only("type", "BertPreTokenizer")
        return dict(
            clean_text=normalizer.only("clean_text", True),
            do_lower_case=normalizer.get("lowercase"),
            strip_accents=normalizer.get("strip_accents", None),
            tokenize_chinese_chars=normalizer.get("handle_chinese_chars"),
        )

    def byte_pair_settings(self) -> dict:
        """Arguments of `RobertaTokenizer`.

        Raises:
            ValueError: if the file describes none of RoBERTa's.
        """
        for name in ("continuing_subword_prefix", "end_of_word_suffix"):
            self.model.only(name, None, "", default=None)
        self.model.only("dropout", None, default=None)
        for name in ("byte_fallback", "ignore_merges"):
            self.model.only(name, False, default=False)
        self.part("normalizer").only("type", None, default=None)
        words = self.part("pre_tokenizer")
        words.only("type", "ByteLevel")
        words.only("use_regex", True, default=True)
        return dict(
            vocabulary={piece: id for id, piece in enumerate(self.vocabulary)},
            merges=self.model.get("merges"),
            add_prefix_space=words.only("add_prefix_space", True, False),
        )


def check_frame(path: str, family: str, post_processor, tokenizer) -> None:
    """Raises if `tokenizer.json` puts other tokens around texts than tfeff does.

    Rows of XLNet are framed as those of others, see CONVERT.md.

    Args:
        path: the file.
        family: the tokenizer's family, such as `"bert"`.
        post_processor: its entry of this name; `None` adds no tokens.
        tokenizer: the KerasHub tokenizer.
    """
    if not post_processor or family == "xlnet":
        return
    Config(post_processor, f"{path}: post_processor").only("type", *_POST_PROCESSORS)
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    between = [sep] * num_separators(tokenizer)
    for found, frame in (
        (_frame(path, post_processor, "").ids, [cls, sep]),
        (_frame(path, post_processor, "", "").ids, [cls, *between, sep]),
    ):
        if found not in ([], frame):
            raise ValueError(
                f"{path!r} must surround texts by the ids {frame}. Its "
                f"post_processor gives {found}"
            )


def type_ids_of_pairs(path: str, post_processor) -> list[int]:
    """The segments of what `tokenizer.json` puts around two texts.

    Args:
        path: the file.
        post_processor: its entry of this name.
    """
    return _frame(path, post_processor, "", "").type_ids


def _frame(path, post_processor, *texts):
    """The tokens that the library puts around texts of which it knows no word."""
    tokenizer = _read(path, dict(model=_NO_MODEL, post_processor=post_processor))
    with _damage_named(path):
        return tokenizer.encode(*texts)


def _read(path, values):
    """The library's tokenizer of a file's values."""
    with _damage_named(path):
        return tokenizers.Tokenizer.from_str(json.dumps(values))


@contextlib.contextmanager
def _damage_named(path):
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # A panic of Rust is no Exception.
        raise ValueError(
            f"{path!r} must be a file of the `tokenizers` library. It is not: {error}"
        ) from error


def composing(normalizer: dict) -> tuple[bool, dict]:
    """Whether a normalizer composes characters before its one other step, and the step.

    tfeff writes this step for BERT's tokenizers that compose.
    """
    steps = normalizer.get("normalizers")
    if isinstance(steps, list) and steps[:-1] == [{"type": "NFC"}]:
        return True, steps[-1]
    return False, normalizer
