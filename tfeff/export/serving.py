import os

import keras
import keras_hub
import tensorflow as tf

from tfeff.checks import check_integer
from tfeff.encoders import Encoder
from tfeff.export.text_encoder import TextEncoder
from tfeff.folders import appearing, check_new_path
from tfeff.objectives import MaskedLM

_TEXT = tf.TensorSpec([None], tf.string, name="text")


def save_for_serving(
    model: MaskedLM | Encoder,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    path: str | os.PathLike,
    *,
    sequence_length: int | None = None,
    top_k: int = 5,
) -> None:
    """Writes a SavedModel that takes text, for TensorFlow without tfeff.

    Loading it needs `import tensorflow, tensorflow_text` alone. Each signature takes
    one string tensor `[B]` named `text`, of any batch size, and gives a dict (T is
    the longest text of the batch in tokens, `[CLS]` and `[SEP]` included):

    - `sentence_embeddings`, also the default signature: `embeddings` `[B, D]`
      float32, the mean of the last hidden state over the text's own tokens (without
      `[CLS]` and `[SEP]`); zeros for a text that has none.
    - `token_embeddings`: `embeddings` `[B, T, D]` float32, the last hidden state;
      `mask` `[B, T]` int32, 1 at real tokens and 0 at padding; `token_ids` `[B, T]`
      int32; `tokens` `[B, T]` string, the pieces of the vocabulary.
    - `fill_mask`, of a `MaskedLM`, for texts with the literal `[MASK]` in any number
      of places (M is the largest number in the batch): `fillings` `[B, M, k]`
      string, the k likeliest pieces, likeliest first, without SentencePiece's
      mark of a word's beginning; `token_ids` `[B, M, k]` int32; `probabilities`
      `[B, M, k]` float32, of the softmax over the whole vocabulary. Slots beyond a
      text's own masks hold "", -1 and 0.

    Texts longer than `sequence_length` are cut at the end, masks there included.

    Args:
        model: a `tfeff.objectives.MaskedLM`, or a `tfeff.encoders.Encoder` for the
            two kinds of embeddings alone.
        tokenizer: the KerasHub tokenizer that the model was trained with; it has the
            ids of `[CLS]`, `[SEP]`, padding and mask, and adds none by itself.
        path: the folder to write; it must not exist. The folders above it are made.
            It appears when it is complete, or not at all.
        sequence_length: integer, most tokens of a text, `[CLS]` and `[SEP]`
            included. Default: the encoder's `max_sequence_length`.
        top_k: integer `k`, number of fillings for each mask.

    Raises:
        TypeError: if `model`, `tokenizer`, `path` or an integer is of another type.
        ValueError: if `path` exists; if the tokenizer lacks a special token, adds
            tokens or padding by itself, or has more ids than the encoder; if
            `sequence_length` is less than 3 or beyond a table of absolute
            positions; if `top_k` is not between 1 and the tokenizer's size.

    Example:
    ```python
    import tensorflow as tf
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    model = tfeff.objectives.MaskedLM(encoder)
    tfeff.export.save_for_serving(model, tokenizer, "export/1")

    served = tf.saved_model.load("export/1")
    text = tf.constant(["[MASK] green bottles", "hanging on the wall"])
    embeddings = served.signatures["sentence_embeddings"](text)["embeddings"]
    fillings = served.signatures["fill_mask"](text)["fillings"]
    ```
    """
    encoder = model.encoder if isinstance(model, MaskedLM) else model
    if not isinstance(encoder, Encoder):
        raise TypeError(
            "`model` must be a `tfeff.objectives.MaskedLM` or a "
            f"`tfeff.encoders.Encoder`. Received: model={model!r}"
        )
    _check_tokenizer(tokenizer, encoder)
    if sequence_length is None:
        sequence_length = encoder.max_sequence_length
    limit = encoder.max_sequence_length if encoder.position == "absolute" else None
    check_integer("sequence_length", sequence_length, 3, limit)
    check_integer("top_k", top_k, 1, tokenizer.vocabulary_size())
    path = check_new_path("path", path)

    text_encoder = TextEncoder(tokenizer, sequence_length)
    archive = keras.export.ExportArchive()
    archive.track(text_encoder)
    endpoints = {
        "sentence_embeddings": _sentence_embeddings(encoder, text_encoder),
        "token_embeddings": _token_embeddings(encoder, text_encoder),
    }
    if isinstance(model, MaskedLM):
        endpoints["fill_mask"] = _fill_mask(model, text_encoder, top_k)
    for name, function in endpoints.items():
        # The first one becomes the default signature.
        archive.add_endpoint(name, function, input_signature=[_TEXT])
    with appearing(path) as unfinished:
        archive.write_out(unfinished, verbose=False)


