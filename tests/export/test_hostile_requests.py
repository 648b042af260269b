"""A server process stands whatever is asked of it: no abort, no growth of memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfeff
from tests.subjects import byte_pairs
from tests.subjects.characters import word_pieces
from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder, own_model
from tfeff.objectives import MaskedLM
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SentenceEmbedding,
    SpanQA,
    TokenClassifier,
)

# 100,000 take some 5 minutes of a processor, with the exports 7.
REQUESTS = int(os.environ.get("TFEFF_HOSTILE_REQUESTS", 20_000))
# From a fifth of the requests to the end. Sizes never met before still add to caches
# of buffers and kernels: 22 MB in 80,000 requests. A leak of the texts or tensors of a
# request, 7 kB and more, would add this in 16,000.
MOST_GROWTH = 100
# The answers of the largest requests are 256 MB, in parts and joined.
MOST_TAKEN = 1000
FOLDER = Path(__file__).parent
LABELS = ["O", "B-PER", "I-PER"]


TOKENIZERS = {
    "unigram": tokenizer,
    "word_piece": word_pieces,
    "byte_pairs": byte_pairs.tokenizer,
}


def save_exports(folder, kind, length, rows=0, **options):
    """An export of each model, in `folder/KIND-MODEL`.

    `length` tokens at most; `rows` of the encoder's table, if more than pieces;
    `options` by the model.
    """
    made = TOKENIZERS[kind]()
    arguments = {
        "vocabulary_size": max(rows, made.vocabulary_size()),
        "max_sequence_length": length,
    }
    encoder = make_encoder(**arguments)
    mixed = {"name": "mixed", "kernel_size": 3}
    convolving = make_encoder(mixed, **arguments | {"position": "none"})
    tagger = TokenClassifier(encoder, 3, label_names=LABELS)
    tagger.get_layer("logits").bias.assign([0.0, 99.0, 0.0])  # Each word is an entity.
    models = {
        "masks": (MaskedLM(convolving), {}),
        "texts": (Classifier(encoder, 3), {}),
        "pairs": (Classifier(convolving, 3, "layerwise"), {"pairs": True}),
        "ratings": (Regressor(encoder), {"pairs": True}),
        "choices": (MultipleChoice(encoder), {}),
        "embeddings": (SentenceEmbedding(encoder), {}),
        "outputs": (own_model(encoder), {"pairs": True}),
        "words": (tagger, {}),
        "answers": (SpanQA(encoder), {"no_answer_threshold": 0.0}),
    }
    for name, (model, own) in models.items():
        own |= options.get(name, {})
        tfeff.export.save_for_serving(model, made, folder / f"{kind}-{name}", **own)


def run(script, *arguments):
    """The JSON that a script prints in a process without tfeff."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    command = [sys.executable, script, *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, cwd=arguments[0], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_unequal_rows_take_little_memory(tmp_path, kind):
    # 30,000 logits of a mask are 120 kB, and the scores of 512 tokens 4 MB.
    save_exports(tmp_path, kind, length=512, rows=30_000)
    found = run(FOLDER / "unequal.py", tmp_path)
    assert len(found) == 12  # Three signatures of masks and two of words.
    for name, counts in found.items():
        assert counts["answers"] > 3, (name, counts)
        assert counts["most"][0] < MOST_TAKEN, (name, counts)


@pytest.mark.slow
def test_no_request_ends_the_process_or_stays_in_memory(tmp_path):
    for kind in TOKENIZERS:
        # So few windows that a text now and then has more, in any tokenizer.
        options = {"words": {"max_windows": 8}, "answers": {"stride": 7}}
        save_exports(tmp_path, kind, length=24, **options)
    result = run(FOLDER / "hostile.py", tmp_path, REQUESTS, 7)
    counts = result["counts"]
    assert sum(sum(count.values()) for count in counts.values()) == REQUESTS
    # Three signatures of masks, two of words, one of each other model.
    assert len(counts) == 12 * len(TOKENIZERS)
    assert all(count["answers"] > REQUESTS / 150 for count in counts.values())
    for kind in TOKENIZERS:
        assert {
            f"{kind}-pairs classify text_pair",
            f"{kind}-ratings rate text_pair",
            f"{kind}-outputs predict text_pair",
            f"{kind}-choices choose question",
            f"{kind}-choices choose options",
            f"{kind}-answers answer passage",
            f"{kind}-answers answer question",
            f"{kind}-words tag text",
            f"{kind}-words entities text",
        } <= set(result["named"])
    print({name: result[name] for name in ("early", "late", "seconds")})
    assert result["late"] - result["early"] < MOST_GROWTH
