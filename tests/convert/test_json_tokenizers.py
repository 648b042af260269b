"""tokenizer.json as the only file of a tokenizer."""

import base64
import functools
import json
import random
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tokenizers
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import models, normalizers, pre_tokenizers, trainers

import tfeff
from tests.convert.conversions import GOLDENS, OF_CLASSES, TOKENIZER_GOLDENS
from tfeff.convert import BertTokenizer, RobertaTokenizer
from tfeff.convert.json_tokenizer import TokenizerJson
from tfeff.convert.same_ids import check_same_ids, sample_texts
from tfeff.convert.tokenizer import make_tokenizer, make_tokenizer_of_file
from tfeff.convert.tokenizer_source import load_tokenizer
from tfeff.convert.tokenizer_writing import tokenizer_files
from tfeff.convert.unigram_model import sentence_piece_model
from tfeff.data import TextExamples
from tfeff.data.text.byte_pairs import byte_symbols
from tfeff.encoders.preset_heads import save_preset
from tfeff.tasks.run_tokenizer import load_run_tokenizer, save_run_tokenizer

NAMES = {
    "bert": "bert",
    "bert_accents": "bert",
    "bert_cased": "bert",
    "bert_whole_chinese": "bert",
    "roberta": "roberta",
    "roberta_prefix_space": "roberta",
    "albert": "albert",
    "albert_cased": "albert",
    "xlnet": "xlnet",
    "xlm_roberta": "xlm-roberta",
}


def copied(name, folder):
    """A copy of a golden, to be changed, with the rules that its file lacks."""
    source = shutil.copytree(TOKENIZER_GOLDENS / name, folder / name)
    change(source, lambda values: None)
    return source


@functools.cache
def charsmap():
    proto = (GOLDENS / "albert" / "spiece.model").read_bytes()
    rules = ModelProto.FromString(proto).normalizer_spec.precompiled_charsmap
    return base64.b64encode(rules).decode()


def change(source, make):
    """Changes the values of the source's tokenizer.json in place."""
    path = source / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    for step in (values["normalizer"] or {}).get("normalizers", ()):
        if step["type"] == "Precompiled":
            step["precompiled_charsmap"] = charsmap()
    make(values)
    path.write_text(json.dumps(values), "utf-8")


def golden(name):
    return json.loads((TOKENIZER_GOLDENS / name / "ids.json").read_text("utf-8"))


@pytest.mark.quick("bert")
@pytest.mark.parametrize("name", NAMES)
def test_the_ids_are_those_of_hugging_face(name, tmp_path):
    expected = golden(name)
    tokenizer = make_tokenizer(str(copied(name, tmp_path)), NAMES[name])
    texts = tf.data.Dataset.from_tensors(tf.constant(expected["texts"]))
    (ids,) = texts.map(tokenizer)
    assert ids.to_list() == expected["ids"]
    for text, row in zip(expected["texts"], expected["ids"]):
        assert [int(id) for id in tokenizer(text)] == row


@pytest.mark.quick("bert_cased")
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("bert")])
def test_the_ids_with_vocab_txt_beside_are_those_of_hugging_face(name, tmp_path):
    expected = golden(name)
    assert any("\u0301" in text for text in expected["texts"])
    source = copied(name, tmp_path)
    pieces = TokenizerJson.find(str(source)).vocabulary
    (source / "vocab.txt").write_text("".join(f"{p}\n" for p in pieces), "utf-8")
    tokenizer = make_tokenizer(str(source), "bert")
    for text, row in zip(expected["texts"], expected["ids"]):
        assert [int(id) for id in tokenizer(text)] == row


@pytest.mark.quick("bert")
@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "xlm_roberta"])
def test_the_rows_of_pairs_are_those_of_hugging_face(name, tmp_path):
    expected = golden(name)
    tokenizer = make_tokenizer(str(copied(name, tmp_path)), NAMES[name])
    # Hugging Face has no pairs with an empty text.
    first, second = expected["texts"][:-2], expected["texts"][1:-1]
    examples = TextExamples(tuple(first), tuple(second), None, None, tuple(first))
    features = tfeff.data.text_features(examples, tokenizer, 256)
    for index, (row, segments) in enumerate(
        zip(expected["pairs"][:-1], expected["segments"])
    ):
        inputs = {key: value[index] for key, value in features.inputs.items()}
        assert inputs["token_ids"][: len(row)].tolist() == row
        assert (inputs["token_ids"][len(row) :] == tokenizer.pad_token_id).all()
        assert inputs["padding_mask"].sum() == len(row)
        found = inputs["segment_ids"][: len(row)].tolist()
        assert found == (segments or [0] * len(row))


