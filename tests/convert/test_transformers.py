"""transformers load what tfeff writes, and tfeff what they write, with equal numbers.

Run by hand in environments of their own, one for transformers 4, which refuse this
repository's `tokenizers`, and one for 5 (transformers 4.57.6 with tokenizers 0.22.2,
and 5.24.0 with 0.23.3; torch 2.13.0 (CPU)):

    python -m pytest -m slow tests/convert/test_transformers.py
"""

import json
import re
import shutil
import warnings

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.convert.conversions import GOLDENS, OF_CLASSES, TOKENIZER_GOLDENS
from tests.subjects import sentence_pieces
from tfeff.convert.same_ids import TEXTS
from tfeff.convert.tokenizer import make_tokenizer
from tfeff.convert.tokenizer_writing import tokenizer_files
from tfeff.data.text.byte_pairs import byte_symbols
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer

hf = pytest.importorskip("transformers", minversion="4.57")
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
VERSION = int(hf.__version__.split(".")[0])
RELATIVE_KEYS = ("bert_shaw", "bert_huang4")

SIZES = dict(
    vocabulary_size=80,
    num_layers=3,
    num_heads=4,
    hidden_dim=24,
    intermediate_dim=32,
    max_sequence_length=13,
)
CONVBERT = {"name": "mixed", "kernel_size": 5, "mask_conv": False}
ENCODERS = {
    "bert": dict(),
    "bert_tanh": dict(feedforward={"activation": "gelu_tanh"}, layer_norm_epsilon=1e-3),
    "bert_relu": dict(feedforward={"activation": "relu"}, num_segments=3),
    "bert_silu": dict(feedforward={"activation": "silu"}),
    **{
        f"bert_{method}": dict(
            attention={"name": "relative", "method": method, "shared_heads": True},
            position="none",
        )
        for method in ("shaw", "huang4")
    },
    "electra": dict(embedding_dim=12),
    "distilbert": dict(num_segments=0),
    "roberta": dict(num_segments=1),
    "albert": dict(embedding_dim=12, sharing="all"),
    "albert_groups": dict(
        embedding_dim=12, sharing="all", sharing_group_size=2, num_layers=4
    ),
    "convbert": dict(attention=CONVBERT),
    "convbert_projected": dict(attention=CONVBERT, embedding_dim=12),
    "convbert_grouped": dict(attention=CONVBERT, feedforward={"num_groups": 2}),
    **{
        f"xlnet_{layout}_{clamp}": dict(
            attention={
                "name": "relative",
                "method": "xlnet",
                "relative_segments": True,
                "sinusoid": layout,
                "max_distance": clamp,
            },
            position="none",
            num_segments=0,
            embedding_layer_norm=False,
        )
        for layout, clamp in (("interleaved", None), ("concatenated", 3))
    },
}
GELU_TANH = dict(activation="gelu_tanh", layer_norm_epsilon=1e-3)
POOLED_BY_GELU = dict(pooler_activation="gelu")
# Of a model: its encoder, how it is made of it, and transformers' class.
MODELS = {
    "bert_masked_lm": ("bert", tfeff.objectives.MaskedLM, {}, "BertForMaskedLM"),
    "bert_tanh_masked_lm": (
        *("bert_tanh", tfeff.objectives.MaskedLM, GELU_TANH),
        "BertForMaskedLM",
    ),
    "bert_next": (
        *("bert", tfeff.objectives.SentencePairPrediction, {"kind": "next"}),
        "BertForPreTraining",
    ),
    "bert_next_alone": (
        *("bert", tfeff.objectives.SentencePairPrediction),
        *({"kind": "next", "masked_lm": False}, "BertForNextSentencePrediction"),
    ),
    "shaw_masked_lm": ("bert_shaw", tfeff.objectives.MaskedLM, {}, "BertForMaskedLM"),
    "albert_order": (
        *("albert", tfeff.objectives.SentencePairPrediction, {}),
        "AlbertForPreTraining",
    ),
    "albert_masked_lm": (
        *("albert_groups", tfeff.objectives.MaskedLM, {}),
        "AlbertForMaskedLM",
    ),
    "electra_generator": (
        *("electra", tfeff.objectives.MaskedLM, {}),
        "ElectraForMaskedLM",
    ),
    "distilbert_masked_lm": (
        *("distilbert", tfeff.objectives.MaskedLM, {}),
        "DistilBertForMaskedLM",
    ),
    "convbert_masked_lm": (
        *("convbert_projected", tfeff.objectives.MaskedLM, {}),
        "ConvBertForMaskedLM",
    ),
    "xlnet_lm": (
        *("xlnet_interleaved_None", tfeff.objectives.PermutationLM, {}),
        "XLNetLMHeadModel",
    ),
    **{
        f"{encoder}_{task.__name__}": (encoder, task, arguments, name)
        for encoder, prefix, pooler in (
            ("bert", "Bert", {}),
            ("albert", "Albert", {}),
            ("convbert", "ConvBert", POOLED_BY_GELU),
            ("electra", "Electra", POOLED_BY_GELU),
            ("distilbert", "DistilBert", {"pooler_activation": "relu"}),
            ("xlnet_interleaved_None", "XLNet", {"pooling": "last"}),
        )
        for task, arguments, name in (
            (
                tfeff.tasks.Classifier,
                {"num_classes": 3, "label_names": ["a", "b", "c"], **pooler},
                f"{prefix}ForSequenceClassification",
            ),
            (tfeff.tasks.Regressor, pooler, f"{prefix}ForSequenceClassification"),
            (
                tfeff.tasks.TokenClassifier,
                {"num_classes": 4},
                f"{prefix}ForTokenClassification",
            ),
            (
                tfeff.tasks.SpanQA,
                {},
                f"{prefix}ForQuestionAnswering{'Simple' * (prefix == 'XLNet')}",
            ),
            (tfeff.tasks.MultipleChoice, pooler, f"{prefix}ForMultipleChoice"),
        )
    },
}


