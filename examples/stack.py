"""Progressive stacking: a four-layer BERT grows from one layer, from Python.

    python examples/stack.py runs/stacked

`tfeff stack` does the same from the command line.
"""

import csv
import sys

from tfeff.recipes import StackSettings, stack


def main(run_dir: str = "runs/stacked"):
    """Trains 1, 2 and 4 layers in turn, and prints the loss of each depth."""
    settings = StackSettings(
        run_dir=run_dir,
        preset="bert_tiny",
        num_layers=4,
        doublings=2,
        steps=600,
        eval_every=100,
        max_characters=2_000_000,
        vocabulary_size=2_000,
        override={"dropout": 0.0},
    )
    model = stack(settings)
    print(f"{model.encoder.num_layers} layers")
    with open(f"{run_dir}/metrics.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            print(f"step {row['step']}, {row['num_layers']} layers: {row['val_loss']}")


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) > 2:
        sys.exit(__doc__)
    else:
        main(*sys.argv[1:])
