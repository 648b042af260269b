"""Pairs of sentences are cut between sentences, and their ends tell nothing."""

import types

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from tfeff.data import SentencePairs, build_cache, train_tokenizer, word_starts
from tfeff.data.cache.batches import TokenBatch
from tfeff.data.pretraining.pairing import make_pairs
from tfeff.data.pretraining.sentences import sentence_pieces, sentence_starts

TEXT = 'Ada wrote it. "Did she?" he asked. Pi is 3.14... So (he said!) it is. Yes'
WORDS = ["so", "it", "is", "he", "said", "that", "this", "one", "was", "never", "as"]


def documents(rng, count, fewest, most):
    """Texts of sentences of 3 to 9 words, which begin with "ada"."""
    found = []
    for _ in range(count):
        sentences = []
        for _ in range(rng.integers(fewest, most + 1)):
            words = ["ada", *rng.choice(WORDS, rng.integers(2, 9))]
            sentences.append(" ".join(words) + str(rng.choice([".", "?"])))
        found.append(" ".join(sentences))
    return found


def word_piece():
    words = sorted(
        {*WORDS, "ada", "wrote", "did", "she", "asked", "pi", "yes", "3", "14"}
    )
    marks = list('.?!"()')
    return keras_hub.tokenizers.BertTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *marks, *words], lowercase=True
    )


def rests_of(tokenizer, text):
    """What a text has from each start of a sentence on, but for its own."""
    ids = np.asarray(tokenizer(text))
    pieces = sentence_pieces(tokenizer, word_starts(tokenizer))
    found = sentence_starts(tf.constant([ids]), pieces)[0].numpy()
    return [tokenizer.detokenize(ids[i:]) for i in np.flatnonzero(found)]


def test_starts_by_word_piece():
    """Quotes and brackets behind a sentence belong to it; numbers are not cut."""
    firsts = [rest.split()[0] for rest in rests_of(word_piece(), TEXT)]
    assert firsts == ["did", "he", "pi", "so", "it", "yes"]


def test_starts_by_sentence_piece():
    tokenizer = train_tokenizer([TEXT] * 3, vocabulary_size=32)
    assert [rest[:2] for rest in rests_of(tokenizer, TEXT)] == [
        '"d',
        "he",
        "pi",
        "so",
        "it",
        "ye",
    ]


def test_texts_without_spaces_are_split():
    sentences = ["天地玄黄。", "宇宙洪荒。", "日月盈昃。", "辰宿列张。"]
    texts = ["".join(np.roll(sentences, i)) for i in range(4)] * 2
    tokenizer = train_tokenizer(texts, vocabulary_size=23)
    expected = ["".join(sentences[i:]) for i in (1, 2, 3)]
    assert rests_of(tokenizer, texts[0]) == expected


