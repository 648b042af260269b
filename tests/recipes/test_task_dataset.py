"""The data set of a task, by its name, by a description, or as an object."""

import functools
import json
import re

import pytest

import tfeff
from tfeff.datasets import registry
from tfeff.recipes.task_dataset import find_dataset


def test_tasks_of_a_kind_are_listed_and_a_near_miss_first():
    spans, texts = tfeff.data.SpanExamples, tfeff.data.TextExamples
    message = r"`task` must be one of \['{0}', (?!.*{1}).*Did you mean '{0}'\?$"
    for kind, task, first, other in (
        (spans, "trivia", "TriviaQA", "CoLA"),
        (spans, "newsqa", "NewsQA", "RACE"),
        (texts, "rte", "RTE", "RACE"),
    ):
        with pytest.raises(ValueError, match=message.format(first, other)):
            find_dataset(task, kind)
    for task in ("sqad", "weather"):
        with pytest.raises(ValueError, match=r"`task` must be one of \['SQuAD"):
            find_dataset(task, spans)
    assert find_dataset("squad2", spans).name == "SQuAD2.0"


def test_a_task_may_be_described_in_the_folder_of_the_data(tmp_path):
    folder = tmp_path / "Birds"
    folder.mkdir()
    (folder / "dataset.json").write_text('{"types": ["BIRD"]}')
    words, texts = tfeff.data.TokenExamples, tfeff.data.TextExamples
    for data in (str(tmp_path), f"file://{tmp_path}"):
        assert find_dataset("Birds", words, data=data).label_names[1] == "B-BIRD"
    with pytest.raises(ValueError, match="task='Birds', a data set of `TokenExamples`"):
        find_dataset("Birds", texts, data=str(tmp_path))
    for data in (str(tmp_path), f"file://{tmp_path}"):
        message = f"or be described by {data}/Bird/dataset.json. Received: task='Bird'"
        with pytest.raises(ValueError, match=re.escape(message)):
            find_dataset("Bird", words, data=data)
    with pytest.raises(ValueError, match=r"one of \['Birds', .*Did you mean 'Birds'"):
        find_dataset("birds", words, data=str(tmp_path))
    message = f"`data` must be the folder above, {tmp_path}."
    with pytest.raises(ValueError, match=re.escape(message)):
        find_dataset("Birds", words, data=str(folder))
    with pytest.raises(ValueError, match="There is no folder nowhere"):
        find_dataset("Birds", words, data="nowhere")
    (tmp_path / "WikiANN").mkdir()
    (tmp_path / "WikiANN" / "dataset.json").write_text('{"types": ["BIRD"]}')
    with pytest.raises(ValueError, match="`task` must be another name than that of a"):
        find_dataset("WikiANN", words, data=str(tmp_path))
    (folder / "dataset.json").write_text('{"type": ["BIRD"]}')
    with pytest.raises(ValueError, match="Birds/dataset.json must have the key"):
        find_dataset("Birds", words, data=str(tmp_path))


def test_what_is_registered_and_described_is_one_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    texts, weather = tfeff.data.TextExamples, tfeff.datasets.tsv_dataset
    columns = {"texts": ["report"], "label": "sky", "label_names": ["dry", "wet"]}
    tfeff.datasets.register(weather("Skies", **columns))
    (tmp_path / "Skies").mkdir()
    path = tmp_path / "Skies" / "dataset.json"
    find = functools.partial(find_dataset, "Skies", texts)
    assert find(data=str(tmp_path)).label_names == ("dry", "wet")
    path.write_text(json.dumps(columns | {"metric_names": ["accuracy"]}))
    assert find(data=str(tmp_path)) is tfeff.datasets.get("Skies")
    path.write_text(json.dumps(columns | {"label_names": ["wet", "dry"]}))
    with pytest.raises(ValueError, match=f"`task` must be .*{path} .*task='Skies'"):
        find(data=str(tmp_path))
    given = weather("Skies", **columns)
    assert find(data=str(tmp_path), given=given) is given
