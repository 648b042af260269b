"""Augmentation of a task's examples by replacing words (TinyBERT)."""

import functools
import re
from collections.abc import Sequence

import keras
import keras_hub
import numpy as np

from tfeff.data.finetuning.examples import TextExamples
from tfeff.data.text.characters import in_brackets, is_ideograph, letters
from tfeff.data.text.offset_tokenizer import encode_with_offsets
from tfeff.data.text.tokenizers import check_tokenizer
from tfeff.tasks.augmentation.mlm_candidates import MLMCandidates
from tfeff.tasks.augmentation.word_vectors import WordVectors
from tfeff.utils.checks import check_integer, check_number, check_seed


def augment(
    examples: TextExamples,
    masked_lm: keras.Model,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    copies: int = 20,
    rate: float = 0.4,
    candidates: int = 15,
    word_vectors: WordVectors | None = None,
    seed: int = 0,
    batch_size: int = 64,
) -> TextExamples:
    """Adds copies of each example in which words are replaced by similar ones.

    Each word of each copy is replaced with probability `rate` by one of its candidates,
    drawn uniformly:

    - For a word that is one piece of the tokenizer, the `candidates` whole words that
      the masked language model predicts as likeliest, possibly including itself.
    - For other words, the `candidates` nearest ones in `word_vectors`; a word that is
      not among them is kept. Without `word_vectors`, the whole words of the vocabulary
      whose rows of the model's token table have the largest cosine with the mean of
      the word's pieces.

    A word is a run of letters and digits, with their accents and vowel signs, and with
    apostrophes inside, or one ideograph;
    other characters are kept. The model reads one text at a time, also of a pair; a
    text that is too long for the encoder is truncated on both sides of the word. The
    draws depend on `seed` and the index of the example alone.

    Args:
        examples: texts or pairs, with or without labels.
        masked_lm: a `tfeff.objectives.MaskedLM`, such as a published BERT of
            `load_masked_lm`.
        tokenizer: the tokenizer that it was trained with.
        copies: integer N_a, copies of each example.
        rate: float p_t in [0, 1], the share of words to replace.
        candidates: integer K, words to choose from.
        word_vectors: as from `read_word_vectors`, or `None`.
        seed: integer of at least 0.
        batch_size: integer, masked words in a batch of the model.

    Returns:
        Each example followed by its copies, with its label and its id.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if a number is out of range, the tokenizer has more ids than the
            model, or has no whole words; with a masked language model on another
            backend than TensorFlow.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    masked_lm = tfeff.objectives.MaskedLM(encoder)
    examples = tfeff.data.TextExamples(
        ["Green bottles!", "on a wall"], labels=[1, 0], label_names=("no", "yes")
    )
    more = tfeff.tasks.augment(examples, masked_lm, tokenizer, copies=3)
    assert len(more) == 8 and more.labels.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    ```

    Reference:
        Jiao et al., "TinyBERT", section 3.2 and algorithm 1.
    """
    if not isinstance(examples, TextExamples):
        raise TypeError(
            "`examples` must be `tfeff.data.TextExamples`. Received: examples of type "
            f"{type(examples).__name__}"
        )
    check_tokenizer(tokenizer)
    if word_vectors is not None and not isinstance(word_vectors, WordVectors):
        raise TypeError(
            "`word_vectors` must be `tfeff.tasks.WordVectors`, or None. Received: "
            f"word_vectors={word_vectors!r:.80}"
        )
    check_number("rate", rate, minimum=0, maximum=1)
    copies = check_integer("copies", copies)
    candidates = check_integer("candidates", candidates)
    seed = check_seed(seed)
    batch_size = check_integer("batch_size", batch_size)
    model = MLMCandidates(masked_lm, tokenizer, candidates, batch_size)

    columns = [examples.first] + ([examples.second] if examples.second else [])
    augmented = [
        _augment_column(
            texts, column, model, word_vectors, copies, rate, candidates, seed
        )
        for column, texts in enumerate(columns)
    ]
    repeats = copies + 1
    labels = examples.labels
    return TextExamples(
        first=augmented[0],
        second=augmented[1] if examples.second else examples.second,
        labels=None if labels is None else np.repeat(labels, repeats),
        label_names=examples.label_names,
        ids=tuple(id for id in examples.ids for _ in range(repeats)),
        skipped=examples.skipped,
    )


def _augment_column(texts, column, model, word_vectors, copies, rate, candidates, seed):
    """Each text followed by its copies."""
    words = [list(_word().finditer(text)) for text in texts]

    def draws():
        """The random numbers for each word of each copy, text by text, drawn anew."""
        for index, found in enumerate(words):
            generator = np.random.default_rng([seed, column, index])
            yield generator.random((2, copies, len(found)))

    offered = _candidates(
        texts,
        words,
        [(first < rate).any(axis=0) for first, _ in draws()],
        model,
        word_vectors,
        candidates,
    )
    result = []
    for text, found, (first, second), choices in zip(texts, words, draws(), offered):
        result.append(text)
        for replaced, chosen in zip(first < rate, second):
            parts, end = [], 0
            for word, replace, share, options in zip(found, replaced, chosen, choices):
                if replace and options:
                    option = options[int(share * len(options))]
                    parts += [text[end : word.start()], option]
                    end = word.end()
            result.append("".join(parts) + text[end:])
    return tuple(result)


@functools.cache
def _word():
    """The pattern of a word: an ideograph is one, as for tokenizers."""
    ideographs = in_brackets(is_ideograph)
    run = letters(without=ideographs)
    return re.compile(rf"[{ideographs}]|{run}(?:['’]{run})*")


def _candidates(texts, words, wanted, model, word_vectors, count):
    """For each text, for each of its words, the list of its candidates."""
    offered: list[list[Sequence[str]]] = [[()] * len(found) for found in words]
    masked, slots, near = [], [], {}
    encoded = encode_with_offsets(model.tokenizer, list(texts))
    for index, (ids, offsets) in enumerate(encoded):
        for slot, word in enumerate(words[index]):
            if not wanted[index][slot]:
                continue
            tokens = _tokens_of(word, offsets)
            if tokens is None:
                continue
            if len(tokens) == 1:
                masked.append((ids, tokens[0]))
                slots.append((index, slot))
                continue
            key = word[0], tuple(ids[tokens])
            if key not in near:
                near[key] = (
                    model.near(key[1], count, word[0])
                    if word_vectors is None
                    else _neighbours(word_vectors, word[0], count)
                )
            offered[index][slot] = near[key]
    for (index, slot), options in zip(slots, model.likeliest(masked)):
        offered[index][slot] = options
    return offered


def _tokens_of(word, offsets):
    """The tokens of exactly this word; None if a token crosses its borders."""
    begin, end = word.span()
    tokens = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > begin))
    if not len(tokens):
        return None
    first, last = tokens[[0, -1]]
    if offsets[first, 0] < begin or offsets[last, 1] > end:
        return None
    # SentencePiece's mark of a new word may be a piece of its own.
    while first and offsets[first - 1, 0] == offsets[first - 1, 1]:
        first -= 1
    return np.arange(first, last + 1)


def _neighbours(word_vectors, word, count):
    for known in (word, word.lower()):
        if known in word_vectors:
            return word_vectors.nearest(word_vectors[known], count, other_than=known)
    return ()
