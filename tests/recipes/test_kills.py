"""Recipes that are killed anywhere, and started again, lose nothing.

Each start dies before the next of all renames, then at random: before any change of a
file, or after any time of computing. In the end the run directory has the files of a
run that nothing interrupted, with the same bits, and nothing else. The environment
variable TFEFF_KILLS is how often each recipe is killed at random, else twice.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer

REPOSITORY = Path(__file__).resolve().parents[2]
SIZES = {"hidden_dim": 8, "intermediate_dim": 8, "num_layers": 1}
GENERAL = ["--sequence_length=16", "--batch_size=4", "--steps=4", "--eval_every=2"]
PRETRAIN = [
    *GENERAL,
    "--preset=bert_tiny",
    "--vocabulary_size=60",
    "--warmup_steps=1",
    "--validation_fraction=0.4",
    *(f"--override={name}={size}" for name, size in SIZES.items()),
]
FINETUNE = ["--task=SST-2", "--data={glue}", "--pretrained={large}", "--steps=2"]
FINETUNE += ["--batch_sizes=4", "--learning_rates=1e-3,1e-2"]
RECIPES = {
    "masked_lm": ("pretrain", [*PRETRAIN, "--corpus={text}"]),
    **{
        name: ("pretrain", [*PRETRAIN, "--corpus={text}", f"--objective={name}"])
        for name in (
            "replaced_token",
            "permutation_lm",
            "sentence_order",
            "next_sentence",
        )
    },
    # Longer than a preset of WordPiece, with a step to keep.
    "continued": (
        "pretrain",
        [
            *GENERAL,
            "--pretrained={words}",
            "--corpus={text}",
            "--warmup_steps=1",
            "--validation_fraction=0.4",
            "--keep_checkpoints=1",
            "--keep_steps=2",
        ],
    ),
    "stack": (
        "stack",
        [
            *(flag for flag in PRETRAIN if flag != "--override=num_layers=1"),
            "--corpus={text}",
            "--num_layers=2",
            "--doublings=1",
        ],
    ),
    "finetune": ("finetune", [*FINETUNE, "--predict_split=dev"]),
    "lora": ("finetune", [*FINETUNE, "--lora_rank=2", "--save_lora"]),
    "embed": (
        "embed",
        [
            "--data={glue}",
            "--pretrained={large}",
            "--examples={lines}",
            "--pooling=layerwise",
            "--batch_sizes=4",
            "--learning_rates=1e-3,1e-2",
            "--steps=2",
            "--eval_every=1",
        ],
    ),
    "answer": (
        "answer",
        [
            "--train={squad}",
            "--dev={squad}",
            "--pretrained={large}",
            "--sequence_length=40",
            "--stride=9",
            "--batch_sizes=3",
            "--steps=2",
        ],
    ),
    "distill_general": (
        "distill",
        [
            *GENERAL,
            "--teacher={large}",
            "--student=bert_tiny",
            *(f"--override={name}={size}" for name, size in SIZES.items()),
            "--corpus={text}",
            "--validation_fraction=0.4",
        ],
    ),
    "distill_masked_lm": (
        "distill",
        [
            *GENERAL,
            "--teacher={masked_lm}",
            "--student=distilbert_base",
            *(f"--override={name}={size}" for name, size in SIZES.items()),
            "--override=num_heads=2",
            "--copy_layers",
            "--corpus={text}",
            "--validation_fraction=0.4",
            "--prediction_weight=5",
            "--label_weight=2",
            "--cosine_weight=1",
        ],
    ),
    "distill_spans": (
        "distill",
        [
            *GENERAL,
            "--sequence_length=40",
            "--stage=task",
            "--task=SQuAD1.1",
            "--data={squad}",
            "--teacher={answering}",
            "--student={answering}",
            "--stride=9",
            "--prediction_steps=2",
            "--label_weight=0.5",
        ],
    ),
    "distill_task": (
        "distill",
        [
            *GENERAL,
            "--stage=task",
            "--task=SST-2",
            "--data={glue}",
            "--teacher={tuned}",
            "--student={large}",
            "--prediction_steps=2",
        ],
    ),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Text, tasks, and the presets and models that recipes begin with."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "text.txt").write_text("\n\n".join(DOCUMENTS * 4), encoding="utf-8")
    (folder / "glue" / "SST-2").mkdir(parents=True)
    rows = "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(DOCUMENTS[:8]))
    for split in ("train", "dev"):
        path = folder / "glue" / "SST-2" / f"{split}.tsv"
        path.write_text("sentence\tlabel\n" + rows, encoding="utf-8")
    lines = [text.replace("\n", " ") for text in DOCUMENTS[:8]]
    (folder / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "glue" / "STS-B").mkdir()
    rows = "".join(
        f"{a}\t{b}\t{i % 5}.5\n" for i, (a, b) in enumerate(zip(lines, lines[::-1]))
    )
    path = folder / "glue" / "STS-B" / "dev.tsv"
    path.write_text("sentence1\tsentence2\tscore\n" + rows, encoding="utf-8")
    answers = [{"text": DOCUMENTS[0][:9], "answer_start": 0}]
    questions = [{"id": "q", "question": "What?", "answers": answers}]
    data = [{"paragraphs": [{"context": DOCUMENTS[0], "qas": questions}]}]
    (folder / "squad.json").write_text(json.dumps({"version": "1.1", "data": data}))
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=60, max_sequence_length=16, **SIZES
    )
    model = tfeff.tasks.Classifier(encoder, 2)
    model.compile()
    for name in ("large", "tuned"):
        tfeff.tasks.save_pretrained(encoder, tokenizer(), folder / name / "preset")
    tfeff.training.save_checkpoint(model, str(folder / "tuned" / "model.keras"))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "seven", "boxes", "was"]
    words = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=8, max_sequence_length=8, **SIZES
    )
    tfeff.tasks.save_pretrained(
        words, tfeff.convert.BertTokenizer(pieces, lowercase=True), folder / "words"
    )
    masked_lm = tfeff.objectives.MaskedLM(encoder)
    tfeff.tasks.save_pretrained(masked_lm, tokenizer(), folder / "masked_lm")
    answering = tfeff.tasks.SpanQA(
        tfeff.encoders.build(
            "bert_tiny", vocabulary_size=60, max_sequence_length=40, **SIZES
        )
    )
    answering.compile()
    path = folder / "answering"
    tfeff.tasks.save_pretrained(answering.encoder, tokenizer(), path / "preset")
    tfeff.training.save_checkpoint(answering, str(path / "model.keras"))
    return {
        "text": folder / "text.txt",
        "glue": folder / "glue",
        "lines": folder / "lines.txt",
        "squad": folder / "squad.json",
        "large": folder / "large",
        "words": folder / "words",
        "tuned": folder / "tuned",
        "masked_lm": folder / "masked_lm",
        "answering": folder / "answering",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_killed_anywhere(name, inputs, tmp_path):
    command, flags = RECIPES[name]
    flags = json.dumps([flag.format(**inputs) for flag in flags])
    at_random = os.environ.get("TFEFF_KILLS", "2")
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment["TMPDIR"] = str(tmp_path)  # TensorFlow leaves files there when killed.
    program = [sys.executable, REPOSITORY / "tests" / "recipes" / "kills.py"]
    result = subprocess.run(
        [*program, command, tmp_path, at_random, "0", flags],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert result.returncode == 0
    counts = json.loads(result.stdout.splitlines()[-1])
    print(name, counts)
    assert counts["kills"] >= int(at_random) + counts["renames"]
    assert counts["finished"] >= 2  # The one to compare with, and another.