@pytest.mark.slow
def test_vocab_json_and_merges_txt(tmp_path):
    source = copied("roberta", tmp_path)
    values = json.loads((source / "tokenizer.json").read_text("utf-8"))["model"]
    expected = make_tokenizer(str(source), "roberta")
    (source / "vocab.json").write_text(json.dumps(values["vocab"]), "utf-8")
    with pytest.raises(ValueError, match="vocab.json' must lie beside its 'merges.tx"):
        make_tokenizer(str(source), "roberta")
    rules = [" ".join(rule) for rule in values["merges"]]
    merges = "\n".join(["#version: 0.2", *rules, ""])
    (source / "merges.txt").write_text(merges, "utf-8")
    fingerprint = tfeff.data.tokenizer_fingerprint
    for names in ([], ["tokenizer.json"]):
        for name in names:
            (source / name).unlink()
        found = make_tokenizer(str(source), "roberta")
        assert fingerprint(found) == fingerprint(expected)
    # Beside a tokenizer.json that gives other ids.
    copied("roberta", tmp_path / "other")
    merges = merges.splitlines()
    other = "\n".join([merges[0], *merges[2:], merges[1]])
    (tmp_path / "other" / "roberta" / "vocab.json").write_text(
        json.dumps(values["vocab"]), "utf-8"
    )
    (tmp_path / "other" / "roberta" / "merges.txt").write_text(other, "utf-8")
    with pytest.raises(ValueError, match="whose ids tfeff's RobertaTokenizer gives"):
        make_tokenizer(str(tmp_path / "other" / "roberta"), "roberta")


def test_merges_txt_of_which_transformers_leave_out_a_rule(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_symbols(), "lo", "low"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    named = tmp_path / "other.json"  # A vocabulary has the piece "model", too.
    named.write_text(json.dumps(vocabulary | {"model": len(pieces), "class_name": 99}))
    for load in (make_tokenizer_of_file, tfeff.convert.load_tokenizer):
        with pytest.raises(ValueError, match="is called 'vocab.json', beside 'merges"):
            load(str(named))
    rules = "l o\nlo w"
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{rules}\n")
    tokenizer = make_tokenizer(str(tmp_path), "roberta")
    assert [int(i) for i in tokenizer("low")] == [vocabulary["low"]]
    for text in (f"{rules}\n", f"#version: 0.2\n{rules}"):
        (tmp_path / "merges.txt").write_text(text)
        with pytest.raises(ValueError, match="merges.txt' must begin with .*#version"):
            make_tokenizer(str(tmp_path), "roberta")


def test_a_difference_is_shown_with_its_texts(tmp_path):
    file = TokenizerJson.find(str(copied("bert", tmp_path)))
    tokenizer = make_tokenizer(str(tmp_path / "bert"), "bert")
    other = BertTokenizer(tokenizer.get_vocabulary(), lowercase=False)
    with pytest.raises(ValueError) as error:
        check_same_ids(file.path, other, file.reference())
    message = str(error.value)
    assert "tokenizer.json' must describe a tokenizer whose ids" in message
    text = "The quick brown fox jumps over the lazy dog."
    there, here = file.reference().encode(text).ids, np.asarray(other(text)).tolist()
    assert there != here
    assert f"{text!r}: {there} there, {here} here; " in message


def test_numbers_with_a_comma_are_unused_as_in_hugging_face():
    pieces = ["▁", "2", "²", "a", ",", "2,", "²,", "a,"]
    vocabulary = [["<unk>", 0.0], *([p, -3 - 100 * (len(p) > 1)] for p in pieces)]
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    values = {
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary},
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Lowercase"}, spaces],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
    }
    proto = sentence_piece_model(TokenizerJson("tokenizer.json", values))
    kinds = {p.piece: p.type for p in ModelProto.FromString(proto).pieces}
    unused = ModelProto.SentencePiece.UNUSED
    assert [piece for piece in kinds if kinds[piece] == unused] == ["2,", "²,"]


