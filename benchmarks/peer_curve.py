"""Hugging Face's BERT, pretrained by PyTorch on the campaign's documents.

Whether what the campaign sees of BERT is the model's or a mistake of ours: nothing here
but the tokenizer's file is tfeff's. It needs `pip install torch transformers`, and the
texts that `benchmarks/campaign.py` has made. It uses one thread, as the campaign does.

    python benchmarks/peer_curve.py --texts=runs/campaign/texts-full

adds rows to `results/peer_curve.csv`.
"""

import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import rows
import sentencepiece
import torch
import transformers
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("texts", None, "Folder of the campaign's texts.", required=True)
flags.DEFINE_string(
    "out", "benchmarks/results/peer_curve.csv", "The CSV file of the curves."
)
flags.DEFINE_integer("steps", 7400, "Steps.", lower_bound=10)
flags.DEFINE_integer("eval_every", 370, "Steps from row to row.", lower_bound=1)
flags.DEFINE_float("rate", 0.002, "Peak learning rate.", lower_bound=0)
flags.DEFINE_integer("seed", 0, "Of weights, order and masks.")
flags.DEFINE_integer("length", 128, "Tokens of a sequence.", lower_bound=4)
flags.DEFINE_integer("batch_size", 16, "Sequences of a batch.", lower_bound=1)
flags.DEFINE_integer("width", 128, "Width of the encoder.", lower_bound=8)
flags.DEFINE_integer("layers", 4, "Layers of the encoder.", lower_bound=1)

HEADS = 8
MASKED = 0.15
NOTHING = -100  # A label that is not predicted.
FIELDS = ("tokens", "loss", "val_loss", "rate", "seed", "seconds")


def sequences(path: Path, pieces: sentencepiece.SentencePieceProcessor) -> np.ndarray:
    """Documents in pieces of `length`, `[N, length]`; the last of each is padded."""
    start, end = (pieces.piece_to_id(name) for name in ("[CLS]", "[SEP]"))
    content = FLAGS.length - 2
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            ids = pieces.encode(json.loads(line)["text"])
            for part in (ids[at : at + content] for at in range(0, len(ids), content)):
                row = [start, *part, end]
                found.append(row + [0] * (FLAGS.length - len(row)))
    return np.array(found, "int64")


def masked(tokens: np.ndarray, first: int, size: int, random: np.random.Generator):
    """Tokens and labels: of 15 %, 80 % are `[MASK]`, 10 % others, 10 % themselves.

    Ids below `first` are the special ones; `[MASK]` is the last of them.
    """
    chosen = (random.random(tokens.shape) < MASKED) & (tokens >= first)
    labels = np.where(chosen, tokens, NOTHING)
    fate = random.random(tokens.shape)
    others = random.integers(first, size, tokens.shape)
    tokens = np.where(chosen & (fate < 0.8), first - 1, tokens)
    tokens = np.where(chosen & (fate >= 0.9), others, tokens)
    return torch.from_numpy(tokens), torch.from_numpy(labels)


def batches(tokens: np.ndarray, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches of all sequences in a new order each time, without end."""
    while True:
        order = random.permutation(len(tokens))
        for at in range(0, len(order) - FLAGS.batch_size + 1, FLAGS.batch_size):
            yield tokens[order[at : at + FLAGS.batch_size]]


def loss_of(model: transformers.BertForMaskedLM, tokens, labels):
    """The mean cross-entropy of the masked tokens."""
    states = model.bert(tokens, attention_mask=(tokens != 0).long()).last_hidden_state
    chosen = labels != NOTHING
    return torch.nn.functional.cross_entropy(model.cls(states[chosen]), labels[chosen])


def make_model(size: int) -> transformers.BertForMaskedLM:
    """BERT of the campaign's size, with Hugging Face's initial weights."""
    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=size,
            hidden_size=FLAGS.width,
            num_hidden_layers=FLAGS.layers,
            num_attention_heads=HEADS,
            intermediate_size=4 * FLAGS.width,
            max_position_embeddings=FLAGS.length,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )


def make_optimizer(model: torch.nn.Module):
    """AdamW with warm-up and linear decay; biases and scales do not decay."""
    groups = [
        {
            "params": [own for own in model.parameters() if (own.ndim > 1) == decays],
            "weight_decay": 0.01 if decays else 0.0,
        }
        for decays in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=FLAGS.rate, eps=1e-6)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, FLAGS.steps // 10, FLAGS.steps
    )
    return optimizer, schedule


def curve() -> Iterator[dict[str, float]]:
    """Trains, and gives a point of the curve each `eval_every` steps."""
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(Path(FLAGS.texts, "tokenizer.spm"))
    )
    first, size = pieces.piece_to_id("[MASK]") + 1, pieces.get_piece_size()
    train, judge = (
        sequences(Path(FLAGS.texts, f"{part}.jsonl"), pieces)
        for part in ("train", "final")
    )
    torch.manual_seed(FLAGS.seed)
    random = np.random.default_rng(FLAGS.seed)
    model = make_model(size)
    optimizer, schedule = make_optimizer(model)
    fixed = np.random.default_rng(0)
    judged = [
        masked(judge[at : at + 64], first, size, fixed)
        for at in range(0, len(judge), 64)
    ]
    losses: list[float] = []
    start = time.perf_counter()
    every = itertools.islice(batches(train, random), FLAGS.steps)
    for step, tokens in enumerate(every, 1):
        loss = loss_of(model, *masked(tokens, first, size, random))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % FLAGS.eval_every == 0:
            yield {
                "tokens": step * FLAGS.batch_size * FLAGS.length,
                "loss": round(float(np.mean(losses)), 4),
                "val_loss": round(validate(model, judged), 4),
                "seconds": round(time.perf_counter() - start),
            }
            losses.clear()


def validate(model: transformers.BertForMaskedLM, judged) -> float:
    """The mean loss of all masked tokens of the batches."""
    counts = [int((labels != NOTHING).sum()) for _, labels in judged]
    with torch.inference_mode():
        losses = [loss_of(model, *batch).item() for batch in judged]
    return float(np.average(losses, weights=counts))


def main(_):
    """Writes the curve as it comes."""
    torch.set_num_threads(1)
    common = {"rate": FLAGS.rate, "seed": FLAGS.seed}
    for point in curve():
        rows.record(FLAGS.out, FIELDS, [common | point])
        print(f"{point['tokens']:,} tokens: {point['val_loss']} nats", flush=True)


if __name__ == "__main__":
    app.run(main)
