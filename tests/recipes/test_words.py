"""Fine-tuning to label words: CoNLL's files, the best model, what it serves."""

import json

import numpy as np
import pytest

import tfeff
from tests.subjects.serving import serve
from tfeff.command import main
from tfeff.recipes import FinetuneSettings, ReportSettings, finetune, report
from tfeff.recipes.data_record import examples_digest

NAMES = ("Ada", "Bob", "Eve", "Zoe")
SENTENCES = [
    f"{name} B-PER\n{second} I-PER\nsaw O\n{city} B-LOC\n"
    for name, second in zip(NAMES, reversed(NAMES))
    for city in ("Bonn", "Rome", "Zoe")
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "WikiANN"
    folder.mkdir()
    (folder / "train.tsv").write_text("\n".join(SENTENCES).replace(" ", "\t"))
    (folder / "dev.txt").write_text("\n".join(SENTENCES[::2]))
    (folder / "test.txt").write_text("Ada\nsaw\nEve\n\nBonn\n")
    return folder.parent


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    texts = [sentence.replace("\n", " ") for sentence in SENTENCES]
    tokenizer = tfeff.data.train_tokenizer(texts, 26)
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=26,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=16,
        dropout=0.0,
    )
    path = tmp_path_factory.mktemp("pretrained") / "preset"
    tfeff.tasks.save_pretrained(encoder, tokenizer, path)
    return str(path)


def settings(run_dir, data, pretrained, **changes):
    return FinetuneSettings(
        **{
            "run_dir": str(run_dir),
            "task": "WikiANN",
            "data": str(data),
            "pretrained": pretrained,
            "batch_sizes": (4,),
            "learning_rates": (1e-3, 3e-2),
            "steps": 30,
            "eval_every": 15,
            "head_dropout": 0.0,
        }
        | changes
    )


@pytest.mark.slow
def test_from_the_files_to_entities(data, pretrained, tmp_path, capsys):
    run_dir = tmp_path / "run"
    found = finetune(settings(run_dir, data, pretrained, predict_split="dev"))
    printed = capsys.readouterr().out
    assert "WikiANN: 12 examples to train on, 6 of dev" in printed
    assert found["metric"] == "dev_f1" and len(found["rows"]) == 2
    dataset = tfeff.datasets.get("WikiANN")
    train, dev = (dataset.read(part, data) for part in ("train", "dev"))
    _, tokenizer = tfeff.tasks.load_pretrained(pretrained)
    counts = [
        tfeff.data.token_features(part, tokenizer, 16).num_divided
        for part in (train, dev, dev)
    ]
    names = "{} of 12 examples to train on, {} of 6 of dev, {} of 6 to predict"
    assert f"{names.format(*counts)} are longer than 16 tokens" in printed

    # "Zoe" is a person more often than a place.
    baseline = found["baseline"]
    expected = dataset.baseline(train, dev)
    assert baseline["name"] == "most-frequent-tag baseline"
    assert baseline["metrics"] == {f"dev_{k}": v for k, v in expected.items()}
    best = found["best"]["mean"]
    beside = f"dev_f1 {best['dev_f1']:.4f}, most-frequent-tag baseline"
    assert printed.count(f"{beside} {expected['f1']:.4f}; dev_precision") >= 2
    assert "| most-frequent-tag baseline |  | " in (run_dir / "summary.md").read_text()
    assert json.loads((run_dir / "metrics.json").read_text())["baseline"] == baseline

    # The model, its preset, its predictions and what it serves are one.
    model, tokenizer = tfeff.tasks.load_task(run_dir)
    assert isinstance(model, tfeff.tasks.TokenClassifier)
    assert model.label_names == dataset.label_names
    predictions = model.labels(tfeff.data.token_features(dev, tokenizer, 16))
    scores = dataset.metrics(dev, predictions)
    assert scores["f1"] == best["dev_f1"] > 0
    folder = run_dir / "predictions" / "dev"
    written = tfeff.datasets.read_conll(folder / "WikiANN.tsv", dataset.label_names)
    assert written.words == dev.words
    for row, labels in zip(written.labels, predictions, strict=True):
        assert row.tolist() == labels.tolist()
    kept = json.loads((folder / "metrics.json").read_text())
    assert kept == {
        **scores,
        "baseline": {"name": baseline["name"], "metrics": expected},
        "examples": examples_digest(dev),
    }
    texts = ["  ".join(sentence) for sentence in dev.words]
    tags = serve(run_dir / "export" / "1", "tag", texts)
    names = np.array(dataset.label_names)
    for index, labels in enumerate(predictions):
        assert [x.decode() for x in tags["label"][index]] == names[labels].tolist()
    entities = serve(run_dir / "export" / "1", "entities", texts)
    assert set(entities["type"].ravel()) <= {b"PER", b"LOC", b"ORG", b""}

    # Started again it trains nothing, and predicts another part, without labels.
    again = finetune(settings(run_dir, data, pretrained, predict_split="test"))
    assert "learning rate" not in capsys.readouterr().out
    assert again == found
    lines = (run_dir / "predictions" / "test" / "WikiANN.tsv").read_text().split("\n")
    assert [line.partition("\t")[0] for line in lines] == [
        *("Ada", "saw", "Eve", "", "Bonn", "", "")
    ]
    assert not (run_dir / "predictions" / "test" / "metrics.json").exists()
    table = report(ReportSettings(runs=(str(run_dir),)))
    assert table["most-frequent-tag baseline"]["WikiANN"] == {"dev_f1": expected["f1"]}


@pytest.mark.slow
def test_what_does_not_fit_words_is_named(data, pretrained, tmp_path):
    def refused(match, **changes):
        arguments = dict(learning_rates=(1e-3,)) | changes
        folder = arguments.pop("data", data)
        with pytest.raises(ValueError, match=match):
            finetune(settings(tmp_path / "run", folder, pretrained, **arguments))
        assert not (tmp_path / "run").exists()

    refused("`pooling` must be left out for words.*'layerwise'", pooling="layerwise")
    refused("`pooler_activation` must be left out .*'relu'", pooler_activation="relu")
    refused("`metric` must be one of.*'f1'.*Did you mean 'f1'", metric="F-1")
    refused("task='Wikiann'. Did you mean 'WikiANN'", task="Wikiann")
    refused("`data` must hold train.txt", data=str(tmp_path))
    broken = tmp_path / "train.txt"
    for text, match in (
        ("Ada B-PER\nsaw\n", r"train\.txt, line 2: must have a word and a label"),
        ("Ada B-PERS\n", r"train\.txt, line 1: .*'B-PERS'. Did you mean 'B-PER'"),
        ("Ada B-PER\nNew York B-LOC\n", r"train\.txt, line 2: must have 2 columns"),
    ):
        broken.write_text(text)
        refused(match, data=str(tmp_path))


@pytest.mark.slow
def test_the_command_takes_words(data, pretrained, tmp_path, capsys):
    status = main.main(
        [
            *("finetune", "--task=WikiANN", f"--data={data}", "--steps=2"),
            *(f"--pretrained={pretrained}", f"--run_dir={tmp_path / 'run'}"),
            *("--train_examples=5", "--sequence_length=6", "--batch_sizes=2"),
        ]
    )
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert "5 examples to train on" in printed
    assert "text in, words, labels, entities out: " in printed
