"""Published heads compute what the originals compute, from the source and a preset."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import tfeff
from tests.checks import assert_close
from tests.convert.conversions import GOLDENS as ENCODERS
from tests.convert.conversions import HEAD_GOLDENS as GOLDENS
from tests.convert.conversions import INPUTS, write_safetensors
from tfeff.command.main import main
from tfeff.convert.safetensors import read_safetensors
from tfeff.encoders import Encoder
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SpanQA,
    TokenClassifier,
    load_objective,
    load_pretrained,
    load_task,
)

FAMILIES = (
    "bert",
    "albert",
    "convbert",
    "distilbert",
    "electra",
    "roberta",
    "xlnet",
)
KINDS = {
    "classifier": Classifier,
    "regressor": Regressor,
    "tokens": TokenClassifier,
    "questions": SpanQA,
    "choice": MultipleChoice,
}
FINE_TUNED = [f"{family}_{kind}" for family in FAMILIES for kind in KINDS]
PRETRAINED = {
    "bert_pretraining": ["next_sentence", "masked_lm"],
    "albert_pretraining": ["sentence_order", "masked_lm"],
    "convbert_masked_lm": ["masked_lm"],
    "distilbert_masked_lm": ["masked_lm"],
    "electra_generator": ["masked_lm"],
    "roberta_masked_lm": ["masked_lm"],
    "xlnet_lm": ["permutation_lm"],
}


def arrays(name):
    with np.load(GOLDENS / name / "outputs.npz") as file:
        return dict(file)


def inputs_of(golden, *names):
    return {name: golden[name] for name in (*INPUTS, *names)}


def with_tokenizer(name, folder):
    """A copy of a golden with a tokenizer of its family."""
    source = Path(shutil.copytree(GOLDENS / name, folder / "source"))
    file, encoder = "vocab.txt", "bert"
    if name.startswith(("albert", "xlnet")):
        file, encoder = "spiece.model", name.partition("_")[0]
    shutil.copy(ENCODERS / encoder / file, source)
    if name.startswith("roberta"):
        settings = {"tokenizer_class": "BertTokenizer"}
        (source / "tokenizer_config.json").write_text(json.dumps(settings))
        first, *rest = (source / file).read_text("utf-8").splitlines()
        pieces = [rest[0], first, *rest[1:]]  # [PAD] is id 1.
        (source / file).write_text("\n".join(pieces), "utf-8")
    return source


def changed(name, folder, **changes):
    """A copy with changes in its configuration, where `None` takes a value out."""
    source = Path(shutil.copytree(GOLDENS / name, folder / "changed"))
    config = json.loads((source / "config.json").read_text()) | changes
    config = {key: value for key, value in config.items() if value is not None}
    (source / "config.json").write_text(json.dumps(config))
    return source


def close(found, expected, name):
    found = np.asarray(found)
    assert_close(found, expected, 1e-4, name)
    assert np.abs(found - expected).max() < 1e-5
    assert expected.std() > 0.05


def check_task(model, name):
    golden = arrays(name)
    found = model(inputs_of(golden))
    real = golden["padding_mask"].astype(bool)
    assert real.reshape(-1, 11).sum(axis=1).min() == 2 and not real.all()
    if isinstance(model, SpanQA):
        for key in ("start", "end"):
            logits = np.asarray(found[key])
            allowed = logits > -1e29  # The passage's tokens, and the first.
            assert allowed.sum() >= 6 and not allowed[~real].any()
            close(logits[allowed], golden[key][allowed], f"{key} of {name}")
    elif isinstance(model, TokenClassifier):
        close(np.asarray(found)[real], golden["logits"][real], name)
    elif isinstance(model, Regressor):
        close(found, golden["logits"][:, 0], name)
    else:
        close(found, golden["logits"], name)


@pytest.mark.quick(
    "bert_classifier", "convbert_choice", "electra_tokens", "albert_questions"
)
@pytest.mark.parametrize("name", FINE_TUNED)
def test_logits_of_fine_tuned_models(name):
    model, tokenizer = tfeff.convert.load_task(GOLDENS / name)
    assert type(model) is KINDS[name.partition("_")[2]] and tokenizer is None
    if hasattr(model, "label_names"):
        assert model.label_names == ("cold", "warm", "hot")
    assert model.encoder.num_layers == 3
    check_task(model, name)


def test_there_is_a_golden_of_each_head():
    assert {f.name for f in GOLDENS.iterdir()} == {
        *FINE_TUNED,
        *PRETRAINED,
        "electra_discriminator",
    }


@pytest.mark.quick("bert_classifier")
@pytest.mark.parametrize(
    "name",
    [
        "bert_classifier",
        "albert_tokens",
        "electra_classifier",
        "roberta_choice",
        "distilbert_regressor",
        "xlnet_regressor",
    ],
)
def test_tasks_come_back_from_presets(name, tmp_path, capsys):
    source = with_tokenizer(name, tmp_path)
    assert main(["convert", str(source), str(tmp_path / "preset")]) == 0
    said = capsys.readouterr().out
    kind = KINDS[name.partition("_")[2]].__name__
    assert f"A {kind}: tfeff.tasks.load_task reads it\n" in said
    model, tokenizer = load_task(tmp_path / "preset")
    assert tokenizer.mask_token_id is not None
    check_task(model, name)
    # Again from a preset of the loaded model, bit by bit.
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "again")
    again, _ = load_task(tmp_path / "again")
    assert again.get_config() == model.get_config()
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    # Who reads the encoder alone need not know of the head.
    encoder = Encoder.from_preset(str(tmp_path / "preset"))
    assert encoder.count_params() == model.encoder.count_params()
    half, _ = load_task(tmp_path / "preset", dtype="mixed_bfloat16")
    assert half.encoder.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.quick("bert_pretraining", "electra_generator")
@pytest.mark.parametrize("name", PRETRAINED)
def test_logits_of_pretrained_heads(name, tmp_path):
    source = with_tokenizer(name, tmp_path)
    converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert set(PRETRAINED[name]) <= set(converted.heads) and converted.task is None
    golden = arrays(name)
    for objective in PRETRAINED[name]:
        model, _ = load_objective(tmp_path / "preset", objective)
        found = model(inputs_of(golden, *set(model.input) - set(INPUTS)))
        if objective == "permutation_lm":
            close(found, golden["targets"], name)
            positions = golden["mask_positions"][..., None]
            hidden = model.encoder(inputs_of(golden))["sequence_output"]
            hidden = np.take_along_axis(np.asarray(hidden), positions, axis=1)
            close(model.head(hidden), golden["tokens"], name)
        elif objective == "masked_lm":
            close(found, golden["masked_lm"], name)
        else:
            assert (
                objective
                == {"next": "next_sentence", "order": "sentence_order"}[model.kind]
            )
            close(found["sentence"], golden["sentence"], name)
            close(found["masked_lm"], golden["masked_lm"], name)


def test_positions_of_roberta_are_counted_from_the_tokenizers_padding(tmp_path):
    source = with_tokenizer("roberta_masked_lm", tmp_path)
    shutil.copy(ENCODERS / "bert" / "vocab.txt", source)  # There [PAD] is id 0.
    with pytest.raises(ValueError, match="the id 1 for padding.* has pad_token_id=0"):
        tfeff.convert.convert(source, tmp_path / "preset")
    assert not (tmp_path / "preset").exists()
    assert tfeff.convert.load(source).max_sequence_length > 0
    assert tfeff.convert.load_tokenizer(source).pad_token_id == 0


@pytest.mark.slow
def test_a_head_that_is_asked_for_and_missing_is_an_error(tmp_path):
    source = with_tokenizer("bert_tokens", tmp_path)
    tfeff.convert.convert(source, tmp_path / "preset")
    for objective in ("masked_lm", "next_sentence"):
        with pytest.raises(
            ValueError, match=rf"'{objective}'.*a TokenClassifier.*\['token_logits'\]"
        ):
            load_objective(tmp_path / "preset", objective)
    with pytest.raises(ValueError, match="`objective` must be one of"):
        load_objective(tmp_path / "preset", "next_word")
    encoder, tokenizer = load_pretrained(tmp_path / "preset")
    tfeff.tasks.save_pretrained(encoder, tokenizer, tmp_path / "encoder")
    with pytest.raises(ValueError, match="a preset of a task.*an encoder with no head"):
        load_task(tmp_path / "encoder")
    with pytest.raises(ValueError, match="must be a fine-tuned model.*'masked_lm'"):
        tfeff.convert.load_task(GOLDENS / "bert_pretraining")


@pytest.mark.quick("bert_classifier-changes2-of 3 numbers")
@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "xlnet_questions",
            {"architectures": ["XLNetForQuestionAnswering"]},
            "no model like XLNetForQuestionAnswering.*QuestionAnsweringSimple",
        ),
        (
            "bert_classifier",
            {"problem_type": "multi_label_classification"},
            "problem_type='multi_label_classification'",
        ),
        ("bert_classifier", {"problem_type": "regression"}, "of 3 numbers"),
        (
            "convbert_choice",
            {"summary_type": None},
            "summary_type='last' and summary_use_proj=True",
        ),
        ("electra_choice", {"summary_type": "last"}, "summary_type='last'"),
        ("xlnet_choice", {"summary_type": "mean"}, "summary_type='mean'"),
        (
            "albert_regressor",
            {"problem_type": "single_label_classification"},
            "one label",
        ),
    ],
)
def test_heads_that_tfeff_does_not_have_are_left_out(name, changes, message, tmp_path):
    source = changed(name, tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        tfeff.convert.load_task(source)
    with pytest.warns(UserWarning, match=rf"left out.*{message}.*task head \("):
        converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert converted.task is None and "logits" not in converted.heads
    assert converted.ignored["task head"] >= 2
    assert Encoder.from_preset(str(tmp_path / "preset")).num_layers == 3


@pytest.mark.quick("labels1", "labels4")
@pytest.mark.parametrize(
    "labels",
    [
        {"0": "cold", "2": "warm", "3": "hot"},
        {"1": "cold", "2": "warm", "3": "hot"},
        {"cold": 0, "warm": 1, "hot": 2},
        {"0": "cold", "1": 2, "2": "hot"},
        {"0": "cold", "1": "warm", "2": "warm"},
        ["cold", "warm", "hot"],
        {},
    ],
)
def test_labels_must_count_up_and_differ(labels, tmp_path):
    source = changed("bert_classifier", tmp_path, id2label=labels)
    with pytest.raises(ValueError, match="`id2label` must"):
        tfeff.convert.convert(source, tmp_path / "preset")
    assert tfeff.convert.load(source).num_layers == 3


def test_the_number_of_labels_may_stand_alone(tmp_path):
    source = changed("bert_classifier", tmp_path, id2label=None, num_labels=3)
    model, _ = tfeff.convert.load_task(source)
    assert model.num_classes == 3 and model.label_names is None
    source = changed("bert_classifier", tmp_path / "other", id2label=None)
    with pytest.raises(ValueError, match=r"classifier.weight has shape \(3, 8\), not"):
        tfeff.convert.load_task(source)


def rewrite(source, change):
    """Changes the tensors of a checkpoint."""
    tensors = {
        name: tensor.read() for name, tensor in read_safetensors(str(source)).items()
    }
    change(tensors)
    write_safetensors(source / "model.safetensors", tensors)


def test_tensors_of_heads_are_all_there_and_known(tmp_path):
    source = changed("bert_classifier", tmp_path)
    rewrite(source, lambda tensors: tensors.pop("classifier.bias"))
    with pytest.raises(ValueError, match=r"Missing: \['classifier.bias'\]"):
        tfeff.convert.convert(source, tmp_path / "preset")
    source = changed("bert_classifier", tmp_path / "more")
    extra = np.zeros(2, "float32")
    rewrite(source, lambda tensors: tensors.update({"classifier_2.bias": extra}))
    with pytest.raises(ValueError, match=r"Unknown: \['classifier_2.bias'\]"):
        tfeff.convert.load_task(source)
    source = changed("bert_classifier", tmp_path / "none")
    rewrite(
        source,
        lambda tensors: [
            tensors.pop(name)
            for name in list(tensors)
            if "encoder" not in name and "embeddings" not in name
        ],
    )
    with pytest.warns(UserWarning, match="has none of its tensors"):
        converted = tfeff.convert.convert(source, tmp_path / "alone")
    assert converted.heads == ()


@pytest.mark.slow
def test_a_head_of_pretraining_with_a_missing_tensor_is_told(tmp_path):
    source = changed("bert_pretraining", tmp_path)
    missing = "cls.predictions.transform.LayerNorm.bias"
    rewrite(source, lambda tensors: tensors.pop(missing))
    with pytest.warns(UserWarning, match=rf"masked_lm lacks \['{missing}'\].*head \("):
        converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert set(converted.heads) == {"next_sentence", "pooler"}
    rewrite(
        source,
        lambda tensors: [
            tensors.pop(name) for name in list(tensors) if "predictions" in name
        ],
    )
    with pytest.warns(UserWarning, match=r"masked_lm lacks \['cls.predictions.bias"):
        converted = tfeff.convert.convert(source, tmp_path / "without")
    assert set(converted.heads) == {"next_sentence", "pooler"}
    # Every XLNet has the first state of a query stream, with and without the head.
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "XLNet's TokenClassifier .*<sep> <cls>")
        tfeff.convert.convert(GOLDENS / "xlnet_tokens", tmp_path / "xlnet")


@pytest.mark.quick("None")
@pytest.mark.parametrize("architectures", [None, [], ["BertForMaskedLM"]])
def test_a_fine_tuned_head_whose_class_is_not_named_is_told(architectures, tmp_path):
    source = changed("bert_classifier", tmp_path, architectures=architectures)
    told = (
        r"names no fine-tuned model that has \['classifier.bias', 'classifier.weight'"
    )
    with pytest.warns(UserWarning, match=rf"left out.*{told}.*task head \(2"):
        converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert converted.task is None and converted.heads == ("pooler",)
    with pytest.raises(ValueError, match=told):
        tfeff.convert.load_task(source)


@pytest.mark.quick("architectures0")
@pytest.mark.parametrize("architectures", [[3], 3, {}])
def test_classes_are_a_list_of_strings(architectures, tmp_path):
    source = changed("bert_classifier", tmp_path, architectures=architectures)
    with pytest.raises(ValueError, match="`architectures` must be .* architectures="):
        tfeff.convert.convert(source, tmp_path / "preset")
    assert tfeff.convert.load(source).num_layers == 3


@pytest.mark.slow
def test_what_is_said_of_a_task_without_a_tokenizer(tmp_path, capsys):
    preset, out = str(tmp_path / "preset"), str(tmp_path / "out")
    assert main(["convert", str(GOLDENS / "bert_classifier"), preset]) == 0
    said = capsys.readouterr().out
    assert "A Classifier: tfeff.convert.load_task reads it from the source\n" in said
    assert "beside its weights and convert it again" in said
    with pytest.raises(ValueError, match="tokenizer.json.*source's weights.*again"):
        load_task(preset)
    assert main(["convert", "--to=huggingface", preset, out]) == 0
    said = capsys.readouterr().out
    assert (
        f"transformers.BertForSequenceClassification.from_pretrained({out!r})" in said
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert_pretraining", "xlnet_lm"])
def test_heads_with_a_table_of_their_own_are_left_out(name, tmp_path):
    source = changed(name, tmp_path, tie_word_embeddings=False)
    with pytest.warns(UserWarning, match=r"table of its own.*model head \("):
        converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert not {"masked_lm", "permutation_lm"} & set(converted.heads)
    assert any("language model head" in kind for kind in converted.ignored)
