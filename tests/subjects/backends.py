"""Models that every backend trains, and the program that does it on another one.

    KERAS_BACKEND=jax python -m tests.subjects.backends FOLDER CASE...

loads the checkpoint that TensorFlow wrote of each case, `FOLDER/CASE.keras`, trains it,
and writes the numbers to `FOLDER/CASE.BACKEND.npz` and the model to
`FOLDER/CASE.BACKEND.keras`. All drop the same elements: the random bits of rows, which
each backend draws in its own way, are replaced.
"""

import functools
import sys
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from tests.subjects import distillation, objectives
from tests.subjects.batches import masked_lm_batches
from tfeff.objectives import Distillation, MaskedLM
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SentenceEmbedding,
    SpanQA,
    TokenClassifier,
)
from tfeff.training import AdamW, adamw, load_checkpoint, save_checkpoint

STEPS = 3
DROPOUT = 0.1


def _row_bits(rows, seed):
    """Bits of rows that are the same on every backend, in place of drawn ones."""
    count = functools.reduce(lambda count, size: count * size, rows, 1)
    numbers = keras.ops.arange(count, dtype="int32") - count // 2
    return keras.ops.reshape(numbers, (*rows, 1))


same_dropout = mock.patch("tfeff.ops.row_bits", _row_bits)


def _objective(kind, compiled=None):
    # With next to no temperature nothing is left to chance.
    model = objectives.make_model(
        kind, temperature=1e-6, compiled=compiled, dropout=DROPOUT
    )
    return model, objectives.batches(kind, 2 * STEPS)


def _masked_lm(preset="shatter_tiny", compiled=None, **encoder):
    model = objectives.make_masked_lm(
        preset, dropout=DROPOUT, encoder=encoder, **(compiled or {})
    )
    return model, masked_lm_batches(2 * STEPS)


def _adamw():
    return adamw(1e-3, 5, 40, global_clipnorm=0.1)


def _layers(compiled=None):
    encoders = distillation.make_encoder(), distillation.make_encoder(4, 12)
    model = Distillation(*encoders)
    model.compile(_adamw(), **(compiled or {}))
    inputs, _ = distillation.make_inputs(batch_size=4)
    return model, tf.data.Dataset.from_tensors((inputs,)).repeat(2 * STEPS)


def _predictions():
    student, teacher = (
        MaskedLM(distillation.make_encoder(layers)) for layers in (1, 2)
    )
    model = Distillation(student, teacher, cosine=True, label=True, temperature=2.0)
    model.compile(_adamw())
    return model, masked_lm_batches(2 * STEPS)


def _hidden_states():
    """The students' heads learn nothing, and stay as they are."""
    student, teacher = (
        Classifier(distillation.make_encoder(layers), 3) for layers in (1, 2)
    )
    model = Distillation(student, teacher, prediction=False)
    model.compile(adamw(1e-3, 5, 40, weight_decay=0.5))
    return model, masked_lm_batches(2 * STEPS).map(lambda *batch: _texts(batch[0]))


def _task(task, prepare, make_optimizer=_adamw, **arguments):
    encoder = objectives.make_encoder(num_layers=2, dropout=DROPOUT)
    model = task(encoder, dropout=DROPOUT, **arguments)
    model.compile(make_optimizer())
    return model, masked_lm_batches(2 * STEPS, 8).map(prepare)


def _texts(inputs):
    return {name: inputs[name] for name in inputs if name != "mask_positions"}


def _options(inputs, labels, weights):
    """Questions with two options each."""
    inputs = {n: tf.reshape(x, (4, 2, x.shape[-1])) for n, x in _texts(inputs).items()}
    return inputs, labels[:4, 0] % 2, weights[:4, 0]


def _embedding():
    model = SentenceEmbedding(objectives.make_encoder(num_layers=2))
    model.compile(_adamw())
    return model, masked_lm_batches(2 * STEPS, 8).map(_pairs)


def _pairs(inputs, labels, weights):
    """Pairs of texts that are all different."""
    inputs, _, weights = _options(inputs, labels, weights)
    return inputs, tf.reshape(tf.range(8), (4, 2)), weights


