"""Fine-tunes for questions from Python, and asks what came of it.

    python examples/answer.py runs/pretrain $DATA/squad runs/questions

takes a preset, or the run directory of a pretraining; the folder with SQuAD's
`train-v1.1.json` and `dev-v1.1.json`; and the folder of the run. `tfeff answer --help`
lists all settings.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  The tokenizer's operations.

import tfeff

PASSAGE = "A tiger followed the green house while the small cat watched seven boxes."
QUESTIONS = ["What did the cat watch?", "Who followed the house?"]


def main(pretrained: str, data: str, run_dir: str):
    """Trains on the first questions of SQuAD, and answers two of its own."""
    settings = tfeff.recipes.AnswerSettings(
        run_dir=run_dir,
        task="SQuAD1.1",
        train=f"{data}/train-v1.1.json",
        dev=f"{data}/dev-v1.1.json",
        pretrained=pretrained,
        train_examples=500,
        dev_examples=100,
        sequence_length=256,
        learning_rates=(1e-3,),
        epochs=(1,),
    )
    metrics = tfeff.recipes.answer(settings)
    print(f"F1 {metrics['f1']:.4f}, exact matches {metrics['exact_match']:.4f}")

    answer = tf.saved_model.load(f"{run_dir}/export/1").signatures["answer"]
    served = answer(
        question=tf.constant(QUESTIONS), passage=tf.constant([PASSAGE] * len(QUESTIONS))
    )
    for question, text in zip(QUESTIONS, served["answer"].numpy()):
        print(f"{question} {text.decode()}")


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) != 4:
        sys.exit(__doc__)
    else:
        main(*sys.argv[1:])
