"""The examples in the docstrings of all that is public run."""

import doctest
import inspect
import json
import operator
import re
import sys
import tempfile
import textwrap
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff

PACKAGES = [
    *("convert", "data", "datasets", "encoders", "export", "layers", "objectives"),
    *("ops", "plots", "recipes", "storage", "tasks", "training"),
]
# Examples may leave out these imports, and those of the package's own names.
KNOWN = {"keras": keras, "np": np, "ops": keras.ops, "tf": tf, "tfeff": tfeff}
# What `tfeff finetune --pretrained_steps=100` writes.
SCORES = {
    "metric": "dev_accuracy",
    "rows": [
        {
            "setting": {"pretrained_step": 100},
            "mean": {"dev_accuracy": 0.5},
            "deviation": {"dev_accuracy": None},
        }
    ],
}
REGISTERING = (
    tfeff.datasets.register,
    tfeff.encoders.register_attention,
    tfeff.layers.register_partition,
    tfeff.objectives.register,
)
RETURN_NOTHING = {"check_equal_settings", "lost_workers_named"}
NEED_NETWORK = {"convert", "hugging_face", "load", "load_replaced_token", "tfds"}
# Their examples train or draw for long; their own tests do so, too.
SLOW = {
    *("answer", "distill", "embed", "evaluate", "finetune", "pretrain", "stack"),
    *("save_for_serving", "save_version"),
    *("EncoderMaskedLM", "EncoderTextClassifier"),
    *("draw_all", "partition_functions", "relative_embeddings"),
    *("average_attention", "diagonal_concentration", "layer_stability"),
    *("head_importance", "KeepBest"),
    *("attention_heads", "similar_heads", "check_export", "export_model"),
    *("PermutationLM", "generator_for", "augment"),
}


def symbols():
    for package in PACKAGES:
        for name in getattr(tfeff, package).__all__:
            marks = [pytest.mark.slow] if name in SLOW else []
            yield pytest.param(package, name, id=f"{package}.{name}", marks=marks)
    yield "data", "Cache.batches"


@pytest.mark.parametrize(("package", "name"), symbols())
def test_examples_run(package, name, tmp_path, monkeypatch):
    home = getattr(tfeff, package)
    symbol = operator.attrgetter(name)(home)
    if name in NEED_NETWORK or (package, name) == ("convert", "load_task"):
        pytest.skip("reads from the network")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for function in REGISTERING:  # What an example registers is gone after the test.
        module = sys.modules[function.__module__]
        monkeypatch.setattr(module, "_REGISTRY", dict(module._REGISTRY))
    text = inspect.getdoc(symbol) or ""
    if "runs/" in text:
        make_runs()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    for block in blocks:
        exec(compile(textwrap.dedent(block), name, "exec"), {})
    names = {other: getattr(home, other) for other in home.__all__}
    for test in doctest.DocTestFinder(recurse=False).find(
        symbol, name, globs=KNOWN | names
    ):
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def make_runs():
    """The runs that examples of plots read, in the current folder."""
    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build(
        "shatter_tiny", vocabulary_size=40, num_layers=2, hidden_dim=16
    )
    tfeff.data.build_cache(documents, tokenizer, "runs/first/cache/validation", 16)
    tfeff.tasks.save_pretrained(encoder, tokenizer, "runs/first/preset")
    for name in ("bert", "shatter_0", "shatter_1"):
        path = Path("runs", name, "metrics.csv")
        path.parent.mkdir()
        path.write_text("step,loss,val_loss\n1,3.0,3.5\n2,2.0,2.5\n")
    for name in ("bert_mnli", "shatter_mnli"):
        path = Path("runs", name, "metrics.json")
        path.parent.mkdir()
        path.write_text(json.dumps(SCORES))


@pytest.mark.parametrize("package", PACKAGES)
def test_all_that_is_public_has_an_example(package):
    for name in getattr(tfeff, package).__all__:
        if name.endswith("Settings"):  # The recipe's function has the example.
            continue
        text = inspect.getdoc(getattr(getattr(tfeff, package), name))
        assert re.search(r"```python|>>> |Example: ", text), name


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_call_what_they_explain_and_check_what_comes_back(package):
    for name in getattr(tfeff, package).__all__:
        symbol = getattr(getattr(tfeff, package), name)
        text = inspect.getdoc(symbol) or ""
        examples = doctest.DocTestParser().get_examples(text)
        if examples:
            calls = "".join(example.source for example in examples)
            is_called = re.search(rf"\b{name}\b", calls)
            assert is_called or not inspect.isfunction(symbol), name
            assert name in RETURN_NOTHING or any(x.want for x in examples), name


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_name_all_arguments_and_what_comes_back(package):
    module = getattr(tfeff, package)
    for name in module.__all__:
        symbol = getattr(module, name)
        if not callable(symbol) or name == "Examples":  # A protocol: made by nobody.
            continue
        text = inspect.getdoc(symbol)
        if inspect.isclass(symbol) and "__init__" not in vars(symbol):
            continue  # Its arguments are those of its base.
        signature = inspect.signature(symbol)
        for argument in signature.parameters:
            # Several of a kind may share a line: `alpha, beta: …`.
            said = rf"^ +(\*{{0,2}}\w+, )*\*{{0,2}}{argument}(, \*{{0,2}}\w+)*:"
            assert re.search(said, text, re.M), f"{name}: {argument}"
        if inspect.isfunction(symbol) and signature.return_annotation is not None:
            assert re.search(r"^(Returns|Yields):$", text, re.M), name


@pytest.mark.parametrize("package", PACKAGES)
def test_unknown_attributes_are_named(package):
    with pytest.raises(AttributeError, match=f"tfeff.{package}.*nonsense"):
        _ = getattr(tfeff, package).nonsense