def _spans(inputs, labels, weights):
    """Answers in passages that begin at token 3, or at the first token."""
    lengths = tf.reduce_sum(inputs["padding_mask"], axis=1)
    segments = tf.cast(tf.range(inputs["token_ids"].shape[1]) >= 3, "int32")
    segments = segments * inputs["padding_mask"]
    start = tf.where(lengths > 4, 3, 0)
    spans = {"start": start, "end": tf.where(lengths > 5, 4, start)}
    return _texts(inputs) | {"segment_ids": segments}, spans, weights[:, 0]


CASES = {
    "masked_lm": _masked_lm,
    "masked_lm in parts": functools.partial(
        _masked_lm, "bert_tiny", {"accumulation_steps": 2}
    ),
    "masked_lm in half precision": functools.partial(
        _masked_lm, compiled={"accumulation_steps": 2}, dtype="mixed_bfloat16"
    ),
    "masked_lm of recomputed blocks": functools.partial(
        _masked_lm, memory_efficient="block"
    ),
    "masked_lm run eagerly": functools.partial(
        _masked_lm, compiled={"accumulation_steps": 2, "run_eagerly": True}
    ),
    **{kind: functools.partial(_objective, kind) for kind in objectives.KINDS},
    "replaced_token in parts": functools.partial(
        _objective, "replaced_token", {"accumulation_steps": 2}
    ),
    "layers distilled": _layers,
    "layers distilled in parts": functools.partial(_layers, {"accumulation_steps": 2}),
    "predictions distilled": _predictions,
    "hidden states distilled": _hidden_states,
    "classifier": functools.partial(
        _task,
        Classifier,
        lambda x, y, w: (_texts(x), y[:, 0] % 3, w[:, 0]),
        num_classes=3,
        make_optimizer=lambda: AdamW(
            1e-3, weight_decay=0.1, layer_decay=0.8, bias_correction=False, epsilon=1e-6
        ),
    ),
    "regressor": functools.partial(
        _task,
        Regressor,
        lambda x, y, w: (_texts(x), tf.cast(y[:, 0], "float32") / 50, w[:, 0]),
        pooling="layerwise",
    ),
    "token classifier": functools.partial(
        _task,
        TokenClassifier,
        lambda x, y, w: (_texts(x), x["token_ids"] % 3, x["padding_mask"]),
        num_classes=3,
    ),
    # The gradient of the options' bias is rounding alone, which a small epsilon would
    # make steps of.
    "multiple choice": functools.partial(
        _task, MultipleChoice, _options, lambda: AdamW(1e-3, epsilon=1e-3)
    ),
    "questions": functools.partial(_task, SpanQA, _spans),
    "sentence embeddings": _embedding,
}


def path(folder, case, suffix):
    return str(Path(folder) / f"{case}.{suffix}")


@same_dropout
def begin(case: str, folder) -> None:
    """Makes the model, trains it for some steps, and saves it."""
    keras.utils.set_random_seed(0)
    model, batches = CASES[case]()
    model.fit(batches.take(STEPS), shuffle=False, verbose=0)
    save_checkpoint(model, path(folder, case, "keras"))


@same_dropout
def go_on(case: str, folder) -> dict[str, np.ndarray]:
    """Loads the model and trains it further; losses, outputs and weights by name."""
    model = load_checkpoint(path(folder, case, "keras"))
    _, batches = CASES[case]()
    batches = batches.skip(STEPS)
    logs = model.fit(
        batches, shuffle=False, verbose=0, validation_data=batches.take(2)
    ).history
    outputs = model.predict(batches.take(2), verbose=0)
    if not isinstance(outputs, dict):
        outputs = {"": outputs}
    numbers = {name: np.array(values) for name, values in logs.items()}
    numbers |= {f"output {name}": np.asarray(x, "f4") for name, x in outputs.items()}
    for index, variable in enumerate(model.weights):
        numbers[f"weight {index} {variable.path}"] = variable.numpy()
    backend = keras.backend.backend()
    save_checkpoint(model, path(folder, case, f"{backend}.keras"))
    return numbers


if __name__ == "__main__":
    folder, *cases = sys.argv[1:]
    for case in cases:
        name = path(folder, case, f"{keras.backend.backend()}.npz")
        np.savez(name, **go_on(case, folder))
        print(case, flush=True)
