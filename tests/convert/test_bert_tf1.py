"""The authors' BERT and ALBERT give what Hugging Face's of the same weights do."""

import json
import shutil

import keras
import numpy as np
import pytest

import tfeff
from tests.convert import authors
from tests.convert.conversions import GOLDENS, check_hidden_states
from tfeff.convert.bert_tf1 import AlbertTf1
from tfeff.encoders.preset_heads import read_heads

# Of the authors' `bert_config.json` and `albert_config.json`.
KEYS = (
    *("attention_probs_dropout_prob", "hidden_act", "hidden_dropout_prob"),
    *("hidden_size", "initializer_range", "intermediate_size", "vocab_size"),
    *("max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
    *("type_vocab_size", "embedding_size", "num_hidden_groups", "inner_group_num"),
)


def source(family, name, folder, **changes):
    """A folder as the authors' zip files hold it."""
    folder.mkdir()
    config = json.loads((GOLDENS / name / "config.json").read_text())
    config = {key: config[key] for key in KEYS if key in config} | changes
    (folder / f"{family}_config.json").write_text(json.dumps(config))
    variables = getattr(authors, family)(name)
    first = next(iter(variables))
    state = {f"{first}/adam_{x}": variables[first] for x in "mv"}
    state["global_step"] = np.int64(1000)
    authors.save(variables | state, folder / "model.ckpt")
    for vocabulary in ("vocab.txt", "spiece.model"):
        if (GOLDENS / name / vocabulary).exists():
            shutil.copy(GOLDENS / name / vocabulary, folder)
    return folder


@pytest.mark.parametrize(
    "family, name, changes",
    [
        ("bert", "bert_pretraining", {"layer_norm_eps": 0.001}),
        ("albert", "albert", {"hidden_act": "gelu"}),
        ("albert", "albert_groups", {"hidden_act": "gelu_python"}),
    ],
)
def test_states_and_heads_are_those_of_hugging_face(family, name, changes, tmp_path):
    folder = source(family, name, tmp_path / "authors", **changes)
    found = tfeff.convert.convert(folder, tmp_path / "preset")
    check_hidden_states(tmp_path / "preset", name)
    assert found.ignored.pop("training state") == 3 and not found.ignored
    expected = tfeff.convert.convert(GOLDENS / name, tmp_path / "other")
    assert found.heads == expected.heads
    for one, other in zip(found.encoder.weights, expected.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    if expected.tokenizer is not None:
        one, other = (read_heads(str(tmp_path / x)) for x in ("preset", "other"))
        keras.tree.map_structure(np.testing.assert_array_equal, one, other)
        assert found.tokenizer.get_vocabulary() == expected.tokenizer.get_vocabulary()


def test_names_of_alberts_other_heads():
    weights = {"kernel": np.ones((3, 2)), "bias": np.ones(2)}
    for head, names in {
        "pooler": {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"},
        "sentence_order": {
            "cls/seq_relationship/output_weights",
            "cls/seq_relationship/output_bias",
        },
    }.items():
        found = list(AlbertTf1.heads[head](weights))
        assert {weight.name for weight in found} == names
        assert found[0].axes == (None if head == "pooler" else (1, 0))


def test_the_configuration_is_needed(tmp_path):
    folder = source("bert", "bert", tmp_path / "authors")
    (folder / "bert_config.json").unlink()
    with pytest.raises(
        ValueError, match="configuration of its checkpoint.*bert_config"
    ):
        tfeff.convert.load(folder)


def test_a_fine_tuned_model_is_read_without_its_head(tmp_path):
    folder = source("bert", "bert", tmp_path / "authors")
    variables = authors.bert("bert") | {
        "output_weights": np.ones((2, 16), "float32"),
        "output_bias": np.ones(2, "float32"),
        "cls/squad/output_weights": np.ones((2, 16), "float32"),
    }
    authors.save(variables, folder / "model.ckpt")
    found = tfeff.convert.convert(folder, tmp_path / "preset")
    assert found.ignored["task head"] == 3