def test_the_sample_is_fixed_and_has_every_kind_of_text():
    texts = sample_texts(["the", "##s", "é"])
    assert texts == sample_texts(["the", "##s", "é"])
    assert 300 < len(texts) < 1000
    assert all(text == text.strip() for text in texts)
    for part in ("  ", "\t", "\n", "\x01", "日", "🙂", "e\u0301", "12345", "a" * 50):
        assert any(part in text for text in texts), part


@pytest.mark.slow
def test_alone_and_with_its_settings(tmp_path):
    source = copied("bert", tmp_path)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (source / name).unlink()
    alone = make_tokenizer(str(source), "bert")
    assert alone.to_lower and alone.strip_accents and alone.split_on_cjk
    # Of a class of Hugging Face, they take precedence.
    settings = dict(do_lower_case=False, tokenize_chinese_chars=False)
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    same = make_tokenizer(str(source), "bert")
    assert same.to_lower and same.strip_accents and same.split_on_cjk
    (source / "config.json").write_text('{"model_type": "bert"}')
    changed = make_tokenizer(str(source), "bert")
    assert not (changed.to_lower or changed.strip_accents or changed.split_on_cjk)
    (source / "config.json").unlink()
    # The classes of any tokenizer: the file's model counts, and no other vocabulary.
    (source / "vocab.txt").write_text("not read")
    for name in ("PreTrainedTokenizerFast", "TokenizersBackend"):
        settings = dict(tokenizer_class=name)
        (source / "tokenizer_config.json").write_text(json.dumps(settings))
        assert isinstance(make_tokenizer(str(source), "albert"), BertTokenizer)
    (source / "vocab.txt").unlink()
    assert make_tokenizer(str(tmp_path), "bert") is None


@pytest.mark.slow
@pytest.mark.parametrize("name, setting", OF_CLASSES.items())
def test_a_family_s_class_has_defaults_of_its_own(name, setting, tmp_path):
    """In Hugging Face they count where tokenizer_config.json lacks the setting."""
    source = copied(name, tmp_path)
    path = source / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8"))
    del settings[setting]
    path.write_text(json.dumps(settings))
    message = f"tokenizer_config.json' must have '{setting}', or .* where .* means"
    with pytest.raises(ValueError, match=message):
        make_tokenizer(str(source), NAMES[name])
    # The model's class counts where no other is named.
    del settings["tokenizer_class"]
    for content in (json.dumps(settings), None):
        path.write_text(content) if content else path.unlink()
        (source / "config.json").write_text(json.dumps({"model_type": NAMES[name]}))
        with pytest.raises(ValueError, match=message):
            make_tokenizer(str(source), NAMES[name])
        (source / "config.json").unlink()
        make_tokenizer(str(source), NAMES[name])
    path.write_text(json.dumps({"tokenizer_class": "TokenizersBackend"}))
    make_tokenizer(str(source), NAMES[name])
    path.write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    if setting != "add_prefix_space":
        make_tokenizer(str(source), NAMES[name])
        return
    # Of version 4 it has a default for this one setting.
    with pytest.raises(ValueError, match=message):
        make_tokenizer(str(source), NAMES[name])


