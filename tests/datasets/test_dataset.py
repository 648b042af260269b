"""Data sets as objects: the registry, and some of one's own."""

import os
import sys

import numpy as np
import pytest

from tests.datasets.files import rows, write, write_json
from tfeff import data, datasets

PARTS = ("train", "dev", "test")


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """What is registered in a test is gone after it."""
    module = sys.modules[datasets.register.__module__]
    monkeypatch.setattr(module, "_REGISTRY", dict(module._REGISTRY))


def test_all_are_registered():
    kinds = {
        data.TextExamples: [
            *("CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE", "WNLI"),
            *("BoolQ", "MultiRC"),
        ],
        data.ChoiceExamples: ["RACE"],
        data.SpanExamples: [
            *("SQuAD1.1", "SQuAD2.0"),
            *("HotpotQA", "NewsQA", "SearchQA", "TriviaQA", "NaturalQuestions"),
        ],
    }
    for kind, expected in kinds.items():
        assert set(expected) <= set(datasets.names(kind)) <= set(datasets.names())
        for name in expected:
            dataset = datasets.get(name)
            assert (dataset.name, dataset.kind) == (name, kind)
            spans = kind is data.SpanExamples
            if name != "MNLI":
                is_mrqa = spans and not name.startswith("SQuAD")
                halves = ("dev_half", "test_half") if is_mrqa else ()
                assert dataset.splits == ((*PARTS[:2], *halves) if spans else PARTS)
                assert dataset.dev_splits == ("dev",)
            assert (dataset.label_names is None) == (spans or name == "STS-B")
    assert datasets.get("squad1") is datasets.get("SQuAD1.1")
    assert datasets.get("squad2") is datasets.get("SQuAD2.0")
    mnli = datasets.get("MNLI")
    assert mnli.dev_splits == ("dev_matched", "dev_mismatched")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SST2", r"Did you mean 'SST-2'\?"),
        ("boolq", r"Did you mean 'BoolQ'\?"),
        ("sqad", r"Did you mean 'SQuAD"),
        ("race", r"Did you mean 'RACE'\?"),
        ("hotpot", r"Did you mean 'HotpotQA'\?"),
        ("weather", r"Received: name='weather'\.$"),
        (None, "`name` must be one of"),
        ([], "`name` must be one of"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        datasets.get(name)


def weather(**changes):
    return datasets.tsv_dataset(
        **{
            "name": "Weather",
            "texts": ("report", "place"),
            "label": "sky",
            "label_names": ("dry", "wet"),
            "metric_names": ("f1", "accuracy", "matthews_correlation"),
        }
        | changes
    )


def test_a_table_of_ones_own(tmp_path):
    own = datasets.register(weather())
    assert datasets.register(own) is own is datasets.get("Weather")
    assert datasets.names()[-1] == "Weather"
    lines = [["id", "sky", "place", "report"], ["7", "wet", "here", "It rains."]]
    write(tmp_path / "Weather" / "dev.tsv", rows(*lines, ["8", "dry", "there", "Sun."]))
    dev = own.read("dev", tmp_path)
    assert (dev.first, dev.second) == (("It rains.", "Sun."), ("here", "there"))
    assert (dev.labels.tolist(), dev.ids) == ([1, 0], ("7", "8"))
    assert own.metrics(dev, np.array([1, 0])) == dict.fromkeys(own.metric_names, 1.0)
    (path,) = own.write_predictions("dev", dev, [0, 1], tmp_path / "new")
    assert path == str(tmp_path / "new" / "Weather.tsv")
    with open(path) as file:
        assert file.read() == "index\tprediction\n7\tdry\n8\twet\n"
    # A test part may lack the labels, a line its columns.
    unlabelled = [[line[0], *line[2:]] for line in lines]
    write(tmp_path / "Weather" / "test.tsv", rows(*unlabelled, ["9"]))
    with pytest.raises(ValueError, match="line 3: must have 3 columns. Received: 1"):
        own.read("test", tmp_path)
    test = own.read("test", tmp_path, skip_malformed=True)
    assert (test.labels, len(test), len(test.skipped)) == (None, 1, 1)
    with pytest.raises(ValueError, match="`folder` must hold Weather/train.tsv"):
        own.read("train", tmp_path)
    write(tmp_path / "Weather" / "train.tsv", "report,place,sky\na,b,dry\n")
    with pytest.raises(ValueError, match="Columns must be separated by tabs"):
        own.read("train", tmp_path)
    quoted = '"report"\t"place"\t"sky"\n"a"\t"b"\t"dry"\n'
    write(tmp_path / "Weather" / "train.tsv", quoted)
    with pytest.raises(ValueError, match="Write it without quotes, as by"):
        own.read("train", tmp_path)
    with pytest.raises(
        TypeError,
        match=r"Weather is read with the options \['skip_malformed'\]. Received: "
        r"skip_malformd=True. Did you mean 'skip_malformed'\?",
    ):
        own.read("dev", tmp_path, skip_malformd=True)
    with pytest.raises(TypeError, match=r"RACE is read with the options \['levels'\]"):
        datasets.get("RACE").read("dev", tmp_path, skip_malformed=True)


def test_blank_texts_and_those_that_look_quoted_are_errors(tmp_path):
    path = tmp_path / "Weather" / "train.tsv"
    head = ["report", "place", "sky"]
    fine = ['"Rain"', '"a" and "b"', "dry"], ['""', '"a ""b" c"', "dry"]
    fine = (*fine, ['"', '""a"" b', "wet"])
    write(path, rows(head, *fine))
    assert weather().read("train", tmp_path).first == ('"Rain"', '""', '"')
    for cell, message in (
        ("", "must hold a text in the column 'place'. Received: ''"),
        ("  ", "must hold a text in the column 'place'. Received: '  '"),
        (
            '"He said ""fun"""',
            r"without quotes .*quoting=3, .*str.split.*Received: '\"He said",
        ),
        ('"""a"" b"', "without quotes around it"),
    ):
        write(path, rows(head, *fine, ["Rain.", cell, "dry"]))
        with pytest.raises(ValueError, match=f"line 5: .*{message}"):
            weather().read("train", tmp_path)
        with pytest.raises(ValueError, match=f"line 5: .*{message}"):
            datasets.read_tsv(path, ("report", "place"), "sky", ("dry", "wet"))
        found = weather().read("train", tmp_path, skip_malformed=True)
        assert (len(found), len(found.skipped)) == (3, 1)
        found = weather(any_text=True).read("train", tmp_path)
        assert found.second[-1] == cell
        rte = [["index", "sentence1", "sentence2", "label"]]
        rte += [["0", "a", cell, "entailment"]]
        write(tmp_path / "RTE" / "dev.tsv", rows(*rte))
        assert datasets.get("RTE").read("dev", tmp_path).second == (cell,)
    write(path, rows(head, *fine, [" ", "", ""]))
    with pytest.raises(ValueError, match="line 5: must hold a text in the column 're"):
        weather().read("train", tmp_path)
    with pytest.raises(TypeError, match="`any_text` must be True or False"):
        weather(any_text="no")


def test_a_bool_of_numpy_and_a_line_of_megabytes(tmp_path):
    path = tmp_path / "t.tsv"
    table = dict(texts=("a",), label="b", label_names=("x", "y"))
    path.write_text("a\tb\nhi\tx\n")
    found = datasets.read_tsv(path, **table, label_optional=np.True_)
    assert found.labels.tolist() == [0]
    path.write_text('{"a": "' + "y" * 3_000_000 + '"}\n')
    with pytest.raises(ValueError, match="must name the column 'a'") as caught:
        datasets.read_tsv(path, **table)
    assert len(str(caught.value)) < 2000


def test_new_files_whose_names_begin_with_test(tmp_path):
    birds = datasets.conll_dataset("Birds", ("BIRD",))
    quiz = datasets.span_dataset("Quiz", {"dev": ("quiz.json",)})
    write(tmp_path / "Weather" / "test_new.tsv", rows(["report", "place"], ["a", "b"]))
    write(tmp_path / "Birds" / "test_new.txt", "great\ntits\n")
    asked = {"id": "a", "question": "Who?"}
    paragraphs = [{"context": "Ada.", "qas": [asked]}]
    record = {"data": [{"paragraphs": paragraphs}]}
    asked = write_json(tmp_path / "new.json", record)
    for own, place, predictions in (
        (weather(), tmp_path, [1]),
        (birds, tmp_path, [[0, 1]]),
        (quiz, asked, {"a": "Ada"}),
    ):
        new = own.read("test_new", place)
        folder = tmp_path / "submissions" / own.name
        (path,) = own.write_predictions("test_new", new, predictions, folder)
        assert os.path.dirname(path) == str(folder)
        for split in ("new", "tests/a", "test/../dev", 3, ["test_new"]):
            with pytest.raises(ValueError, match="`split` must be one of .*, or a new"):
                own.read(split, tmp_path)
    message = "must hold Weather/test_newer.tsv.*, whose folder Weather has test_new.t"
    with pytest.raises(ValueError, match=message):
        weather().read("test_newer", tmp_path)
    with pytest.raises(ValueError, match="hold quiz.json. .*, which has .*, new.json"):
        quiz.read("dev", tmp_path)
    with pytest.raises(ValueError, match=r"`split` must be one of \['dev'\]"):
        quiz.read("test_new", tmp_path)
    # Readers of one's own are asked for their splits alone.
    mine = weather(reader=lambda split, folder: new)
    for own in (mine, datasets.get("MNLI"), datasets.get("BoolQ")):
        with pytest.raises(ValueError, match=r"`split` must be one of \[[^\]]*\]\. "):
            own.read("test_new", tmp_path)
    with pytest.raises(TypeError, match="`more_tests` must be True or False"):
        weather(more_tests=1)


def test_ratings_of_ones_own(tmp_path):
    own = datasets.tsv_dataset("Stars", ("review",), "stars", ratings=(1, 5))
    assert own.metric_names == ("pearson", "spearman")
    table = rows(["review", "stars"], ["Good.", "4.5"], ["Bad.", "1"])
    write(tmp_path / "Stars" / "train.tsv", table)
    train = own.read("train", tmp_path)
    assert train.labels.tolist() == [4.5, 1.0] and train.labels.dtype == np.float32
    (path,) = own.write_predictions("train", train, np.array([9.0, 0.3]), tmp_path)
    with open(path) as file:
        assert file.read() == "index\tprediction\n0\t5\n1\t1\n"
    write(tmp_path / "Stars" / "dev.tsv", rows(["review", "stars"], ["Bad.", "0"]))
    with pytest.raises(ValueError, match="label must be a number from 1 to 5. .*'0'"):
        own.read("dev", tmp_path)
    assert own.ratings == (1.0, 5.0)
    free = datasets.tsv_dataset("Stars", ("review",), "stars")
    assert free.ratings is None and weather().ratings is None
    assert free.read("dev", tmp_path).labels.tolist() == [0.0]
    write(tmp_path / "Stars" / "test.tsv", rows(["review", "stars"], ["Bad.", "inf"]))
    with pytest.raises(ValueError, match="label must be a number. Received: 'inf'"):
        free.read("test", tmp_path)


def make(**changes):
    def read(split, folder):
        return data.TextExamples(("a",), None, [1], ["no", "yes"], ("0",))

    labels = ("no", "yes")
    return datasets.Dataset(
        **{"name": "Own", "reader": read, "label_names": labels} | changes
    )


def test_a_reader_and_a_scorer_of_ones_own(tmp_path):
    def score(examples, predictions):
        return {"cost": float(np.sum(examples.labels != predictions))}

    def write_one(split, examples, predictions, folder):
        return [datasets.write_json({split: int(predictions[0])}, f"{folder}/a.json")]

    own = make(scorer=score, metric_names=("cost",), writer=write_one)
    examples = own.read("dev", ".")
    assert own.metrics(examples, [0]) == {"cost": 1.0}
    (path,) = own.write_predictions("dev", examples, [0], tmp_path)
    assert path == str(tmp_path / "a.json")
    with pytest.raises(
        ValueError, match=r"`scorer` must return the metrics \['kappa'\]"
    ):
        make(scorer=score, metric_names=("kappa",)).metrics(examples, [0])
    with pytest.raises(TypeError, match="`reader` must return `TextExamples`"):
        make(reader=lambda split, folder: [1]).read("dev", ".")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "`name` must be a string"),
        ({"reader": None}, "`reader` must be callable"),
        ({"scorer": 3}, "`scorer` must be callable"),
        ({"writer": "x"}, "`writer` must be callable"),
        ({"kind": list}, "`kind` must be one of .*'ChoiceExamples'"),
        ({"label_names": ("a", "a")}, "`label_names` must be different names"),
        ({"label_names": "ab"}, "`label_names` must be a list of names"),
        ({"splits": ("train", 3)}, "`splits` must be a list of `str`"),
        ({"splits": ("train", "")}, "`splits` must be different names"),
        ({"dev_splits": ("valid",)}, "`dev_splits` must be among `splits`"),
        ({"dev_splits": ()}, "`dev_splits` must be among `splits`, at least one"),
        ({"metric_names": ()}, "`metric_names` must name a metric"),
        *(
            ({"metric_names": (x,), "scorer": len}, f"highest value.*Received: '{x}'")
            for x in ("mae", "RMSE", "log_loss", "mean_absolute_error")
        ),
        ({"metric_names": ("acuracy",)}, r"Did you mean 'accuracy'\?"),
        ({"label_names": None}, r"`metric_names` must be of \['pearson', 'spearman'\]"),
        ({"options": 3}, "`options` must be a list of names"),
        ({"ratings": (1, 5)}, "`ratings` must be left out but for texts without"),
        (
            {"label_names": None, "metric_names": ("pearson",), "ratings": (5, 1)},
            "`ratings` must be the least and the highest one",
        ),
        ({"kind": data.SpanExamples}, "`scorer` and `writer` must be given for spans"),
    ],
)
def test_bad_attributes(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": ()}, "`texts` must be one column or two"),
        ({"texts": ("a", "b", "c")}, "`texts` must be one column or two"),
        ({"texts": "report"}, "`texts` must be a list of names"),
        ({"label": None}, "`label` must be a column"),
        ({"label_names": ("wet",)}, "`label_names` must be two at least"),
        ({"ratings": (5, 1)}, "`ratings` must be the least and the highest one"),
        ({"ratings": 5}, "`ratings` must be the least and the highest one"),
        ({"metric_names": ("rain",)}, "`metric_names` must be one of"),
        *(
            ({"label_names": None, "metric_names": (name,)}, "for ratings, without")
            for name in ("accuracy", "f1", "matthews_correlation")
        ),
        (
            {"label_names": ("dry", "wet", "snow")},
            r"`metric_names` must be of \['accuracy', 'macro_f1', "
            r"'matthews_correlation'\]"
            r".*more than two `label_names`.*metric_names=\('f1', .*'snow'",
        ),
    ],
)
def test_bad_tables(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        weather(**changes)


def test_a_cell_that_is_run_again():
    files = {"train": ("a.json",), "dev": ("b.json",)}
    for make in (
        lambda **changes: weather(name="Again", **changes),
        lambda **changes: datasets.span_dataset("Quiz", files, **changes),
        lambda **changes: datasets.conll_dataset("Birds", ("BIRD",), **changes),
    ):
        one, other = datasets.register(make()), datasets.register(make())
        assert one is not other and datasets.get(one.name) is other
        with pytest.raises(ValueError, match="name of its own. .*Give another name"):
            datasets.register(make(splits=("train", "dev", "test", "more")))
        assert datasets.get(one.name) is other


def test_more_than_two_labels():
    labels = ("dry", "wet", "snow")
    assert weather(label_names=labels, metric_names=("matthews_correlation",))
    assert weather(label_names=labels, scorer=lambda *_: {}).metric_names[0] == "f1"


def test_names_are_taken_once():
    for name in ("RTE", "squad1"):
        with pytest.raises(
            ValueError, match=f"name of its own. .*with the name '{name}'"
        ):
            datasets.register(weather(name=name))
    with pytest.raises(TypeError, match="`dataset` must be a `Dataset`"):
        datasets.register("RTE")


def test_an_error_beside_the_deciding_metric_or_its_negative():
    for names in (("negative_mae",), ("pearson", "mae")):
        assert make(metric_names=names, scorer=len, label_names=None).metric_names


@pytest.mark.parametrize("kind", ["TextExamples", 5, str])
def test_kinds_that_there_are_not(kind):
    with pytest.raises(ValueError, match=r"`kinds` must be among .*TextExamples"):
        datasets.names(kind)
