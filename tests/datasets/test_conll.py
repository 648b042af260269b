"""CoNLL's layouts: reading, the metrics of phrases, predictions."""

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.phrases import phrases
from tfeff.data import TokenExamples
from tfeff.datasets import conll_dataset, get, phrase_metrics, read_conll

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def lists(examples):
    return [row.tolist() for row in examples.labels]


@pytest.mark.parametrize("separator", ["\t", " ", "   "])
def test_columns_and_sentences(tmp_path, separator):
    rows = ["-DOCSTART- -X- O", "", "", "Ada NNP B-PER", "L. NNP I-PER", "ran VBD O"]
    rows += ["\t", "yes UH O", " ", "\ufeff"]
    text = "\ufeff" + "\r\n".join(row.replace(" ", separator) for row in rows)
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    examples = read_conll(path, NAMES)
    assert examples.words == (("Ada", "L.", "ran"), ("yes",))
    assert lists(examples) == [[1, 2, 0], [0]]
    assert examples.ids == ("0", "1")


def test_carriage_returns_end_lines_where_no_line_feed_does(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"Ada\tB-PER\rwrote\tO\r\ryes\tO\r")
    assert read_conll(path, NAMES).words == (("Ada", "wrote"), ("yes",))
    path.write_bytes(b"A\rda\tO\n")
    assert read_conll(path, NAMES).words == (("A\rda",),)


def test_a_mark_of_a_document_ends_a_sentence(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ada B-PER\n-DOCSTART- O\nL. B-PER\n")
    assert read_conll(path, NAMES).words == (("Ada",), ("L.",))


def test_words_may_have_any_characters_but_tabs(tmp_path):
    path = tmp_path / "a.tsv"
    words = ['"', "a b", "\u2028", "\xa0", "👩‍👧", "#"]
    path.write_text("".join(f"{word}\tO\n" for word in words), encoding="utf-8")
    assert read_conll(path, NAMES).words == (tuple(words),)


def test_words_may_have_white_space_but_spaces(tmp_path):
    path = tmp_path / "a.txt"
    words = ["10\xa0000", "a\u3000b", "\x85", "c"]
    path.write_text("".join(f" {word}  O \n" for word in words), encoding="utf-8")
    assert read_conll(path, NAMES).words == (tuple(words),)
    path.write_text("a\n\xa0\nb\n", encoding="utf-8")
    (sentence,) = read_conll(path, NAMES, label_optional=True).words
    assert sentence == ("a", "\xa0", "b")


def test_other_columns(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 Ada B-PER _\n2 ran O _\n")
    examples = read_conll(path, NAMES, word_column=1, label_column=2)
    assert examples.words == (("Ada", "ran"),) and lists(examples) == [[1, 0]]


CONLL_U = """\
# sent_id = 1
1-2\tDon't\t_\t_
1\tDo\tAUX\tO
2\tn't\tPART\tO
2.1\tyou\tPRON\tO
3\tgo\tVERB\tO

# newdoc

# text = Ada
1\tAda\tPROPN\tB-PER
"""


def test_lines_of_conll_u_that_are_no_words_are_left_out(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(CONLL_U)
    examples = read_conll(path, NAMES, word_column=1)
    assert examples.words == (("Do", "n't", "go"), ("Ada",))
    assert lists(examples) == [[0, 0, 0], [1]]


@pytest.mark.parametrize("start", [0, 1, 5])
@pytest.mark.parametrize("word_column", [0, -4])
def test_numbers_are_no_words(tmp_path, start, word_column):
    path = tmp_path / "a.txt"
    sentence = [f"{start} Ada _ B-PER\n", f"{start + 1} ran _ O\n", "\n"]
    path.write_text("".join([*sentence, *sentence[::2], "1 Ada _ O\n2 ran _ O\n"]))
    with pytest.raises(
        ValueError, match=r"`word_column` must be .*, such as 1, for .*a\.txt, whose c"
    ):
        read_conll(path, NAMES, word_column)
    assert read_conll(path, NAMES, 1).words[:2] == (("Ada", "ran"), ("Ada",))


def test_words_may_be_numbers(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 CD O\n2 CD O\n\n1-2 CD O\nAda NNP B-PER\n# SYM O\n")
    assert read_conll(path, NAMES).words == (("1", "2"), ("1-2", "Ada", "#"))
    path.write_text("1 CD O\n2 CD O\n\n5 CD O\n7 CD O\n")
    assert read_conll(path, NAMES).words == (("1", "2"), ("5", "7"))
    path.write_text("1 CD O\n\n1 CD O\n")  # Each is alone.
    assert read_conll(path, NAMES).words == (("1",), ("1",))
    path.write_text("1 O\n2 O\n")  # There is no column of other words.
    assert read_conll(path, NAMES).words == (("1", "2"),)


def test_labels_may_lack(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ada\nran\n\nyes\n")
    assert read_conll(path, NAMES, label_optional=True).labels is None
    with pytest.raises(ValueError, match=r"a\.txt, line 1: must have a word and a lab"):
        read_conll(path, NAMES)
    path.write_text("1 Ada\n2 ran\n")
    numbered = read_conll(path, NAMES, word_column=1, label_optional=True)
    assert (numbered.words, numbered.labels) == ((("Ada", "ran"),), None)
    with pytest.raises(ValueError, match="`word_column` must be that of the words"):
        read_conll(path, NAMES, label_optional=True)
    path.write_text("1 O\n2 B-PRE\n")
    with pytest.raises(ValueError, match="line 2: the label must be.* mean 'B-PER'"):
        read_conll(path, NAMES, label_optional=True)
    path.write_text("1\n2\n\n7\n8\n")
    words = read_conll(path, NAMES, label_optional=True).words
    assert words == (("1", "2"), ("7", "8"))
    path.write_text("1 O\n2 B-PER\n")
    assert lists(read_conll(path, NAMES, label_optional=True)) == [[0, 1]]
    path.write_text("Ada O\nran\n")
    with pytest.raises(ValueError, match=r"a\.txt, line 2: must have a word and a lab"):
        read_conll(path, NAMES, label_optional=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Ada B-PER\nran o\n",
            r"line 2: the label must be one of .*'o'\. Did you mean",
        ),
        (
            "Ada S-PER\nran O\n",
            r"line 1: .*'S-PER'\. In place of S-, of another scheme, write B-",
        ),
        ("Ada B-PER\nran L-PER\n", r"line 2: .*In place of L-, .* write I- in all"),
        ("Ada\tB-PER\n\tO\n", r"line 2: must have a column 0 .*\['', 'O'\]"),
        ("Ada\tB-PER\nran\t\n", r"line 2: must have a column -1"),
        (
            "Ada B-PER\nran O\n\nNew York B-LOC\n",
            "line 4: must have 2 columns, as l.* 1",
        ),
        (
            "Ada\tB-PER\nran\tO\tO\n",
            r"line 2: must have 2 columns, .*\['ran', 'O', 'O'",
        ),
        ("\n \n", "an empty file"),
        ("-DOCSTART- O\n", "must hold sentences"),
        ("Ada O\n\xff O\n", "line 2: must be UTF-8"),
    ],
)
def test_malformed_lines_are_named(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"bad\.txt.*{message}"):
        read_conll(path, NAMES)
    with pytest.raises(ValueError, match="`path` must exist"):
        read_conll(tmp_path / "none.txt", NAMES)


def test_splits(tmp_path):
    dataset = conll_dataset("Birds", ("PER", "LOC"))
    assert dataset.label_names == NAMES
    words = [f"word{number}" for number in range(30)]
    (tmp_path / "train.txt").write_text("\n\n".join(f"{word} O" for word in words))
    with pytest.warns(
        UserWarning, match=r"tenth sentence of .*train\.txt is set aside"
    ):
        train, dev = (dataset.read(split, tmp_path) for split in ("train", "dev"))
    assert [row[0] for row in dev.words] == words[9::10]
    assert sorted(train.words + dev.words) == sorted((word,) for word in words)
    folder = tmp_path / "Birds"
    folder.mkdir()
    (folder / "dev.tsv").write_text("one\tB-PER\n")
    assert dataset.read("dev", tmp_path).words == (("one",),)
    with pytest.raises(ValueError, match=r"must hold train\.txt or .*or Birds with it"):
        dataset.read("train", tmp_path)  # Beside the folder there may be another set's.
    (tmp_path / "train.txt").rename(folder / "train.txt")
    assert len(dataset.read("train", tmp_path)) == 30
    (folder / "test.txt").write_text("one\ntwo\n")
    assert dataset.read("test", tmp_path).labels is None
    (folder / "dev.tsv").rename(tmp_path / "dev.tsv")
    assert dataset.read("dev", tmp_path).words == dev.words


@pytest.mark.parametrize("stem", ["valid", "validation", "val", "devel"])
def test_other_names_of_dev(tmp_path, stem):
    dataset = conll_dataset("Birds", ("PER", "LOC"))
    (tmp_path / "train.txt").write_text("word O\n\n" * 30)
    (tmp_path / f"{stem}.conll").write_text("one B-PER\n")
    assert dataset.read("dev", tmp_path).words == (("one",),)
    assert len(dataset.read("train", tmp_path)) == 30
    (tmp_path / "dev.txt").write_text("two O\n")
    for split in ("train", "dev"):
        with pytest.raises(ValueError, match=rf"one file of dev\..*{stem}\.conll"):
            dataset.read(split, tmp_path)


def test_two_files_of_a_split(tmp_path):
    dataset = conll_dataset("Birds", ("PER", "LOC"))
    for name in ("dev.txt", "train.txt", "train.tsv"):
        (tmp_path / name).write_text("word\tO\n\n" * 3)
    with pytest.raises(ValueError, match=r"one file of train\..*train\.txt.*\.tsv"):
        dataset.read("train", tmp_path)


def test_one_label_is_none():
    with pytest.raises(ValueError, match="`label_names` must name two .*\\['X'\\]"):
        conll_dataset("Birds", label_names=["X"])


@pytest.mark.parametrize("name", ["word_column", "label_column"])
@pytest.mark.parametrize("value", [None, "x", 1.5, True, -101])
def test_columns_are_checked_before_a_file_is_read(name, value):
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must be an integer"):
        conll_dataset("Birds", ("PER",), **{name: value})


labels = st.sampled_from(range(5))
rows = st.lists(
    st.lists(st.tuples(labels, labels), min_size=1),
    min_size=1,
    max_size=4,
)


@given(rows)
def test_metrics_are_of_whole_phrases(pairs):
    right = [[a for a, _ in row] for row in pairs]
    found = [[b for _, b in row] for row in pairs]
    words = tuple(tuple("w" * len(row)) for row in right)
    examples = TokenExamples(words, right, NAMES, tuple(map(str, range(len(words)))))
    wanted, got = (
        {
            (number, *phrase)
            for number, row in enumerate(sentences)
            for phrase in phrases([NAMES[index] for index in row])
        }
        for sentences in (right, found)
    )
    both = len(wanted & got)
    expected = {
        "f1": 2 * both / (len(wanted) + len(got)) if wanted or got else math.nan,
        "precision": both / len(got) if got else math.nan,
        "recall": both / len(wanted) if wanted else math.nan,
        "accuracy": np.mean([a == b for row in pairs for a, b in row]),
    }
    scores = phrase_metrics(examples, found)
    words_alone = conll_dataset("A", label_names=NAMES, metric_names=("accuracy",))
    assert words_alone.metrics(examples, found) == {"accuracy": scores["accuracy"]}
    assert list(scores) == list(expected)
    np.testing.assert_allclose([*scores.values()], [*expected.values()])


@pytest.mark.parametrize("prefixes", ["BISE", "BIUL"])
def test_phrases_of_other_schemes(prefixes):
    """Two words beside each other are two phrases, and no predicted one of both."""
    begin, inside, single, end = prefixes
    names = ("O", *(f"{x}-P" for x in (begin, inside, single, end)))
    examples = TokenExamples((("a", "b", "c"),), [[3, 3, 0]], names, ("0",))
    scores = phrase_metrics(examples, [[1, 4, 0]])
    assert (scores["f1"], scores["accuracy"]) == (0, 1 / 3)
    scores = phrase_metrics(examples, [[3, 0, 0]])
    assert (scores["precision"], scores["recall"]) == (1, 1 / 2)


def test_predictions(tmp_path):
    dataset = conll_dataset("Birds", ("PER",))
    examples = TokenExamples(
        (("Ada", "ran"), ("yes",)), ([1, 0], [0]), NAMES[:3], ("0", "1")
    )
    found = [np.array([1, 2]), np.array([0])]
    (path,) = dataset.write_predictions("dev", examples, found, tmp_path)
    with open(path) as file:
        assert file.read() == "Ada\tB-PER\nran\tI-PER\n\nyes\tO\n\n"
    again = read_conll(path, NAMES[:3])
    assert again.words == examples.words and lists(again) == [[1, 2], [0]]
    with pytest.raises(ValueError, match="must not hold 'Birds.tsv' yet"):
        dataset.write_predictions("dev", examples, found, tmp_path)
    for wrong, error, message in (
        ([[1, 0]], ValueError, "for 3 words in 2"),
        ([[1], [0]], ValueError, "2 labels in 2 sentences"),
        ([[1, 3], [0]], ValueError, r"from 0 to 2.* 3 at 1 of 0"),
        ([[1.0, 0.0], [0.0]], TypeError, "float64 of 0"),
    ):
        with pytest.raises(error, match=message):
            dataset.metrics(examples, wrong)
    unlabelled = TokenExamples(examples.words, None, NAMES[:3], ("0", "1"))
    with pytest.raises(ValueError, match="`examples` must have labels"):
        dataset.metrics(unlabelled, found)


@pytest.mark.parametrize("word", ["a\tb", "\n", "a\rb"])
def test_words_that_part_a_line_are_not_written(word, tmp_path):
    dataset = conll_dataset("Birds", ("PER",))
    examples = TokenExamples((("great", word),), None, NAMES[:3], ("0",))
    with pytest.raises(ValueError, match="`examples` must have no tabs .*Received: "):
        dataset.write_predictions("dev", examples, [np.array([0, 1])], tmp_path)
    assert not list(tmp_path.iterdir())


def test_examples_are_checked():
    words = (("a", "b"), ("c",))
    with pytest.raises(ValueError, match="1 labels for the 2 words of sentence 0"):
        TokenExamples(words, ([0], [0]), NAMES, ("0", "1"))
    with pytest.raises(ValueError, match="`labels` must be from 0 to 4.* 5 at 1 of 0"):
        TokenExamples(words, ([0, 5], [0]), NAMES, ("0", "1"))
    with pytest.raises(
        ValueError, match="`words`, `labels`, `ids` must be equally long"
    ):
        TokenExamples(words, ([0, 0],), NAMES, ("0", "1"))
    with pytest.raises(ValueError, match=r"Received: \('c', ''\) at 1"):
        TokenExamples((("a",), ("c", "")), None, NAMES, ("0", "1"))
    examples = TokenExamples(words, ([0, 1], [2]), NAMES, ("x", "y"))
    sample = examples.sample(1, seed=1)
    assert len(sample) == 1 and sample.ids[0] in ("x", "y")
    with pytest.raises(ValueError, match="read-only"):
        examples.labels[0][0] = 2


@pytest.mark.quick(
    "WNUT-17-wnut17-train-3394-62730-B-person-660",
    "CoNLL-2000-conll2000-test-2012-47377-B-NP-12422",
)
@pytest.mark.parametrize(
    ("name", "folder", "split", "sentences", "words", "label", "count"),
    [
        ("WikiANN", "wikiann_en", "train", 20000, 160394, "B-PER", 9164),
        ("WikiANN", "wikiann_en", "dev", 10000, 80536, None, None),
        ("WNUT-17", "wnut17", "train", 3394, 62730, "B-person", 660),
        ("WNUT-17", "wnut17", "dev", 1009, 15733, "I-creative-work", 134),
        ("CoNLL-2000", "conll2000", "test", 2012, 47377, "B-NP", 12422),
    ],
)
def test_real_files(data_dir, name, folder, split, sentences, words, label, count):
    dataset = get(name)
    examples = dataset.read(split, os.path.join(data_dir, "ner", folder))
    assert len(examples) == sentences
    assert sum(map(len, examples.words)) == words
    if label is not None:
        index = dataset.label_names.index(label)
        assert sum((row == index).sum() for row in examples.labels) == count
    scores = dataset.metrics(examples, examples.labels)
    assert scores == dict.fromkeys(("f1", "precision", "recall", "accuracy"), 1.0)


@pytest.mark.slow
def test_a_part_of_real_training_sentences_is_dev(data_dir):
    folder = os.path.join(data_dir, "ner", "conll2000")
    train, dev = (get("CoNLL-2000").read(split, folder) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (8043, 893)
