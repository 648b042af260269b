"""Training of WordPiece vocabularies."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from tfeff.data.text.documents import encoded

SPECIAL_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_MARK = "##"
# The share of the text whose characters are in the vocabulary, as SentencePiece has it.
_COVERAGE = 0.9995
_LONGEST_WORD = 100  # Longer ones are unknown to `BertTokenizer`.
# Texts between white space that are counted apart: they bound the memory.
_MAX_CHUNKS = 4_000_000
_REPEATS = 10_000


def train_word_pieces(
    documents: Iterable[str], vocabulary_size: int, lowercase: bool
) -> list[str]:
    """Trains a WordPiece vocabulary on documents.

    Pieces are merged, the most frequent pair first, as in byte-pair encoding, and
    those that do not begin a word are marked by "##".

    Args:
        documents: the corpus.
        vocabulary_size: number of pieces, special ones included.
        lowercase: whether text is lowercased and loses its accents.

    Returns:
        The pieces in the order of their ids.

    Raises:
        ValueError: if the documents hold no text, too little of it, or too many
            characters for `vocabulary_size`.
    """
    words = _frequent(_count_words(documents, lowercase))
    if not words:
        raise ValueError("`documents` must hold text. Received: no text")
    # The trainer breaks ties by the ids of pieces, and would number those inside words
    # in an order of chance. It keeps the order of special tokens.
    inner = sorted({_MARK + character for word in words for character in word[1:]})
    least = len(SPECIAL_PIECES) + len(inner) + len(set().union(*words))
    received = (
        "`vocabulary_size` must fit the documents. Received: "
        f"vocabulary_size={vocabulary_size}. "
    )
    if vocabulary_size < least:
        raise ValueError(
            f"{received}Their characters alone need {least}, at the start of a word "
            f"and inside of one: at least {least} is needed."
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[*SPECIAL_PIECES, *inner],
        continuing_subword_prefix=_MARK,
        show_progress=False,
    )
    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_repeated(words), trainer)
    pieces = tokenizer.get_vocab()
    if len(pieces) < vocabulary_size:
        raise ValueError(
            f"{received}The documents are too few: at most {len(pieces)} is possible."
        )
    return sorted(pieces, key=pieces.__getitem__)


def _count_words(documents: Iterable[str], lowercase: bool) -> Counter[str]:
    """The words that BERT's clean-up leaves, and how often each occurs."""
    clean = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.BertNormalizer(lowercase=lowercase, strip_accents=lowercase),
        ]
    )
    chunks: Counter[str] = Counter()
    rare = 0
    for document, _ in encoded(documents):
        chunks.update(clean.normalize_str(document).split())
        while len(chunks) > _MAX_CHUNKS:
            rare += 1
            chunks = Counter({c: count for c, count in chunks.items() if count > rare})
    split = pre_tokenizers.BertPreTokenizer()
    words: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for word, _ in split.pre_tokenize_str(chunk):
            words[word] += count
    return words


def _frequent(words: Counter[str]) -> Counter[str]:
    """The words, in their order, without long ones and those of rare characters."""
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    known, covered = set(), 0
    for character, count in sorted(
        characters.items(), key=lambda item: (-item[1], item[0])
    ):
        if covered >= _COVERAGE * characters.total():
            break
        known.add(character)
        covered += count
    return Counter(
        {
            word: words[word]
            for word in sorted(words)
            if len(word) <= _LONGEST_WORD and known.issuperset(word)
        }
    )


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Lines that hold each word as often as it occurs."""
    for word, count in words.items():
        for start in range(0, count, _REPEATS):
            yield " ".join([word] * min(_REPEATS, count - start))
