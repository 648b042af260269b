"""Tokenizers' files: settings, and what is refused."""

import json
import unicodedata
import warnings

import pytest
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tests.convert.conversions import GOLDENS, changed, copied
from tfeff.convert import BertTokenizer, convert, load, to_huggingface
from tfeff.convert.config import Config
from tfeff.convert.sentencepiece_json import described_model
from tfeff.convert.tokenizer import make_tokenizer, make_tokenizer_of_file


def ids(tokenizer, text):
    return [int(i) for i in tokenizer(text)]


def test_case_without_settings_is_that_of_the_vocabulary(tmp_path):
    for name, expected in ("bert", True), ("bert_pretraining", False):
        source = copied(name, tmp_path)
        (source / "tokenizer_config.json").unlink()
        tokenizer = make_tokenizer(str(source), "bert")
        assert tokenizer.get_config()["lowercase"] is expected
        rows = json.loads((GOLDENS / name / "tokens.json").read_text("utf-8"))
        assert [ids(tokenizer, text) for text, _ in rows] == [row for _, row in rows]


def test_markers_have_no_case(tmp_path):
    """The Chinese vocabulary of BERT's authors has `<S>` and `<T>`, but no others."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<S>", "<T>", "nasa", "我"]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(pieces), "utf-8")
    for tokenizer in (
        make_tokenizer(str(tmp_path), "bert"),
        make_tokenizer_of_file(str(path)),
    ):
        assert ids(tokenizer, "我 NASA") == [8, 7]
    path.write_text("\n".join([*pieces, "<S"]), "utf-8")
    assert ids(make_tokenizer_of_file(str(path)), "我 NASA") == [8, 1]


@pytest.mark.parametrize(
    ("by", "is_default"),
    [
        ("tokenizer_config.json", False),
        ("tokenizer_config.json", True),
        ("tokenizer.json", False),
        (None, False),
    ],
)
def test_pairs_of_one_segment_are_told(by, is_default, tmp_path):
    source = copied("bert", tmp_path)
    if by == "tokenizer_config.json" and not is_default:
        names = ["input_ids", "attention_mask"]
        source = changed("bert", tmp_path / "changed", by, model_input_names=names)
    elif by is not None:
        encoder, tokenizer = load(source), make_tokenizer(str(source), "bert")
        to_huggingface(encoder, source := tmp_path / "written", tokenizer)
    if is_default:  # As transformers 5 write a tokenizer of no model's class.
        config = json.loads((source / by).read_text())
        del config["model_input_names"]
        config["tokenizer_class"] = "TokenizersBackend"
        (source / by).write_text(json.dumps(config))
        (source / "vocab.txt").unlink(missing_ok=True)
        (source / "SHA256SUMS").unlink()
    if by == "tokenizer.json":
        file = json.loads((source / by).read_text())
        frame = file["post_processor"]
        assert frame["type"] == "TemplateProcessing"
        for part in frame["pair"]:
            for kind in part.values():
                kind["type_id"] = 0
        (source / by).write_text(json.dumps(file))
        (source / "SHA256SUMS").unlink()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        convert(source, tmp_path / "preset")
    told = [str(x.message) for x in caught if "both texts of a pair" in str(x.message)]
    assert len(told) == (by is not None)
    assert all(f"{by}'" in text for text in told)


def test_a_warning_tells_of_case_that_hugging_face_would_fold(tmp_path):
    for name, told in ("bert_pretraining", 1), ("bert", 0):
        source = copied(name, tmp_path)
        (source / "tokenizer_config.json").unlink()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make_tokenizer(str(source), "bert")
            (source / "config.json").unlink()  # Hugging Face has no class for it then.
            make_tokenizer(str(source), "bert")
        found = [str(x.message) for x in caught if "do_lower_case=True" in str(x)]
        assert len(found) == told and all("vocab.txt" in text for text in found)


def test_settings_count(tmp_path):
    source = str(
        changed(
            "bert",
            tmp_path,
            "tokenizer_config.json",
            do_lower_case=True,
            strip_accents=False,
            tokenize_chinese_chars=False,
        )
    )
    tokenizer = make_tokenizer(source, "bert")
    config = BertTokenizer.from_config(tokenizer.get_config()).get_config()
    assert config["lowercase"] is True
    assert config["strip_accents"] is False
    assert config["split_on_cjk"] is False


def test_settings_give_the_ids_of_hugging_face(tmp_path):
    source = copied("bert", tmp_path)
    golden = json.loads((GOLDENS.parent / "settings.json").read_text("utf-8"))
    assert len(golden["rows"]) == 12
    for row in golden["rows"]:
        (source / "tokenizer_config.json").write_text(json.dumps(row["settings"]))
        tokenizer = make_tokenizer(str(source), "bert")
        for text, expected in zip(golden["texts"], row["ids"], strict=True):
            assert ids(tokenizer, text) == expected, (row["settings"], text)


@pytest.mark.slow
def test_sentencepiece_settings_count(tmp_path):
    source = copied("albert", tmp_path)
    settings = dict(do_lower_case=False, keep_accents=True)
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = make_tokenizer(str(source), "albert")
    plain = make_tokenizer(str(GOLDENS / "albert"), "albert")
    unknown = tokenizer.token_to_id("<unk>")
    assert ids(plain, "The fox") == ids(tokenizer, "the fox")
    assert unknown in ids(tokenizer, "The fox")
    # Composed from a letter and its accent, as the model itself does.
    assert ids(tokenizer, "e\u0301") == ids(tokenizer, "\u00e9")
    assert ids(tokenizer, "caf\u00e9") != ids(tokenizer, "cafe")


def test_sentencepiece_is_cleaned_up_as_by_the_fast_tokenizers():
    for name in ("albert", "xlnet"):
        tokenizer = make_tokenizer(str(GOLDENS / name), name)
        # Of no combining class, but a nonspacing mark.
        assert ids(tokenizer, "the\ufe0f") == ids(tokenizer, "the")
        assert ids(tokenizer, "z\x0bw") != ids(tokenizer, "z w")


@pytest.mark.slow
def test_tokenizer_json_counts_beside_a_sentencepiece_model(tmp_path):
    source = copied("albert", tmp_path)
    content = sentence_piece_json(source)
    content["normalizer"]["normalizers"].insert(
        0, {"type": "Replace", "pattern": {"String": "q"}, "content": "fox"}
    )
    (source / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = make_tokenizer(str(source), "albert")
    assert ids(tokenizer, "the q") == ids(tokenizer, "the fox")


def test_accents_of_a_cased_word_piece_stay_characters_of_their_own(tmp_path):
    source = copied("bert_pretraining", tmp_path)
    tokenizer = make_tokenizer(str(source), "bert")
    assert tokenizer.compose is False
    assert ids(tokenizer, "e\u0301") != ids(tokenizer, "\u00e9")
    assert make_tokenizer_of_file(str(source / "vocab.txt")).compose is False
    # Those of presets that compose keep their ids.
    vocabulary = tokenizer.get_vocabulary()
    config = BertTokenizer(vocabulary).get_config()
    again = BertTokenizer.from_config(config | {"vocabulary": vocabulary})
    assert ids(again, "e\u0301") == ids(again, "\u00e9")


@pytest.mark.quick(
    "bert-settings0-do_basic_tokenize=False",
    "xlnet-settings3-remove_space=False",
    "bert-settings6-auto_map=",
    "bert-settings9-word_tokenizer_type='mecab'",
    "bert-settings12-mask_token='<mask>'",
    "bert-settings15-adds '\\\\[E1\\\\]'",
    "bert-settings18-is damaged",
    "albert-settings21-unk_token='\\\\[UNK\\\\]'",
)
@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("bert", dict(do_basic_tokenize=False), "do_basic_tokenize=False"),
        ("bert", dict(never_split=["x"]), "never_split="),
        ("bert", dict(do_lower_case="yes"), "do_lower_case='yes'"),
        ("xlnet", dict(remove_space=False), "remove_space=False"),
        ("bert", dict(clean_text=False), "clean_text=False"),
        ("bert", dict(wordpieces_prefix="@@"), "wordpieces_prefix='@@'"),
        ("bert", dict(auto_map={"AutoTokenizer": ["t.T", None]}), "auto_map="),
        ("bert", dict(tokenizer_class="BertJapaneseTokenizer"), "BertJapaneseTokeni"),
        ("bert", dict(tokenizer_class="PreTrainedTokenizerFast"), "='PreTrainedToken"),
        ("bert", dict(word_tokenizer_type="mecab"), "word_tokenizer_type='mecab'"),
        ("bert", dict(subword_tokenizer_type="character"), "_type='character'"),
        ("bert", dict(cls_token="<s>"), "cls_token='<s>'"),
        ("bert", dict(mask_token={"content": "<mask>"}), "mask_token='<mask>'"),
        ("bert", dict(eos_token="the"), r"adds 'the' \(eos_token\)"),
        ("bert", dict(additional_special_tokens=["[E1]"]), r"adds '\[E1\]' \(addit"),
        ("bert", dict(extra_special_tokens={"entity": "[E1]"}), r"adds '\[E1\]'"),
        ("bert", dict(added_tokens_decoder={"5": {"content": "!"}}), "adds '!'"),
        (
            "bert",
            dict(added_tokens_decoder={"5": {"content": "[SEP]"}}),
            "the id 5. In",
        ),
        ("bert", dict(added_tokens_decoder={"x": {"content": "[SEP]"}}), "is damaged"),
        ("bert", dict(added_tokens_decoder=["[SEP]"]), "is damaged"),
        ("bert", dict(additional_special_tokens=3), "is damaged"),
        ("albert", dict(unk_token="[UNK]"), r"unk_token='\[UNK\]'"),
        ("albert", dict(sp_model_kwargs={"enable_sampling": True}), "sp_model_kwargs="),
        ("xlnet", dict(additional_special_tokens=["<cls2>"]), "adds '<cls2>'"),
    ],
)
def test_settings_that_no_tokenizer_has(name, settings, message, tmp_path):
    source = changed(name, tmp_path, "tokenizer_config.json", **settings)
    with pytest.raises(ValueError, match=message):
        convert(source, tmp_path / "preset")


def test_a_setting_that_nobody_knows_is_told(tmp_path):
    settings = dict(never_spilt=["x"], model_max_length=512, padding_side="left")
    source = changed("bert", tmp_path, "tokenizer_config.json", **settings)
    with pytest.warns(UserWarning, match="tokenizer_config.*: never_spilt. Make sure"):
        make_tokenizer(str(source), "bert")


@pytest.mark.parametrize(
    "name, file, content, message",
    [
        ("bert", "added_tokens.json", {"covid": 220}, "adds 'covid'"),
        ("bert", "added_tokens.json", {"[MASK]": 220}, "has the id 220. In .* has 4"),
        ("bert", "added_tokens.json", {"!": 5}, "adds '!'"),
        ("bert", "special_tokens_map.json", {"sep_token": "</s>"}, "sep_token='</s>'"),
        (
            "bert",
            "special_tokens_map.json",
            {"additional_special_tokens": [{"content": "<e1>"}]},
            "adds '<e1>'",
        ),
        ("albert", "added_tokens.json", {"<s>": 220}, "adds '<s>'"),
        ("bert", "special_tokens_map.json", {"sep_token": 3}, "is damaged"),
        ("bert", "added_tokens.json", ["covid"], "must be a JSON object"),
        ("bert", "config.json", {"tokenizer_class": "BertJapaneseTokenizer"}, "Japan"),
    ],
)
def test_files_that_change_the_vocabulary(name, file, content, message, tmp_path):
    source = copied(name, tmp_path)
    if file == "config.json":
        # Asked where tokenizer_config.json names no class.
        content |= json.loads((source / file).read_text())
        settings = json.loads((source / "tokenizer_config.json").read_text())
        del settings["tokenizer_class"]
        (source / "tokenizer_config.json").write_text(json.dumps(settings))
    (source / file).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as raised:
        convert(source, tmp_path / "preset")
    assert file in str(raised.value)


def test_files_that_say_nothing_new(tmp_path):
    source = copied("bert", tmp_path)
    (source / "added_tokens.json").write_text('{"[MASK]": 4}')
    special = {"sep_token": "[SEP]", "cls_token": {"content": "[CLS]"}}
    (source / "special_tokens_map.json").write_text(json.dumps(special))
    assert ids(make_tokenizer(str(source), "bert"), "the fox")
    # The class decides, not the model: Chinese ALBERTs have BERT's vocabularies.
    assert isinstance(make_tokenizer(str(source), "albert"), BertTokenizer)


def word_piece_json(source):
    """tokenizer.json as Hugging Face writes it for the golden, but shorter."""
    pieces = (source / "vocab.txt").read_text("utf-8").splitlines()
    whole = dict(single_word=False, lstrip=False, rstrip=False, special=True)
    special = [
        dict(id=index, content=token, normalized=False, **whole)
        for index, token in enumerate(pieces[:5])
    ]
    return dict(
        added_tokens=special,
        normalizer=dict(
            type="BertNormalizer",
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=None,
            lowercase=True,
        ),
        pre_tokenizer=dict(type="BertPreTokenizer"),
        model=dict(
            type="WordPiece",
            unk_token="[UNK]",
            continuing_subword_prefix="##",
            max_input_chars_per_word=100,
            vocab={token: index for index, token in enumerate(pieces)},
        ),
    )


def sentence_piece_json(source):
    """The same for SentencePiece."""
    settings = Config({}, str(source / "tokenizer_config.json"))
    described = described_model(str(source / "spiece.model"), "albert", settings)
    return described.values


FRAME = dict(type="BertProcessing", sep=["[SEP]", 3], cls=["[CLS]", 2])
# The pairs of RoBERTa's have two separators.
TWO = FRAME | dict(type="RobertaProcessing", trim_offsets=True, add_prefix_space=True)
OTHER = r"must surround texts by the ids \[2, 3"


@pytest.mark.parametrize(
    "name, path, value, message",
    [
        ("bert", (), None, None),
        (
            "bert",
            ("model", "vocab", "the"),
            3,
            "pieces with the ids from 0, each once. .*no id",
        ),
        ("bert", ("model", "vocab", "thee"), 220, "another vocabulary"),
        ("bert", ("model", "continuing_subword_prefix"), "@@", "prefix='@@'"),
        ("bert", ("model", "max_input_chars_per_word"), 50, "per_word=50"),
        ("bert", ("model", "type"), "BPE", "must be a file of the"),
        ("bert", ("model",), dict(type="BPE", vocab={}, merges=[]), "type='BPE'"),
        ("bert", ("normalizer", "type"), "Lowercase", "type='Lowercase'"),
        ("bert", ("normalizer", "clean_text"), False, "clean_text=False"),
        ("bert", ("normalizer", "lowercase"), False, None),  # It is overruled.
        ("bert", ("pre_tokenizer", "type"), "Whitespace", "type='Whitespace'"),
        ("bert", ("normalizer",), None, "normalizer' must have 'type'"),
        ("bert", ("normalizer", "normalizers"), 3, None),  # Nobody reads it.
        ("bert", ("pre_tokenizer",), None, "tokenizer' must have 'type'"),
        ("bert", ("added_tokens", 4, "content"), "<e1>", "adds '<e1>'"),
        ("bert", ("added_tokens", 4, "id"), 220, "has the id 220"),
        ("bert", ("post_processor",), FRAME, None),
        ("bert", ("post_processor",), TWO, OTHER),
        ("bert", ("post_processor",), FRAME | {"cls": ["[MASK]", 4]}, OTHER),
        ("bert", ("post_processor",), {"type": "Other"}, "must be a file of the"),
        ("albert", (), None, None),
        ("albert", ("post_processor",), FRAME, None),
        ("albert", ("post_processor",), TWO, OTHER),
        ("albert", ("model", "vocab", 9), ["other", -3.0], "another vocabulary"),
        ("albert", ("model", "vocab", 9, 1), -30.0, "another score"),
        ("albert", ("normalizer", "normalizers", 3, "type"), "NFC", "another accents"),
        (
            "albert",
            ("normalizer", "normalizers", 4, "type"),
            "NFC",
            "another lowercase",
        ),
        ("albert", ("model", "vocab"), 3, "must be a file of the `tokenizers`"),
    ],
)
def test_tokenizer_json_must_agree(name, path, value, message, tmp_path):
    source = copied(name, tmp_path)
    content = (word_piece_json if name == "bert" else sentence_piece_json)(source)
    place = content
    for key in path[:-1]:
        place = place[key]
    if path:
        place[path[-1]] = value
    (source / "tokenizer.json").write_text(json.dumps(content))
    if message is None:
        make_tokenizer(str(source), name)
    else:
        with pytest.raises(ValueError, match=rf"tokenizer.json.*{message}"):
            make_tokenizer(str(source), name)


def test_tokenizer_json_where_nothing_else_says_the_case(tmp_path):
    source = copied("bert", tmp_path)
    (source / "tokenizer_config.json").unlink()
    content = word_piece_json(source)
    (source / "tokenizer.json").write_text(json.dumps(content))
    make_tokenizer(str(source), "bert")
    content["normalizer"]["lowercase"] = False
    (source / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="another lowercase"):
        make_tokenizer(str(source), "bert")


def test_lines_of_vocabularies(tmp_path):
    source = copied("bert", tmp_path)
    text = (source / "vocab.txt").read_text("utf-8")
    (source / "vocab.txt").write_text(text + "the\n", "utf-8")
    with pytest.raises(ValueError, match="'the' in line [0-9]+ and in line 221"):
        make_tokenizer(str(source), "bert")
    for encoding in ("utf-16", "latin-1"):
        (source / "vocab.txt").write_text(text, encoding, errors="replace")
        with pytest.raises(ValueError, match="vocab.txt' must be UTF-8"):
            make_tokenizer(str(source), "bert")
    # Lines end as in Python; white space within them is kept, there and back.
    (source / "vocab.txt").write_bytes(text.replace("\n", "\r\n").encode("utf-8"))
    expected = make_tokenizer(str(GOLDENS / "bert"), "bert").get_vocabulary()
    assert make_tokenizer(str(source), "bert").get_vocabulary() == expected
    odd = [*expected, "\u2028", " x ", ""]
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    tokenizer = BertTokenizer(odd)
    tokenizer.save_assets(str(folder))
    tokenizer.load_assets(str(folder))
    assert tokenizer.get_vocabulary() == odd


def test_vocabularies_that_are_none(tmp_path):
    source = copied("bert", tmp_path)
    (source / "vocab.txt").write_text("the\nfox\n")
    with pytest.raises(ValueError, match="vocab.txt' must be the vocabulary of a BERT"):
        convert(source, tmp_path / "preset")
    source = copied("albert", tmp_path)
    (source / "spiece.model").write_bytes(b"no model")
    with pytest.raises(ValueError, match="spiece.model' must be the SentencePiece"):
        convert(source, tmp_path / "preset")


def test_capitals_that_albert_s_tokenizer_does_not_use(tmp_path, recwarn):
    source = copied("albert", tmp_path)
    (source / "tokenizer_config.json").unlink(missing_ok=True)
    make_tokenizer(str(source), "albert")
    assert not recwarn
    path = source / "spiece.model"
    model = ModelProto.FromString(path.read_bytes())
    piece = next(p for p in model.pieces if p.piece[1:].isalpha())
    word = piece.piece[1:].capitalize()
    piece.piece = f"\u2581{word}"
    path.write_bytes(model.SerializeToString())
    with pytest.warns(UserWarning, match=f"spiece.model' has .* '\u2581{word}'"):
        make_tokenizer(str(source), "albert")
    for lowercase in (True, False):
        settings = {"do_lower_case": lowercase}
        (source / "tokenizer_config.json").write_text(json.dumps(settings))
        tokenizer = make_tokenizer(str(source), "albert")
        is_used = model.pieces[ids(tokenizer, word)[0]].piece == piece.piece
        assert is_used is not lowercase


def test_a_vocabulary_of_another_class_needs_its_name(tmp_path):
    source = copied("albert", tmp_path)
    (source / "spiece.model").unlink()
    vocabulary = (GOLDENS / "bert" / "vocab.txt").read_text("utf-8")
    (source / "vocab.txt").write_text(vocabulary, "utf-8")
    # As in Chinese ALBERTs, which AutoTokenizer refuses, too.
    (source / "tokenizer_config.json").unlink()
    message = "must have spiece.model or .* It has vocab.txt.*'tokenizer_class'"
    with pytest.raises(ValueError, match=message):
        convert(source, tmp_path / "preset")
    assert load(source).vocabulary_size == 220
    settings = {"tokenizer_class": "BertTokenizer"}
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    converted = convert(source, tmp_path / "preset")
    assert isinstance(converted.tokenizer, BertTokenizer)


def test_an_encoder_is_loaded_without_its_vocabulary(tmp_path):
    source = copied("bert", tmp_path)
    (source / "vocab.txt").write_text("the\nfox\n")
    assert load(source).vocabulary_size == 220


def test_a_vocabulary_larger_than_the_table(tmp_path):
    source = copied("bert", tmp_path)
    vocabulary = (source / "vocab.txt").read_text()
    words = "".join(f"word{index}\n" for index in range(220))
    (source / "vocab.txt").write_text(vocabulary + words)
    with pytest.raises(ValueError, match="no more ids than the embedding has rows"):
        convert(source, tmp_path / "preset")


def test_every_white_space_ends_a_word():
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    spaces = [chr(c) for c in range(0x3001) if unicodedata.category(chr(c))[0] == "Z"]
    spaces += ["\t", "\n", "\r"]
    assert len(spaces) == 22
    for space in spaces:
        assert ids(tokenizer, f"a{space}a") == [5, 5], ascii(space)


def test_long_words_are_counted_in_characters():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "\u0e01"]
    pieces += [
        "##\u0e01",
        "\u1100",
        "##\u1100",
        "##\u1161",
        "\U0001f642",
        "##\U0001f642",
    ]
    tokenizer = BertTokenizer(pieces, lowercase=True, strip_accents=True)
    for letter in ("a", "\u0e01", "\U0001f642"):
        first, rest = pieces.index(letter), pieces.index(f"##{letter}")
        assert ids(tokenizer, letter * 100) == [first] + [rest] * 99
        assert ids(tokenizer, f"a {letter * 101} a") == [5, 1, 5]
    # Counted when accents are stripped: of a syllable of two letters, both.
    assert len(ids(tokenizer, "\uac00" * 50)) == 100
    assert ids(tokenizer, "\uac00" * 51) == [1]
    assert ids(tokenizer, "e\u0301" * 200) == [1]
    # The same in a graph.
    texts = ["\u0e01" * 100, "a " + "\u0e01" * 101 + " a", "\uac00" * 50, "", "b"]
    dataset = tf.data.Dataset.from_tensor_slices(texts).map(tokenizer)
    for text, row in zip(texts, dataset):
        assert row.numpy().tolist() == ids(tokenizer, text)


def test_special_tokens_in_strings():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<E>", "fox", "e", "["]
    tokenizer = BertTokenizer(
        [*pieces, "]", "mask"],
        lowercase=True,
        special_tokens_in_strings=True,
        special_tokens=["<E>"],
    )
    tokenizer = BertTokenizer.from_config(
        tokenizer.get_config() | dict(vocabulary=tokenizer.get_vocabulary())
    )
    texts = {
        "Fox [MASK] FOX": [6, 4, 6],
        "[mask]": [8, 10, 9],
        "[CLS]Fox[SEP]<E>E": [2, 6, 3, 5, 7],
        "": [],
        "[SEP]": [3],
    }
    for text, expected in texts.items():
        assert ids(tokenizer, text) == expected
    batch = tokenizer(list(texts))
    assert [[int(i) for i in row] for row in batch] == list(texts.values())
    plain = BertTokenizer([*pieces, "]", "mask"], lowercase=True)
    assert ids(plain, "[MASK]") == [8, 10, 9]


def test_bert_tokenizer_in_a_graph(tmp_path):
    tokenizer = make_tokenizer(str(GOLDENS / "bert"), "bert")
    rows = json.loads((GOLDENS / "bert" / "tokens.json").read_text("utf-8"))
    dataset = tf.data.Dataset.from_tensor_slices([text for text, _ in rows])
    for tokens, (_, expected) in zip(dataset.map(tokenizer), rows):
        assert tokens.numpy().tolist() == expected
    assert BertTokenizer.from_config(tokenizer.get_config()).to_lower
