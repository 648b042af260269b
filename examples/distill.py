"""Distils from Python: a student of half the layers, in general, then on SST-2.

    python examples/distill.py runs/large runs/large-sst2 $DATA/glue runs

takes a preset or the run directory of a pretraining; the run directory of its
fine-tuning on SST-2; the folder of GLUE's tasks; the folder of the new runs; and, if
given, the number of steps. `tfeff distill --help` lists all settings.
"""

import sys
from typing import Any

import tensorflow_text  # noqa: F401  The tokenizer's operations.

import tfeff


def main(teacher: str, tuned: str, data: str, folder: str, steps: str = "1000"):
    """Both stages: what the first one makes is the student of the second."""
    encoder, _ = tfeff.tasks.load_pretrained(teacher)
    common: dict[str, Any] = {
        "sequence_length": min(encoder.max_sequence_length, 64),
        "steps": int(steps),
    }
    general = tfeff.recipes.DistillSettings(
        run_dir=f"{folder}/small",
        teacher=teacher,
        student="bert_tiny",
        override={
            "num_layers": encoder.num_layers // 2,
            "hidden_dim": encoder.hidden_dim // 2,
        },
        max_characters=1_000_000,  # Of the docstrings of installed packages.
        **common,
    )
    losses = tfeff.recipes.distill(general)
    print(f"on text held out: loss {losses['loss']:.4f}")

    task = tfeff.recipes.DistillSettings(
        stage="task",
        run_dir=f"{folder}/small-sst2",
        teacher=tuned,
        student=general.run_dir,
        task="SST-2",
        data=data,
        prediction_steps=int(steps),
        **common,
    )
    metrics = tfeff.recipes.distill(task)
    student, of_teacher = metrics["student"], metrics["teacher"]
    print(
        f"SST-2: student {student['accuracy']:.4f}, "
        f"teacher {of_teacher['accuracy']:.4f}"
    )


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    else:
        main(*sys.argv[1:])
