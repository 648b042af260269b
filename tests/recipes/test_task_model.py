"""The model of each kind of data set, and the heads that it goes on with."""

import pytest

import tfeff
from tests.subjects.sentences import tokenizer
from tfeff.recipes import FinetuneSettings
from tfeff.recipes.heads import read_task_heads
from tfeff.recipes.task_model import head_arguments, make_model, task_class

PRICES = tfeff.datasets.tsv_dataset("Prices", ("text",), "price")
BIRDS = tfeff.datasets.conll_dataset("Birds", ("PER",))
EXAMPLES = tfeff.data.TextExamples(("a", "b"), None, (1.0, 4.0))


@pytest.mark.parametrize(
    ("dataset", "kind", "outputs"),
    [
        (tfeff.datasets.get("SST-2"), tfeff.tasks.Classifier, (None, 2)),
        (tfeff.datasets.get("MNLI"), tfeff.tasks.Classifier, (None, 3)),
        (tfeff.datasets.get("STS-B"), tfeff.tasks.Regressor, (None,)),
        (PRICES, tfeff.tasks.Regressor, (None,)),
        (tfeff.datasets.get("RACE"), tfeff.tasks.MultipleChoice, (None, None)),
        (BIRDS, tfeff.tasks.TokenClassifier, (None, None, 3)),
    ],
    ids=["SST-2", "MNLI", "STS-B", "prices", "RACE", "words"],
)
def test_a_task_begins_with_the_heads_of_its_kind(
    dataset, kind, outputs, tmp_path, capsys
):
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=60, num_layers=1, hidden_dim=16, num_heads=2
    )
    settings = FinetuneSettings(run_dir="r", task="x", data="x", pretrained="x")
    arguments = head_arguments(settings, dataset, EXAMPLES)
    model = make_model(task_class(dataset), encoder, 0.2, arguments)
    assert type(model) is kind
    assert model.output_shape == outputs and model.dropout == 0.2
    if dataset is PRICES:
        assert (model.scale, model.offset) == (1.5, 2.5)
    if "label_names" in arguments:
        assert model.label_names == dataset.label_names
    tfeff.tasks.save_pretrained(model, tokenizer(), tmp_path / "preset")
    heads = read_task_heads(str(tmp_path / "preset"), kind, **arguments)
    assert "is trained on, with its heads" in capsys.readouterr().out
    assert heads.keys() == model.heads().keys()
    again = make_model(kind, encoder, 0.2, arguments, heads)
    for name, head in again.heads().items():
        for key, weight in head.weights.items():
            assert (weight.numpy() == model.heads()[name].weights[key].numpy()).all()