@pytest.mark.quick("lower-vocab.txt")
@pytest.mark.parametrize("beside", [None, "vocab.txt"])
@pytest.mark.parametrize(
    "settings",
    [
        dict(lowercase=True, strip_accents=False, handle_chinese_chars=False),
        dict(lowercase=False, strip_accents=True, handle_chinese_chars=True),
    ],
    ids=["lower", "cased"],
)
def test_what_no_class_overrides_is_that_of_the_file(
    settings, beside, tmp_path, recwarn
):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "café", "cafe", "Cafe"]
    pieces += ["中文", "中", "文"]
    library = tokenizers.BertWordPieceTokenizer(
        {piece: id for id, piece in enumerate(pieces)}, **settings
    )
    library.save(str(tmp_path / "tokenizer.json"))
    other = dict(do_lower_case=not settings["lowercase"], do_basic_tokenize=False)
    other |= dict(strip_accents=None, tokenize_chinese_chars=True, never_split=["x"])
    configs = [None, other]
    if beside is None:  # Which the classes of any tokenizer.json do not read.
        names = ("PreTrainedTokenizerFast", "TokenizersBackend")
        configs += [{**other, "tokenizer_class": name} for name in names]
    else:
        (tmp_path / beside).write_text("\n".join(pieces), "utf-8")
    for config in configs:
        if config is not None:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        found = load_tokenizer(tmp_path)
        for text in ("Café café", "中文", "cafe"):
            expected = library.encode(text, add_special_tokens=False).ids
            assert list(found(text)) == expected
    assert not [x for x in recwarn if "does not know" in str(x.message)]


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "vocab.json"])
@pytest.mark.parametrize("space", [False, True])
def test_the_first_space_is_that_of_the_file(space, beside, tmp_path):
    library = tokenizers.ByteLevelBPETokenizer(add_prefix_space=space)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    library.train_from_iterator(
        ["low lower lowest"] * 9, 270, 1, show_progress=False, special_tokens=special
    )
    library.save(str(tmp_path / "tokenizer.json"))
    if beside:
        library.save_model(str(tmp_path))
    backend = {"tokenizer_class": "TokenizersBackend", "add_prefix_space": not space}
    for config in (None, {"model_max_length": 9}, {"add_prefix_space": True}, backend):
        if config is not None:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        expected = library.encode("low lower", add_special_tokens=False).ids
        assert list(load_tokenizer(tmp_path)("low lower")) == expected
    # Of RoBERTa's class, and of version 4's for any file, the setting counts.
    names = ("RobertaTokenizer", "PreTrainedTokenizerFast")
    for name in names if beside else names[1:]:
        config = {"tokenizer_class": name, "add_prefix_space": not space}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        assert load_tokenizer(tmp_path).add_prefix_space is not space


def test_models_that_tfeff_does_not_have_have_classes(tmp_path):
    """Hugging Face's MobileBERT has the tokenizer of BERT, with its defaults."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "café", "cafe", "中"]
    library = tokenizers.BertWordPieceTokenizer(
        {piece: id for id, piece in enumerate(pieces)},
        **dict(lowercase=True, strip_accents=False, handle_chinese_chars=False),
    )
    library.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "mobilebert"}')
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert list(load_tokenizer(tmp_path)("Café cafe")) == [6, 6]
    for model_type in (["bert"], {}, None):
        values = json.dumps({"model_type": model_type})
        (tmp_path / "config.json").write_text(values)
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("value", [None, "missing", {"type": "Whitespace"}])
def test_other_byte_pairs_beside_vocab_json_are_named(value, tmp_path):
    library = tokenizers.ByteLevelBPETokenizer()
    library.train_from_iterator(["low lower"] * 9, 270, 1, show_progress=False)
    library.save_model(str(tmp_path))
    values = json.loads(library.to_str()) | {"pre_tokenizer": value}
    if value == "missing":
        del values["pre_tokenizer"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match="tokenizer.json.*pre_tokenizer"):
        load_tokenizer(tmp_path)


def test_a_unigram_that_changes_white_space_alone(tmp_path):
    source = copied("xlm_roberta", tmp_path)
    for path in source.iterdir():
        if path.name not in ("tokenizer.json", "config.json"):
            path.unlink()
    path = source / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    values["normalizer"] = {
        "type": "Sequence",
        "normalizers": [
            {"type": "Strip", "strip_left": True, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ],
    }
    path.write_text(json.dumps(values), "utf-8")
    text = "  Two  ﬁsh Ａ"
    library = tokenizers.Tokenizer.from_file(str(path))
    expected = library.encode(text, add_special_tokens=False).ids
    assert np.asarray(load_tokenizer(source)(text)).tolist() == expected


def test_a_unigram_with_equally_likely_cuts(tmp_path):
    """Rounding decides where "aa" stands among the "aaaa" of 90 letters."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    letters = "bcdefghijklmnopqrstuvwxyz"
    scores = {"\u2581": -2.0, "a": -3.1, "aa": -4.37, "aaaa": -6.91}
    scores |= {letter: -3.0 - index / 10 for index, letter in enumerate(letters)}
    pieces = [*((piece, 0.0) for piece in special), *scores.items()]
    library = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=1))
    library.normalizer = normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.save(str(tmp_path / "tokenizer.json"))
    found = np.asarray(load_tokenizer(tmp_path)("a" * 90)).tolist()
    expected = library.encode("a" * 90).ids
    assert found != expected  # The case is one.
    assert sorted(found) == sorted(expected)


