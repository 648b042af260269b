"""What cannot be converted is refused by name, and nothing is written."""

import json
import os
import shutil
import warnings
from types import SimpleNamespace

import keras
import numpy as np
import pytest

import tfeff
from tests.convert.conversions import (
    GOLDENS,
    HEAD_GOLDENS,
    changed,
    copied,
    hub,
    write_safetensors,
)
from tests.convert.sentence_models import write_modules
from tfeff.command.main import main
from tfeff.convert import convert, load
from tfeff.convert.safetensors import read_safetensors
from tfeff.convert.weights import Weight, assign


def with_tensors(name, folder, change):
    """A copy of a golden with tensors changed by a function of their dict."""
    source = copied(name, folder)
    tensors = {k: t.read() for k, t in read_safetensors(str(source)).items()}
    change(tensors)
    write_safetensors(source / "model.safetensors", tensors)
    return source


@pytest.mark.parametrize(
    "name, changes, message",
    [
        (
            "bert",
            dict(model_type="gpt2"),
            "model_type='gpt2'.*='electra', .*='roberta'",
        ),
        ("bert", dict(is_decoder=True), "is_decoder=True"),
        ("bert", dict(add_cross_attention=True), "add_cross_attention=True"),
        ("bert", dict(hidden_act="mish"), "hidden_act='mish'"),
        ("bert", dict(hidden_act=["gelu"]), r"hidden_act=\['gelu'\]"),
        ("bert", dict(position_embedding_type="rotary"), "='rotary'"),
        ("bert", dict(pruned_heads={"0": [1]}), "pruned_heads="),
        ("bert", dict(hidden_size="16"), "`hidden_size` must be an integer"),
        ("bert", dict(vocab_size=2**70), "`vocab_size` .* and at most 2147483647"),
        ("bert", dict(hidden_size=-16), "`hidden_size` must be an integer"),
        ("bert", dict(hidden_dropout_prob=1.5), "`hidden_dropout_prob` must be"),
        ("bert", dict(layer_norm_eps=0), "`layer_norm_eps` must be"),
        ("bert", dict(num_attention_heads=5), "`num_heads` must divide"),
        ("bert", dict(is_encoder_decoder=True), "is_encoder_decoder=True"),
        ("bert", dict(auto_map={"AutoModel": "m.Model"}), "auto_map="),
        ("bert", dict(quantization_config={"bits": 4}), "quantization_config="),
        ("albert", dict(embedding_size=16), "embedding_size=hidden_size=16"),
        ("albert", dict(inner_group_num=2), "inner_group_num=2"),
        ("albert", dict(num_hidden_groups=3), "`num_hidden_groups` must divide"),
        ("convbert_base", dict(head_ratio=0), "`head_ratio` must be"),
        ("convbert_base", dict(num_attention_heads=10), "10 here. Received: num_atten"),
        ("convbert_base", dict(conv_kernel_size=4), "odd"),
        ("convbert_base", dict(num_groups=5), "`num_groups` must divide"),
        ("distilbert", dict(activation="mish"), "activation='mish'"),
        ("distilbert", dict(pruned_heads={"0": [1]}), "pruned_heads="),
        ("distilbert", dict(n_layers=None), "`n_layers` must be an integer"),
        ("electra_generator", dict(embedding_size=0), "`embedding_size` must be"),
        ("electra_generator", dict(is_decoder=True), "is_decoder=True"),
        ("roberta", dict(pad_token_id=3), "pad_token_id=3.*supports: pad_token_id=1"),
        ("roberta", dict(max_position_embeddings=2), "must be at least 3"),
        ("roberta", dict(position_embedding_type="rotary"), "='rotary'"),
        ("xlnet", dict(attn_type="uni"), "attn_type='uni'"),
        ("xlnet", dict(bi_data=True), "bi_data=True"),
        ("xlnet", dict(clamp_len=0), "clamp_len=0"),
        ("xlnet", dict(reuse_len=64), "reuse_len=64"),
        ("xlnet", dict(same_length=True), "same_length=True"),
        ("xlnet", dict(untie_r=False), "untie_r=False"),
        ("xlnet", dict(d_head=8), "d_head=8"),
    ],
)
def test_configurations_that_tfeff_does_not_have(name, changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(changed(name, tmp_path, **changes))


def test_a_garden_configuration_that_tfeff_does_not_have(tmp_path):
    source = changed("garden_albert", tmp_path, "albert_config.json", hidden_act="tanh")
    with pytest.raises(ValueError, match="hidden_act='tanh'"):
        load(source)
    other = changed("garden_bert", tmp_path, "bert_config.json", norm_first=True)
    with pytest.raises(ValueError, match="norm_first=True, .*not support"):
        load(other)


@pytest.mark.parametrize("text", ["", "{", "[]", '"bert"', b"\xff"])
def test_a_configuration_that_is_no_json_object(text, tmp_path):
    source = copied("bert", tmp_path)
    (source / "config.json").write_bytes(text if text == b"\xff" else text.encode())
    with pytest.raises(ValueError, match=r"config\.json' must be"):
        load(source)


def test_a_configuration_without_a_size(tmp_path):
    source = copied("bert", tmp_path)
    (source / "config.json").write_text('{"model_type": "bert", "vocab_size": 220}')
    with pytest.raises(ValueError, match="must have 'num_hidden_layers'"):
        load(source)


@pytest.mark.parametrize("name", ["bert", "garden_bert"])
def test_no_configuration(name, tmp_path):
    source = copied(name, tmp_path)
    for path in source.glob("*config.json"):
        path.unlink()
    with pytest.raises(ValueError, match="configuration"):
        load(source)


def test_missing_and_unknown_tensors_are_all_listed(tmp_path):
    def change(tensors):
        del tensors["encoder.layer.0.output.dense.bias"]
        del tensors["encoder.layer.1.attention.self.key.weight"]
        tensors["adapter.weight"] = np.ones(2, np.float32)

    with pytest.raises(ValueError) as raised:
        load(with_tensors("bert", tmp_path, change))
    assert (
        "Missing: ['encoder.layer.0.output.dense.bias', "
        "'encoder.layer.1.attention.self.key.weight']. "
        "Unknown: ['adapter.weight']" in str(raised.value)
    )


def test_a_layer_more_than_the_configuration_says(tmp_path):
    source = changed("bert", tmp_path, num_hidden_layers=1)
    with pytest.raises(ValueError, match=r"Unknown: \['encoder.layer.1.attention"):
        load(source)


def test_a_tensor_is_not_broadcast_or_transposed_to_fit(tmp_path):
    def change(tensors):
        name = "encoder.layer.0.intermediate.dense.weight"
        tensors[name] = tensors[name].T.copy()
        tensors["encoder.layer.0.output.LayerNorm.bias"] = np.ones(1, np.float32)

    with pytest.raises(ValueError) as raised:
        load(with_tensors("bert", tmp_path, change))
    for part in (
        "encoder.layer.0.intermediate.dense.weight has shape (16, 24), not (24, 16)",
        "encoder.layer.0.output.LayerNorm.bias has shape (1,), not (16,)",
    ):
        assert part in str(raised.value)


def test_heads_in_another_order_do_not_fit_xlnet(tmp_path):
    def change(tensors):
        name = "transformer.layer.0.rel_attn.q"
        tensors[name] = tensors[name].reshape(16, 2, 8)

    with pytest.raises(ValueError, match=r"rel_attn.q has shape \(16, 2, 8\), not"):
        load(with_tensors("xlnet", tmp_path, change))


@pytest.mark.parametrize(
    "bias, message",
    [
        (np.ones(16, np.int64), "has dtype int64"),
        (np.full(16, 1e39), "has values that float32 does not hold"),
    ],
)
def test_numbers_that_are_no_weights(bias, message, tmp_path):
    def change(tensors):
        tensors["embeddings.LayerNorm.bias"] = bias

    with pytest.raises(ValueError, match=f"LayerNorm.bias {message}"):
        load(with_tensors("bert", tmp_path, change))


def test_complex_numbers_are_no_weights():
    variable = keras.Variable(np.zeros(2))
    tensor = SimpleNamespace(
        shape=(2,), dtype=np.dtype("complex64"), read=lambda: np.ones(2, "complex64")
    )
    with pytest.raises(ValueError, match="bias has dtype complex64, not a floating"):
        assign([Weight(variable, "bias")], {"bias": tensor}, {})


def test_weights_that_are_not_finite(tmp_path):
    def change(tensors):
        tensors["embeddings.LayerNorm.bias"] = np.full(16, np.nan, np.float32)

    with pytest.warns(UserWarning, match="not finite: embeddings.LayerNorm.bias$"):
        load(with_tensors("bert", tmp_path, change))


def test_relative_tables_that_transformers_5_lacks(tmp_path):
    source = changed("bert", tmp_path, position_embedding_type="relative_key")
    with pytest.raises(ValueError, match="transformers 5 ignores"):
        load(source)


def test_weights_of_double_precision(tmp_path):
    def change(tensors):
        tensors["embeddings.LayerNorm.bias"] = np.ones(16)

    encoder = load(with_tensors("bert", tmp_path, change))
    assert 1 in {float(weight.numpy().max()) for weight in encoder.weights}


@pytest.mark.parametrize("part", [".index", ".data-00000-of-00001"])
def test_damaged_tensorflow_checkpoints(part, tmp_path):
    source = copied("garden_bert", tmp_path)
    path = source / f"bert_model.ckpt{part}"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ValueError, match="must be a whole TensorFlow checkpoint"):
        load(source)
    if part != ".index":
        path.unlink()
        with pytest.raises(ValueError, match="must be a whole TensorFlow checkpoint"):
            load(source)


