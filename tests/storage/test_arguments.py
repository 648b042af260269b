"""Functions that take paths take URLs; a table says which are read and written."""

import gzip
import inspect
import io
import json
import os
import pathlib
import re

import fsspec
import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.modules import import_all
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.stores import make_store
from tests.subjects.versions import needs_litert
from tfeff import storage
from tfeff.storage import arguments, place
from tfeff.storage.local import local_path
from tfeff.storage.manifest import NAME
from tfeff.storage.naming import named_by_urls
from tfeff.storage.publishing import claimed
from tfeff.storage.streams import open_stream

URL = "store://bucket/thing"


@pytest.fixture(name="store", autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_store(tmp_path / "store", monkeypatch)


def tiny():
    return tfeff.encoders.build(
        "bert_tiny", vocabulary_size=60, num_layers=1, hidden_dim=8, num_heads=2
    )


def test_presets(store, monkeypatch):
    encoder = tiny()
    tfeff.tasks.save_pretrained(encoder, tokenizer(), URL)
    for found in (
        tfeff.tasks.load_pretrained(URL)[0],
        tfeff.encoders.Encoder.from_preset(URL),
    ):
        for one, other in zip(encoder.weights, found.weights, strict=True):
            np.testing.assert_array_equal(one, other)
    assert tfeff.convert.load_tokenizer(URL).vocabulary_size() == 60
    with pytest.raises(ValueError, match="`path` must not exist yet. .*store://bucket"):
        tfeff.tasks.save_pretrained(encoder, tokenizer(), URL)
    for url in (URL, "store://bucket/new"):
        with pytest.raises(ValueError, match="`overwrite` must be False where `path`"):
            tfeff.tasks.save_pretrained(encoder, tokenizer(), url, overwrite=True)
    monkeypatch.setattr(store, "lag", 0.0)  # Its files are to be seen.
    os.remove(f"{store.root}/bucket/thing/{NAME}")
    with pytest.raises(ValueError, match="`path` must be a folder that tfeff has publ"):
        tfeff.tasks.load_pretrained(URL)


def test_nothing_is_computed_where_nothing_can_be_written(store, monkeypatch):
    def fails(path):
        raise PermissionError("Access Denied")

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with pytest.raises(ValueError, match="`directory` must be a place that may be wri"):
        tfeff.data.build_cache(["a"], tokenizer(), URL)
    with pytest.raises(ValueError, match="`path` must be a place that may be written"):
        tfeff.tasks.save_pretrained(None, None, URL)


def test_caches():
    local = tfeff.data.build_cache(DOCUMENTS, tokenizer(), "local", 16)
    made = tfeff.data.build_cache(DOCUMENTS, tokenizer(), URL, 16)
    assert repr(made).partition(",")[2] == repr(local).partition(",")[2]
    assert tfeff.data.open_cache(URL).directory == made.directory
    assert tfeff.data.build_cache(DOCUMENTS, tokenizer(), URL, 16).directory == (
        made.directory
    )
    with pytest.raises(ValueError, match="sequence_length is 16, not 8"):
        tfeff.data.build_cache(DOCUMENTS, tokenizer(), URL, 8)


def test_corpora_are_streams(store, tmp_path):
    folder = pathlib.Path(store.root, "bucket")
    folder.mkdir()
    (folder / "a.txt").write_text("One.\n\nTwo.")
    (folder / "b.jsonl").write_text('{"text": "Three."}\n')
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    assert list(tfeff.data.text_files("store://bucket/*.txt")) == ["One.", "Two."]
    assert list(tfeff.data.text_files("store://bucket/a.txt")) == ["One.", "Two."]
    assert list(tfeff.data.json_lines(["store://bucket/b.jsonl"])) == ["Three."]
    assert not (tmp_path / "copies").exists()
    with pytest.raises(ValueError, match="`patterns` must match files.*none"):
        tfeff.data.text_files("store://bucket/*.csv")


def test_corpora_that_can_only_be_read_on(store, monkeypatch):
    class Forward(io.FileIO):
        size, path = None, "store://bucket/a"

        def seek(self, *_):
            raise ValueError("Cannot seek")

    folder = pathlib.Path(store.root, "bucket")
    folder.mkdir()
    (folder / "a.txt").write_text("One.\n\nTwo.")
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"One.\n\nTwo."))
    monkeypatch.setattr(store, "open", lambda self, path, mode: Forward(path))
    for name in ("a.txt", "a.txt.gz"):
        found = list(tfeff.data.text_files(f"store://bucket/{name}"))
        assert found == ["One.", "Two."], name
    with (
        open_stream("store://bucket/a.txt") as file,
        pytest.raises(ValueError, match="`patterns` must .*any byte.*store://bucket/a"),
    ):
        file.seek(1)


@pytest.mark.parametrize("is_flat", [False, True])
def test_files(is_flat, store, monkeypatch):
    if is_flat:
        monkeypatch.setattr(place, "_FLAT", {"store"})
    tfeff.data.save_tokenizer(tokenizer(), "store://bucket/a.spm")
    tfeff.data.save_tokenizer(tokenizer(), "store://bucket/a.spm")  # The same again.
    assert tfeff.data.load_tokenizer("store://bucket/a.spm").vocabulary_size() == 60
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    tfeff.training.save_checkpoint(model, "store://bucket/a.keras")
    found = tfeff.training.load_checkpoint("store://bucket/a.keras")
    np.testing.assert_array_equal(found.weights[0], model.weights[0])
    path = tfeff.datasets.write_tsv({"0": "entailment"}, "store://bucket/RTE.tsv")
    assert path == "store://bucket/RTE.tsv"
    with pytest.raises(ValueError, match="`path` must be new"):
        tfeff.datasets.write_tsv({"0": "entailment"}, path)
    metrics = "store://bucket/metrics.json"
    tfeff.training.write_metrics({"f1": 0.5}, metrics)
    tfeff.training.write_metrics({"f1": 1.0}, metrics)
    text = pathlib.Path(store.root, "bucket", "metrics.json").read_text()
    assert text == '{\n  "f1": 1.0\n}\n'
    assert not list(pathlib.Path(store.root).glob("**/*probe*"))
    monkeypatch.setattr(store, "lag", 0)
    with pytest.raises(ValueError, match="`path` must be a file.*store://bucket'"):
        tfeff.training.write_metrics({"f1": 1.0}, "store://bucket")
    with pytest.raises(ValueError, match="`output` must be a file.*store://bucket'"):
        arguments.check_replaceable("output", "store://bucket")
    arguments.check_replaceable("output", metrics)
    assert pathlib.Path(store.root, "bucket", "metrics.json").read_text() == text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_what_is_not_uploaded_stays(error, monkeypatch, capsys):
    def fails(*_):
        raise error("stopped")

    monkeypatch.setattr(place.Place, "put", fails)
    with pytest.raises(error) as raised:
        tfeff.data.build_cache(DOCUMENTS, tokenizer(), URL, 16)
    told = f"{raised.value} {capsys.readouterr().err}"
    folder = re.search(r"What was to be uploaded is in (\S+)", told)[1]
    assert tfeff.data.open_cache(folder).sequence_length == 16


@pytest.mark.parametrize("name", ["a", "folder with spaces/RUN@3"])
def test_errors_name_urls(name):
    with (
        pytest.raises(ValueError, match=rf"^see store://b/{name}, store://b/{name}/c$"),
        named_by_urls({f"/copies/x1/{name}": f"store://b/{name}"}),
    ):
        raise ValueError(f"see /copies/x1/{name}, /copies/x1/{name}/c")


def test_paths_in_errors_are_whole_ones():
    urls = {"/data": "file:///data", "/data/sub": "file:///data/sub"}
    given = "/data/sub/a, (/data), /mnt/data, /database, file:///data"
    with pytest.raises(OSError) as raised, named_by_urls(urls):
        raise OSError(given)
    assert str(raised.value) == (
        "file:///data/sub/a, (file:///data), /mnt/data, /database, file:///data"
    )
    with pytest.raises(OSError) as raised, named_by_urls(urls):
        os.stat("/data/sub/none")
    assert str(raised.value).endswith("directory: 'file:///data/sub/none'")


def test_an_error_about_a_copy_names_the_url(store):
    tfeff.tasks.save_pretrained(tiny(), tokenizer(), URL)
    with pytest.raises(ValueError, match=f"path='{URL}'") as raised:
        tfeff.tasks.load_masked_lm(URL)
    assert "copies" not in str(raised.value)
    pathlib.Path("export").mkdir()
    pathlib.Path("export", "a.txt").touch()
    storage.publish("export", f"{URL}2")
    with pytest.raises(ValueError, match=f"'{URL}2'") as raised:
        tfeff.export.check_export(f"{URL}2")
    assert "copies" not in str(raised.value)