def test_scripts_with_spaces_are_split_at_words():
    """A mark within a word ends no sentence, in any script."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "د", "أحمد", "سلام"]
    tokenizer = keras_hub.tokenizers.BertTokenizer(
        [*pieces, "##أحمد", "##سلام"], lowercase=False
    )
    begins = sentence_pieces(tokenizer, word_starts(tokenizer)).begins
    named = dict(zip(tokenizer.get_vocabulary(), begins))
    assert named["أحمد"] and not named["##أحمد"] and not named["##سلام"]


@pytest.fixture(scope="module", params=[(1, 4), (30, 40)], ids=["short", "long"])
def corpus(request, tmp_path_factory):
    """A cache of texts shorter than its sequences, or of pieces of long ones."""
    texts = documents(np.random.default_rng(0), 400, *request.param)
    tokenizer = word_piece()
    path = tmp_path_factory.mktemp("sentences") / "cache"
    return build_cache(texts, tokenizer, path, 64, progress=False), tokenizer, texts


def pairs(cache, tokenizer, kind):
    """(A, B, label) as texts, of all pairs that were split."""
    batches = cache.batches(
        SentencePairs(kind, masked=None), 50, 1, tokenizer=tokenizer, repeat=False
    )
    for inputs, labels, weights in batches:
        columns = (inputs["token_ids"], inputs["segment_ids"], inputs["padding_mask"])
        columns += (labels["sentence"], weights["sentence"])
        for ids, segments, mask, label, weight in zip(*map(np.asarray, columns)):
            if not weight:
                continue
            ids, segments = ids[mask == 1], segments[mask == 1]
            assert ids[0] == 2 and ids[-1] == 3  # [CLS] A [SEP] B [SEP]
            a, b = ids[segments == 0][1:-1], ids[segments == 1][:-1]
            assert a.size and b.size
            yield tokenizer.detokenize(a), tokenizer.detokenize(b), int(label)


def whole(text):
    return text.startswith("ada") and text[-1] in ".?"


@pytest.mark.quick("short")
def test_order(corpus):
    cache, tokenizer, texts = corpus
    plain = {tokenizer.detokenize(tokenizer(text)) for text in texts}
    found = list(pairs(cache, tokenizer, "order"))
    by_sentence = [x for x in found if whole(x[0]) and whole(x[1])]
    assert len(by_sentence) > 0.7 * len(found)
    for first, second, label in by_sentence:
        text = f"{second} {first}" if label else f"{first} {second}"
        assert any(text in other for other in plain)
    labels = np.array([label for *_, label in by_sentence])
    assert abs(labels.mean() - 0.5) < 2.5 / np.sqrt(len(labels))


def batch(rows, first_document=0, begins=False):
    """Rows of different documents, which end at the first padding."""
    rows = np.asarray(rows, "int32")
    return TokenBatch(
        token_ids=tf.constant(rows),
        padding_mask=tf.constant((rows != 0).astype("int32")),
        documents=tf.range(first_document, first_document + len(rows)),
        begins=tf.fill([len(rows)], begins),
    )


def made_pairs(texts, starts, pieces, others=None):
    return make_pairs(
        texts,
        seed=0,
        first_example=0,
        manifest=types.SimpleNamespace(
            cls_token_id=2, sep_token_id=3, pad_token_id=0, mask_token_id=4
        ),
        word_starts=starts,
        sentence_pieces=pieces,
        others=others,
    )


@pytest.mark.parametrize("kind", ["order", "next"])
@pytest.mark.parametrize("begins", [False, True])
def test_no_half_begins_within_a_word(kind, begins):
    """Rows that begin there, or as byte-level BPE does without a space before it."""
    rng = np.random.default_rng(0)
    starts = np.arange(30) < 15  # Ids from 15 on are within words.
    rows = rng.integers(5, 30, (300, 24))
    rows[:, 0], rows[:, 1], rows[:, -1] = 2, 20, 3
    others = batch(np.roll(rows, 1, 0), 300, begins) if kind == "next" else None
    inputs, labels, weights = made_pairs(batch(rows, 0, begins), starts, None, others)
    ids, segments = np.asarray(inputs["token_ids"]), np.asarray(inputs["segment_ids"])
    split = np.asarray(weights) > 0
    second = ids[np.arange(300), segments.argmax(1)]
    assert split.mean() > 0.9 and starts[second[split]].all()
    assert 100 < np.asarray(labels).sum() < 200
    # All first texts of the next sentence begin alike.
    assert kind == "next" or starts[ids[split, 1]].all()


def test_what_is_not_split_keeps_its_text():
    """Rows whose first word begins late, and those whose ends would tell the order."""
    starts = np.arange(30) < 15
    late = np.full((9, 24), 20)
    late[:, [12, 20]] = 5
    tokenizer = word_piece()
    ids = np.asarray(tokenizer("said that . ada was so ."))
    told = np.tile(np.concatenate([[2], ids, [3], [0] * 4]), (9, 1))
    known = word_starts(tokenizer)
    for rows, pieces, begin in (
        (late, None, starts),
        (told, sentence_pieces(tokenizer, known), known),
    ):
        rows[:, 0] = 2
        last = (rows != 0).sum(1)[0] - 1
        rows[:, last] = 3
        inputs, labels, weights = made_pairs(batch(rows), begin, pieces)
        assert not np.asarray(weights).any() and not np.asarray(labels).any()
        kept = np.asarray(inputs["token_ids"])
        # A full row has room for two separators in any case.
        shown = min(last, 22)
        np.testing.assert_array_equal(kept[:, :shown], rows[:, :shown])


def test_a_full_row_does_not_tell_a_wrong_pair():
    rng = np.random.default_rng(0)
    tokenizer = word_piece()
    starts = word_starts(tokenizer)
    rows = np.full((3000, 24), 3)
    rows[:, 0] = 2
    for row, text in zip(rows, documents(rng, len(rows), 6, 6)):
        row[1:-1] = np.asarray(tokenizer(text))[:22]
    inputs, labels, weights = made_pairs(
        batch(rows),
        starts,
        sentence_pieces(tokenizer, starts),
        batch(np.roll(rows, 1, 0), 3000),
    )
    full = np.asarray(inputs["padding_mask"]).all(1) & (np.asarray(weights) > 0)
    wrong = np.asarray(labels)[full].mean()
    assert full.sum() > 200 and abs(wrong - 0.5) < 4 * 0.5 / np.sqrt(full.sum())


@pytest.mark.parametrize("is_told", [True, False])
def test_an_end_that_would_tell_the_order(is_told):
    """Half a sentence and the end of a document: the half with the stop is the last."""
    tokenizer = word_piece()
    ids = np.asarray(tokenizer("said that . ada was so ." if is_told else "he said it"))
    row = np.concatenate([[2], ids, [3], [0] * 4])[None]
    starts = word_starts(tokenizer)
    _, label, weight = made_pairs(
        batch(row), starts, sentence_pieces(tokenizer, starts)
    )
    assert weight.numpy().tolist() == [0.0 if is_told else 1.0]
    assert not is_told or label.numpy().tolist() == [0]


@pytest.mark.quick("short")
def test_halves_of_several_sentences_are_whole(corpus):
    """Of the last piece of a document, too, which begins within a sentence."""
    cache, tokenizer, _ = corpus
    for first, second, _ in pairs(cache, tokenizer, "order"):
        if min(sum(map(text.count, ".?")) for text in (first, second)) > 1:
            assert whole(first) and whole(second)


@pytest.mark.quick("short")
def test_next(corpus):
    cache, tokenizer, texts = corpus
    plain = [tokenizer.detokenize(tokenizer(text)) for text in texts]
    found = list(pairs(cache, tokenizer, "next"))
    labels = np.array([label for *_, label in found])
    ends = np.array([second[-1] in ".?" for _, second, _ in found])
    lengths = np.array([len(second.split()) for _, second, _ in found])
    assert abs(labels.mean() - 0.5) < 2.5 / np.sqrt(len(labels))
    for first, second, label in found:
        if first[-1] in ".?":
            assert label or any(f"{first} {second}" in text for text in plain)
            # Nor does the first one.
            assert second.startswith("ada")
            assert any(second in text for text in plain)
    # Neither the last token of B nor its length tells which pairs are wrong.
    for wrong in (0, 1):
        assert ends[labels == wrong].mean() > 0.85
    assert abs(lengths[labels == 0].mean() - lengths[labels == 1].mean()) < 3


@pytest.mark.parametrize("has_tokenizer", [True, False])
def test_a_wrong_text_is_a_piece_of_the_other(has_tokenizer, tmp_path):
    """Others that are shorter than B are taken as a whole."""
    texts = ["so it is he said that this one was never as"] * 20 + ["pi", "yes"] * 10
    tokenizer = word_piece()
    cache = build_cache(texts, tokenizer, tmp_path / "cache", 16, progress=False)
    batches = cache.batches(
        SentencePairs("next", masked=None),
        10,
        3,
        tokenizer=tokenizer if has_tokenizer else None,
        repeat=False,
    )
    count = 0
    for inputs, labels, _ in batches:
        wrong = labels["sentence"].numpy() == 1
        ids = inputs["token_ids"].numpy()[wrong]
        for row, segments in zip(ids, inputs["segment_ids"].numpy()[wrong]):
            second = tokenizer.detokenize(row[segments == 1][:-1])
            assert any(second in text for text in texts) and second
            assert (
                row[segments == 1][-1] == 3 and not (row[segments == 1][:-1] < 5).any()
            )
            count += 1
    assert count > 3
