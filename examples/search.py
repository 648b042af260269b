"""Searches the documentation of an installed package by the meaning of a question.

    python examples/search.py runs/simcse numpy "sort the rows of an array"

takes a run or preset of `tfeff embed`, or of any encoder, whose tokens' mean is then
the embedding; a package; and questions.
"""

import sys

import numpy as np

import tfeff

BATCH_SIZE = 64
ANSWERS = 3


def main(pretrained: str, package: str, *questions: str):
    """Prints the paragraphs that are nearest to each question by cosine."""
    model, tokenizer = load(pretrained)
    documents = tfeff.data.docstrings([package], max_characters=200_000)
    paragraphs = [p.strip() for d in documents for p in d.split("\n\n")]
    corpus = [p for p in dict.fromkeys(paragraphs) if len(p.split()) > 4]

    def embed(texts):
        return model.embed(texts, tokenizer, 64, batch_size=BATCH_SIZE, normalize=True)

    scores = embed(questions) @ embed(corpus).T
    for question, row in zip(questions, scores):
        print(question)
        for index in np.argsort(-row)[:ANSWERS]:
            print(f"  {row[index]:.2f}  {' '.join(corpus[index].split())[:70]}")


def load(pretrained):
    """The model of embeddings, or one of an encoder that was not trained for them."""
    try:
        model, tokenizer = tfeff.tasks.load_task(pretrained)
    except ValueError:
        model = None
    if not isinstance(model, tfeff.tasks.SentenceEmbedding):
        encoder, tokenizer = tfeff.tasks.load_pretrained(pretrained)
        model = tfeff.tasks.SentenceEmbedding(encoder)
    return model, tokenizer


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) < 4:
        sys.exit(__doc__)
    else:
        main(*sys.argv[1:])
