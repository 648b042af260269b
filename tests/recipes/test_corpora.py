"""Names of corpora, as the recipes take them."""

import sys
import types

import pyarrow
import pyarrow.parquet
import pytest

from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.stores import make_store
from tfeff.recipes.corpora import (
    build_caches,
    check_other_text,
    corpus,
    split_corpus,
    train_and_validation,
    train_tokenizer,
)

SETTINGS = types.SimpleNamespace(
    max_characters=10_000, text_field="body", validation_fraction=0.5
)


def test_kinds_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo")
    (tmp_path / "b.jsonl").write_text('{"body": "three"}\n{"body": "four"}')
    table = pyarrow.table({"body": ["five"]})
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    names = [str(tmp_path / name) for name in ("b.jsonl", "a.*", "*.parquet")]
    documents = corpus(names, SETTINGS)
    assert list(documents) == ["three", "four", "one", "two", "five"]
    assert list(documents) == ["three", "four", "one", "two", "five"]


def test_a_file_is_read_once_also_behind_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("four")
    for name in ("c.jsonl", "d.jsonl"):
        (tmp_path / name).write_text('{"body": "two"}\n{"body": "two"}')
    names = ["a.txt", "c.jsonl", "*.txt", "./c.jsonl", str(tmp_path / "a.txt")]
    assert list(corpus(names, SETTINGS)) == ["one", "two", "two", "four"]
    documents = list(corpus(["*.jsonl"], SETTINGS))  # Other files, of equal texts.
    assert documents == ["two"] * 4


def test_no_file_is_trained_on_and_validated_by(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "v.txt", "other.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link.txt").symlink_to("v.txt")

    def texts(*validation):
        return train_and_validation(
            types.SimpleNamespace(
                **vars(SETTINGS), corpus=("[av].txt",), validation=validation
            )
        )

    for name in ("v.txt", "./v.txt", str(tmp_path / "v.txt"), "link.txt"):
        message = rf"^`validation` must be of other .* Received: {name} in both"
        with pytest.raises(ValueError, match=message):
            texts("other.txt", name)
    train, validation = texts("other.txt")
    assert (list(train), list(validation)) == (["a.txt", "v.txt"], ["other.txt"])


@pytest.mark.parametrize("name", ["docstrings", "hf:x", "hf:x:y", "tfds:x"])
def test_no_data_set_is_trained_on_and_validated_by(name):
    """Of a data set both read the training split."""
    settings = types.SimpleNamespace(
        **vars(SETTINGS), corpus=("a.txt", name), validation=(name,)
    )
    message = f"^`validation` must be of other text.*Received: {name} in both"
    with pytest.raises(ValueError, match=message):
        check_other_text(settings)


@pytest.mark.parametrize(("kind", "size"), [("sentencepiece", 60), ("wordpiece", 80)])
@pytest.mark.parametrize("lowercase", [True, False])
def test_case_is_folded_unless_it_is_to_stay(kind, size, lowercase):
    settings = types.SimpleNamespace(
        tokenizer_kind=kind, tokenizer_lowercase=lowercase, vocabulary_size=size
    )
    texts = [*DOCUMENTS, *(text.title() for text in DOCUMENTS)]
    made = train_tokenizer(texts, settings)
    first, titled = (list(map(int, made(text))) for text in texts[:: len(DOCUMENTS)])
    assert (first == titled) is lowercase


class Splits(dict):
    """As `datasets.DatasetDict`."""


class Saved:
    """As `datasets.Dataset`, of what `load_from_disk` reads."""

    column_names = ("body",)

    def __init__(self, *texts):
        self.texts = texts

    def select_columns(self, names):
        return [{"body": text} for text in self.texts]


def test_of_saved_splits_that_to_train_on_is_read(tmp_path, monkeypatch):
    found = {"all": Splits(test=Saved("one"), train=Saved("two")), "test": Saved("1")}
    found["none"] = Splits(test=Saved("one"))
    module = types.ModuleType("datasets")
    module.load_from_disk = lambda folder: found[folder.rsplit("/", 1)[-1]]
    monkeypatch.setitem(sys.modules, "datasets", module)
    for name in found:
        (tmp_path / name).mkdir()
    assert list(corpus([f"hf:{tmp_path}/all"], SETTINGS)) == ["two"]
    assert list(corpus([f"hf:{tmp_path}/test"], SETTINGS)) == ["1"]
    message = "`corpus` must name a data set.*splits test and no train.*none/test"
    with pytest.raises(ValueError, match=message):
        corpus([f"hf:{tmp_path}/none"], SETTINGS)


