"""A server process stands whatever is asked of it: no abort, no growth of memory."""

import json
import os
import subprocess
import sys

import pytest

import tfeff
from tests.export import hostile
from tests.subjects.characters import word_pieces
from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder, own_model
from tfeff.objectives import MaskedLM
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SpanQA,
    TokenClassifier,
)

# 100,000 take some 5 minutes of a processor, with the exports 7.
REQUESTS = int(os.environ.get("TFEFF_HOSTILE_REQUESTS", 20_000))
# From a fifth of the requests to the end. Sizes never met before still add to caches
# of buffers and kernels: 22 MB in 80,000 requests. A leak of the texts or tensors of a
# request, 7 kB and more, would add this in 16,000.
MOST_GROWTH = 100
LABELS = ["O", "B-PER", "I-PER"]


def save_exports(folder):
    for kind, make in (("unigram", tokenizer), ("word_piece", word_pieces)):
        size = make().vocabulary_size()
        encoder = make_encoder(vocabulary_size=size, max_sequence_length=24)
        mixed = {"name": "mixed", "kernel_size": 3}
        convolving = make_encoder(
            mixed, vocabulary_size=size, position="none", max_sequence_length=24
        )
        for name, model, options in (
            ("masks", MaskedLM(convolving), {}),
            ("texts", Classifier(encoder, 3), {}),
            ("pairs", Classifier(convolving, 3, "layerwise"), {"pairs": True}),
            ("ratings", Regressor(encoder), {"pairs": True}),
            ("choices", MultipleChoice(encoder), {}),
            ("outputs", own_model(encoder), {"pairs": True}),
            # So few windows that a text now and then has more, in either tokenizer.
            (
                "words",
                TokenClassifier(encoder, 3, label_names=LABELS),
                {"max_windows": 8},
            ),
            ("answers", SpanQA(encoder), {"stride": 7, "no_answer_threshold": 0.0}),
        ):
            path = folder / f"{kind}-{name}"
            tfeff.export.save_for_serving(model, make(), path, **options)


@pytest.mark.slow
def test_no_request_ends_the_process_or_stays_in_memory(tmp_path):
    save_exports(tmp_path)
    command = [sys.executable, hostile.__file__, str(tmp_path), str(REQUESTS), "7"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    counts = result["counts"]
    assert sum(sum(count.values()) for count in counts.values()) == REQUESTS
    # Three signatures of masks, two of words, one of each other model, of both
    # tokenizers.
    assert len(counts) == 22
    assert all(count["answers"] > REQUESTS / 100 for count in counts.values())
    for kind in ("unigram", "word_piece"):
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
