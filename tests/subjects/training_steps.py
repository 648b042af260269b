"""Every objective's and every task's model of three layers, on batches of its own data.

The models and the data sets are those that users make, with static shapes.
"""

import functools

import keras
import numpy as np
import tensorflow as tf

import tfeff

LENGTH = 32
TEXTS = [f"the {i} small men see {i * i} ant hills and go on" for i in range(40)]


@functools.cache
def tokenizer():
    return tfeff.data.train_tokenizer(TEXTS, vocabulary_size=60)


def encoder(**overrides):
    sizes = dict(
        vocabulary_size=60,
        num_layers=3,
        hidden_dim=128,
        num_heads=2,
        intermediate_dim=256,
        max_sequence_length=LENGTH,
        dropout=0.1,
    )
    return tfeff.encoders.build("bert_tiny", **sizes | overrides)


def texts(rows, labels, names=None):
    examples = tfeff.data.TextExamples(
        first=tuple(TEXTS[:4]),
        second=tuple(TEXTS[4:8]),
        labels=labels,
        label_names=names,
        ids=tuple(range(4)),
    )
    return tfeff.data.text_features(examples, tokenizer(), LENGTH).dataset(rows)


def classifier(rows):
    model = tfeff.tasks.Classifier(encoder(), num_classes=2)
    return model, texts(rows, np.array([0, 1, 0, 1], "int32"), ("no", "yes"))


def regressor(rows):
    model = tfeff.tasks.Regressor(encoder())
    return model, texts(rows, np.array([0.0, 1.0, 2.0, 3.0], "float32"))


def choice(rows):
    examples = tfeff.data.ChoiceExamples(
        passages=tuple(TEXTS[:2]),
        questions=("who sees _", "what is seen"),
        options=(("men", "hills"), ("ants", "hills")),
        labels=np.array([0, 1], "int32"),
        label_names=("A", "B"),
        ids=("0", "1"),
    )
    features = tfeff.data.text_features(examples, tokenizer(), LENGTH)
    return tfeff.tasks.MultipleChoice(encoder()), features.dataset(rows)


def spans(rows):
    questions = [
        tfeff.data.Question(str(i), "who sees", text, ("men",), ((start, start + 3),))
        for i, text in enumerate(TEXTS[:4])
        for start in [text.index("men")]
    ]
    features = tfeff.data.make_span_features(questions, tokenizer(), LENGTH, 8)
    return tfeff.tasks.SpanQA(encoder()), features.dataset(rows)


def tokens(rows):
    words = tuple(tuple(text.split()) for text in TEXTS[:4])
    examples = tfeff.data.TokenExamples(
        words=words,
        labels=tuple(np.arange(len(sentence), dtype="int32") % 2 for sentence in words),
        label_names=("O", "B-X"),
        ids=tuple("0123"),
    )
    features = tfeff.data.token_features(examples, tokenizer(), LENGTH)
    return tfeff.tasks.TokenClassifier(encoder(), 2), features.dataset(rows)


def sentences(rows):
    pairs = [tuple(TEXTS[i : i + 2]) for i in range(0, 40, 2)]
    features = tfeff.data.sentence_features(
        tfeff.data.SentenceExamples(rows=pairs), tokenizer(), LENGTH
    )
    return tfeff.tasks.SentenceEmbedding(encoder()), features.dataset(rows)


def distilled(rows):
    """TinyBERT's distillation on a task, every term of it but the labels."""
    teacher = tfeff.tasks.Classifier(encoder(hidden_dim=256, dropout=0.0), 2)
    student, batches = classifier(rows)
    return tfeff.objectives.Distillation(student, teacher, layer_map="top"), batches


def pretrained(name, cache, rows):
    """A registered objective with its own examples of a cache."""
    objective = tfeff.objectives.get(name)
    return objective.make_model(encoder()), cache.batches(objective.examples, rows)


TASKS = {
    "Classifier": classifier,
    "Regressor": regressor,
    "MultipleChoice": choice,
    "SpanQA": spans,
    "TokenClassifier": tokens,
    "SentenceEmbedding": sentences,
    "Distillation": distilled,
}
NAMES = [*tfeff.objectives.names(), *TASKS]


def make(name, rows, folder, **compiled):
    """The compiled model of a name, and its batches of so many rows.

    Args:
        name: one of `NAMES`.
        rows: integer, those of a global batch.
        folder: where the cache is; it is made there.
        **compiled: arguments of `compile`.
    """
    keras.utils.set_random_seed(0)
    if name in TASKS:
        model, batches = TASKS[name](rows)
    else:
        cache = tfeff.data.build_cache(
            TEXTS, tokenizer(), f"{folder}/cache", LENGTH, progress=False
        )
        model, batches = pretrained(name, cache, rows)
    model.compile(**compiled)
    return model, batches


def is_static(element):
    """Whether all shapes of a data set's element, or of a step's input, are known."""
    return all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(element))
