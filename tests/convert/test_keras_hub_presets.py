"""Presets of KerasHub's own encoders, beside KerasHub's own outputs and ids."""

import fnmatch
import functools
import io
import json
import os
import shutil
import warnings
from pathlib import Path

import h5py
import keras
import keras_hub
import ml_dtypes
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import tfeff
from tests.convert.conversions import GOLDENS, TOKENIZER_GOLDENS, hub
from tests.subjects.versions import needs_no_preprocessor, needs_xlm_roberta
from tfeff.command.main import main
from tfeff.convert import convert, load, load_task
from tfeff.convert.conversion import load_with_heads
from tfeff.convert.keras_hub_tokenizer import make_keras_hub_tokenizer
from tfeff.convert.tokenizer import make_tokenizer
from tfeff.tasks.saved_models import masked_lm_settings

SIZES = dict(
    vocabulary_size=30,
    num_layers=3,
    num_heads=2,
    hidden_dim=16,
    intermediate_dim=24,
    max_sequence_length=12,
)
_ELECTRA = {"vocab_size" if k == "vocabulary_size" else k: v for k, v in SIZES.items()}
KINDS = {
    "Bert": SIZES | dict(num_heads=4, num_segments=3),
    "Roberta": SIZES,
    "XLMRoberta": SIZES,
    "Albert": SIZES | dict(embedding_dim=8),
    "DistilBert": SIZES,
    "Electra": _ELECTRA | dict(embedding_dim=8),
}
OTHERS = {
    "Albert in groups": SIZES | dict(num_layers=4, num_groups=2, embedding_dim=8),
    "Electra without projection": _ELECTRA | dict(embedding_dim=16),
}
# Ragged rows, of which the second's first text is one token.
TOKENS = np.array([[2, 9, 29, 3, 7, 7, 5, 11, 3], [2, 8, 3, 21, 3, 0, 0, 0, 0]])
PADDING = np.array([[1] * 9, [1] * 5 + [0] * 4])
SEGMENTS = np.array([[0] * 4 + [1] * 5, [0] * 3 + [1] * 2 + [0] * 4])
INPUTS = dict(token_ids=TOKENS, padding_mask=PADDING, segment_ids=SEGMENTS)
POSITIONS = np.array([[1, 6, 8], [0, 3, 1]])
# Texts on which tokenizers differ.
TEXTS = [
    "the Quick fox, jumped!",
    "  Café\tcafe\u0301 \u00a0naïve\n½ … x² ﬁne\u200b",
    "日本語 中文 한국어 🙂 [MASK] <mask> </s> ΑΣ İ",
    "",
    "   ",
]


def random_weights(model, seed):
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        if "float" in weight.dtype:
            ones = weight.path.endswith("gamma")
            weight.assign(generator.normal(0, 0.3, weight.shape) + ones)
    return model