def build(name):
    encoder = tfeff.encoders.Encoder(**SIZES | ENCODERS[name])
    randomize(
        {w.path: w for w in encoder.weights if not _unsaid(name, w.path)}, scale=0.3
    )
    return encoder


def _unsaid(name, path):
    """XLNet's projections have no biases."""
    dense = ("query/bias", "key/bias", "value/bias", "output/bias")
    return name.startswith("xlnet") and "attention" in path and path.endswith(dense)


def batch(choices=None, left=False):
    """Ids, segments and masks of three sequences, the longest of 11, one of 1.

    XLNet pools the last position, so that its texts are padded at the left.
    """
    rng = np.random.default_rng(0)
    shape = (3, 11) if choices is None else (3, choices, 11)
    real = np.arange(11) < np.array([[11], [6], [1]])
    real = real[:, ::-1] if left else real
    return {
        "token_ids": rng.integers(5, 80, shape).astype("int32"),
        "segment_ids": rng.integers(0, 2, shape).astype("int32"),
        "padding_mask": np.tile(real, (1, choices or 1)).reshape(shape).astype("int32"),
    }


def load(folder, name, ignored=(), **kwargs):
    """The model in transformers, which finds all weights and knows all of them.

    Args:
        ignored: ends of the names of those weights that it ignores all the same.
    """
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == [name]
    model, report = getattr(hf, name).from_pretrained(
        folder, output_loading_info=True, **kwargs
    )
    unexpected = report.pop("unexpected_keys")
    assert all(key.endswith(tuple(ignored)) for key in unexpected), unexpected
    assert bool(unexpected) == bool(ignored)
    assert not any(report.values()), report
    return model.eval()


def unread_weights(name):
    """Weights that this version of transformers warns of and does not read."""
    return ["distance_embedding.weight"] * (VERSION >= 5 and name in RELATIVE_KEYS)


