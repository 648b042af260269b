"""A small corpus and the tokenizer of it that the tests of exports share."""

import functools
import itertools

import keras_hub

import tfeff

DOCUMENTS = [
    f"{first} {verb} {second}; it wasn't {adverb} there, was it?"
    for (first, verb), (second, adverb) in itertools.product(
        [
            ("The small cat", "watched"),
            ("A tiger", "followed"),
            ("My neighbour", "painted"),
            ("Nobody", "remembered"),
        ],
        [
            ("the green house", "always"),
            ("seven boxes", "often"),
            ("an old bridge", "really"),
            ("zebras", "quite"),
        ],
    )
]


@functools.cache
def _proto():
    return tfeff.data.train_tokenizer(DOCUMENTS, vocabulary_size=60).proto


def tokenizer():
    """A new one: setting TensorFlow's seed, as some tests do, ends the older ones.

    TensorFlow then drops its cached kernels, and with them the models that the
    kernels of tensorflow-text own; graphs made before cannot run any more.
    """
    return keras_hub.tokenizers.AlbertTokenizer(proto=_proto())