def test_names_of_what_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("a.txt").touch()
    with fsspec.open("memory://texts/a.txt", "w") as file:
        file.write("one two")
    for output, read in (
        ("a.txt", f"file://{tmp_path}/a.txt"),
        ("./a.txt", str(tmp_path)),
        ("store://bucket/run/new.json", "store://bucket/run/"),
        ("memory:///bucket/run/a.json", "MEMORY://bucket/run"),
        ("memory://texts/a.txt", place.Place("x", "memory://texts/*").glob()[0]),
    ):
        with pytest.raises(ValueError, match=f"`output` must not.*{output}"):
            arguments.check_keeps_inputs("output", output, [read])
    for output, read in (
        ("new.txt", str(tmp_path)),
        ("a.txt", f"{tmp_path}/a"),
        ("store://bucket/running.json", "store://bucket/run"),
        ("run/new.json", "store://bucket/run"),
    ):
        arguments.check_keeps_inputs("output", output, [read])


@pytest.mark.parametrize("scheme", ["file", "FILE", "Local"])
def test_schemes_in_any_case(scheme, tmp_path):
    (tmp_path / "documents.txt").write_text("one two\n")
    url = f"{scheme}://{tmp_path}/documents.txt"
    assert list(tfeff.data.text_files(url)) == ["one two"]
    assert pathlib.Path(local_path("path", url)).read_text() == "one two\n"


@pytest.mark.slow
def test_exports(store, monkeypatch):
    first = tfeff.export.save_version(tiny(), tokenizer(), URL)
    second = tfeff.export.save_version(tiny(), tokenizer(), URL)
    assert [first, second] == [f"{URL}/1", f"{URL}/2"]
    monkeypatch.setattr(store, "lag", 0)
    assert tfeff.export.versions(URL) == [first, second]
    tfeff.export.check_export(URL)
    with pytest.raises(ValueError, match="`path` must be.*thing/2', .*export itself"):
        tfeff.export.save_version(tiny(), tokenizer(), second)
    # Checked is what is there now, and a newest version without its graph is one.
    graph = pathlib.Path(store.root, "bucket", "thing", "2", "saved_model.pb")
    content = graph.read_bytes()
    graph.write_bytes(content[:-1] + b"?")
    for url in (URL, second):
        with pytest.raises(ValueError, match="damaged: saved_model.pb has another"):
            tfeff.export.check_export(url)
    graph.unlink()
    assert tfeff.export.versions(URL) == [first, second]
    with pytest.raises(ValueError, match="damaged: saved_model.pb is missing"):
        tfeff.export.check_export(URL)
    graph.write_bytes(content)
    tfeff.export.check_export(URL)
    os.remove(f"{store.root}/bucket/thing/2/{NAME}")
    assert tfeff.export.versions(URL) == [first]
    assert not os.listdir(os.path.join(os.environ["TFEFF_CACHE"], "checked"))


@pytest.mark.slow
def test_versions_that_are_written_at_once_have_numbers_of_their_own(
    store, monkeypatch
):
    monkeypatch.setattr(store, "lag", 0)
    with claimed("path", URL, "version-1") as is_own:
        assert is_own
        assert tfeff.export.save_version(tiny(), tokenizer(), URL) == f"{URL}/2"
    assert tfeff.export.save_version(tiny(), tokenizer(), URL) == f"{URL}/3"
    assert not list(pathlib.Path(store.root).glob("**/.tfeff-*"))


def test_other_arguments_refuse_urls():
    for make in (
        lambda: tfeff.training.KeepBest(dict, "f1", 1, URL),
        lambda: tfeff.training.Checkpoints(URL, 1),
        lambda: tfeff.training.Grid(URL, {"rate": [1.0]}, [0], "f1"),
    ):
        with pytest.raises(ValueError, match="`directory` must be a path on this mach"):
            make()


PATHS = {
    *("path", "folder", "directory", "file", "filepath", "preset", "preset_dir"),
    *("source", "destination", "patterns", "shared_folder", "run_dir", "cache_dir"),
}
# Functions that handle URLs themselves, or refuse them, or take no path.
OWN_WAYS = {
    *("data.build_cache", "data.json_lines", "data.parquet", "data.text_files"),
    *("data.sample", "data.Cache", "encoders.build", "encoders.Encoder.export"),
    *("encoders.Encoder.save", "export.check_export", "export.save_version"),
    *("export.versions", "objectives.MaskedLM.export", "storage.publish"),
    *("tasks.load_masked_lm", "training.Checkpoints", "training.Grid"),
    *("training.KeepBest", "training.RunDirectory", "training.RunDirectory.shown"),
    *("layers.DynamicConv1D.kernel_logits", "layers.LightweightConv1D.kernel_logits"),
}
# KerasHub's, which `from_preset` calls with a folder.
OF_LOADERS = {"load_preset_assets", "load_task_weights", "save_task_weights"}