def test_a_setting_that_nobody_knows_is_told(tmp_path):
    source = changed("bert", tmp_path, layer_norm_epsilon=1e-3, initializer_range=1)
    with pytest.warns(UserWarning, match="does not know .*: layer_norm_epsilon. Make"):
        load(source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(GOLDENS / "bert")


@pytest.mark.parametrize(
    "name, file",
    [
        ("bert", "config.json"),
        ("bert", "tokenizer_config.json"),
        ("bert", "vocab.txt"),
        ("bert", "model.safetensors"),
        ("bert_pretraining", "model.safetensors.index.json"),
        ("bert_pretraining", "model-00002-of-00003.safetensors"),
        ("albert", "spiece.model"),
        ("garden_bert", "bert_config.json"),
        ("garden_bert", "bert_model.ckpt.index"),
        ("garden_bert", "bert_model.ckpt.data-00000-of-00001"),
    ],
)
def test_pointers_of_git_lfs(name, file, tmp_path):
    source = copied(name, tmp_path)
    (source / file).write_text(
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
        "size 12345\n"
    )
    with pytest.raises(ValueError, match=f"{file}' must be the file itself.*git-lfs"):
        convert(source, tmp_path / "preset")


def test_of_several_files_the_one_that_hugging_face_loads(tmp_path):
    source = copied("bert_pretraining", tmp_path)
    for name in ("pytorch_model.bin", "tf_model.h5", "adapter_model.safetensors"):
        (source / name).write_bytes(b"of no use")
    expected = load(source).get_weights()
    # Zeros in the file that comes before the index and its shards.
    tensors = {k: t.read() * 0 for k, t in read_safetensors(str(source)).items()}
    write_safetensors(source / "model.safetensors", tensors)
    found = load(source).get_weights()
    assert [array.shape for array in found] == [array.shape for array in expected]
    assert not any(array.any() for array in found)
    (source / "adapter_config.json").write_text("{}")
    for _ in range(2):  # A folder of the adapter alone has no other configuration.
        with pytest.raises(ValueError, match=r"an adapter \(adapter_config.json\)"):
            load(source)
        (source / "config.json").unlink(missing_ok=True)


@pytest.mark.slow
def test_the_old_layout_of_sentence_transformers(tmp_path):
    folder = tmp_path / "sentences"
    inner = copied("bert", folder).rename(folder / "0_Transformer")
    (inner / "sentence_bert_config.json").write_text('{"max_seq_length": 9}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    write_modules(folder, "Pooling", first="0_Transformer")
    expected = load(GOLDENS / "bert").get_weights()
    converted = convert(folder, tmp_path / "preset")
    assert converted.tokenizer is not None
    assert converted.task.pooling == "cls" and converted.task.sequence_length == 9
    for array, other in zip(converted.encoder.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(array, other)
    # It changes texts before the tokenizer does.
    (inner / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    with pytest.raises(ValueError, match="sentence_bert_config.*do_lower_case=True"):
        convert(folder, tmp_path / "other")
    for path in ("../bert", "..", "", "0_Absent", 3):
        write_modules(folder, first=path)
        with pytest.raises(ValueError, match="must name the folder of one Transformer"):
            load(folder)
    (folder / "modules.json").write_text("[3]")
    with pytest.raises(ValueError, match="modules.json' must give the path"):
        load(folder)
    # The layout of today.
    for file in inner.iterdir():
        shutil.copy(file, folder)
    write_modules(folder, "Pooling")
    load(folder)


def test_two_tensorflow_checkpoints(tmp_path):
    source = copied("garden_bert", tmp_path)
    (source / "other.ckpt.index").write_bytes(b"")
    with pytest.raises(ValueError, match="one TensorFlow checkpoint.*other.ckpt"):
        load(source)


def test_an_unknown_tensorflow_checkpoint(tmp_path):
    import tensorflow as tf

    tf.train.Checkpoint(w=tf.Variable(1.0)).write(str(tmp_path / "m.ckpt"))
    with pytest.raises(ValueError, match=r"Its 1 variables begin with \['w'\]"):
        load(tmp_path)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "model.ckpt", "model.pt"])
def test_pickles_are_refused_unread(file, tmp_path):
    source = copied("bert", tmp_path)
    (source / "model.safetensors").rename(source / file)
    with pytest.raises(ValueError, match=f"{file}.*pickles.*safe_serialization=True"):
        load(source)
    config = json.loads((source / "config.json").read_text())
    config["model_type"] = "deberta-v2"
    (source / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="model_type='deberta-v2'.*not support") as no:
        load(source)
    assert "safe_serialization" not in str(no.value)


def test_pickles_with_modules_are_saved_by_their_library(tmp_path):
    source = copied("bert", tmp_path)
    (source / "model.safetensors").rename(source / "pytorch_model.bin")
    (source / "modules.json").write_text("[]")
    with pytest.raises(ValueError, match=r"SentenceTransformer\(source\).save_pretr"):
        load(source)


def test_what_was_downloaded_may_not_be_all(monkeypatch):
    hub(monkeypatch, lambda name, allow_patterns: str(GOLDENS / name))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.warns(UserWarning, match="of bert those files are read that were down"):
        load("hf://bert")


@pytest.mark.parametrize(
    "address",
    ["https://huggingface.co/someone/some-bert", "https://hf.co/someone/some-bert/"],
)
def test_the_address_of_a_page_is_a_name(address, monkeypatch):
    asked = []

    def download(name, allow_patterns):
        asked.append(name)
        return str(GOLDENS / "bert")

    hub(monkeypatch, download)
    load(address)
    assert asked == ["someone/some-bert"]


def test_names_of_a_model_around_it(tmp_path):
    def wrap(tensors):
        for name in list(tensors):
            tensors[f"model.{name}"] = tensors.pop(name)
        tensors["another"] = np.ones(2, "float32")

    source = with_tensors("bert", tmp_path, wrap)
    with pytest.raises(
        ValueError, match="All begin with 'model.*'model.embed.*rename"
    ) as no:
        load(source)
    assert len(str(no.value)) < 400


def test_names_of_a_model_around_a_task(tmp_path):
    source = shutil.copytree(HEAD_GOLDENS / "bert_classifier", tmp_path / "task")
    tensors = read_safetensors(str(source)).items()
    wrapped = {f"module.{name}": tensor.read() for name, tensor in tensors}
    write_safetensors(source / "model.safetensors", wrapped)
    with pytest.raises(ValueError, match="All begin with 'module.*rename"):
        tfeff.convert.load_task(source)


def test_names_on_the_hub_with_the_scheme(monkeypatch, tmp_path, preset):
    hub(monkeypatch, lambda name, allow_patterns: str(GOLDENS / name))
    assert tfeff.convert.load_tokenizer("hf://bert").vocabulary_size() > 5
    with pytest.raises(ValueError, match="head of 'replaced_token'.*='bert'"):
        tfeff.convert.load_replaced_token("hf://bert", "hf://bert")
    for name in ("hf:someone/bert", "hf://someone/bert"):
        with pytest.raises(ValueError, match="`tfeff convert someone/bert PRESET`"):
            tfeff.tasks.load_pretrained(name)


@pytest.mark.parametrize("file", ["tf_model.h5", "notes.txt"])
def test_folders_without_a_checkpoint(file, tmp_path):
    (tmp_path / file).write_bytes(b"")
    found = r"\['tf_model.h5'\]" if file.endswith("h5") else "neither"
    with pytest.raises(ValueError, match=f"must hold safetensors.*with {found}$"):
        load(tmp_path)


def test_a_folder_from_the_hub_without_a_checkpoint(monkeypatch, tmp_path):
    hub(monkeypatch, lambda name, allow_patterns: str(tmp_path))
    message = r"with neither\. Pickles.*from the hub\. If.*safe_serialization=True"
    for name in ("someone/some-bert", "hf://someone/some-bert"):
        with pytest.raises(ValueError, match=message):
            load(name)


def test_a_preset_is_no_source(preset, tmp_path):
    shutil.copytree(preset("bert"), tmp_path / "run" / "preset")
    for source in (tmp_path / "run" / "preset", tmp_path / "run"):
        with pytest.raises(ValueError, match="a preset of tfeff.*--to=huggingface"):
            convert(source, tmp_path / "out")


@pytest.mark.parametrize("source", ["/no/such/folder", "./none", "a/b/c", ""])
def test_folders_that_do_not_exist(source):
    with pytest.raises(ValueError, match="`source` must be a folder that exists"):
        load(source)


@pytest.mark.parametrize("value", [None, 3, b"bert", ["bert"]])
def test_types(value, tmp_path):
    for function in (load, lambda source: convert(source, tmp_path / "preset")):
        with pytest.raises(TypeError, match="`source` must be a path.* source="):
            function(value)
    with pytest.raises(TypeError, match="`destination` must be a path.* destination="):
        convert(GOLDENS / "bert", value)
    with pytest.raises(TypeError, match="`encoder` must be a .* encoder="):
        tfeff.encoders.swap_positions(value, "shaw")
    encoder = load(GOLDENS / "bert")
    with pytest.raises(ValueError, match="`method` must be one of .* method="):
        tfeff.encoders.swap_positions(encoder, value)


def test_a_file_is_no_folder(tmp_path):
    file = GOLDENS / "bert" / "model.safetensors"
    with pytest.raises(ValueError, match="`source` must be a folder.*which is a file"):
        load(file)
    with pytest.raises(ValueError, match="`destination` must not exist yet"):
        convert(GOLDENS / "bert", file)


def test_a_name_in_a_folder_that_there_is_is_not_asked_for(monkeypatch, tmp_path):
    def snapshot_download(name, allow_patterns):
        raise AssertionError(name)

    hub(monkeypatch, snapshot_download)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "first").mkdir(parents=True)
    message = "the folder runs has no frist.*Did you mean 'first'.*hf download runs/fr"
    for read in (tfeff.convert.load, tfeff.convert.load_tokenizer):
        with pytest.raises(ValueError, match=message):
            read("runs/frist")


def test_names_on_the_hub(monkeypatch, tmp_path):
    asked = []

    def snapshot_download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(GOLDENS / "bert")

    hub(monkeypatch, snapshot_download)
    convert("someone/some-bert", tmp_path / "preset")
    ((name, patterns),) = asked
    assert name == "someone/some-bert"
    assert "*.safetensors" in patterns
    assert not any(pattern.endswith((".bin", "*")) for pattern in patterns)


def test_no_network(monkeypatch):
    def snapshot_download(name, allow_patterns):
        raise ConnectionError("no route")

    hub(monkeypatch, snapshot_download)
    with pytest.raises(ValueError, match="no route.*hf download some-bert"):
        load("some-bert")


def test_a_destination_that_exists_is_left_alone(tmp_path, capsys):
    destination = tmp_path / "preset"
    destination.mkdir()
    (destination / "mine").write_text("mine")
    assert main(["convert", str(GOLDENS / "bert"), str(destination)]) == 1
    assert "`destination` must not exist yet" in capsys.readouterr().err
    assert (destination / "mine").read_text() == "mine"
    assert [path.name for path in destination.iterdir()] == ["mine"]


def test_a_preset_is_replaced_where_it_is_asked_for(tmp_path, capsys):
    command = ["convert", str(GOLDENS / "bert"), str(tmp_path / "preset")]
    assert main(command) == 0
    (tmp_path / "preset" / "metadata.json").write_text("{}")
    assert main(command) == 1
    assert "Give overwrite=True to replace it" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--to=huggingface"]) == 1
    assert "`overwrite` must be left out" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert (tmp_path / "preset" / "metadata.json").read_text() != "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["preset"]


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(tfeff.convert.BertTokenizer, "save_to_preset", fail)
    assert (
        main(["convert", str(GOLDENS / "bert"), str(tmp_path / "out" / "preset")]) == 1
    )
    assert "disk full" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []
