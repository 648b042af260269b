"""Checkpoints for Hugging Face: what comes in goes out again, and in again."""

import dataclasses
import json
import re
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest
import tokenizers
from safetensors.numpy import load_file
from sentencepiece.sentencepiece_model_pb2 import ModelProto

import tfeff
from tests.convert.conversions import GOLDENS
from tests.subjects.own_calls import Halved, Tripled
from tfeff.command.main import main
from tfeff.convert.architectures import (
    ARCHITECTURES,
    argument_differences,
    find_architecture,
    make_configuration,
)
from tfeff.convert.config import Config
from tfeff.convert.heads import find_heads
from tfeff.convert.huggingface import checkpoint
from tfeff.convert.safetensors import read_safetensors
from tfeff.convert.same_ids import TEXTS
from tfeff.convert.sources import find
from tfeff.convert.tokenizer import make_tokenizer
from tfeff.convert.tokenizer_writing import tokenizer_files
from tfeff.convert.weights import assign
from tfeff.data.text.byte_pairs import byte_symbols
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.xlm_roberta_tokenizer import XLMRobertaTokenizer
from tfeff.encoders import Encoder
from tfeff.encoders.preset_heads import head_names, read_head, read_task
from tfeff.tasks.pretrained import task_config
from tfeff.tasks.run_tokenizer import save_run_tokenizer

HEAD_GOLDENS = Path(__file__).parent / "head_goldens"
NAMES = sorted(
    str(path.parent.relative_to(GOLDENS.parent))
    for folder in (GOLDENS, HEAD_GOLDENS)
    for path in folder.glob("*/config.json")
)
QUICK = [
    *(name for name in NAMES if name.startswith("goldens/") and "xlnet" not in name),
    "goldens/xlnet_clamped",
    *("head_goldens/albert_pretraining", "head_goldens/bert_classifier"),
    *("head_goldens/bert_questions", "head_goldens/convbert_choice"),
    *("head_goldens/distilbert_tokens", "head_goldens/electra_discriminator"),
    *("head_goldens/roberta_classifier", "head_goldens/xlnet_regressor"),
]
# Tensors that nothing reads, and rows: their values are not kept.
UNREAD = ("embeddings.position_embeddings.weight", "mask_emb")
TINY = dict(
    vocabulary_size=40,
    num_layers=3,
    num_heads=4,
    hidden_dim=8,
    intermediate_dim=12,
    max_sequence_length=13,
)
CONVBERT = {"name": "mixed", "kernel_size": 5, "mask_conv": False}
XLNET = dict(
    attention={"name": "relative", "method": "xlnet", "relative_segments": True},
    position="none",
    num_segments=0,
    embedding_layer_norm=False,
)


def shaw(**arguments):
    attention = {"name": "relative", "method": "shaw", "shared_heads": True}
    return dict(attention=attention | arguments, position="none")


def changed_xlnet(**arguments):
    return XLNET | dict(attention=XLNET["attention"] | arguments)


def same_or_unread(name, ours, theirs):
    """Whether a tensor is kept; of one that nothing reads, zeros are."""
    if np.array_equal(ours, theirs):
        return True
    rows = np.any(ours != theirs, axis=tuple(range(1, ours.ndim)))
    return name.endswith(UNREAD) and not np.any(ours[rows])


def read(name):
    """A golden's source, encoder, heads, and task."""
    found = find(GOLDENS.parent / name)
    encoder = Encoder(**found.format.arguments(found.config))
    heads = find_heads(found, encoder)
    weights = [*found.format.weights(encoder), *heads.weights]
    assign(weights, found.tensors, found.format.left_out)
    arrays = {key: head.arrays() for key, head in heads.heads.items()}
    task = None if heads.task is None else task_config(heads.task)
    return found, encoder, arrays, task


@pytest.mark.quick(
    "goldens/bert",
    "goldens/roberta",
    "goldens/albert",
    "goldens/convbert_small",
    "head_goldens/electra_discriminator",
)
@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in NAMES
    ],
)
def test_tensors_and_configuration_are_the_originals(name):
    found, encoder, heads, task = read(name)
    original = found.config.values
    config, tensors, written = checkpoint(encoder, heads, task, original["model_type"])
    assert written.names == tuple(sorted(heads))
    assert config["architectures"] == original["architectures"]
    theirs = read_safetensors(found.directory)
    assert set(tensors) == set(theirs)
    unread = []
    for key, tensor in theirs.items():
        values = tensor.read()
        assert tensors[key].shape == values.shape
        assert same_or_unread(key, tensors[key], values), key
        unread += [key] * (not np.array_equal(tensors[key], values))
    assert len(unread) <= 1
    form = found.format
    ours, theirs = (form.arguments(Config(c, "")) for c in (config, original))
    assert ours == theirs
    if task is not None:
        again = dataclasses.replace(found, config=Config(config, ""))
        configs = task_config(find_heads(again, encoder).task)["config"], task["config"]
        assert drop(configs[0], "name") == drop(configs[1], "name")


@pytest.mark.quick("albert")
@pytest.mark.parametrize("name", ["bert_pretraining", "albert", "xlnet"])
def test_in_out_and_in_again(name, preset, tmp_path, capsys):
    out, again = tmp_path / "new" / "out", tmp_path / "again"
    arguments = ["convert", "--to=huggingface", preset(name), str(out)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    config = json.loads((out / "config.json").read_text())
    assert f"Wrote {out}: {config['architectures'][0]}" in said
    assert [entry.name for entry in out.parent.iterdir()] == ["out"]
    assert main(["convert", str(out), str(again)]) == 0
    check_same_presets(preset(name), again)


def test_a_task_out_and_in_again(tmp_path):
    model = tfeff.tasks.Classifier(
        Encoder(**TINY), 3, label_names=["no", "yes", "maybe"], dropout=0.2
    )
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "preset")
    written = tfeff.convert.to_huggingface(tmp_path / "preset", tmp_path / "out")
    assert written.model == "BertForSequenceClassification"
    assert (written.heads, written.tokenizer) == (
        ("logits", "pooler"),
        "BertTokenizer",
    )
    tfeff.convert.convert(tmp_path / "out", tmp_path / "again")
    check_same_presets(tmp_path / "preset", tmp_path / "again")
    in_memory = tfeff.convert.to_huggingface(model, tmp_path / "out2", tokenizer)
    assert in_memory == written
    for name in ("config.json", "model.safetensors", "tokenizer.json", "vocab.txt"):
        files = [(tmp_path / out / name).read_bytes() for out in ("out", "out2")]
        assert files[0] == files[1], name
    assert len({path.stat().st_mode for path in (tmp_path / "out").iterdir()}) == 1


def test_damage_of_what_was_written_is_named(tmp_path):
    out = tmp_path / "out"
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    tfeff.convert.to_huggingface(Encoder(**TINY), out, tokenizer)
    files = {path.name for path in out.iterdir()}
    assert files > {"SHA256SUMS", "config.json", "model.safetensors", "vocab.txt"}
    for name in files - {"SHA256SUMS"}:
        content = (out / name).read_bytes()
        (out / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ValueError, match=f"Damaged since it was written.*{name}"):
            tfeff.convert.load(out)
        if name != "model.safetensors":
            with pytest.raises(ValueError, match=f"Damaged since it was .*{name}"):
                tfeff.convert.load_tokenizer(out)
        (out / name).write_bytes(content)
    assert tfeff.convert.load_tokenizer(out).vocabulary_size() == 18
    # One of somebody else, such as of `sha256sum --binary`, and of other files.
    lines = (f"{'0' * 64} *model.safetensors", "# a comment", f"{'0' * 64}  README.md")
    (out / "README.md").write_text("of ours")
    (out / "SHA256SUMS").write_text("\n".join(lines))
    assert tfeff.convert.load(out).num_layers == TINY["num_layers"]
    (out / "SHA256SUMS").unlink()  # As who changes a file on purpose is told to do.
    assert tfeff.convert.load(out).num_layers == TINY["num_layers"]


def check_same_presets(one, other):
    one, other = str(one), str(other)
    encoders = [Encoder.from_preset(preset) for preset in (one, other)]
    for pair in zip(*(encoder.weights for encoder in encoders), strict=True):
        np.testing.assert_array_equal(pair[0].numpy(), pair[1].numpy(), pair[0].path)
    assert argument_differences(*(e.get_config() for e in encoders), {"name"}) == []
    heads = [{n: read_head(p, n) for n in head_names(p)} for p in (one, other)]
    assert heads[0].keys() == heads[1].keys()
    for name, arrays in heads[0].items():
        np.testing.assert_equal(heads[1][name], arrays)
    tasks = [(read_task(p) or {}).get("config", {}) for p in (one, other)]
    assert drop(tasks[0], "name") == drop(tasks[1], "name")
    tokenizers = [tfeff.tasks.load_pretrained(preset)[1] for preset in (one, other)]
    assert tokenizers[0].get_vocabulary() == tokenizers[1].get_vocabulary()
    for text in TEXTS:  # The scores of SentencePiece models may be shifted.
        rows = [[int(i) for i in tokenizer(text)] for tokenizer in tokenizers]
        assert rows[0] == rows[1], text
    if not isinstance(tokenizers[0], keras_hub.tokenizers.SentencePieceTokenizer):
        fingerprints = [tfeff.data.tokenizer_fingerprint(t) for t in tokenizers]
        assert fingerprints[0] == fingerprints[1]


def drop(config, name):
    return {key: value for key, value in config.items() if key != name}


@pytest.mark.quick("bert-overrides0", "bert-overrides9", "convbert-overrides18")
@pytest.mark.parametrize(
    "name, overrides",
    [
        ("bert", dict()),
        ("bert", dict(num_segments=1, dropout=0.3, attention_dropout=0.0)),
        ("bert", dict(num_segments=5, feedforward={"activation": "gelu_tanh"})),
        ("bert", dict(feedforward={"activation": "relu"}, layer_norm_epsilon=1e-5)),
        ("bert", dict(feedforward={"activation": "silu", "num_groups": 1})),
        ("bert", dict(attention=["self", {"name": "self"}, "self"])),
        ("bert", dict(attention={"name": "self", "dropout": 0.25})),
        ("bert", dict(max_sequence_length=1)),
        ("bert", shaw()),
        ("bert", shaw(max_distance=12)),
        ("bert", shaw(method="huang4")),
        ("electra", dict(embedding_dim=6)),
        ("electra", dict(embedding_dim=6) | shaw()),
        ("distilbert", dict(num_segments=0, attention_dropout=0.4)),
        ("albert", dict(embedding_dim=6, sharing="all", dropout=0.0)),
        ("albert", dict(embedding_dim=6, sharing="all", sharing_group_size=1)),
        ("albert", dict(embedding_dim=6, sharing="all", sharing_group_size=3)),
        ("convbert", dict(attention=CONVBERT)),
        ("convbert", dict(attention=CONVBERT | {"kernel_size": 9}, embedding_dim=6)),
        ("convbert", dict(attention=CONVBERT, feedforward={"num_groups": 2})),
        ("xlnet", XLNET),
        ("xlnet", XLNET | dict(max_sequence_length=99)),
        ("xlnet", changed_xlnet(max_distance=7, sinusoid="concatenated")),
    ],
)
def test_configurations_are_the_inverse_of_arguments(name, overrides):
    encoder = Encoder(**TINY | overrides)
    assert find_architecture(encoder) == name
    config = make_configuration(encoder, name)
    # As a file has it.
    config = Config(json.loads(json.dumps(config)), "config.json")
    arguments = ARCHITECTURES[name].arguments(config)
    free = {"name", "trainable", "dtype", "memory_efficient"} | (
        {"max_sequence_length", "sinusoid"} if name == "xlnet" else set()
    )
    assert argument_differences(encoder.get_config(), arguments, free) == []
    ours = Encoder(**arguments)
    shapes = [[tuple(w.shape) for w in e.weights] for e in (encoder, ours)]
    assert shapes[0] == shapes[1]


