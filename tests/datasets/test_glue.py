"""The nine tasks of GLUE, in their published layouts."""

import numpy as np
import pytest

from tests.datasets.files import rows, write
from tfeff.datasets import get

MNLI = [
    *["index", "promptID", "pairID", "genre", "sentence1_binary_parse"],
    *["sentence2_binary_parse", "sentence1_parse", "sentence2_parse"],
    *["sentence1", "sentence2"],
]
STS = [*["index", "genre", "filename", "year", "old_index", "source1", "source2"]]
MRPC = ["#1 ID", "#2 ID", "#1 String", "#2 String"]
# task, split, the file, its lines, and what comes out: texts, labels, ids
LAYOUTS = [
    (
        *("CoLA", "train", "train.tsv"),
        [["gj04", "1", "", "Birds sing."], ["gj04", "0", "*", "Birds sings."]],
        ([("Birds sing.",), ("Birds sings.",)], [1, 0], ["0", "1"]),
    ),
    (
        *("CoLA", "test", "test.tsv"),
        [["index", "sentence"], ["7", "Birds sing."]],
        ([("Birds sing.",)], None, ["7"]),
    ),
    (
        *("SST-2", "dev", "dev.tsv"),
        [["sentence", "label"], ["a joy ", "1"]],
        ([("a joy ",)], [1], ["0"]),
    ),
    (
        *("SST-2", "test", "test.tsv"),
        [["index", "sentence"], ["0", "a joy"]],
        ([("a joy",)], None, ["0"]),
    ),
    (
        *("MRPC", "train", "train.tsv"),
        [["\ufeffQuality", *MRPC], ["1", "17", "18", 'He said " no .', '" No .']],
        ([('He said " no .', '" No .')], [1], ["0"]),
    ),
    (
        *("MRPC", "test", "test.tsv"),
        [["index", *MRPC], ["3", "17", "18", "A", "B"]],
        ([("A", "B")], None, ["3"]),
    ),
    (
        *("MRPC", "test", "msr_paraphrase_test.txt"),
        [["\ufeffQuality", *MRPC], ["1", "17", "18", "A", "B"]],
        ([("A", "B")], [1], ["0"]),
    ),
    (
        *("QQP", "train", "train.tsv"),
        [
            ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
            ["5", "9", "8", "Why?", "How?", "0"],
        ],
        ([("Why?", "How?")], [0], ["5"]),
    ),
    (
        *("QQP", "test", "test.tsv"),
        [["id", "question1", "question2"], ["0", "Why?", "How?"]],
        ([("Why?", "How?")], None, ["0"]),
    ),
    (
        *("STS-B", "dev", "dev.tsv"),
        [
            [*STS, "sentence1", "sentence2", "score"],
            ["0", "news", "f", "2012", "4", "none", "none", "A", "B", "4.750"],
        ],
        ([("A", "B")], [4.75], ["0"]),
    ),
    (
        *("STS-B", "test", "test.tsv"),
        [[*STS, "sentence1", "sentence2"], ["0", *"gfyoss", "A", "B"]],
        ([("A", "B")], None, ["0"]),
    ),
    (
        *("MNLI", "train", "train.tsv"),
        [
            [*MNLI, "label1", "gold_label"],
            ["0", *"pggbbpp", "A", "B", "neutral", "neutral"],
            ["1", *"pggbbpp", "C", "D", "entailment", "contradiction"],
            ["2", *"pggbbpp", "E", "F", "entailment", "entailment"],
        ],
        ([("A", "B"), ("C", "D"), ("E", "F")], [1, 2, 0], ["0", "1", "2"]),
    ),
    (
        *("MNLI", "dev_mismatched", "dev_mismatched.tsv"),
        [
            [*MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label"],
            ["0", *"pggbbpp", "A", "B", *["neutral"] * 5, "entailment"],
        ],
        ([("A", "B")], [0], ["0"]),
    ),
    (
        *("MNLI", "test_matched", "test_matched.tsv"),
        [MNLI, ["0", *"pggbbpp", "A", "B"]],
        ([("A", "B")], None, ["0"]),
    ),
    (
        *("QNLI", "dev", "dev.tsv"),
        [
            ["index", "question", "sentence", "label"],
            ["4", "A?", "B", "not_entailment"],
        ],
        ([("A?", "B")], [1], ["4"]),
    ),
    (
        *("RTE", "train", "train.tsv"),
        [["index", "sentence1", "sentence2", "label"], ["0", "A", "B", "entailment"]],
        ([("A", "B")], [0], ["0"]),
    ),
    (
        *("WNLI", "train", "train.tsv"),
        [["index", "sentence1", "sentence2", "label"], ["0", "A", "B", "1"]],
        ([("A", "B")], [1], ["0"]),
    ),
]


@pytest.mark.parametrize(
    ("task", "split", "name", "lines", "expected"),
    LAYOUTS,
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_published_layout(tmp_path, task, split, name, lines, expected, newline):
    write(tmp_path / task / name, rows(*lines).replace("\n", newline))
    examples = get(task).read(split, tmp_path)
    texts, labels, ids = expected
    assert examples.first == tuple(text[0] for text in texts)
    if len(texts[0]) == 1:
        assert examples.second is None
    else:
        assert examples.second == tuple(text[1] for text in texts)
    assert examples.ids == tuple(ids)
    assert len(examples) == len(texts)
    if labels is None:
        assert examples.labels is None
    else:
        assert examples.labels.tolist() == labels
        kind = np.float32 if task == "STS-B" else np.int32
        assert examples.labels.dtype == kind
        with pytest.raises(ValueError, match="read-only"):
            examples.labels[0] = 0


def test_only_line_feeds_end_a_line_and_quotes_are_text(tmp_path):
    odd = '"a\x0bb\x0c\x1c\x85\u2028\u2029c" \'d'
    write(tmp_path / "SST-2" / "dev.tsv", rows(["sentence", "label"], [odd, "1"]))
    assert get("SST-2").read("dev", tmp_path).first == (odd,)


def test_blank_lines_shift_no_ids(tmp_path):
    path = tmp_path / "SST-2" / "test.tsv"
    write(path, "\n\nsentence\na\n \nb\n")
    with pytest.raises(ValueError, match=r"test\.tsv, line 5: must hold a text"):
        get("SST-2").read("test", tmp_path)
    write(path, "\nsentence\na\nb\n\n \n")
    assert get("SST-2").read("test", tmp_path).ids == ("0", "1")
    write(path, "sentence\tnote\na\tx\n\nb\ty\n\t\nc\tz\n")
    examples = get("SST-2").read("test", tmp_path)
    assert examples.first == ("a", "b", "", "c")
    assert examples.ids == ("0", "1", "2", "3")
    write(path, "sentence\tnote\na\tx\n\t\n\t \n\n \n")  # Blank cells at the end, too.
    examples = get("SST-2").read("test", tmp_path)
    assert (examples.first, examples.ids) == (("a", "", ""), ("0", "1", "2"))


def test_microsofts_training_part_needs_its_ids(tmp_path):
    path = tmp_path / "MRPC" / "msr_paraphrase_train.txt"
    write(path, rows(["Quality", *MRPC[1:]], ["1", "18", "A", "B"]))
    with pytest.raises(ValueError, match="train.txt, line 1: must name #1 ID and #2"):
        get("MRPC").read("train", tmp_path)


@pytest.mark.parametrize(
    ("task", "split", "message"),
    [
        (
            "sst2",
            "train",
            r"`name` must be one of.*name='sst2'. Did you mean 'SST-2'\?",
        ),
        ("stsb", "train", r"Did you mean 'STS-B'\?"),
        ("MNLI-m", "train", r"Did you mean 'MNLI'\?"),
        ("rtee", "train", r"Did you mean 'RTE'\?"),
        ("weather", "train", r"Received: name='weather'\.$"),
        ("RTE", "validation", r"`split` must be one of.*Received: split='validation'"),
        ("RTE", "DEV", r"Did you mean 'dev'\?"),
        ("RTE", "dev_matched", r"`split` must be one of \['train', 'dev', 'test'\]"),
        ("RTE", "dev", r"`folder` must hold RTE/dev.tsv. Received: '.*'"),
        ("MRPC", "test", r"must hold MRPC/test.tsv or MRPC/msr_paraphrase_test.txt"),
        ("MRPC", "dev", r"must hold MRPC/dev.tsv or MRPC/msr_paraphrase_train.txt"),
    ],
)
def test_wrong_names(tmp_path, task, split, message):
    with pytest.raises(ValueError, match=message):
        get(task).read(split, tmp_path)


RTE = ["index", "sentence1", "sentence2", "label"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"dev\.tsv must hold text. Received: an empty file"),
        ("\n \n", r"an empty file"),
        (rows(RTE), r"dev\.tsv must hold examples. Received: none"),
        (
            rows(["index", "sentence1", "label"], ["0", "A", "entailment"]),
            r"dev\.tsv, line 1: must name the column 'sentence2'. Received: \['index'",
        ),
        (
            rows([*RTE[:2], "sentence_2", "label"], ["0", "A", "B", "entailment"]),
            r"line 1: must name the column 'sentence2'.* Did you mean 'sentence_2'\?",
        ),
        (rows(RTE[:-1], ["0", "A", "B"]), r"line 1: must name the column 'label'"),
        ("\n \n" + rows(RTE[:-1], ["0", "A", "B"]), "line 3: must name the column 'la"),
        (
            rows([*RTE, "label"], ["0", "A", "B", "entailment", "entailment"]),
            r"line 1: must name the column 'label' once. Received: \['index'",
        ),
        (
            rows([*RTE, "index"], ["0", "A", "B", "entailment", "1"]),
            r"line 1: must name the column 'index' once. Received: \['index'",
        ),
        (
            rows(RTE, ["0", "A", "B", "entailment"], ["1", "A", "entailment"]),
            r"dev\.tsv, line 3: must have 4 columns. Received: 3",
        ),
        (
            rows(RTE, ["0", "A", "B", "C", "entailment"]),
            r"line 2: must have 4 columns. Received: 5",
        ),
        (
            rows(RTE, ["0", "A", "B", "neutral"]),
            r"line 2: the label must be one of \['entailment', 'not_entailment'\]. "
            r"Received: 'neutral'",
        ),
        (
            rows(RTE, ["0", "A", "B", "not entailed"]),
            r"line 2: .*Received: 'not entailed'. Did you mean 'not_entailment'\?",
        ),
        (
            rows(RTE).encode() + b"0\tA\tB \xff\tentailment\n",
            r"line 2: must be UTF-8 text. Received: .*0xff",
        ),
    ],
)
def test_bad_files(tmp_path, text, message):
    write(tmp_path / "RTE" / "dev.tsv", text)
    with pytest.raises(ValueError, match=message):
        get("RTE").read("dev", tmp_path)


