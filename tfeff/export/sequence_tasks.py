"""What fine-tuned models of texts serve: labels, ratings and choices."""

import tensorflow as tf

from tfeff.data.text_rows import pack, padded_inputs
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import Classifier, MultipleChoice, Regressor


def classify_endpoint(
    model: Classifier, text_encoder: TextEncoder, pairs: bool, label_names: list[str]
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

    return _of_texts(answer, text_encoder, pairs)


def rate_endpoint(model: Regressor, text_encoder: TextEncoder, pairs: bool):
    """The function `rate` of texts `[B]`, or of them and their partners."""
    return _of_texts(
        lambda inputs: {"score": _outputs(model, inputs)}, text_encoder, pairs
    )


def choose_endpoint(model: MultipleChoice, text_encoder: TextEncoder):
    """The function `choose` of passages and questions `[B]` and options `[B, C]`."""

    def choose(passage, question, options):
        shape = tf.shape(options)
        ids = text_encoder.tokenizer(passage)
        # Each passage and question once for each of its options.
        example = tf.repeat(tf.range(shape[0]), shape[1])
        asked = _fill_gaps(tf.gather(question, example), tf.reshape(options, [-1]))
        rows, starts = pack(
            tf.gather(ids, example),
            text_encoder.tokenizer(asked),
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


def _of_texts(answer, text_encoder, pairs):
    tokenizer, length = text_encoder.tokenizer, text_encoder.sequence_length

    def of_text(text):
        rows, starts = pack(tokenizer(text), None, tokenizer, length)
        return answer(_padded(rows, starts, text_encoder))

    def of_pair(text, text_pair):
        rows, starts = pack(tokenizer(text), tokenizer(text_pair), tokenizer, length)
        return answer(_padded(rows, starts, text_encoder))

    return of_pair if pairs else of_text


def _padded(rows, starts, text_encoder):
    return padded_inputs(
        rows, starts, text_encoder.tokenizer.pad_token_id, text_encoder.padded_length
    )


def _outputs(model, inputs):
    return tf.cast(model(inputs, training=False), tf.float32)


def _fill_gaps(question, option):
    """As `tfeff.data.text_rows.fill_gaps`, of tensors `[N]`."""
    has_gap = tf.strings.regex_full_match(question, "(?s).*_.*")
    question = tf.strings.regex_replace(question, "_+", "_")
    parts = tf.strings.split(question, "_")
    place = tf.ragged.range(parts.row_lengths()).flat_values
    is_last = place == tf.gather(parts.row_lengths(), parts.value_rowids()) - 1
    filling = tf.where(is_last, "", tf.gather(option, parts.value_rowids()))
    filled = parts.with_values(tf.strings.join([parts.values, filling]))
    filled = tf.strings.reduce_join(filled, axis=1)
    return tf.where(has_gap, filled, tf.strings.join([question, option], " "))