def test_capitals_of_vocab_txt_and_the_default_of_bert_s_class(tmp_path):
    source = copied("bert_cased", tmp_path)
    pieces = TokenizerJson.find(str(source)).vocabulary
    (source / "vocab.txt").write_text("".join(f"{p}\n" for p in pieces), "utf-8")
    path = source / "tokenizer_config.json"
    for rest in (["tokenizer.json"], []):
        path.write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
        with pytest.raises(
            ValueError, match="'do_lower_case', or .*vocab.txt' means F"
        ):
            make_tokenizer(str(source), "bert")
        settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
        path.write_text(json.dumps(settings))
        assert make_tokenizer(str(source), "bert").to_lower is False
        for name in rest:
            (source / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["albert", "xlnet", "xlm_roberta"])
def test_as_transformers_5_write_it(name, tmp_path, recwarn):
    """Texts are cut at white space of every kind, such as U+0085."""

    def cut(values):
        steps = values["normalizer"]["normalizers"]
        values["normalizer"]["normalizers"] = [
            step for step in steps if step.get("pattern") != {"Regex": " {2,}"}
        ]
        metaspace = values["pre_tokenizer"]
        if metaspace["type"] == "Sequence":
            metaspace = metaspace["pretokenizers"][-1]
        steps = [{"type": "WhitespaceSplit"}, metaspace]
        values["pre_tokenizer"] = dict(type="Sequence", pretokenizers=steps)

    source = copied(name, tmp_path)
    change(source, cut)
    path = source / "tokenizer_config.json"
    own = dict(backend="tokenizers", is_local=True, add_prefix_space=True, unk_id=1)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | own))
    tokenizer = make_tokenizer(str(source), NAMES[name])
    assert not [x for x in recwarn if "does not know" in str(x.message)]
    text = "b" + "a".join(chr(i) for i in range(0x10000) if chr(i).isspace()) + "b"
    assert "\x85" in text
    library = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    expected = library.encode(text, add_special_tokens=False).ids
    assert [int(i) for i in tokenizer(text)] == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xlm_roberta", "albert_cased"])
def test_what_leaves_jamo_apart_is_written_so(name, tmp_path):
    """Their rules compose marks, but not the letters of a Hangul syllable."""
    source = copied(name, tmp_path)
    jamo, syllable = "\u1112\u1161\u11ab", "\ud55c"

    def korean(values):
        pieces = values["model"]["vocab"]
        for index, piece in enumerate((f"\u2581{syllable}", syllable, "\u00c9"), 60):
            pieces[index][0] = piece

    change(source, korean)
    tokenizer = make_tokenizer(str(source), NAMES[name])
    library = TokenizerJson.find(str(source)).reference()
    files = tokenizer_files(tokenizer, {})
    written = tokenizers.Tokenizer.from_str(files["tokenizer.json"].decode())
    for text in (syllable, jamo, f"a{jamo} {syllable}", "E\u0301", "\u00c9", "\u2122"):
        ids = library.encode(text).ids
        assert [int(id) for id in tokenizer(text)] == ids, ascii(text)
        assert written.encode(text, add_special_tokens=False).ids == ids, ascii(text)
    assert library.encode(syllable).ids != library.encode(jamo).ids


@pytest.mark.slow
def test_presets_and_run_directories(tmp_path):
    tokenizer = make_tokenizer(str(copied("roberta", tmp_path)), "roberta")
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=400)
    save_preset(encoder, tokenizer, str(tmp_path / "preset"), {})
    _, loaded = tfeff.tasks.load_pretrained(tmp_path / "preset")
    (tmp_path / "run").mkdir()
    save_run_tokenizer(tokenizer, str(tmp_path / "run"))
    for again in (loaded, load_run_tokenizer(str(tmp_path / "run"))):
        assert type(again) is RobertaTokenizer
        fingerprint = tfeff.data.tokenizer_fingerprint
        assert fingerprint(again) == fingerprint(tokenizer)
        text = "It's naïve"
        assert np.array_equal(again(text), tokenizer(text))
    vocabulary = tmp_path / "preset" / "assets" / "tokenizer" / "vocabulary.json"
    vocabulary.write_text(vocabulary.read_text("utf-8") + " ", "utf-8")
    with pytest.raises(ValueError, match="vocabulary.json"):
        tfeff.tasks.load_pretrained(tmp_path / "preset")