def public_functions():
    """Names and functions: all public ones, constructors, and methods of classes."""
    for package in sorted(set(tfeff.__all__) - {"__version__", "recipes"}):
        for name in getattr(tfeff, package).__all__:
            value = getattr(getattr(tfeff, package), name)
            if not inspect.isclass(value):
                yield f"{package}.{name}", value
                continue
            yield f"{package}.{name}", value.__init__
            for method in set(dir(value)) - OF_LOADERS:
                function = inspect.getattr_static(value, method)
                function = getattr(function, "__func__", function)  # Of the class.
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{package}.{name}.{method}", function


def test_every_public_path_may_be_a_url_or_is_refused():
    import_all()
    seen, unknown = set(), []
    for name, function in public_functions():
        inner = inspect.unwrap(function)
        if not inspect.isfunction(inner):  # The constructor of `object`.
            continue
        key = f"{inner.__module__}.{inner.__qualname__}"
        is_preset = name.endswith(("save_to_preset", "from_preset"))
        if key in seen or not (is_preset or key.startswith("tfeff.")):
            continue
        seen.add(key)
        given = PATHS.intersection(inspect.signature(inner).parameters)
        if given - {*arguments.TABLE.get(key, ())} and name not in OWN_WAYS:
            unknown.append(name)
    assert len(seen) > 300 and not unknown


def test_presets_of_kerashub_s_classes(store):
    """Only whole presets, as those of tasks, can be read again."""
    encoders = tfeff.encoders
    preprocessor = encoders.EncoderTextClassifierPreprocessor(tokenizer(), 6)
    model = encoders.EncoderTextClassifier(tiny(), 2, preprocessor=preprocessor)
    model.save_to_preset(URL)
    found = encoders.EncoderTextClassifier.from_preset(URL)
    for one, other in zip(model.weights, found.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    rows = encoders.EncoderTextClassifierPreprocessor.from_preset(URL)
    assert rows.tokenizer.vocabulary_size() == 60
    pieces = tfeff.data.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    pieces.save_to_preset("store://bucket/tokenizer")
    preprocessor.save_to_preset("store://bucket/preprocessor")
    folder = pathlib.Path(store.root, "bucket")
    assert {p.name for p in folder.iterdir()} == {"thing", "tokenizer", "preprocessor"}
    with pytest.raises(ValueError, match="`preset_dir` must not exist yet"):
        pieces.save_to_preset(URL)
    assert not os.path.exists("store:")


def test_the_table_is_of_arguments_that_there_are():
    import_all()
    assert len(arguments.TABLE) > 40


def test_files_beside_a_tokenizer_count(store, tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "Cat"]
    folder = pathlib.Path(store.root, "bucket", "bert")
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(pieces))
    url = "store://bucket/bert/vocab.txt"
    assert list(tfeff.convert.load_tokenizer(url)("Cat")) == [6]
    settings = {"do_lower_case": True, "tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    for source in (str(folder / "vocab.txt"), url):
        assert list(tfeff.convert.load_tokenizer(source)("Cat")) == [5], source


def test_what_cannot_be_uploaded_is_kept(store, monkeypatch):
    def fails(path):
        if path.endswith(".tfrecord"):
            raise ConnectionResetError("gone")

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with pytest.raises(OSError, match="gone. What was to be uploaded is in") as raised:
        tfeff.data.build_cache(DOCUMENTS, tokenizer(), URL, 16)
    kept = str(raised.value).rpartition(" ")[2]
    assert tfeff.data.open_cache(kept).num_sequences >= len(DOCUMENTS)
    monkeypatch.setattr(store, "fails", staticmethod(lambda path: None))
    storage.publish(kept, URL)
    assert tfeff.data.open_cache(URL).num_sequences >= len(DOCUMENTS)


def test_the_program_of_a_model_comes_last(store, tmp_path, monkeypatch):
    """A server loads a folder once it has it."""
    folder = tmp_path / "made"
    for name in ("1/saved_model.pb", "1/variables/index", "other", "1/SHA256SUMS"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    written = []
    monkeypatch.setattr(store, "fails", staticmethod(written.append))
    storage.publish(str(folder), URL)
    files = [path for path in written if "/thing/" in path and NAME not in path]
    place = next(i for i, x in enumerate(files) if x.endswith("saved_model.pb"))
    assert sum(x.endswith(("index", "other", "SUMS")) for x in files[:place]) == 3


@needs_litert
def test_exports_tell_their_name(store, capsys):
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    tfeff.export.export_model(model, f"{URL}.tflite", format="litert")
    assert capsys.readouterr().out == "Saved 'thing.tflite'.\n"
