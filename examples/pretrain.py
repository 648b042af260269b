"""Pretrains a small Shatter from Python and looks at what it learnt.

    python examples/pretrain.py runs/first

`tfeff pretrain` does the same from the command line; `tfeff pretrain --help` lists all
settings.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  The exported model needs its operations.

import tfeff
from tfeff.recipes import PretrainSettings, pretrain


def main(run_dir: str = "runs/first"):
    """Trains on documentation strings; fills a mask; loads the encoder."""
    settings = PretrainSettings(
        run_dir=run_dir,
        preset="shatter_tiny",
        max_characters=2_000_000,
        vocabulary_size=4_000,
        steps=1_000,
        override={"dropout": 0.0},
    )
    pretrain(settings)  # Started again after it was stopped, it goes on.

    served = tf.saved_model.load(f"{run_dir}/export/1")
    fillings = served.signatures["fill_mask"](
        text=tf.constant(["Returns the [MASK] of the array."])
    )
    for piece, p in zip(
        fillings["fillings"].numpy()[0, 0], fillings["probabilities"].numpy()[0, 0]
    ):
        print(f"{piece.decode()}: {p:.3f}")

    encoder, tokenizer = tfeff.tasks.load_pretrained(run_dir)
    print(f"{encoder.count_params():,} weights, {tokenizer.vocabulary_size():,} pieces")


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) > 2:
        sys.exit(__doc__)
    else:
        main(*sys.argv[1:])