def put(*path_and_value):
    *path, last, value = path_and_value

    def make(values):
        for key in path:
            values = values[key]
        values[last] = value

    return make


HOSTILE = [
    ("bert", put("normalizer", None), "normalizer' must have 'type'"),
    ("bert", put("normalizer", "type", "Lowercase"), "type='Lowercase'"),
    (
        "bert",
        put("normalizer", "type", "Nothing"),
        "type='Nothing'",
    ),
    ("bert", put("normalizer", "clean_text", False), "clean_text=False"),
    ("bert", put("pre_tokenizer", {"type": "Whitespace"}), "type='Whitespace'"),
    ("bert", put("model", "max_input_chars_per_word", 50), "per_word=50"),
    ("bert", put("model", "continuing_subword_prefix", "@@"), "prefix='@@'"),
    (
        "bert",
        put("model", "vocab", "the", 3),
        "pieces with the ids from 0, each once. .*no id",
    ),
    ("bert", put("model", "vocab", "the", "3"), "be a file of the `tokenizers`"),
    ("bert", put("model", []), "be a file of the `tokenizers`"),
    ("bert", put("added_tokens", 0, "content", "covid"), "adds 'covid'"),
    (
        "bert",
        put("post_processor", {"type": "ByteLevel", "trim_offsets": 3}),
        "library|of the",
    ),
    ("roberta", put("normalizer", {"type": "NFC"}), "type='NFC'"),
    ("roberta", put("pre_tokenizer", {"type": "Whitespace"}), "type='Whitespace'"),
    ("roberta", put("pre_tokenizer", "use_regex", False), "use_regex=False"),
    ("roberta", put("model", "dropout", 0.1), "dropout=0.1"),
    ("roberta", put("model", "byte_fallback", True), "byte_fallback=True"),
    ("roberta", put("model", "ignore_merges", True), "ignore_merges=True"),
    ("roberta", put("model", "end_of_word_suffix", "</w>"), "suffix='</w>'"),
    ("roberta", put("post_processor", "sep", ["<mask>", 4]), "must surround texts by"),
    ("albert", put("pre_tokenizer", {"type": "Whitespace"}), "type='Whitespace'"),
    ("albert", put("pre_tokenizer", "replacement", "_"), "replacement='_'"),
    ("albert", put("normalizer", {"type": "Lowercase"}), "must make one space"),
    (
        "albert",
        put("normalizer", "normalizers", 0, {"type": "Prepend", "prepend": "x"}),
        "type='Prepend'",
    ),
    *(
        (
            "albert",
            put(
                *("normalizer", "normalizers", 0),
                {"type": "Precompiled", "precompiled_charsmap": charsmap},
            ),
            message,
        )
        # Too short for a length; a trie whose nodes point beyond its end.
        for charsmap, message in (
            ("YWI=", "be a file of the `tokenizers`"),
            ("CAAAAGFiY2RlZmdo", "of another library: .*children are at"),
        )
    ),
    (
        "albert",
        put("model", "vocab", 20, ["[CLS]", 0.0]),
        r"0, each once. .*\[CLS\]' twice",
    ),
    ("albert", put("model", "unk_id", None), "unk_id is null"),
    ("albert", put("model", "byte_fallback", True), "byte_fallback=True"),
]


@pytest.mark.quick(
    "bert-make-normalizer' must have 'type'",
    "bert-make-clean_text=False",
    "bert-make-prefix='@@'",
    "bert-make-be a file of the `tokenizers`1",
    "roberta-make-type='NFC'",
    "roberta-make-dropout=0.1",
    "roberta-make-suffix='</w>'",
    "albert-make-be a file of the `tokenizers`",
    "albert-make-byte_fallback=True",
)
@pytest.mark.parametrize("name, make, message", HOSTILE)
def test_what_is_not_supported_is_named(name, make, message, tmp_path):
    source = copied(name, tmp_path)
    change(source, make)
    with pytest.raises(ValueError, match=message) as error:
        make_tokenizer(str(source), NAMES[name])
    assert "tokenizer.json" in str(error.value)


