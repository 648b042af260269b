"""Signatures of fine-tuned models of texts: labels, ratings and choices."""

from collections.abc import Sequence

import tensorflow as tf

from tfeff.data.finetuning.packing import fill_gaps, pack
from tfeff.export.parts import by_parts, limit_rows, size_of
from tfeff.export.request_texts import check_equal_rows, checked, require, valid
from tfeff.export.text_encoder import TextEncoder, text_function
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
    # The answer for a row has its label, and all labels with their probabilities.
    row_size = size_of(label_names) + len(label_names) * (size_of(label_names) + 4)

    def answer(rows, starts):
        rows = limit_rows(rows, row_size)
        probabilities = tf.nn.softmax(_logits(model, text_encoder, rows, starts))
        return {
            "label": tf.gather(names, tf.argmax(probabilities, axis=1)),
            "labels": tf.tile(names[tf.newaxis], [tf.shape(probabilities)[0], 1]),
            "probabilities": probabilities,
        }

    return text_function(answer, text_encoder, pairs)


def rate_endpoint(model: Regressor, text_encoder: TextEncoder, pairs: bool):
    """The function `rate` of texts `[B]`, or of them and their partners."""
    return text_function(
        lambda *rows: {"score": _logits(model, text_encoder, *rows)},
        text_encoder,
        pairs,
    )


def choose_endpoint(model: MultipleChoice, text_encoder: TextEncoder):
    """The function `choose` of passages and questions `[B]` and options `[B, C]`."""

    def choose(passage, question, options):
        passage, question, options = check_equal_rows(
            passage=passage, question=question, options=options
        )
        shape = tf.shape(options)
        has_options = require(
            (shape[1] >= 1) & (shape[1] <= MOST_OPTIONS),
            f"`options` must have 1 to {MOST_OPTIONS} columns. Received: columns:",
            shape[1],
        )
        shape = checked(shape, has_options)
        ids = text_encoder.tokens(passage)
        question = text_encoder.read(question)

        def logits(example, option):
            asked = fill_gaps(
                tf.gather(question, example),
                text_encoder.read(option),
                text_encoder.most_characters,
            )
            rows, starts = pack(
                tf.gather(ids, example),
                text_encoder.tokens(asked),
                text_encoder.tokenizer,
                text_encoder.sequence_length,
                keep="second",
            )
            inputs = text_encoder.packed_inputs(rows, starts)
            alone = {name: x[:, tf.newaxis] for name, x in inputs.items()}
            return _outputs(model, alone)[:, 0]

        # Each passage and question is repeated for each of its options.
        example = tf.repeat(tf.range(shape[0]), shape[1])
        option = valid(tf.reshape(options, [-1]))
        found = by_parts(logits, text_encoder.sequence_length, example, option)
        probabilities = tf.nn.softmax(tf.reshape(found, shape))
        index = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return {
            "option": tf.gather(tf.reshape(option, shape), index, batch_dims=1),
            "index": index,
            "probabilities": probabilities,
        }

    return choose


def _logits(model, text_encoder, rows, starts):
    return by_parts(
        lambda *rows: _outputs(model, text_encoder.packed_inputs(*rows)),
        text_encoder.width(rows),
        rows,
        starts,
    )


def _outputs(model, inputs):
    return tf.cast(model(inputs, training=False), tf.float32)