@pytest.mark.parametrize("score", ["high", "", "nan", "-0.1", "5.1", "inf", "0_1"])
def test_bad_ratings(tmp_path, score):
    header = [*STS, "sentence1", "sentence2", "score"]
    write(tmp_path / "STS-B" / "dev.tsv", rows(header, [*"0123456", "A", "B", score]))
    with pytest.raises(ValueError, match="line 2: the label must be a number from 0"):
        get("STS-B").read("dev", tmp_path)


def test_malformed_lines_are_skipped_only_if_asked(tmp_path):
    lines = [RTE, ["0", "A"], ["1", "A", "B", "entailment"], ["2", "C", "D"]]
    write(tmp_path / "RTE" / "dev.tsv", rows(*lines))
    with pytest.raises(ValueError, match="line 2: must have 4 columns"):
        get("RTE").read("dev", tmp_path)
    examples = get("RTE").read("dev", tmp_path, skip_malformed=True)
    assert examples.ids == ("1",)
    assert [s.split(", ")[1] for s in examples.skipped] == [
        "line 2: must have 4 columns. Received: 2",
        "line 4: must have 4 columns. Received: 3",
    ]


# Sizes and shares of the label 1 (or the mean rating) of the published files.
REAL = {
    ("CoLA", "train"): (8551, 6023 / 8551),
    ("CoLA", "dev"): (1043, 721 / 1043),
    ("SST-2", "train"): (67349, 37569 / 67349),
    ("SST-2", "dev"): (872, 444 / 872),
    ("RTE", "train"): (2490, 1241 / 2490),
    ("RTE", "dev"): (277, 131 / 277),
    ("STS-B", "train"): (5749, None),
    ("STS-B", "dev"): (1500, None),
    ("QNLI", "dev"): (5463, 2761 / 5463),
    ("MRPC", "dev"): (408, 279 / 408),
}


@pytest.mark.parametrize(("task", "split"), REAL)
def test_real_files(data_dir, task, split):
    path = data_dir / "glue" / task / f"{split}.tsv"
    if not path.is_file():
        pytest.skip(f"no {path}")
    examples = get(task).read(split, data_dir / "glue")
    size, share = REAL[task, split]
    assert len(examples) == size
    if share is not None:
        assert examples.labels.mean() == pytest.approx(share)


def test_the_dev_part_of_mrpc_as_microsoft_publishes_it(tmp_path):
    lines = [["1", "17", "18", '"A"', "B"], ["0", "18", "17", "C", "D"]]
    text = rows(["\ufeffQuality", *MRPC], *lines)
    write(tmp_path / "MRPC" / "msr_paraphrase_train.txt", text)
    with pytest.raises(ValueError, match="must hold MRPC/dev_ids.tsv"):
        get("MRPC").read("train", tmp_path)
    write(tmp_path / "MRPC" / "dev_ids.tsv", "18\t17\n")
    parts = [get("MRPC").read(split, tmp_path) for split in ("train", "dev")]
    assert [part.first for part in parts] == [('"A"',), ("C",)]
    assert [part.labels.tolist() for part in parts] == [[1], [0]]