def outputs(model, arrays):
    inputs = {
        "input_ids": arrays["token_ids"],
        "token_type_ids": arrays["segment_ids"],
        "attention_mask": arrays["padding_mask"],
    }
    if model.config.model_type == "distilbert":
        del inputs["token_type_ids"]
    if model.config.model_type == "roberta":  # It has one segment; padding is id 1.
        inputs["token_type_ids"] = np.zeros_like(inputs["token_type_ids"])
        inputs["input_ids"] = np.where(arrays["padding_mask"], arrays["token_ids"], 1)
    tensors = {name: torch.tensor(array).long() for name, array in inputs.items()}
    with torch.no_grad():
        return model(**tensors, output_hidden_states=True)


def check(what, ours, theirs):
    difference = np.abs(np.asarray(ours) - np.asarray(theirs)).max()
    print(f"{what}: {difference:.1e} of values of {np.std(np.asarray(theirs)):.1f}")
    assert difference < 1e-5 * max(1, np.abs(np.asarray(theirs)).max())


@pytest.mark.parametrize("name", ENCODERS)
def test_hidden_states(name, tmp_path):
    encoder = build(name)
    architecture = "roberta" if name == "roberta" else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        written = tfeff.convert.to_huggingface(
            encoder, tmp_path / "out", architecture=architecture
        )
    told = [str(x.message) for x in caught if "of version 4" in str(x.message)]
    assert len(told) == (name in RELATIVE_KEYS)
    has_pooler = written.model in ("BertModel", "AlbertModel", "RobertaModel")
    options = {"add_pooling_layer": False} if has_pooler else {}
    unread = unread_weights(name)
    model = load(tmp_path / "out", written.model, unread, **options)
    if unread:
        return
    auto = hf.AutoModel.from_pretrained(tmp_path / "out", **options)
    assert type(auto) is type(model)
    arrays = batch()
    real = arrays["padding_mask"].astype(bool)
    theirs = outputs(model, arrays).hidden_states
    ours = encoder(arrays)["hidden_states"]
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        check(f"{name} X^{index}", np.asarray(one)[real], other.numpy()[real])


@pytest.mark.parametrize("name", MODELS)
def test_logits(name, tmp_path):
    encoder_name, make, arguments, model_name = MODELS[name]
    model = make(build(encoder_name), **arguments)
    known = {id(weight) for weight in model.encoder.weights}
    randomize({w.path: w for w in model.weights if id(w) not in known}, scale=0.3)
    written = tfeff.convert.to_huggingface(model, tmp_path / "out")
    assert written.model == model_name
    unread = unread_weights(encoder_name)
    theirs = load(tmp_path / "out", model_name, unread)
    if unread:
        return
    choices = 2 if make is tfeff.tasks.MultipleChoice else None
    arrays = batch(choices, left=name.startswith("xlnet"))
    found = outputs(theirs, arrays)
    positions = np.array([[1, 4, 0], [5, 0, 2], [0, 0, 0]], "int32")
    rows = np.arange(3)[:, None]
    if make is tfeff.objectives.MaskedLM:
        ours = model(arrays | {"mask_positions": positions})
        check(name, ours, found.logits.numpy()[rows, positions])
    elif make is tfeff.objectives.SentencePairPrediction:
        sentence = getattr(found, "seq_relationship_logits", None)
        sentence = getattr(found, "sop_logits", sentence)
        sentence = found.logits if sentence is None else sentence
        if model.masked_lm:
            arrays = arrays | {"mask_positions": positions}
        ours = model(arrays)
        check(name, ours["sentence"], sentence.numpy())
        if model.masked_lm:
            tokens = found.prediction_logits.numpy()[rows, positions]
            check(name, ours["masked_lm"], tokens)
    elif make is tfeff.objectives.PermutationLM:
        hidden = np.asarray(model.encoder(arrays)["sequence_output"])
        table = np.asarray(model.encoder.token_embedding.embeddings)
        ours = hidden @ table.T + np.asarray(model.head.bias)
        real = arrays["padding_mask"].astype(bool)
        check(name, ours[real], found.logits.numpy()[real])
    elif make is tfeff.tasks.SpanQA:
        ours = {key: np.asarray(value) for key, value in model(arrays).items()}
        for key in ("start", "end"):
            logits = found[f"{key}_logits"].numpy()
            allowed = ours[key] > -1e4  # Others are no answers.
            assert allowed.sum() > 4
            check(f"{name} {key}", ours[key][allowed], logits[allowed])
    elif make is tfeff.tasks.TokenClassifier:
        real = arrays["padding_mask"].astype(bool)
        check(name, np.asarray(model(arrays))[real], found.logits.numpy()[real])
    else:
        theirs_logits = found.logits.numpy()
        ours = np.asarray(model(arrays)).reshape(theirs_logits.shape)
        check(name, ours, theirs_logits)
    if "label_names" in arguments:
        assert theirs.config.id2label == {0: "a", 1: "b", 2: "c"}
    if make is tfeff.tasks.TokenClassifier:
        assert theirs.config.num_labels == 4


