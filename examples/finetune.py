"""Fine-tunes from Python, and classifies with what came of it.

    python examples/finetune.py runs/pretrain $DATA/glue runs/reviews

takes a preset, or the run directory of a pretraining; the folder of GLUE's tasks; and
the folder of the run. `tfeff finetune --help` lists all settings.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  The tokenizer's operations.

import tfeff

TEXTS = ["what a joy to watch", "a dull and hopeless film"]


def main(pretrained: str, data: str, run_dir: str):
    """Trains two rates on a sample of SST-2; the best on its dev part is served."""
    settings = tfeff.recipes.FinetuneSettings(
        run_dir=run_dir,
        task="SST-2",
        data=data,
        pretrained=pretrained,
        sequence_length=64,
        batch_sizes=(32,),
        learning_rates=(3e-4, 1e-3),
        train_examples=2000,
        epochs=(1,),
    )
    best = tfeff.recipes.finetune(settings)["best"]
    print(f"accuracy {best['mean']['dev_accuracy']:.4f} with {best['setting']}")

    classify = tf.saved_model.load(f"{run_dir}/export/1").signatures["classify"]
    served = classify(text=tf.constant(TEXTS))
    for text, label, probabilities in zip(
        TEXTS, served["label"].numpy(), served["probabilities"].numpy()
    ):
        print(f"{text}: {label.decode()}, probability {probabilities.max():.2f}")


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) != 4:
        sys.exit(__doc__)
    else:
        main(*sys.argv[1:])
