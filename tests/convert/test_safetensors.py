"""The reader of safetensors: dtypes, shards, and damage."""

import os
import shutil

import ml_dtypes
import numpy as np
import pytest

import tfeff
from tests.convert.conversions import GOLDENS, INPUTS, arrays, copied, write_safetensors
from tfeff.convert.safetensors import read_safetensors


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype, tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 4))
    array = values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    write_safetensors(
        tmp_path / "a.safetensors",
        {
            "first": np.ones(2, np.int64),
            "x": array,
            "empty": np.ones((0, 2), "float32"),
        },
    )
    tensors = read_safetensors(str(tmp_path))
    assert list(tensors) == ["first", "x", "empty"]
    assert tensors["x"].shape == (3, 4)
    np.testing.assert_array_equal(tensors["x"].read(), array)
    assert tensors["empty"].read().shape == (0, 2)


def test_half_precision_checkpoints_become_float32(tmp_path):
    source = copied("bert", tmp_path)
    tensors = {
        name: tensor.read().astype(ml_dtypes.bfloat16)
        for name, tensor in read_safetensors(str(source)).items()
    }
    write_safetensors(source / "model.safetensors", tensors)
    encoder = tfeff.convert.load(source)
    table = encoder.embedding.token_embedding.embeddings
    assert table.dtype == "float32"
    expected = tensors["embeddings.word_embeddings.weight"].astype("float32")
    np.testing.assert_array_equal(np.asarray(table), expected)


def test_the_shards_of_an_index():
    names = set(read_safetensors(str(GOLDENS / "bert_pretraining")))
    assert len(names) == 5 + 2 * 16 + 2 + 5 + 2


@pytest.mark.parametrize("size", [0, 5, 100, 20_000, -1])
def test_a_file_cut_short(size, tmp_path):
    source = copied("bert", tmp_path)
    path = source / "model.safetensors"
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)
    with pytest.raises(ValueError, match="model.safetensors.*cut short or damaged"):
        tfeff.convert.load(source)


def test_a_file_with_bytes_too_many(tmp_path):
    source = copied("bert", tmp_path)
    with open(source / "model.safetensors", "ab") as file:
        file.write(b"\0")
    with pytest.raises(ValueError, match="model.safetensors.*not fully covered"):
        tfeff.convert.load(source)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(dtype="F8_E4M3", shape=[8]), r"dtypes among .* tensors of \['F8_E4M3'\]"),
        (dict(dtype="nonsense"), "damaged: .*`nonsense`"),
        (dict(data_offsets=[0, 12]), "damaged: .* invalid shape"),
        (dict(data_offsets=[-8, 0]), "damaged: .*`-8`"),
        (dict(shape=[3]), "damaged: .* invalid shape"),
        (dict(shape=None), "damaged: .* null"),
        (dict(shape=[2.0]), r"damaged: .*`2\.0`"),
        (dict(data_offsets=[8, 16]), "damaged: .* invalid offset for tensor `x`"),
        (dict(data_offsets="ab"), 'damaged: .*"ab"'),
    ],
)
def test_damaged_headers(changes, message, tmp_path):
    write_safetensors(
        tmp_path / "a.safetensors", {"x": np.ones(2, np.float32)}, **changes
    )
    with pytest.raises(ValueError, match=rf"a\.safetensors' must .*{message}"):
        read_safetensors(str(tmp_path))


@pytest.mark.parametrize("header", [b"[]", b"{", b"\xff\xfe"])
def test_headers_that_are_none(header, tmp_path):
    data = len(header).to_bytes(8, "little") + header
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match="cut short or damaged"):
        read_safetensors(str(tmp_path))


def test_a_missing_shard(tmp_path):
    source = copied("bert_pretraining", tmp_path)
    (source / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ValueError, match="model-00002.*cannot be read"):
        tfeff.convert.load(source)


def test_shards_that_are_not_what_the_index_says(tmp_path):
    source = copied("bert_pretraining", tmp_path)
    shutil.copy(
        source / "model-00001-of-00003.safetensors",
        source / "model-00002-of-00003.safetensors",
    )
    with pytest.raises(ValueError, match="Unknown: .*word_embeddings"):
        tfeff.convert.load(source)


@pytest.mark.parametrize(
    "index",
    [
        *("{", "{}", '{"weight_map": []}'),
        '{"weight_map": {"x": "../a.safetensors"}}',
        '{"weight_map": {"x": "a\\u0000.safetensors"}}',
    ],
)
def test_damaged_indices(index, tmp_path):
    write_safetensors(tmp_path / "a.safetensors", {"x": np.ones(2, np.float32)})
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ValueError, match=r"index\.json.* must"):
        read_safetensors(str(tmp_path))


def test_several_files_without_an_index(tmp_path):
    source = copied("bert_pretraining", tmp_path)
    (source / "model.safetensors.index.json").unlink()
    with pytest.raises(ValueError, match="must have 'model.safetensors.index.json'"):
        tfeff.convert.load(source)


def test_old_names_of_norms(tmp_path):
    source = copied("bert", tmp_path)
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor.read()
        for name, tensor in read_safetensors(str(source)).items()
    }
    renamed["embeddings.position_ids"] = np.arange(13)[None]
    write_safetensors(source / "model.safetensors", renamed)
    golden = arrays("bert")
    outputs = tfeff.convert.load(source)({name: golden[name] for name in INPUTS})
    real = golden["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        np.asarray(outputs["sequence_output"])[real],
        golden["hidden_states"][-1][real],
        atol=1e-5,
    )
    renamed["bert.embeddings.LayerNorm.weight"] = np.ones(16, np.float32)
    write_safetensors(source / "model.safetensors", renamed)
    with pytest.raises(ValueError, match="one 'embeddings.LayerNorm.weight'"):
        tfeff.convert.load(source)
