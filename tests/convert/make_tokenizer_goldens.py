"""Makes the goldens of tokenizer.json: files of Hugging Face's fast classes, and ids.

Run by hand, from the repository's root, in an environment of its own:

    python -m tests.convert.make_tokenizer_goldens

Made with transformers 4.57.6, tokenizers 0.22.2, sentencepiece 0.2.3 and protobuf. Each
folder under `tests/convert/tokenizer_goldens` has the files that `save_pretrained`
writes, without any vocabulary beside tokenizer.json, and `ids.json`: texts, their ids
and those of pairs of them, with special tokens. The rules for characters, 300 kB that
the golden ALBERT's SentencePiece model has too, are left out of tokenizer.json.
"""

import base64
import io
import json
import shutil
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
import transformers as hf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tests.subjects.sentence_pieces import SPECIAL

FOLDER = Path(__file__).parent
GOLDENS = FOLDER / "tokenizer_goldens"
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "She didn't say: \"We'll be back at 10:30, on 3/4!\"",
    "Café, naïve and über-cool São Paulo; the fiancée's résumé.",
    "It cost $1,234.56 (about 9,000 yen) in 2019, or 50% of it.",
    "  Tabs\tand   spaces\nand lines",
    "`` Quoted '' words -- and a well-known ellipsis... [x] {y} <z> #1 @home",
    "UPPER lower MiXeD iPhone NASA e.g. U.S.A.",
    "日本語 and 中文 text, with ελληνικά and русский.",
    "unbelievably uncharacteristically 🙂 zzzzqqq",
    "½ ﬁne ① wait… x² ™ straße ΑΣΣΟΣ zero\u200bwidth a\u00a0b soft\u00adhyphen",
    "\u3000漢字かな が ガ e\u0301te\u0301 İstanbul 한국어 \u1112\u1161\u11ab",
    "\ufeffbom a\x01b",
    "''s 'S I'm \n\n 'll   they'd've x\u2028y\u2003z",
    "",
]


def main():
    shutil.rmtree(GOLDENS, ignore_errors=True)
    vocabulary = str(FOLDER / "goldens" / "bert" / "vocab.txt")
    cased = str(FOLDER / "goldens" / "bert_pretraining" / "vocab.txt")
    write("bert", hf.BertTokenizerFast(vocabulary))
    write("bert_cased", hf.BertTokenizerFast(cased, do_lower_case=False))
    write("bert_accents", hf.BertTokenizerFast(vocabulary, strip_accents=False))
    whole = hf.BertTokenizerFast(vocabulary, tokenize_chinese_chars=False)
    write("bert_whole_chinese", whole)
    write("roberta", byte_pairs())
    write("roberta_prefix_space", byte_pairs(add_prefix_space=True))
    write("albert", unigram(hf.AlbertTokenizerFast, SPECIAL["albert"]))
    cased = dict(do_lower_case=False, keep_accents=True)
    write("albert_cased", unigram(hf.AlbertTokenizerFast, SPECIAL["albert"], **cased))
    write("xlnet", unigram(hf.XLNetTokenizerFast, SPECIAL["xlnet"]))
    write("xlm_roberta", unigram(hf.XLMRobertaTokenizerFast, {}))


def byte_pairs(**settings):
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(
        TEXTS * 2,
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        show_progress=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        trained.save_model(folder)
        return hf.RobertaTokenizerFast(
            f"{folder}/vocab.json", f"{folder}/merges.txt", **settings
        )


def unigram(kind, special, **settings):
    model = io.BytesIO()
    lowercase = kind is hf.AlbertTokenizerFast and not settings
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(
            [text.lower() if lowercase else text for text in TEXTS[:7] * 2]
        ),
        model_writer=model,
        vocab_size=200,
        hard_vocab_limit=False,
        minloglevel=2,
        **special,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spiece.model")
        path.write_bytes(model.getvalue())
        return kind(str(path), **settings)


def write(name, tokenizer):
    folder = GOLDENS / name
    tokenizer.save_pretrained(folder)
    for path in folder.iterdir():
        if not path.name.endswith("json") or path.name == "vocab.json":
            path.unlink()
    proto = (FOLDER / "goldens" / "albert" / "spiece.model").read_bytes()
    charsmap = ModelProto.FromString(proto).normalizer_spec.precompiled_charsmap
    path = folder / "tokenizer.json"
    text = path.read_text("utf-8").replace(base64.b64encode(charsmap).decode(), "")
    assert len(text) < 60_000
    path.write_text(text, "utf-8")
    pairs = list(zip(TEXTS, TEXTS[1:]))
    content = dict(
        texts=TEXTS,
        ids=[tokenizer.encode(text, add_special_tokens=False) for text in TEXTS],
        pairs=[tokenizer.encode(*pair) for pair in pairs],
        segments=[tokenizer(*pair).get("token_type_ids") for pair in pairs],
    )
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
    (folder / "ids.json").write_text(f"{{{rows}}}\n", "utf-8")


if __name__ == "__main__":
    main()
