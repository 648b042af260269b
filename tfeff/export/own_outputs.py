"""The outputs of a user's subclass, which is served as its class is."""

import keras
import keras_hub
import tensorflow as tf

from tfeff.encoders import Encoder
from tfeff.encoders.own_calls import has_own_call
from tfeff.tasks import SentenceEmbedding


def check_own_outputs(
    model: keras.Model, tokenizer: keras_hub.tokenizers.Tokenizer
) -> None:
    """Raises unless a `call` of the user's own gives what its class serves."""
    if not has_own_call(model):
        return
    values = {"token_ids": tokenizer.cls_token_id, "padding_mask": 1}
    sample = {
        name: tf.fill(
            [3 if size is None else size for size in x.shape], values.get(name, 0)
        )
        for name, x in model.input.items()
    }
    expected = _forms(model, keras.Model(model.input, model.output)(sample))
    try:
        outputs = model(sample, training=False)
    except Exception as error:
        raise ValueError(
            f"`model` must have a `call` for texts. Received: model={model!r}, whose "
            f"call ends in {type(error).__name__}: {error}"
        ) from error
    given = _forms(model, outputs)
    if expected != {name: given.get(name) for name in expected}:
        raise ValueError(
            "`model` must have a `call` whose outputs are those of its class, such as "
            f"{expected}. Received: model={model!r}, which gives {given}"
        )


def _forms(model, outputs):
    """Kind and shape of each output that is served; embeddings have any size."""
    if not isinstance(outputs, dict):
        outputs = {"output": outputs}
    if isinstance(model, Encoder):
        outputs = {x: y for x, y in outputs.items() if x != "hidden_states"}
    any_size = isinstance(model, (Encoder, SentenceEmbedding))
    forms = {}
    for name, output in outputs.items():
        if not isinstance(output, tf.Tensor):
            forms[name] = type(output).__name__
            continue
        kind = "float" if output.dtype.is_floating else output.dtype.name
        sizes = [*map(str, output.shape)]
        if any_size:
            sizes[-1:] = ["any"]
        forms[name] = f"{kind} [{', '.join(sizes)}]"
    return forms