def test_a_url_is_in_no_two_texts(tmp_path, monkeypatch):
    make_store(tmp_path / "store", monkeypatch)
    (tmp_path / "store" / "bucket").mkdir(parents=True)
    for name in ("a.txt", "v.txt"):
        (tmp_path / "store" / "bucket" / name).write_text(name)
    settings = types.SimpleNamespace(
        **vars(SETTINGS),
        corpus=("store://bucket/a.txt", "store://bucket/v.txt"),
        validation=("store://bucket/v.txt",),
    )
    with pytest.raises(ValueError, match="Received: store://bucket/v.txt in both"):
        train_and_validation(settings)
    settings.corpus = ("store://bucket/a.txt",)
    assert [list(text) for text in train_and_validation(settings)] == [
        ["a.txt"],
        ["v.txt"],
    ]


@pytest.mark.parametrize("name", ["a.JSONL", "a.ndjson", "a.json"])
def test_names_of_json_lines(tmp_path, name):
    (tmp_path / name).write_text('{"body": "three"}\n')
    assert list(corpus([str(tmp_path / name)], SETTINGS)) == ["three"]


@pytest.mark.parametrize(
    ("name", "given_as"),
    [
        *((name, name) for name in ("a.csv", "a.TSV", "a.csv.gz")),
        *((name, "*") for name in ("a.csv", "a.jsonl", "a.parquet", "a.json.gz")),
    ],
)
def test_other_files_are_not_read_as_text(tmp_path, name, given_as):
    (tmp_path / name).write_text("id,body\n1,three")
    with pytest.raises(ValueError, match=rf"`validation` must match text .*{name}, wh"):
        corpus([str(tmp_path / given_as)], SETTINGS, "validation")


def test_a_field_that_there_is_not_is_named_by_its_setting(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"bodies": "three"}\n')
    message = (
        r"^Line 1 of .*a.jsonl must have the field that `text_field` names. It has "
        r"\['bodies'\]. Received: text_field='body'. Did you mean 'bodies'\?$"
    )
    with pytest.raises(ValueError, match=message):
        corpus([str(tmp_path / "a.jsonl")], SETTINGS)
    # Of later lines, when they are read.
    (tmp_path / "a.jsonl").write_text('{"body": "one"}\n{"bodies": "three"}\n')
    with pytest.raises(ValueError, match=message.replace("1", "2", 1)):
        split_corpus([str(tmp_path / "a.jsonl")], SETTINGS)


@pytest.mark.parametrize(
    ("texts", "fraction", "message"),
    [
        (["one\ntwo\n"], 0.02, "1. In text files a blank line ends .* as `validation`"),
        (["one\n\ntwo\n"], 1e-9, "2. Give a larger fraction or other text"),
        (["one\n\ntwo\n"], 1 - 1e-9, "2. Give a smaller fraction or"),
        (["one\ntwo", "three"], 1e-9, "2. In text files .* Give a larger fraction"),
    ],
)
def test_too_few_documents(tmp_path, texts, fraction, message):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    settings = types.SimpleNamespace(
        **{**vars(SETTINGS), "validation_fraction": fraction},
        corpus=(str(tmp_path / "*.txt"),),
        validation=(),
    )
    with pytest.raises(ValueError, match=f"documents: {message}"):
        train_and_validation(settings)
    with pytest.raises(ValueError, match=r"documents: \d\. (?!.*`validation`)"):
        split_corpus([str(tmp_path / "*.txt")], settings)


def test_docstrings_beside_files(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    documents = list(corpus([str(tmp_path / "a.txt"), "docstrings"], SETTINGS))
    assert documents[0] == "one" and len(documents) > 1


def test_hugging_face_by_name(tmp_path):
    try:
        import datasets
    except ImportError:
        with pytest.raises(ValueError, match="hf:wikitext: pip install datasets"):
            corpus(["hf:wikitext"], SETTINGS)
        return
    dataset = datasets.Dataset.from_dict({"body": ["one", "two"]})
    dataset.save_to_disk(tmp_path / "saved")
    assert list(corpus([f"hf:{tmp_path / 'saved'}"], SETTINGS)) == ["one", "two"]
    with pytest.raises(ValueError, match="`corpus` must name a data set.*hf:/nowhere"):
        corpus(["hf:/nowhere"], SETTINGS)


def test_text_without_a_token_is_named_by_its_setting(tmp_path):
    settings = types.SimpleNamespace(
        tokenizer_kind="wordpiece",
        tokenizer_lowercase=True,
        vocabulary_size=60,
    )
    with pytest.raises(ValueError, match="^`corpus` must hold text. Received"):
        train_tokenizer([" "], settings)
    for texts, name in (
        (([" "], ["two"]), "corpus"),
        ((["one"], [" "]), "validation"),
    ):
        with pytest.raises(ValueError, match=f"^`{name}` must hold text. Received: 1"):
            folder = str(tmp_path / name)
            build_caches(folder, *texts, tokenizer(), 8, of_validation="validation")
    # It is a part of the corpus.
    with pytest.raises(ValueError, match="^`corpus` must hold text. Received: 1"):
        build_caches(str(tmp_path / "split"), ["one"], [" "], tokenizer(), 8)
