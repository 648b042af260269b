"""Makes settings.json: the ids that Hugging Face gives under settings of its BERT.

Run by hand, from the repository's root, in an environment of its own:

    python -m tests.convert.make_settings_goldens

Made with transformers 4.57.6 and tokenizers 0.22.2. The slow and the fast tokenizer
agree on all of these texts.
"""

import itertools
import json
from pathlib import Path

import transformers as hf

FOLDER = Path(__file__).parent
VOCABULARY = FOLDER / "goldens" / "bert" / "vocab.txt"
TEXTS = [
    "The quick Café, naïve São 日本語 x漢字y; ½ ﬁne ① wait… straße",
    "e\u0301te\u0301 İstanbul a\u0300\u0316b 한국어 ẞ ß Ǆ",
    "zero\u200bwidth a\u00a0b soft\u00adhyphen x\u2028y\u2029z \ufeffbom a\x01b",
    "the " + "fox" * 33 + " " + "fox" * 34 + " " + "ελλ" * 33 + " " + "é" * 101,
]
SETTINGS = [
    dict(do_lower_case=lower, strip_accents=strip, tokenize_chinese_chars=chinese)
    for lower, strip, chinese in itertools.product(
        (True, False), (None, True, False), (True, False)
    )
]


def main():
    rows = []
    for settings in SETTINGS:
        slow = hf.BertTokenizer(VOCABULARY, **settings)
        fast = hf.BertTokenizerFast(vocab_file=str(VOCABULARY), **settings)
        ids = [slow.encode(text, add_special_tokens=False) for text in TEXTS]
        assert ids == [fast.encode(text, add_special_tokens=False) for text in TEXTS]
        rows.append(dict(settings=settings, ids=ids))
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"texts": {json.dumps(TEXTS)},\n"rows": [\n{lines}\n]}}\n'
    (FOLDER / "settings.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