def _sentence_embeddings(encoder, text_encoder):
    def sentence_embeddings(text):
        inputs = text_encoder.inputs(text_encoder.plain(text))
        hidden = _last_hidden_state(encoder, inputs)
        own = tf.logical_not(text_encoder.is_special(inputs["token_ids"]))
        own = tf.cast(own, tf.float32)[..., tf.newaxis]
        total = tf.reduce_sum(hidden * own, axis=1)
        return {"embeddings": tf.math.divide_no_nan(total, tf.reduce_sum(own, axis=1))}

    return sentence_embeddings


def _token_embeddings(encoder, text_encoder):
    pieces = tf.constant(text_encoder.tokenizer.get_vocabulary())

    def token_embeddings(text):
        inputs = text_encoder.inputs(text_encoder.plain(text))
        return {
            "embeddings": _last_hidden_state(encoder, inputs),
            "mask": inputs["padding_mask"],
            "token_ids": inputs["token_ids"],
            "tokens": tf.gather(pieces, inputs["token_ids"]),
        }

    return token_embeddings


def _fill_mask(model, text_encoder, top_k):
    words = tf.constant(
        [piece.removeprefix("▁") for piece in text_encoder.tokenizer.get_vocabulary()]
    )

    def fill_mask(text):
        ids = text_encoder.with_masks(text)
        is_mask = ids == text_encoder.tokenizer.mask_token_id
        positions = tf.ragged.boolean_mask(tf.ragged.range(ids.row_lengths()), is_mask)
        inputs = text_encoder.inputs(ids)
        inputs["mask_positions"] = tf.cast(positions.to_tensor(), tf.int32)
        logits = tf.cast(model(inputs, training=False), tf.float32)
        # The encoder may have rows for more ids than the tokenizer gives.
        known = tf.nn.softmax(logits)[..., : len(words)]
        probabilities, token_ids = tf.math.top_k(known, k=top_k)
        used = tf.sequence_mask(positions.row_lengths())[..., tf.newaxis]
        return {
            "fillings": tf.where(used, tf.gather(words, token_ids), ""),
            "token_ids": tf.where(used, token_ids, -1),
            "probabilities": tf.where(used, probabilities, 0.0),
        }

    return fill_mask


def _last_hidden_state(encoder, inputs):
    outputs = encoder(inputs, training=False)
    return tf.cast(outputs["sequence_output"], tf.float32)


def _check_tokenizer(tokenizer, encoder):
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise TypeError(
            "`tokenizer` must be a KerasHub tokenizer. "
            f"Received: tokenizer={tokenizer!r}"
        )
    for name in ("cls_token_id", "sep_token_id", "pad_token_id", "mask_token_id"):
        if getattr(tokenizer, name, None) is None:
            raise ValueError(
                f"`tokenizer` must have `{name}`. Received: tokenizer={tokenizer!r}"
            )
    for name in ("sequence_length", "add_bos", "add_eos"):
        if value := getattr(tokenizer, name, None):
            raise ValueError(
                "`tokenizer` must add no tokens and no padding by itself. "
                f"Received: tokenizer.{name}={value!r}"
            )
    if tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            "`tokenizer` must have no more ids than the encoder. Received: "
            f"tokenizer.vocabulary_size()={tokenizer.vocabulary_size()}, "
            f"encoder.vocabulary_size={encoder.vocabulary_size}"
        )