ASKED = [
    ("Who wrote it?", "Ada wrote it in London."),
    ("Where?", "It was written in a house near the river."),
    ("Who?", "They say that Bo wrote it."),
]


@pytest.mark.parametrize("segments", [1, 2])
def test_answers_of_roberta(segments, tmp_path):
    """Its rows have one segment, whatever the table has."""
    source, length = tmp_path / "in", 64
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_symbols()]
    source.mkdir()
    (source / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
    (source / "merges.txt").write_text("#version: 0.2\n")
    fast = hf.RobertaTokenizerFast.from_pretrained(source)
    fast.save_pretrained(source)
    sizes = dict(vocab_size=len(pieces), max_position_embeddings=length + 2)
    own = CONFIGURATIONS["Roberta"] | sizes | dict(type_vocab_size=segments)
    torch.manual_seed(0)
    theirs = hf.RobertaForQuestionAnswering(hf.RobertaConfig(**PUBLISHED | own)).eval()
    for parameter in theirs.parameters():
        parameter.data.normal_(0, 0.3)
    theirs.save_pretrained(source)
    model, tokenizer = tfeff.convert.load_task(source)
    questions = [tfeff.data.Question(str(i), *row) for i, row in enumerate(ASKED)]
    features = tfeff.data.make_span_features(questions, tokenizer, length)
    answers = model.answers(features)
    tfeff.export.save_for_serving(model, tokenizer, tmp_path / "out")
    served = tf.saved_model.load(str(tmp_path / "out")).signatures["answer"]
    columns = zip(("question", "passage"), zip(*ASKED))
    found = served(**{name: tf.constant(texts) for name, texts in columns})
    for row, ((question, passage), answer) in enumerate(zip(ASKED, answers)):
        batch = fast(
            question, passage, return_offsets_mapping=True, return_tensors="pt"
        )
        offsets = batch.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            logits = theirs(**batch)
        start, end = (logits[f"{name}_logits"][0].numpy() for name in ("start", "end"))
        places = [
            place
            for place, of in enumerate(batch.sequence_ids(0))
            if of == 1 and passage[slice(*offsets[place])].strip()
        ]
        score, first, last = max(
            (start[i] + end[j], i, j) for i in places for j in places if 0 <= j - i < 30
        )
        expected = passage[offsets[first][0] : offsets[last][1]]
        check("score", [answer.score, float(found["score"][row])], [score] * 2)
        assert answer.text == found["answer"][row].numpy().decode() == expected


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_trained_tokenizers(kind, lowercase, tmp_path):
    texts = [text for text in TEXTS if text.strip()] * 2
    size = {"wordpiece": 420, "sentencepiece": 250}[kind]
    tokenizer = tfeff.data.train_tokenizer(texts, size, lowercase, kind)
    encoder = tfeff.encoders.Encoder(**SIZES | {"vocabulary_size": size})
    tfeff.convert.to_huggingface(encoder, tmp_path / "out", tokenizer)
    fast = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert fast.is_fast and fast.model_max_length == 13
    readers = [fast]
    if kind == "wordpiece" and (lowercase or VERSION < 5):
        # That of version 5 does not compose a letter and its mark.
        readers.append(hf.BertTokenizer.from_pretrained(tmp_path / "out"))
    # Of SentencePiece, ways of equal scores are ties.
    check_ids(tokenizer, readers, sorted if kind == "sentencepiece" else list)
    ids = fast("a b", "c")["input_ids"]
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert ids[0] == cls and ids[-1] == sep and ids.count(sep) == 2
    assert fast("a b", "c")["token_type_ids"][-1] == 1
    names = ("cls", "sep", "pad", "mask")
    for name in names:
        own = getattr(tokenizer, f"{name}_token_id")
        assert getattr(fast, f"{name}_token_id") == own
    assert fast(f"a {fast.mask_token} b")["input_ids"].count(fast.mask_token_id) == 1


def test_byte_pairs(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *byte_symbols(), "Ġa", "ba", "<mask>"]
    ids = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = RobertaTokenizer(ids, ["Ġ a", "b a"])
    encoder = tfeff.encoders.Encoder(**SIZES | {"vocabulary_size": len(pieces)})
    tfeff.convert.to_huggingface(encoder, tmp_path / "out", tokenizer)
    fast = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    slow = hf.AutoTokenizer.from_pretrained(tmp_path / "out", use_fast=False)
    assert type(slow) is hf.RobertaTokenizer and fast.is_fast
    check_ids(tokenizer, [fast, slow])
    rows = [reader("a b", "c")["input_ids"] for reader in (fast, slow)]
    assert rows[0] == rows[1]
    assert fast.mask_token_id == slow.mask_token_id == tokenizer.mask_token_id


def check_ids(tokenizer, readers, order=list):
    for text in TEXTS:
        expected = [int(i) for i in tokenizer(text)]
        for reader in readers:
            found = reader.encode(text, add_special_tokens=False)
            assert order(found) == order(expected), (type(reader).__name__, text)


@pytest.mark.parametrize("name", ["bert", "bert_pretraining", "albert", "xlnet"])
def test_converted_tokenizers(name, preset, tmp_path):
    tfeff.convert.to_huggingface(preset(name), tmp_path / "out")
    _, tokenizer = tfeff.tasks.load_pretrained(preset(name))
    fast = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    slow = hf.AutoTokenizer.from_pretrained(tmp_path / "out", use_fast=False)
    # Version 5 has no slow ones, nor has 4 of the class that reads all tokenizers.
    has_slow = VERSION < 5 and name.startswith("bert")
    assert fast.is_fast and slow.is_fast != has_slow
    # The slow one of a cased BERT composes a letter and its mark.
    check_ids(tokenizer, [fast, slow][: 1 if name == "bert_pretraining" else 2])
    pairs = [reader("a b", "c") for reader in (fast, slow)]
    assert pairs[0]["input_ids"] == pairs[1]["input_ids"]
    assert pairs[0]["token_type_ids"] == pairs[1]["token_type_ids"]
    assert pairs[0]["token_type_ids"][-2] == 1
    assert fast.padding_side == slow.padding_side
    assert fast.padding_side == ("left" if name == "xlnet" else "right")
    assert fast.mask_token_id == slow.mask_token_id == tokenizer.mask_token_id


def test_a_cased_xlnet(tmp_path):
    """The class of version 5 removes its accents; the file does not."""
    source = folder_with(tmp_path / "in", "xlnet", keep_accents=True)
    tokenizer = make_tokenizer(str(source), "xlnet")
    encoder = tfeff.encoders.Encoder(**SIZES | {"vocabulary_size": 117})
    tfeff.convert.to_huggingface(encoder, tmp_path / "out", tokenizer)
    fast = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    check_ids(tokenizer, [fast], sorted)
    assert fast.padding_side == "left"


def folder_with(path, golden, **settings):
    """A copy of a golden's vocabulary and settings, with others instead."""
    path.mkdir()
    for name in ("vocab.txt", "spiece.model"):
        if (GOLDENS / golden / name).exists():
            shutil.copy(GOLDENS / golden / name, path)
    given = json.loads((GOLDENS / golden / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps(given | settings))
    return path


@pytest.mark.parametrize("is_fast", [False, True] if VERSION < 5 else [True])
@pytest.mark.parametrize("name", ["bert", "bert_pretraining", "albert", "xlnet"])
def test_tokenizers_that_transformers_write(name, is_fast, tmp_path):
    """The slow ones write no tokenizer.json; `AutoTokenizer` reads a fast one of it."""
    source = folder_with(tmp_path / "in", name)
    saved = hf.AutoTokenizer.from_pretrained(source, use_fast=is_fast)
    saved.save_pretrained(tmp_path / "out")
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert theirs.is_fast
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        tokenizer = make_tokenizer(str(tmp_path / "out"), name.split("_")[0])
    check_read_and_written(tokenizer, theirs, TEXTS, tmp_path / "again")


# What the clean-up of Hugging Face's slow tokenizers treats otherwise.
NASTY = (
    "\U0001f642\U0001f469\u200d\U0001f469\u200d\U0001f467 ❤\ufe0f ☃\ufe0e",
    "हिन्दी कुछ ไทย ภาษา קָמָץ العربية مُحَمَّد",
    "漢字かな が 한국어 \u1112\u1161\u11ab 한국 \u1100\u1161",
    "e\u0301 cafe\u0301 E\u0301 a\u0323 O\u0302\u0301 \u0301a İstanbul ẞ ǅ",
    "z\x0bw x\x0cy a\x01b \x7f \x1b[0m \u2028y\u2029z zero\u200bwidth\u200c\u2060y",
    "½ ① ﬁ x² ™ ℃ … Å ㎏ ｆｕｌｌ １２ Ⅷ ŉ ǰ",
    "\ue000 \ufffd \U00020000 \U0001d400\U0001d7ce \u180eb",
)
# Of SentencePiece: the settings of which the versions mean the same.
SENTENCE_PIECES = [
    ("albert", {}),
    ("albert", {"do_lower_case": False}),
    ("albert", {"keep_accents": True}),
    ("albert", {"do_lower_case": False, "keep_accents": True}),
    ("xlnet", {}),
    ("xlnet", {"do_lower_case": True}),
]


@pytest.mark.parametrize("has_json", [False, True])
@pytest.mark.parametrize(
    "name, settings",
    SENTENCE_PIECES + [("xlnet", {"keep_accents": True})] * (VERSION < 5),
)
def test_sentencepiece_alone_and_beside_tokenizer_json(
    name, settings, has_json, tmp_path
):
    source = trained_on_nasty_texts(tmp_path / "in", name, settings)
    if has_json:
        read = hf.AutoTokenizer.from_pretrained(source)
        source = tmp_path / "out"
        read.save_pretrained(source)
        shutil.copy(tmp_path / "in" / "spiece.model", source)
    theirs = hf.AutoTokenizer.from_pretrained(source)
    tokenizer = make_tokenizer(str(source), name)
    texts = [*TEXTS, *NASTY]
    if VERSION >= 5 and not has_json:
        # Of the model alone, this version uses pieces such as "9,".
        texts = [text for text in texts if not re.search(r"\d,", text)]
    check_read_and_written(tokenizer, theirs, texts, tmp_path / "again")
    assert len({int(i) for i in tokenizer(" ".join(NASTY))}) > 50


def test_word_piece_that_keeps_accents(tmp_path):
    """A letter and its mark stay two characters in both versions."""
    source = folder_with(tmp_path / "in", "bert_pretraining")
    theirs = hf.AutoTokenizer.from_pretrained(source)
    tokenizer = make_tokenizer(str(source), "bert")
    texts = [*TEXTS, *NASTY]
    check_read_and_written(tokenizer, theirs, texts, tmp_path / "again")


def trained_on_nasty_texts(folder, name, settings):
    folder.mkdir()
    model = sentence_pieces.trained(
        [text for text in [*TEXTS, *NASTY] * 3 if text],
        400,
        character_coverage=1.0,
        hard_vocab_limit=False,
        **sentence_pieces.SPECIAL[name],
    )
    (folder / "spiece.model").write_bytes(model)
    (folder / "config.json").write_text(json.dumps({"model_type": name}))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def check_read_and_written(tokenizer, theirs, texts, folder):
    """Equal ids of the tokenizer, of theirs, and of theirs of the written files."""
    folder.mkdir()
    for file, content in tokenizer_files(tokenizer, {}).items():
        (folder / file).write_bytes(content)
    again = hf.AutoTokenizer.from_pretrained(folder)
    for text in map(str.strip, texts):
        expected = theirs.encode(text, add_special_tokens=False)
        assert sorted(int(i) for i in tokenizer(text)) == sorted(expected), text
        found = again.encode(text, add_special_tokens=False)
        assert sorted(found) == sorted(expected), text


@pytest.mark.parametrize("name, setting", OF_CLASSES.items())
def test_defaults_of_families_classes(name, setting, tmp_path):
    """They count where the settings say nothing, not what tokenizer.json says."""
    source = shutil.copytree(TOKENIZER_GOLDENS / name, tmp_path / "in")
    path = source / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8"))
    whole = hf.AutoTokenizer.from_pretrained(source)
    whole.save_pretrained(tmp_path / "out")
    check_ids(make_tokenizer(str(tmp_path / "out"), name.partition("_")[0]), [whole])
    path.write_text(json.dumps({k: v for k, v in settings.items() if k != setting}))
    theirs = hf.AutoTokenizer.from_pretrained(source)
    assert any(
        whole.encode(text, add_special_tokens=False)
        != theirs.encode(text, add_special_tokens=False)
        for text in TEXTS
    )
    with pytest.raises(ValueError, match=f"must have '{setting}', or"):
        make_tokenizer(str(source), name.partition("_")[0])


PUBLISHED = dict(
    vocab_size=80,
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=32,
    max_position_embeddings=16,
    pad_token_id=0,
)
CONFIGURATIONS = {
    "Bert": dict(),
    "Albert": dict(embedding_size=12),
    "Roberta": dict(type_vocab_size=1, pad_token_id=1),
    "Electra": dict(embedding_size=12),
    "ConvBert": dict(embedding_size=12, conv_kernel_size=5),
    "ConvBert_ratio": dict(embedding_size=12, head_ratio=1, num_attention_heads=3),
    "ConvBert_one": dict(embedding_size=12, num_attention_heads=1),
    "XLNet": dict(d_model=24, n_layer=3, n_head=4, d_inner=32),
    "DistilBert": dict(dim=24, n_layers=3, n_heads=4, hidden_dim=32),
}


@pytest.mark.parametrize("head", ["Model", "ForMaskedLM", "ForSequenceClassification"])
@pytest.mark.parametrize("family", CONFIGURATIONS)
def test_checkpoints_that_transformers_write(family, head, tmp_path):
    settings = CONFIGURATIONS[family]
    family = family.partition("_")[0]
    configuration = getattr(hf, f"{family}Config")(
        **PUBLISHED | settings
        if family not in ("XLNet", "DistilBert")
        else dict(vocab_size=80, pad_token_id=0) | settings
    )
    if family == "XLNet" and head == "ForMaskedLM":
        head = "LMHeadModel"
    torch.manual_seed(0)
    model = getattr(hf, f"{family}{head}")(configuration).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    model.save_pretrained(tmp_path / "in")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        # Its rows end in what ours begin with.
        warnings.filterwarnings("ignore", "XLNet's Classifier was trained on rows")
        converted = tfeff.convert.convert(tmp_path / "in", tmp_path / "out")
    assert converted.heads or head == "Model"
    arrays = batch(left=family == "XLNet")
    if family == "ConvBert":  # It sees padding.
        arrays["padding_mask"] = np.ones_like(arrays["padding_mask"])
    if family == "Roberta":
        pad = np.where(arrays["padding_mask"], arrays["token_ids"], 1)
        arrays["token_ids"] = pad.astype("int32")
    real = arrays["padding_mask"].astype(bool)
    theirs = outputs(model, arrays).hidden_states
    ours = converted.encoder(arrays)["hidden_states"]
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        check(f"X^{index}", np.asarray(one)[real], other.numpy()[real])
