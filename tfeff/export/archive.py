"""The functions of texts that a model is served with, one set for each kind."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.packing import pair_frame
from tfeff.data.text.tokenizers import special_token_ids
from tfeff.encoders import Encoder
from tfeff.export.any_model import (
    check_inputs,
    find_encoder,
    predict_endpoint,
)
from tfeff.export.classification import (
    choose_endpoint,
    classify_endpoint,
    rate_endpoint,
)
from tfeff.export.embeddings import embedding_endpoints, sentence_endpoint
from tfeff.export.fill_mask import fill_mask_endpoint
from tfeff.export.own_outputs import check_own_outputs
from tfeff.export.request_texts import with_rank_checks
from tfeff.export.span_qa import answer_endpoint
from tfeff.export.tagging import tag_endpoints
from tfeff.export.text_encoder import TextEncoder
from tfeff.layers.attention import declares
from tfeff.objectives import MaskedLM, PermutationLM
from tfeff.ops.kernels.backends import forward_only
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SentenceEmbedding,
    SpanQA,
    TokenClassifier,
)
from tfeff.tasks.encoder_limits import check_length, check_vocabulary
from tfeff.tasks.task import check_class_names
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.checks import check_bool, check_integer


def make_archive(
    model: keras.Model,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    *,
    sequence_length: int | None = None,
    encoder: Encoder | None = None,
    **options: Any,
) -> keras.export.ExportArchive:
    """The archive of a model's functions of texts: arguments of `save_for_serving`."""
    check_tensorflow("`save_for_serving`")
    encoder = find_encoder(model, encoder)
    make = next(
        (m for kind, m in _MAKERS.items() if isinstance(model, kind)), _any_model
    )
    accepted = list(inspect.signature(make).parameters)[2:]
    for name in options:
        if name not in accepted:
            raise TypeError(
                f"`{name}` must be an option of {type(model).__name__}: "
                f"{accepted or 'it has none'}. Received: {name}={options[name]!r}"
            )
    special_token_ids(tokenizer)
    check_vocabulary("tokenizer", tokenizer, encoder)
    fixed_length = None
    if make is _any_model:
        fixed_length = check_inputs(model)
    else:
        check_own_outputs(model, tokenizer)
    if sequence_length is None:
        own = model.sequence_length if isinstance(model, SentenceEmbedding) else None
        sequence_length = fixed_length or own or encoder.max_sequence_length
    check_length(encoder, sequence_length)
    if fixed_length not in (None, sequence_length):
        raise ValueError(
            f"`sequence_length` must be the {fixed_length} of the model's inputs. "
            f"Received: sequence_length={sequence_length}"
        )
    pads_fully = encoder.length_dependent or fixed_length is not None
    if not pads_fully:
        _warn_of_padding(encoder)
    text_encoder = TextEncoder(tokenizer, sequence_length, pads_fully)
    archive = keras.export.ExportArchive()
    archive.track(text_encoder)
    for name, function in make(model, text_encoder, **options).items():
        ranks = {
            argument: 2 if argument == "options" else 1
            for argument in inspect.signature(function).parameters
        }
        specs = [tf.TensorSpec([None] * rank, tf.string) for rank in ranks.values()]
        # The first one becomes the default signature.
        with forward_only():
            archive.add_endpoint(name, with_rank_checks(function, ranks), specs)
    return archive


def _warn_of_padding(encoder):
    """Warns of an encoder that reads padding, as published ConvBERTs do."""
    if any(declares(b.attention, "reads_padding") for b in encoder.blocks):
        warnings.warn(
            "The convolutions of `model` read padding (mask_conv=False), as those of "
            "published ConvBERTs: what it says of a row depends on how much longer the "
            "longest row of the request is. A text that is alone in its request, in "
            "one row, has no padding",
            stacklevel=2,
        )


def _masked_lm(
    model: MaskedLM | PermutationLM, text_encoder: TextEncoder, top_k: int = 5
):
    check_integer("top_k", top_k, 1, text_encoder.tokenizer.vocabulary_size())
    return {
        **embedding_endpoints(model.encoder, text_encoder),
        "fill_mask": fill_mask_endpoint(model, text_encoder, top_k),
    }


def _classifier(
    model: Classifier,
    text_encoder: TextEncoder,
    pairs: bool = False,
    label_names: Sequence[str] | None = None,
):
    label_names = _label_names(model, label_names)
    _check_pooling(model)
    _check_pairs(pairs, text_encoder)
    return {"classify": classify_endpoint(model, text_encoder, pairs, label_names)}


def _regressor(model: Regressor, text_encoder: TextEncoder, pairs: bool = False):
    _check_pooling(model)
    _check_pairs(pairs, text_encoder)
    return {"rate": rate_endpoint(model, text_encoder, pairs)}


def _multiple_choice(model: MultipleChoice, text_encoder: TextEncoder):
    _check_pooling(model)
    _check_pairs(True, text_encoder)
    return {"choose": choose_endpoint(model, text_encoder)}


def _sentence_embedding(model: SentenceEmbedding, text_encoder: TextEncoder):
    _check_pooling(model)
    return sentence_endpoint(model, text_encoder)


def _token_classifier(
    model: TokenClassifier,
    text_encoder: TextEncoder,
    label_names: Sequence[str] | None = None,
    max_windows: int = 1024,
):
    label_names = _label_names(model, label_names)
    return tag_endpoints(model, text_encoder, label_names, max_windows)


def _any_model(
    model: keras.Model,
    text_encoder: TextEncoder,
    pairs: bool = False,
    max_tokens: int = 32_768,
):
    _check_pairs(pairs, text_encoder)
    check_integer("max_tokens", max_tokens, text_encoder.sequence_length)
    return {"predict": predict_endpoint(model, text_encoder, pairs, max_tokens)}


def _label_names(model, label_names):
    """The given names of a model's classes, its own, or else their numbers."""
    names = check_class_names(label_names, model.num_classes) or model.label_names
    return list(names or map(str, range(model.num_classes)))


def _check_pooling(model):
    if model.pooling == "last":
        raise ValueError(
            "`model` must not pool the last token: texts are served as "
            "`[CLS] … [SEP]`, and XLNet was trained on `… [SEP] [CLS]`. "
            f"Received: model.pooling={model.pooling!r}"
        )


def _check_pairs(pairs, text_encoder):
    check_bool("pairs", pairs)
    least = pair_frame(text_encoder.tokenizer) + 2 if pairs else 3
    check_integer("sequence_length", text_encoder.sequence_length, least)


# The function that makes the endpoints of each kind of model (`_any_model` makes those
# of all others): functions by name, the first one the default, of string tensors `[B]`
# (`options`: `[B, C]`). The parameters behind the first two are the options of
# `save_for_serving`.
_MAKERS: dict[type, Callable[..., dict]] = {
    Encoder: embedding_endpoints,
    MaskedLM: _masked_lm,
    PermutationLM: _masked_lm,
    Classifier: _classifier,
    Regressor: _regressor,
    MultipleChoice: _multiple_choice,
    SentenceEmbedding: _sentence_embedding,
    SpanQA: answer_endpoint,
    TokenClassifier: _token_classifier,
}