def backbone(kind):
    make = getattr(keras_hub.models, f"{kind.split()[0]}Backbone")
    return random_weights(make(**(KINDS | OTHERS)[kind]), 0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Function from a kind, and a class of task, to model and preset, made once."""

    @functools.cache
    def make(kind, task="", **settings):
        model = backbone(kind)
        if task and needs_no_preprocessor.args[0]:
            pytest.skip(needs_no_preprocessor.kwargs["reason"])
        if task:
            make = getattr(keras_hub.models, f"{kind.split()[0]}{task}")
            model = random_weights(make(model, preprocessor=None, **settings), 1)
        folder = tmp_path_factory.mktemp("hub") / f"{kind}{task}"
        model.save_to_preset(str(folder))
        return model, folder

    return make


@pytest.fixture
def bert(saved, tmp_path):
    """A copy of BERT's preset, to be changed."""
    return Path(shutil.copytree(saved("Bert")[1], tmp_path / "bert"))


@pytest.fixture
def classifier(saved, tmp_path):
    """A copy of the preset of a classifier by BERT, to be changed."""
    source = saved("Bert", "TextClassifier", num_classes=3)[1]
    return Path(shutil.copytree(source, tmp_path / "classifier"))


def change(path, make):
    values = json.loads(path.read_text())
    make(values)
    path.write_text(json.dumps(values))


def their_inputs(model):
    return {name: INPUTS[name] for name in INPUTS if name in model.input}


def difference(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and np.abs(theirs).max() > 0.1
    return np.abs(ours - theirs).max()


def told(function, *args):
    """What a function gives, and the warnings of tfeff."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args)
    return result, [str(x.message) for x in caught if x.category is UserWarning]


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_hidden_states_and_pooled_output(kind, saved):
    model, folder = saved(kind)
    (encoder, heads, tokenizer), messages = told(load_with_heads, str(folder))
    assert tokenizer is None and not messages
    layer = tf.nest.flatten(model.transformer_layers)[0]
    assert encoder.layer_norm_epsilon == layer.layer_norm_epsilon
    assert encoder.dropout == model.dropout
    theirs = model(their_inputs(model))
    if not isinstance(theirs, dict):
        theirs = dict(sequence_output=theirs)
    ours = encoder(INPUTS)
    real = PADDING.astype(bool)
    states = [ours["hidden_states"][-1], ours["sequence_output"]]
    expected = [theirs["sequence_output"]] * 2
    if not kind.startswith("Albert"):
        layers = [layer.output for layer in model.transformer_layers]
        states = ours["hidden_states"][1:]
        expected = keras.Model(model.input, layers)(their_inputs(model))
    for state, their_state in zip(states, expected, strict=True):
        assert difference(np.asarray(state)[real], np.asarray(their_state)[real]) < 1e-5
    assert ("pooler" in heads) is ("pooled_output" in theirs)
    if head := heads.get("pooler"):
        assert head["activation"] == "tanh"
        first = np.asarray(ours["sequence_output"])[:, 0]
        pooled = np.tanh(first @ head["kernel"] + head["bias"])
        assert difference(pooled, theirs["pooled_output"]) < 1e-5


@pytest.mark.quick("Bert")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Electra"])
def test_logits_of_tasks(kind, saved, tmp_path):
    model, folder = saved(kind, "TextClassifier", num_classes=3)
    (task, tokenizer), messages = told(load_task, folder)
    assert tokenizer is None and not messages
    assert difference(task(INPUTS), model(their_inputs(model))) < 1e-5
    assert task.dropout == model.dropout
    model, folder = saved(kind, "MaskedLM")
    (encoder, heads, _), messages = told(load_with_heads, str(folder))
    assert not messages
    epsilon = model.masked_lm_head.layer_norm_epsilon
    assert heads["masked_lm"]["layer_norm_epsilon"] == epsilon
    objective = tfeff.objectives.MaskedLM(
        encoder, **masked_lm_settings(heads["masked_lm"])
    )
    objective.heads()["masked_lm"].assign(heads["masked_lm"])
    masked = {"mask_positions": POSITIONS}
    expected = model(their_inputs(model) | masked)
    assert difference(objective(INPUTS | masked), expected) < 1e-5


def test_all_that_is_converted(saved, tmp_path, capsys):
    _, folder = saved("Bert", "TextClassifier", num_classes=3)
    converted, messages = told(convert, folder, tmp_path / "classifier")
    assert not messages and converted.heads == ("pooler", "logits")
    assert converted.ignored == {"training state": 2}  # Of the optimizer.
    # By the command, which prints the same.
    assert main(["convert", str(folder), str(tmp_path / "command")]) == 0
    printed = capsys.readouterr().out
    assert "logits, pooler" in printed or "pooler, logits" in printed
    assert "training state" in printed
    _, folder = saved("Bert", "MaskedLM")
    converted, messages = told(convert, folder, tmp_path / "masked")
    assert not messages and converted.heads == ("pooler", "masked_lm")
    encoder = tfeff.encoders.Encoder.from_preset(str(tmp_path / "masked"))
    for ours, loaded in zip(encoder.get_weights(), load(folder).get_weights()):
        np.testing.assert_array_equal(ours, loaded)


def test_names_of_earlier_versions(bert, saved):
    def rename(values):
        values["registered_name"] = "keras_nlp>BertBackbone"
        values["config"]["dtype"] = "float32"

    change(bert / "config.json", rename)
    with h5py.File(bert / "model.weights.h5", "a") as file:
        file["layers/dropout/seed_generator/vars/0"] = np.zeros(2, "uint32")
    for ours, other in zip(
        load(bert).get_weights(), load(saved("Bert")[1]).get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, other)


def test_a_task_that_has_its_encoder_twice(saved, tmp_path):
    """As KerasHub 0.25 writes it."""
    _, folder = saved("Bert", "TextClassifier", num_classes=3)
    shutil.copytree(folder, tmp_path / "hub")
    with h5py.File(tmp_path / "hub" / "task.weights.h5", "a") as file:
        file["layers/bert_backbone/layers/dense/vars/0"] = np.zeros((2, 2))
    converted, _ = told(convert, tmp_path / "hub", tmp_path / "preset")
    assert converted.ignored == {"training state": 2, "encoder, again": 1}
    assert converted.heads == ("pooler", "logits")


def test_one_number_is_a_regression(saved):
    model, folder = saved("Roberta", "TextClassifier", num_classes=1, dropout=0.3)
    task, _ = load_task(folder)
    assert isinstance(task, tfeff.tasks.Regressor) and task.dropout == 0.3
    numbers = np.ravel(task(INPUTS))
    assert difference(numbers, np.ravel(model(their_inputs(model)))) < 1e-5


def test_shares_of_softmax_are_those_of_the_logits(saved):
    settings = dict(num_classes=3, activation="softmax")
    model, folder = saved("DistilBert", "TextClassifier", **settings)
    ours = tf.nn.softmax(load_task(folder)[0](INPUTS))
    assert difference(ours, model(their_inputs(model))) < 1e-5


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(num_classes=3, activation="sigmoid"), "activation='sigmoid'"),
        (dict(num_classes=1, activation="softmax"), "activation='softmax'"),
        (dict(num_classes=3, hidden_dim=8), "hidden_dim=8"),
    ],
)
def test_heads_of_another_kind_are_told(settings, message, saved, tmp_path):
    _, folder = saved("Roberta", "TextClassifier", **settings)
    converted, messages = told(convert, folder, tmp_path / "preset")
    assert converted.task is None and converted.heads == ()
    assert converted.ignored == {"task head": 4, "training state": 2}
    (text,) = messages
    assert "keras_hub>RobertaTextClassifier" in text and message in text
    with pytest.raises(ValueError, match=message):
        load_task(folder)


@pytest.mark.parametrize(
    "name", ["own>BertTextClassifier", "keras_hub>RobertaTextClassifier", "Task"]
)
def test_tasks_of_other_classes_are_told(name, classifier, tmp_path):
    def rename(values):
        values["registered_name"] = name
        values["config"] = {"anything": 1}

    change(classifier / "task.json", rename)
    converted, messages = told(convert, classifier, tmp_path / "preset")
    assert converted.heads == ("pooler",)
    assert converted.ignored == {"task head": 2, "training state": 2}
    assert f"tfeff has no model like {name}" in messages[0]


def test_settings_that_nobody_knows_are_told(classifier):
    change(classifier / "config.json", lambda x: x["config"].update(rotary=1))

    def update(values):
        values["config"]["backbone"]["config"]["rotary"] = 1
        values["config"]["pooling"] = "mean"

    change(classifier / "task.json", update)
    _, messages = told(load, classifier)
    assert [text.split("ignores: ")[1].split(".")[0] for text in messages] == [
        "pooling",
        "rotary",
    ]


@pytest.mark.parametrize("bfloat16", [False, True])
def test_several_files(bfloat16, saved, tmp_path):
    model = backbone("Bert")
    if bfloat16:
        model = keras_hub.models.BertBackbone(**KINDS["Bert"], dtype="bfloat16")
        random_weights(model, 0)
    model.save_to_preset(str(tmp_path), max_shard_size=5e-6)
    assert len(list(tmp_path.glob("model_*.weights.h5"))) > 2
    assert not (tmp_path / "model.weights.h5").exists()
    ours, whole = load(tmp_path).get_weights(), load(saved("Bert")[1]).get_weights()
    for found, expected in zip(ours, whole, strict=True):
        if bfloat16:
            expected = expected.astype(ml_dtypes.bfloat16).astype("float32")
        np.testing.assert_array_equal(found, expected)


def test_an_index_does_not_lead_out_of_its_folder(tmp_path):
    backbone("Bert").save_to_preset(str(tmp_path / "bert"), max_shard_size=5e-6)
    index = tmp_path / "bert" / "model.weights.json"
    shard = sorted((tmp_path / "bert").glob("model_*.h5"))[-1]
    shutil.move(shard, tmp_path / "shard.h5")
    whole = index.read_text()
    index.write_text(whole.replace(shard.name, "../shard.h5"))
    with pytest.raises(ValueError, match=r"names ..\.\./shard.h5"):
        load(tmp_path / "bert")
    index.write_text(whole)
    with pytest.raises(ValueError, match=f"{shard.name}' must be a file"):
        load(tmp_path / "bert")
    index.write_text(whole.replace(shard.name, "model_00001.weights.h5"))
    with pytest.raises(ValueError, match="Missing: .*transformer_encoder_2"):
        load(tmp_path / "bert")
    index.write_text("{}")
    with pytest.raises(ValueError, match="weights.json' must have a 'weight_map'"):
        load(tmp_path / "bert")
    shutil.copy(
        sorted((tmp_path / "bert").glob("model_*.h5"))[0], tmp_path / "bert/2.h5"
    )
    names = ["model_00000.weights.h5", "2.h5"]
    index.write_text(json.dumps(dict(weight_map=dict(one=names))))
    with pytest.raises(ValueError, match="each tensor once"):
        load(tmp_path / "bert")


@pytest.mark.parametrize(
    "kind, changes, message",
    [
        ("Bert", dict(num_layers="3"), "`num_layers` must be an integer"),
        ("Bert", dict(num_heads=5), "`num_heads` must divide"),
        ("Bert", dict(dropout=2), "`dropout` must be"),
        ("Bert", dict(num_segments=0), "`num_segments` must be"),
        ("Bert", dict(dtype="int8_from_float32"), "dtype='int8_from_float32'"),
        ("Bert", dict(dtype={"class_name": "DTypePolicyMap"}), "dtype=.*PolicyMap"),
        ("Bert", dict(vocabulary_size=31), r"reversible_embedding/vars/0 has shape"),
        ("Albert", dict(num_inner_repetitions=2), "num_inner_repetitions=2"),
        ("Albert", dict(num_groups=2), "`num_groups` must divide `num_layers`"),
        ("Albert", dict(embedding_dim=16), "embedding_dim=hidden_dim=16"),
        ("Electra", dict(vocab_size=None), "`vocab_size` must be an integer"),
    ],
)
def test_configurations_that_are_refused(kind, changes, message, saved, tmp_path):
    folder = Path(shutil.copytree(saved(kind)[1], tmp_path / kind))
    change(folder / "config.json", lambda values: values["config"].update(changes))
    with pytest.raises(ValueError, match=message) as raised:
        load(folder)
    assert "config.json" in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["keras_hub>GPT2Backbone", "own>BertBackbone", "own>MyBert", "BertBackbone", ["x"]],
)
def test_other_classes_are_named(name, bert):
    change(bert / "config.json", lambda values: values.update(registered_name=name))
    with pytest.raises(ValueError) as raised:
        load(bert)
    text = str(raised.value)
    assert f"a preset of {name!r}, which tfeff does not read" in text
    assert "XLMRobertaBackbone" in text


def test_what_reads_presets_of_tfeff_tells_how_to_make_one(bert):
    word_piece("Bert", bert)
    with pytest.raises(ValueError, match="BertBackbone', which is none. `tfeff conv"):
        tfeff.tasks.load_pretrained(bert)


def test_missing_and_unknown_tensors_are_listed(bert):
    with h5py.File(bert / "model.weights.h5", "a") as file:
        del file["layers/transformer_encoder_1/_feedforward_output_dense/vars/1"]
        file["layers/adapter/vars/0"] = np.ones(3, "float32")
        file["layers/link"] = h5py.ExternalLink("/etc/passwd", "layers")
    with pytest.raises(ValueError) as raised:
        load(bert)
    assert (
        "Missing: ['layers/transformer_encoder_1/_feedforward_output_dense/vars/1']. "
        "Unknown: ['layers/adapter/vars/0']"
    ) in str(raised.value)


def test_a_task_that_lacks_a_tensor(classifier, tmp_path):
    with h5py.File(classifier / "task.weights.h5", "a") as file:
        del file["layers/dense/vars/1"]
    with pytest.raises(
        ValueError, match=r"Missing: \['task.weights.h5/layers/dense/va"
    ):
        convert(classifier, tmp_path / "preset")
    with h5py.File(classifier / "task.weights.h5", "a") as file:
        file["layers/dense/vars/1"] = np.zeros(3, "float32")
        file["layers/dense_1/vars/0"] = np.zeros(3, "float32")
    with pytest.raises(ValueError, match=r"Unknown: \['task.weights.h5/layers/dense_1"):
        convert(classifier, tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


def test_a_file_that_takes_its_numbers_elsewhere(bert, tmp_path):
    name = "layers/dense/vars/1"
    (tmp_path / "other").write_bytes(bytes(64))
    with h5py.File(bert / "model.weights.h5", "a") as file:
        del file[name]
        other = [(str(tmp_path / "other"), 0, 64)]
        file.create_dataset(name, (16,), "float32", external=other)
        layout = h5py.VirtualLayout((16,), "float32")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (16,))
        file.create_virtual_dataset("layers/virtual/vars/0", layout)
        file["layers/words/vars/0"] = "words"
        file["layers/nothing/vars/0"] = h5py.Empty("float32")
    with pytest.raises(ValueError) as raised:
        load(bert)
    assert "model.weights.h5' must hold numbers alone" in str(raised.value)
    names = [name, *(f"layers/{x}/vars/0" for x in ("nothing", "virtual", "words"))]
    assert str(names) in str(raised.value)


@pytest.mark.parametrize("file", ["model.weights.h5", "task.weights.h5"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_weights_that_are_cut_short(file, share, classifier, tmp_path):
    path = classifier / file
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(ValueError, match=f"{file}' must be a whole HDF5 file"):
        convert(classifier, tmp_path / "preset")


@pytest.mark.parametrize("file", ["config.json", "task.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"registered_name": 1}'])
def test_damaged_configurations(file, text, classifier):
    (classifier / file).write_text(text)
    with pytest.raises(ValueError, match=rf"{file}'|a preset of 1|with neither"):
        load(classifier)


def test_a_task_belongs_to_its_encoder(classifier):
    whole = (classifier / "task.json").read_text()
    encoder = json.loads(whole)["config"]["backbone"]
    encoder["config"]["num_heads"] = 2
    for damage, message in (
        (dict(backbone=encoder), "other num_heads$"),
        (dict(backbone=None), "must have its 'backbone'"),
        (dict(num_classes="3"), "`num_classes` must be an integer"),
    ):
        values = json.loads(whole)
        values["config"] |= damage
        (classifier / "task.json").write_text(json.dumps(values))
        with pytest.raises(ValueError, match=message):
            load(classifier)
        (classifier / "task.json").write_text(whole)
    (classifier / "task.json").unlink()
    with pytest.raises(ValueError, match="must have 'task.json' beside"):
        load(classifier)


@pytest.mark.filterwarnings("ignore:.*SHA256SUMS")  # It lists files left out.
def test_presets_on_the_hub(saved, monkeypatch, tmp_path):
    folders = {"theirs": saved("Bert")[1], "ours": tmp_path / "ours"}
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
    encoder = tfeff.encoders.build("bert_tiny", num_layers=1, vocabulary_size=12)
    tokenizer = tfeff.data.BertTokenizer(pieces)
    tfeff.tasks.save_pretrained(encoder, tokenizer, folders["ours"])

    def snapshot_download(name, allow_patterns):
        source = folders[name.removeprefix("someone/")]
        folder = tmp_path / "snapshot" / name
        for file in filter(Path.is_file, source.rglob("*")):
            path = file.relative_to(source)
            if any(fnmatch.fnmatch(str(path), p) for p in allow_patterns):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, folder / path)
        return str(folder)

    hub(monkeypatch, snapshot_download)
    assert load("hf://someone/theirs").hidden_dim == SIZES["hidden_dim"]
    found = tfeff.convert.load_tokenizer("hf://someone/ours")
    assert found.get_vocabulary() == pieces
    with pytest.raises(ValueError, match="with a preset of tfeff"):
        load("hf://someone/ours")


def test_missing_weights(bert, classifier, tmp_path):
    (bert / "model.weights.h5").unlink()
    with pytest.raises(ValueError, match=r"model\.weights\.h5' must be a file"):
        load(bert)
    (classifier / "task.weights.h5").unlink()
    with pytest.raises(ValueError, match=r"Missing: \['task.weights.h5/layers/de"):
        convert(classifier, tmp_path / "preset")


def test_heads_that_are_missing_as_a_whole_are_told(bert, saved, tmp_path):
    with h5py.File(bert / "model.weights.h5", "a") as file:
        del file["layers/dense/vars"]
    converted, warned = told(convert, bert, tmp_path / "preset")
    assert converted.heads == ()
    (words,) = warned
    assert "pooler lacks ['layers/dense/vars/0', 'layers/dense/vars/1']" in words
    masked = shutil.copytree(saved("DistilBert", "MaskedLM")[1], tmp_path / "masked")
    (masked / "task.weights.h5").unlink()
    converted, warned = told(convert, masked, tmp_path / "of_masked")
    assert converted.heads == ()
    (words,) = warned
    assert "masked_lm lacks ['task.weights.h5/layers/masked_lm_head/" in words


# Tokenizers.


def tokens_of(tokenizer, texts):
    return [[int(id) for id in row] for row in tokenizer(tf.constant(texts))]


def golden(name):
    """The file of a golden's tokenizer, its texts, and their ids in Hugging Face's."""
    folder = TOKENIZER_GOLDENS / name
    model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    ids = json.loads((folder / "ids.json").read_text("utf-8"))
    return model, ids["texts"], ids["ids"]


@pytest.mark.parametrize(
    "name, settings",
    [
        ("bert", dict(lowercase=True, strip_accents=True)),
        ("bert_accents", dict(lowercase=True)),
        ("bert_cased", {}),
    ],
)
@pytest.mark.parametrize("kind", ["Bert"])
def test_ids_of_word_piece(name, kind, settings, tmp_path):
    model, texts, ids = golden(name)
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    make = getattr(keras_hub.tokenizers, f"{kind}Tokenizer")
    theirs = make(pieces, **settings)
    theirs.save_to_preset(str(tmp_path))
    ours, messages = told(make_keras_hub_tokenizer, str(tmp_path))
    assert isinstance(ours, tfeff.data.BertTokenizer) and not messages
    assert tokens_of(ours, texts) == ids
    assert tokens_of(ours, TEXTS[:1]) == tokens_of(theirs, TEXTS[:1])


@pytest.mark.parametrize("name", ["roberta", "roberta_prefix_space"])
def test_ids_of_byte_pairs(name, tmp_path):
    model, texts, ids = golden(name)
    merges = [" ".join(x) if isinstance(x, list) else x for x in model["merges"]]
    theirs = keras_hub.tokenizers.RobertaTokenizer(
        model["vocab"], merges, add_prefix_space="prefix" in name
    )
    theirs.save_to_preset(str(tmp_path))
    ours, messages = told(make_keras_hub_tokenizer, str(tmp_path))
    assert isinstance(ours, tfeff.data.RobertaTokenizer) and not messages
    assert tokens_of(ours, texts) == ids
    assert tokens_of(ours, TEXTS[:1]) == tokens_of(theirs, TEXTS[:1])


@functools.cache
def spm():
    """A SentencePiece model whose first pieces are those of XLM-RoBERTa's."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[:3] * 9 + ["the fox jumps quickly over"] * 9),
        model_writer=model,
        vocab_size=70,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        minloglevel=2,
    )
    return model.getvalue()


@needs_xlm_roberta
def test_ids_of_xlm_roberta(tmp_path):
    theirs = keras_hub.tokenizers.XLMRobertaTokenizer(spm())
    theirs.save_to_preset(str(tmp_path))
    ours, messages = told(make_keras_hub_tokenizer, str(tmp_path))
    assert isinstance(ours, tfeff.data.XLMRobertaTokenizer) and not messages
    expected = tokens_of(theirs, TEXTS)
    assert tokens_of(ours, TEXTS) == expected
    assert any(theirs.unk_token_id in row for row in expected)
    assert ours.get_vocabulary() == theirs.get_vocabulary()
    assert ours.vocabulary_size() == theirs.vocabulary_size()
    for name, their_name in (
        ("cls", "start"),
        ("sep", "end"),
        ("pad",) * 2,
        ("mask",) * 2,
    ):
        found = getattr(ours, f"{name}_token_id")
        assert found == getattr(theirs, f"{their_name}_token_id")


def test_ids_of_albert(tmp_path):
    proto = (GOLDENS / "albert" / "spiece.model").read_bytes()
    theirs = keras_hub.tokenizers.AlbertTokenizer(proto)
    theirs.save_to_preset(str(tmp_path))
    ours, messages = told(make_keras_hub_tokenizer, str(tmp_path))
    assert type(ours) is type(theirs) and not messages
    assert tokens_of(ours, TEXTS) == tokens_of(theirs, TEXTS)
    assert ours.pad_token_id == theirs.pad_token_id


def word_piece(kind, folder, **settings):
    """A preset's tokenizer by the vocabulary of a golden, and the pieces."""
    pieces = (GOLDENS / "bert" / "vocab.txt").read_text("utf-8").split("\n")
    pieces = [piece for piece in pieces if piece]
    make = getattr(keras_hub.tokenizers, f"{kind}Tokenizer")
    tokenizer = make(pieces, lowercase=True, strip_accents=True, **settings)
    tokenizer.save_to_preset(str(folder))
    return tokenizer, pieces


@pytest.mark.parametrize("kind", ["Bert", "DistilBert", "Electra"])
def test_the_classes_of_word_piece(kind, tmp_path):
    settings = dict(special_tokens_in_strings=True, sequence_length=5)
    word_piece(kind, tmp_path / "preset", **settings)
    ours = make_keras_hub_tokenizer(str(tmp_path / "preset"))
    source = tmp_path / "source"
    source.mkdir()
    for file in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(GOLDENS / "bert" / file, source)
    expected = make_tokenizer(str(source), "bert")
    assert tokens_of(ours, TEXTS) == tokens_of(expected, TEXTS)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(split=False), "split=False"),
        (dict(oov_token="[PAD]"), "oov_token="),
        (dict(suffix_indicator="@@"), "wordpieces_prefix='@@'"),
        (dict(lowercase=1), "lowercase=1"),
    ],
)
def test_settings_of_tokenizers_that_are_refused(changes, message, tmp_path):
    word_piece("Bert", tmp_path)
    path = tmp_path / "tokenizer.json"
    change(path, lambda values: values["config"].update(changes))
    with pytest.raises(ValueError, match=message) as raised:
        make_keras_hub_tokenizer(str(tmp_path))
    assert "tokenizer.json" in str(raised.value)