def test_damaged_files(tmp_path):
    source = copied("roberta", tmp_path)
    path = source / "tokenizer.json"
    content = path.read_bytes()
    for damaged in (content[:5000], b"", b"[]", b"{}", content[:-1], b"\xff" + content):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="tokenizer.json'"):
            make_tokenizer(str(source), "roberta")


@pytest.mark.parametrize("special_tokens", [{}, {"[CLS]": {"id": "[CLS]"}}])
def test_a_frame_of_unknown_tokens_is_named(special_tokens, tmp_path):
    """On which the library panics."""
    source = copied("bert", tmp_path)
    path = source / "tokenizer.json"
    values = json.loads(path.read_text())
    assert values["post_processor"]["type"] == "TemplateProcessing"
    values["post_processor"]["special_tokens"] = special_tokens
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match="tokenizer.json'"):
        make_tokenizer(str(source), "bert")


@pytest.mark.slow
def test_truncation_and_padding_of_the_file_are_not_used(tmp_path):
    source = copied("roberta", tmp_path)

    def make(values):
        values["truncation"] = dict(
            direction="Right", max_length=3, strategy="LongestFirst", stride=0
        )
        values["padding"] = dict(
            strategy={"Fixed": 9},
            direction="Right",
            pad_to_multiple_of=None,
            pad_id=1,
            pad_type_id=0,
            pad_token="<pad>",
        )

    change(source, make)
    tokenizer = make_tokenizer(str(source), "roberta")
    expected = golden("roberta")
    assert tokenizer(expected["texts"][0]).numpy().tolist() == expected["ids"][0]


def test_sentence_piece_ids_of_xlm_roberta_alone_are_refused(tmp_path):
    source = copied("xlm_roberta", tmp_path)
    (source / "tokenizer.json").unlink()
    (source / "sentencepiece.bpe.model").write_bytes(b"x")
    with pytest.raises(ValueError, match="must have 'tokenizer.json'"):
        make_tokenizer(str(source), "xlm-roberta")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
def test_a_thousand_texts_of_a_trained_tokenizer(kind, data_dir, tmp_path):
    """Files of the library's own trainers, on the texts of a real data set."""
    files = sorted(path for path in data_dir.rglob("*") if path.suffix in _TEXTS)
    lines = [
        line.strip()[:300].strip()
        for path in files[:20]
        for line in path.read_text("utf-8", "replace").splitlines()[:4000]
        if line.strip()
    ]
    special = {
        "wordpiece": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        "unigram": ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        "bpe": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    }[kind]
    made = _MAKERS[kind](lines, special)
    made.save(str(tmp_path / "tokenizer.json"))
    tokenizer = make_tokenizer(str(tmp_path), "bert")
    texts = random.Random(0).sample(lines, 1000)
    expected = [
        e.ids for e in TokenizerJson.find(str(tmp_path)).reference().encode_batch(texts)
    ]
    (found,) = tf.data.Dataset.from_tensors(tf.constant(texts)).map(tokenizer)
    found = found.to_list()
    if kind == "unigram":
        # The same pieces in another order are equally likely: rounding chooses.
        other = [i for i, ids in enumerate(found) if ids != expected[i]]
        assert len(other) <= 5
        for i in other:
            found[i], expected[i] = sorted(found[i]), sorted(expected[i])
    assert found == expected


_TEXTS = (".txt", ".tsv", ".json", ".jsonl")


def _word_piece(lines, special):
    made = tokenizers.BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(
        lines, vocab_size=5000, special_tokens=special, show_progress=False
    )
    return made


def _unigram(lines, special):
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Lowercase(),
            normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=5000,
        special_tokens=special,
        unk_token="<unk>",
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    return made


def _byte_pairs(lines, special):
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator(
        lines, vocab_size=5000, special_tokens=special, show_progress=False
    )
    return made


_MAKERS = dict(wordpiece=_word_piece, unigram=_unigram, bpe=_byte_pairs)
