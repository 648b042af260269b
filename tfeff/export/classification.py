"""Signatures of fine-tuned models of texts: labels, ratings and choices."""

from collections.abc import Sequence

import tensorflow as tf

from tfeff.data.finetuning.packing import fill_gaps, pack, padded_inputs
from tfeff.export.request_texts import of_equal_rows, require
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import Classifier, MultipleChoice, Regressor

MOST_OPTIONS = 64


def classify_endpoint(
    model: Classifier,
    text_encoder: TextEncoder,
    pairs: bool,
    label_names: Sequence[str],
):
    """The function `classify` of texts `[B]`, or of them and their partners."""
    names = tf.constant(label_names)

    def answer(inputs):
        probabilities = tf.nn.softmax(_outputs(model, inputs))
        return {
            "label": tf.gather(names, tf.argmax(probabilities, axis=1)),
            "labels": tf.tile(names[tf.newaxis], [tf.shape(probabilities)[0], 1]),
            "probabilities": probabilities,
        }

    return of_texts(answer, text_encoder, pairs)


def rate_endpoint(model: Regressor, text_encoder: TextEncoder, pairs: bool):
    """The function `rate` of texts `[B]`, or of them and their partners."""
    return of_texts(
        lambda inputs: {"score": _outputs(model, inputs)}, text_encoder, pairs
    )


def choose_endpoint(model: MultipleChoice, text_encoder: TextEncoder):
    """The function `choose` of passages and questions `[B]` and options `[B, C]`."""

    def choose(passage, question, options):
        passage, question, options = of_equal_rows(
            passage=passage, question=question, options=options
        )
        shape = tf.shape(options)
        known = require(
            (shape[1] >= 1) & (shape[1] <= MOST_OPTIONS),
            f"`options` must have 1 to {MOST_OPTIONS} columns. Received: columns:",
            shape[1],
        )
        with tf.control_dependencies(known):
            shape = tf.identity(shape)
        ids = text_encoder.tokens(passage)
        # Each passage and question once for each of its options.
        example = tf.repeat(tf.range(shape[0]), shape[1])
        asked = fill_gaps(
            tf.gather(text_encoder.read(question), example),
            text_encoder.read(tf.reshape(options, [-1])),
            text_encoder.most_characters,
        )
        rows, starts = pack(
            tf.gather(ids, example),
            text_encoder.tokens(asked),
            text_encoder.tokenizer,
            text_encoder.sequence_length,
            keep="second",
        )
        inputs = {
            name: tf.reshape(tensor, [shape[0], shape[1], tf.shape(tensor)[1]])
            for name, tensor in _padded(rows, starts, text_encoder).items()
        }
        probabilities = tf.nn.softmax(_outputs(model, inputs))
        index = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return {
            "option": tf.gather(options, index, batch_dims=1),
            "index": index,
            "probabilities": probabilities,
        }

    return choose


def of_texts(answer, text_encoder: TextEncoder, pairs: bool):
    """`answer` of an encoder's inputs as a function of texts `[B]`, or of pairs."""
    tokenizer, length = text_encoder.tokenizer, text_encoder.sequence_length

    def of_text(text):
        rows, starts = pack(text_encoder.tokens(text), None, tokenizer, length)
        return answer(_padded(rows, starts, text_encoder))

    def of_pair(text, text_pair):
        texts = of_equal_rows(text=text, text_pair=text_pair)
        rows, starts = pack(*map(text_encoder.tokens, texts), tokenizer, length)
        return answer(_padded(rows, starts, text_encoder))

    return of_pair if pairs else of_text


def _padded(rows, starts, text_encoder):
    return padded_inputs(
        rows, starts, text_encoder.tokenizer.pad_token_id, text_encoder.padded_length
    )


def _outputs(model, inputs):
    return tf.cast(model(inputs, training=False), tf.float32)