def test_tokenizers_that_are_refused(tmp_path):
    word_piece("Bert", tmp_path)
    path = tmp_path / "tokenizer.json"
    for name in ("own>BertTokenizer", "keras_hub>GPT2Tokenizer"):
        values = json.loads(path.read_text()) | dict(registered_name=name)
        path.write_text(json.dumps(values))
        with pytest.raises(ValueError, match=f"registered_name='{name}'"):
            make_keras_hub_tokenizer(str(tmp_path))
    path.write_text('{"version": "1.0", "model": {}}')
    with pytest.raises(ValueError, match="must describe an object of KerasHub"):
        make_keras_hub_tokenizer(str(tmp_path))


def test_damaged_assets(tmp_path):
    word_piece("Bert", tmp_path / "bert")
    keras_hub.tokenizers.XLMRobertaTokenizer(spm()).save_to_preset(str(tmp_path / "x"))
    model, _, _ = golden("roberta")
    merges = [" ".join(x) if isinstance(x, list) else x for x in model["merges"]]
    roberta = keras_hub.tokenizers.RobertaTokenizer(model["vocab"], merges)
    roberta.save_to_preset(str(tmp_path / "r"))
    for folder, name in (
        ("bert", "vocabulary.txt"),
        ("x", "vocabulary.spm"),
        ("r", "vocabulary.json"),
        ("r", "merges.txt"),
    ):
        path = tmp_path / folder / "assets" / "tokenizer" / name
        whole = path.read_bytes()
        for content in (None, whole[: len(whole) // 3], b"\xff\xfe\xfd"):
            path.unlink()
            if content is not None:
                path.write_bytes(content)
            if name == "merges.txt" and content and len(content) > 3:
                path.write_bytes(content[:-1] + b"\nx y z\n")
            with pytest.raises(ValueError, match=f"{name}'|vocabulary.json'"):
                make_keras_hub_tokenizer(str(tmp_path / folder))
            path.write_bytes(whole)
    # Pieces in another order, of which KerasHub's ids would mean others.
    path = tmp_path / "x" / "assets" / "tokenizer" / "vocabulary.spm"
    shutil.copy(GOLDENS / "albert" / "spiece.model", path)
    with pytest.raises(ValueError, match="first pieces must be <unk>, <s> and </s>"):
        make_keras_hub_tokenizer(str(tmp_path / "x"))


def test_texts_in_probabilities_out(tmp_path):
    """A task with its preprocessor, which reads pairs of texts."""
    tokenizer, pieces = word_piece("Bert", tmp_path / "tokenizer")
    sizes = KINDS["Bert"] | dict(vocabulary_size=len(pieces))
    encoder = random_weights(keras_hub.models.BertBackbone(**sizes), 0)
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=12
    )
    make = keras_hub.models.BertTextClassifier
    theirs = random_weights(make(encoder, 3, preprocessor), 1)
    theirs.save_to_preset(str(tmp_path / "hub"))
    converted, messages = told(convert, tmp_path / "hub", tmp_path / "preset")
    assert not messages and converted.tokenizer is not None
    task, ours = tfeff.tasks.load_task(tmp_path / "preset")
    texts = ["the quick fox", "a dog"], ["it was lazy and slow", "jumps"]
    features = tfeff.data.text_features(tfeff.data.TextExamples(*texts), ours, 12)
    inputs, _ = preprocessor(tuple(map(tf.constant, texts)), y=[0, 0])
    for name in INPUTS:
        np.testing.assert_array_equal(features.inputs[name], inputs[name], name)
    assert difference(task(features.inputs), theirs(inputs)) < 1e-5


def test_more_ids_than_rows(tmp_path):
    word_piece("Bert", tmp_path / "hub")
    backbone("Bert").save_to_preset(str(tmp_path / "hub"))
    with pytest.raises(ValueError, match="no more ids than the embedding has rows"):
        convert(tmp_path / "hub", tmp_path / "preset")