@pytest.mark.quick(
    "overrides0-BERT.*ALBERT.*XLNet.*attention='one_head'",
    "overrides8-'rpe'",
    "overrides16-embedding_size=hidden_size=8",
    "overrides24-mask_conv=True, not False",
    "overrides32-layer_norm_epsilon=0.001",
)
@pytest.mark.parametrize(
    "overrides, message",
    [
        (dict(attention="one_head"), r"BERT.*ALBERT.*XLNet.*attention='one_head'"),
        (dict(attention="sparse"), "attention='sparse'"),
        (dict(attention="partitioned"), "attention='partitioned'"),
        (dict(attention={"name": "blockwise", "head_blocks": "2:2"}), "'2:2'"),
        (dict(attention="lightweight_conv"), "'lightweight_conv'"),
        *((shaw(method=f"huang{n}"), f"'huang{n}'") for n in (1, 2, 3)),
        (shaw(method="rpe", shared_heads=False), "'rpe'"),
        (shaw(method="bias", shared_heads=False), "'bias'"),
        (shaw(shared_heads=False), "shared_heads=False, not True"),
        (shaw(max_distance=5), "max_distance=5, not 12"),
        (shaw() | dict(position="absolute"), "position='absolute', not 'none'"),
        (dict(position="none"), "position='none', not 'absolute'"),
        (dict(position="sinusoid"), "position='sinusoid'"),
        (dict(sharing="attention"), "sharing='attention'"),
        (dict(sharing="all"), "embedding_size=hidden_size=8"),
        (dict(embedding_layer_norm=False), "embedding_layer_norm=False, not True"),
        (dict(feedforward={"num_groups": 2}), "feedforward num_groups=2, not 1"),
        (dict(feedforward={"activation": "tanh"}), "activation='tanh', not 'gelu'"),
        (
            dict(attention=["self", {"name": "self", "dropout": 0.3}, "self"]),
            "attention dropout=0.3, not 0.1",
        ),
        (
            dict(attention={"name": "self", "disabled_heads": [1]}),
            r"attention disabled_heads=.1.*, not",
        ),
        (dict(attention=["self", "self", "one_head"]), "'one_head'"),
        (dict(attention=["self", shaw()["attention"], "self"]), "attention='relative'"),
        (dict(attention="mixed"), "mask_conv=True, not False"),
        (dict(attention=CONVBERT | {"head_ratio": 4}), "head_ratio=4, not 2"),
        (
            dict(attention={"name": "mixed", "convolution": "none"}),
            "convolution='none'",
        ),
        (dict(attention=CONVBERT, sharing="all"), "sharing='all', not 'none'"),
        (XLNET | dict(num_segments=2), "num_segments=2, not 0"),
        (XLNET | dict(attention_dropout=0.3), "attention dropout=0.3, not 0.1"),
        (changed_xlnet(query_bias=False), "query_bias=False, not True"),
        (changed_xlnet(relative_segments=False), "relative_segments=False, not True"),
        (dict(num_segments=0, layer_norm_epsilon=1e-3), "layer_norm_epsilon=0.001"),
    ],
)
def test_encoders_that_transformers_lack_are_refused(overrides, message, tmp_path):
    encoder = Encoder(**TINY | overrides)
    with pytest.raises(ValueError, match=f"(?s)`source`.*{message}"):
        tfeff.convert.to_huggingface(encoder, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.quick(
    "bert electra roberta-overrides0", "convbert-overrides5", "-overrides8"
)
@pytest.mark.parametrize(
    "fitting, overrides",
    [
        ("bert electra roberta", dict()),
        ("distilbert", dict(num_segments=0)),
        ("bert electra", shaw()),
        ("electra", dict(embedding_dim=6)),
        ("albert", dict(embedding_dim=6, sharing="all")),
        ("convbert", dict(attention=CONVBERT)),
        pytest.param("xlnet", XLNET, marks=pytest.mark.slow),
        ("", dict(attention="one_head")),
        ("", dict(attention=["self", CONVBERT, "self"])),
    ],
)
def test_as_another_architecture_an_encoder_is_written_or_refused(fitting, overrides):
    encoder = Encoder(**TINY | overrides)
    for name in ARCHITECTURES:
        if name in fitting.split():
            checkpoint(encoder, {}, None, name)
            continue
        with pytest.raises(ValueError, match="must be an encoder that transformers"):
            checkpoint(encoder, {}, None, name)


@pytest.mark.slow
def test_weights_that_the_format_lacks_are_refused(tmp_path):
    encoder = Encoder(**TINY | XLNET)
    bias = encoder.blocks[1].attention.value_dense.bias
    bias.assign(np.eye(8)[0])
    with pytest.raises(ValueError, match="zeros.*value/bias"):
        tfeff.convert.to_huggingface(encoder, tmp_path / "out")
    bias.assign(np.zeros(8))
    tfeff.convert.to_huggingface(encoder, tmp_path / "out")


def test_a_call_of_ones_own_is_refused(tmp_path):
    for model in (Tripled(**TINY), Halved(Encoder(**TINY), num_classes=2)):
        name = type(model).__name__
        with pytest.raises(ValueError, match=f"class {name}, which has a `call` of"):
            tfeff.convert.to_huggingface(model, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_changed_layers_are_refused(tmp_path):
    def refused(encoder, message):
        with pytest.raises(ValueError, match=message):
            tfeff.convert.to_huggingface(encoder, tmp_path / "out")
        assert not list(tmp_path.iterdir())

    encoder = Encoder(**TINY)
    encoder.quantize("int8")
    refused(encoder, "not be quantized.*int8")
    encoder = Encoder(**TINY)
    encoder.enable_lora(2)
    refused(encoder, "LoRA")
    refused(Encoder(**TINY, dtype="bfloat16"), "float32.*bfloat16")
    tfeff.convert.to_huggingface(
        Encoder(**TINY, dtype="mixed_bfloat16"), tmp_path / "out"
    )


def test_a_preset_in_half_precision_is_written_in_float32(tmp_path):
    encoder = Encoder(**TINY, dtype="bfloat16")
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    tfeff.tasks.save_pretrained(encoder, tokenizer, tmp_path / "preset")
    tfeff.convert.to_huggingface(tmp_path / "preset", tmp_path / "out")
    again = tfeff.convert.load(tmp_path / "out")
    for one, other in zip(encoder.weights, again.weights, strict=True):
        one = keras.ops.convert_to_numpy(keras.ops.cast(one, "float32"))
        np.testing.assert_array_equal(one, other.numpy())


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda e: tfeff.tasks.Classifier(e, 2, "layerwise"), "pooling='layerwise'"),
        (
            lambda e: tfeff.tasks.Classifier(e, 2, pooler_activation="relu"),
            "pooler_activation='gelu'. Received: pooler_activation='relu'. Trained "
            "with `--pooler_activation=gelu` of `tfeff finetune`",
        ),
    ],
)
def test_tasks_that_the_class_lacks_are_refused(make, message, tmp_path):
    with pytest.raises(ValueError, match=f"`source`.*{message}"):
        tfeff.convert.to_huggingface(make(Encoder(**TINY)), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_heads_that_are_left_out_are_named(tmp_path):
    model = tfeff.objectives.SentencePairPrediction(Encoder(**TINY), kind="order")
    with pytest.warns(UserWarning, match="BertForMaskedLM.*'pooler', 'sentence_order'"):
        written = tfeff.convert.to_huggingface(model, tmp_path / "out")
    assert (written.model, written.heads) == ("BertForMaskedLM", ("masked_lm",))


def test_a_head_with_settings_that_the_class_lacks_is_left_out(tmp_path):
    """That of a student that has copied its teacher's, such as a RoBERTa's."""
    model = tfeff.objectives.MaskedLM(Encoder(**TINY), "relu", 1e-5)
    told = (
        r"BertModel has no place for the heads \['masked_lm'\], which are left out: "
        "masked_lm has activation relu, not gelu, layer_norm_epsilon 1e-05, not 1e-12$"
    )
    with pytest.warns(UserWarning, match=told):
        written = tfeff.convert.to_huggingface(model, tmp_path / "out")
    assert (written.model, written.heads) == ("BertModel", ())


def save_step(model, run, tokenizer):
    """Saves a model as step 5 of a run with this tokenizer."""
    (run / "checkpoints").mkdir(parents=True)
    save_run_tokenizer(tokenizer, str(run))
    model.compile()
    path = run / "checkpoints" / "step-00000005.keras"
    tfeff.training.save_checkpoint(model, str(path))


@pytest.mark.parametrize(
    "kind",
    [
        "objective",
        pytest.param("task", marks=pytest.mark.slow),
        pytest.param("distillation", marks=pytest.mark.slow),
    ],
)
def test_a_step_of_a_run_is_written_with_its_heads(kind, tmp_path):
    run, encoder = tmp_path / "run", Encoder(**TINY)
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    model = trained = tfeff.objectives.MaskedLM(encoder)
    if kind != "objective":
        model = trained = tfeff.tasks.Classifier(encoder, 2)
    if kind == "distillation":
        teacher = tfeff.tasks.Classifier(Encoder(**TINY), 2)
        trained = tfeff.objectives.Distillation(model, teacher, prediction=True)
    save_step(trained, run, tokenizer)
    step, whole = tmp_path / "step", tmp_path / "whole"
    written = tfeff.convert.to_huggingface(f"{run}@5", step)
    assert written == tfeff.convert.to_huggingface(model, whole, tokenizer)
    assert written.heads
    for name in ("config.json", "model.safetensors"):
        assert (step / name).read_bytes() == (whole / name).read_bytes()


@keras.saving.register_keras_serializable(package="test_huggingface")
class _WithoutHeads(tfeff.objectives.MaskedLM):
    """An objective that does not name its head."""

    def heads(self):
        return {}


def test_a_step_whose_heads_have_no_names_is_written_without(tmp_path):
    run = tmp_path / "run"
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    save_step(_WithoutHeads(Encoder(**TINY)), run, tokenizer)
    written = tfeff.convert.to_huggingface(f"{run}@5", tmp_path / "step")
    assert (written.model, written.heads) == ("BertModel", ())


def test_the_architecture_may_be_chosen(tmp_path):
    encoder = Encoder(**TINY)
    for name in ("electra", "roberta"):
        written = tfeff.convert.to_huggingface(
            encoder, tmp_path / name, architecture=name
        )
        assert written.model == f"{name.title()}Model"
        again = tfeff.convert.load(tmp_path / name)
        assert (
            argument_differences(encoder.get_config(), again.get_config(), {"name"})
            == []
        )
    with pytest.raises(ValueError, match="`architecture`.*'roberto'.*roberta"):
        tfeff.convert.to_huggingface(encoder, tmp_path / "a", architecture="roberto")
    with pytest.raises(ValueError, match="As DistilBert.*num_segments=2, not 0"):
        tfeff.convert.to_huggingface(encoder, tmp_path / "a", architecture="distilbert")


def test_arguments(tmp_path):
    encoder = Encoder(**TINY)
    write = tfeff.convert.to_huggingface
    with pytest.raises(ValueError, match="`destination` must not exist"):
        write(encoder, tmp_path)
    with pytest.raises(TypeError, match="`source` must be a .*Encoder"):
        write(3, tmp_path / "out")
    with pytest.raises(ValueError, match="`source` must be a preset.*source='"):
        write(tmp_path / "absent", tmp_path / "out")
    with pytest.raises(
        ValueError, match="`source` must be .*Received: step 5 of .*absent"
    ):
        write(tmp_path / "absent@5", tmp_path / "out")
    with pytest.raises(ValueError, match="a checkpoint of Hugging Face"):
        write(HEAD_GOLDENS / "bert_classifier", tmp_path / "out")
    with pytest.raises(TypeError, match="`tokenizer` must be a KerasHub"):
        write(encoder, tmp_path / "out", "tokenizer")
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    with pytest.raises(ValueError, match="`tokenizer` must be None for a preset"):
        write(tmp_path / "absent", tmp_path / "out", tokenizer)
    small = Encoder(**TINY | {"vocabulary_size": 17})
    with pytest.raises(ValueError, match="`tokenizer`.*18 ids, 17 rows"):
        write(small, tmp_path / "out", tokenizer)
    with pytest.raises(ValueError, match="`tokenizer` must have the id 1 for padding"):
        write(encoder, tmp_path / "out", tokenizer, architecture="roberta")
    assert not list(tmp_path.iterdir())


@pytest.mark.quick("wordpiece-True")
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_trained_tokenizers_are_written(kind, lowercase, tmp_path):
    size = {"wordpiece": 420, "sentencepiece": 250}[kind]
    texts = [text for text in TEXTS if text.strip()] * 2
    tokenizer = tfeff.data.train_tokenizer(texts, size, lowercase, kind)
    files = tokenizer_files(tokenizer, {"model_max_length": 13})
    config = json.loads(files["tokenizer_config.json"])
    assert config["model_max_length"] == 13
    fast = tokenizers.Tokenizer.from_str(files["tokenizer.json"].decode())
    for text in TEXTS:
        ids = [int(i) for i in tokenizer(text)]
        found = fast.encode(text, add_special_tokens=False).ids
        # Ways of equal scores are ties.
        order = sorted if kind == "sentencepiece" else list
        assert order(found) == order(ids), text
    around = [tokenizer.cls_token_id, *tokenizer("one"), tokenizer.sep_token_id]
    assert fast.encode("one").ids == [int(i) for i in around]
    pair = fast.encode("one", "one")
    assert pair.ids == [int(i) for i in (*around, *around[1:])]
    assert pair.type_ids == [0] * len(around) + [1] * (len(around) - 1)
    # The classes of transformers 5 read the vocabulary alone, and do not compose.
    has_class = kind == "wordpiece" and lowercase
    name = "BertTokenizer" if has_class else "PreTrainedTokenizerFast"
    assert config["tokenizer_class"] == name
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    again = make_tokenizer(str(tmp_path), "bert")
    assert type(again).__name__ in (type(tokenizer).__name__, "AlbertTokenizer")
    for text in TEXTS:
        found = [[int(i) for i in one(text)] for one in (again, tokenizer)]
        assert order(found[0]) == order(found[1]), text


@pytest.mark.quick("bert", "distilbert")
@pytest.mark.parametrize(
    ("overrides", "architecture", "segments"),
    [
        ({}, "bert", True),
        ({"num_segments": 1}, "bert", False),
        ({"num_segments": 0}, "distilbert", False),
        ({"sharing": "all", "embedding_dim": 4}, "albert", True),
        (XLNET, "xlnet", True),
    ],
    ids=["bert", "one_segment", "distilbert", "albert", "xlnet"],
)
def test_segments_are_asked_of_the_tokenizer(
    overrides, architecture, segments, tmp_path
):
    """Version 5 of transformers gives ALBERT and XLNet none by itself."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", "##a"]
    tokenizer = tfeff.data.BertTokenizer(vocabulary)
    encoder = Encoder(**TINY | {"vocabulary_size": len(vocabulary)} | overrides)
    tfeff.convert.to_huggingface(encoder, tmp_path / "out", tokenizer, architecture)
    config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    names = ["input_ids", *["token_type_ids"] * segments, "attention_mask"]
    assert config["model_input_names"] == names


def test_other_architectures_are_named_where_they_can_be_written(preset, tmp_path):
    """Without its tokenizer a RoBERTa is taken for a BERT, which has other settings."""
    relative = Encoder.from_preset(preset("roberta_relative_key_query"))
    advice = '. With `architecture="roberta"` it can be written'
    with pytest.raises(ValueError, match=f"As Bert.*{re.escape(advice)}$"):
        tfeff.convert.to_huggingface(relative, tmp_path / "out")
    tfeff.convert.to_huggingface(relative, tmp_path / "out", architecture="roberta")
    with pytest.raises(ValueError, match="activation='tanh', not 'gelu'$"):
        tfeff.convert.to_huggingface(
            Encoder(**TINY, feedforward={"activation": "tanh"}), tmp_path / "tanh"
        )


def test_other_architectures_are_named_where_they_have_more_heads(tmp_path):
    """A generator of ELECTRA as wide as its table is taken for a BERT."""
    encoder = Encoder(**TINY, feedforward={"activation": "gelu_tanh"})
    model = tfeff.objectives.MaskedLM(encoder, activation="gelu")
    tokenizer = tfeff.data.train_tokenizer(["one two three"] * 9, 18, kind="wordpiece")
    for name, given, others in (
        ("none", None, '`architecture="electra"` or `architecture="roberta"`'),
        ("bert", tokenizer, '`architecture="electra"`'),  # Its padding has the id 0.
    ):
        with pytest.warns(UserWarning, match=f"left out.*. With {others} more can be"):
            tfeff.convert.to_huggingface(model, tmp_path / name, given)
    written = tfeff.convert.to_huggingface(
        model, tmp_path / "electra", tokenizer, architecture="electra"
    )
    assert written.heads == ("masked_lm",)


@pytest.mark.parametrize(
    "make, kind",
    [
        (
            lambda e: tfeff.tasks.Classifier(e, 3, pooler_activation="gelu"),
            "SequenceClassification",
        ),
        (
            lambda e: tfeff.tasks.Regressor(e, pooler_activation="gelu"),
            "SequenceClassification",
        ),
        (
            lambda e: tfeff.tasks.MultipleChoice(e, pooler_activation="relu"),
            "MultipleChoice",
        ),
    ],
    ids=["classifier", "regressor", "choice"],
)
def test_an_electra_as_wide_as_its_table_comes_in_again(make, kind, tmp_path):
    model = make(Encoder(**TINY))
    written = tfeff.convert.to_huggingface(model, tmp_path / "out")
    assert written.model == f"ElectraFor{kind}"
    again, _ = tfeff.convert.load_task(tmp_path / "out")
    configs = [drop(task_config(one)["config"], "name") for one in (model, again)]
    assert [c.pop("label_names", None) for c in configs][0] is None
    assert configs[0] == configs[1]
    encoders = [one.encoder.get_config() for one in (model, again)]
    assert argument_differences(*encoders, {"name"}) == []
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), one.path)


@pytest.mark.quick("float32")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_scaled_ratings_come_in_again(tmp_path, dtype):
    encoder = Encoder(**TINY, dtype=dtype)
    model = source = tfeff.tasks.Regressor(encoder, scale=3e4, offset=1.5e5)
    model.get_layer("logits").bias.assign([0.5])
    if dtype == "float16":  # Only a preset's weights are read in float32.
        source = tmp_path / "preset"
        tokenizer = tfeff.data.train_tokenizer(["a b"], 7, kind="wordpiece")
        tfeff.tasks.save_pretrained(model, tokenizer, source)
    tfeff.convert.to_huggingface(source, tmp_path / "out")
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype.name for tensor in tensors.values()} == {"float32"}
    again, _ = tfeff.convert.load_task(tmp_path / "out")
    assert (again.scale, again.offset) == (1.0, 0.0)
    ones = np.ones((2, 5), "int32")
    inputs = {name: ones for name in ("token_ids", "segment_ids", "padding_mask")}
    ratings = np.asarray(model(inputs))
    assert np.abs(ratings - 1.5e5).min() > 1e4
    limit = 1e-5 if dtype == "float32" else 1e-3
    np.testing.assert_allclose(np.asarray(again(inputs)), ratings, rtol=limit)


@pytest.mark.parametrize("method", ["shaw", "huang4"])
def test_a_warning_tells_that_version_5_lacks_it(method, tmp_path):
    attention = {"name": "relative", "method": method, "shared_heads": True}
    encoder = Encoder(**TINY, attention=attention, position="none")
    with pytest.warns(UserWarning, match="version 4.* ignores .*='relative_key"):
        tfeff.convert.to_huggingface(encoder, tmp_path / "out")


def roberta_tokenizer():
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *byte_symbols(), "Ġa", "ba", "<mask>"]
    ids = {piece: index for index, piece in enumerate(pieces)}
    return RobertaTokenizer(ids, ["Ġ a", "b a"])


def xlm_roberta_tokenizer():
    """One of RoBERTa's special tokens, with a trained model's other pieces."""
    texts = [text for text in TEXTS if text.strip()] * 2
    model = ModelProto.FromString(tfeff.data.train_tokenizer(texts, 250).proto)
    for piece, name in zip(model.pieces, ("<pad>", "<unk>", "<s>", "</s>", "<mask>")):
        piece.piece = name
    return XLMRobertaTokenizer(model.SerializeToString())


@pytest.mark.slow
@pytest.mark.parametrize("make", [roberta_tokenizer, xlm_roberta_tokenizer])
def test_tokenizers_of_roberta_come_in_again(make, tmp_path):
    tokenizer = make()
    encoder = Encoder(**TINY | {"vocabulary_size": tokenizer.vocabulary_size()})
    if make is xlm_roberta_tokenizer:  # Its padding has another id.
        files = tokenizer_files(tokenizer, {})
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        again = make_tokenizer(str(tmp_path), "roberta")
    else:
        written = tfeff.convert.to_huggingface(encoder, tmp_path / "out", tokenizer)
        assert written == tfeff.convert.Written("RobertaModel", (), "RobertaTokenizer")
        again = make_tokenizer(str(tmp_path / "out"), "roberta")
        assert again.get_merges() == tokenizer.get_merges()
        load = tfeff.convert.load(tmp_path / "out")
        assert (
            argument_differences(encoder.get_config(), load.get_config(), {"name"})
            == []
        )
    assert type(again) is type(tokenizer)
    assert again.get_vocabulary() == tokenizer.get_vocabulary()
    for text in TEXTS:
        order = sorted if make is xlm_roberta_tokenizer else list
        ids = [order(int(i) for i in one(text)) for one in (again, tokenizer)]
        assert ids[0] == ids[1], text


def test_without_segments_a_tokenizer_of_roberta_makes_no_roberta(tmp_path):
    tokenizer = roberta_tokenizer()
    settings = TINY | dict(vocabulary_size=tokenizer.vocabulary_size(), num_segments=0)
    encoder = Encoder(**settings)
    written = tfeff.convert.to_huggingface(encoder, tmp_path / "out", tokenizer)
    assert written.model == "DistilBertModel"


@pytest.mark.parametrize("make", [roberta_tokenizer, xlm_roberta_tokenizer])
def test_a_subclass_of_roberta_s_tokenizer_makes_a_roberta(make):
    tokenizer = make()
    tokenizer.__class__ = type("Own", (type(tokenizer),), {})
    assert find_architecture(Encoder(**TINY), tokenizer=tokenizer) == "roberta"


def test_tokenizers_with_other_ids_are_refused():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "1", "##/", "##2"]
    other = keras_hub.tokenizers.BertTokenizer(
        [*vocabulary, *"abcdefghijklmnopqrstuvwxyz…½"], lowercase=True
    )
    advised = r"A `tfeff\.data\.BertTokenizer` of its vocabulary gives them"
    refused = f"(?s)`tokenizer` must give the ids.*….*{advised}"
    with pytest.raises(ValueError, match=refused):
        tokenizer_files(other, {})
    tokenizer_files(tfeff.data.BertTokenizer(other.get_vocabulary()), {})
    vocabulary = {"a": 0, "b": 1, "ab": 2}
    other = keras_hub.tokenizers.BytePairTokenizer(vocabulary, ["a b"])
    with pytest.raises(ValueError, match="`tokenizer` must be of.*BytePair"):
        tokenizer_files(
            keras_hub.tokenizers.BytePairTokenizer({"a": 0, "b": 1, "ab": 2}, ["a b"]),
            {},
        )
