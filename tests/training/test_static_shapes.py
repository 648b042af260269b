"""Training steps have static shapes alone, which TPUs need."""

import inspect
import re

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks.replicas import two_replicas
from tests.subjects import training_steps
from tfeff.objectives.objective import Objective
from tfeff.training.replicas import needs_static_shapes

ROWS = 4
# What XLA calls a dimension that may be smaller, and operations on such.
DYNAMIC = re.compile(r"\[[^\]]*<=|get-dimension-size|set-dimension-size")


def test_every_task_has_a_step():
    found = (getattr(tfeff.tasks, name) for name in tfeff.tasks.__all__)
    tasks = {
        task.__name__
        for task in found
        if inspect.isclass(task) and issubclass(task, Objective)
    }
    tasks -= {"Task"}  # The base of a user's.
    assert tasks | {"Distillation"} == set(training_steps.TASKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", training_steps.NAMES)
def test_a_step(name, tmp_path):
    """Two replicas take two steps in one call; XLA's program of one is static."""
    strategy = two_replicas()
    with strategy.scope():
        model, batches = training_steps.make(
            name, ROWS, tmp_path, steps_per_execution=2
        )
    assert training_steps.is_static(batches.element_spec)
    parts = tf.nest.flatten(
        strategy.experimental_distribute_dataset(batches).element_spec,
        expand_composites=True,
    )
    assert all(part.shape.is_fully_defined() for part in parts)
    assert {part.shape[0] for part in parts} == {ROWS // 2}
    history = model.fit(batches.take(2), verbose=0).history
    assert int(model.optimizer.iterations.numpy()) == 2
    assert all(np.isfinite(values).all() for values in history.values())

    # The collective operations of two CPUs are none of XLA's: of one replica.
    model, batches = training_steps.make(name, ROWS, tmp_path)
    model.optimizer.build(model.trainable_variables)
    step = tf.function(model.train_step, jit_compile=True)
    program = step.experimental_get_compiler_ir(next(iter(batches)))(stage="hlo")
    assert "HloModule" in program and not DYNAMIC.search(program)


def test_dynamic_dimensions_are_found():
    assert DYNAMIC.search("%x = s32[<=8]{0} custom-call()")
    assert not DYNAMIC.search("%x = pred[8]{0} compare(), direction=LE")


def test_shapes_on_a_tpu(monkeypatch):
    strategy = two_replicas()
    with strategy.scope():
        model = tfeff.tasks.SentenceEmbedding(training_steps.encoder())
    assert not needs_static_shapes(model)
    monkeypatch.setattr(tf.distribute, "TPUStrategy", type(strategy))
    assert needs_static_shapes(model)


def test_shapes_where_xla_compiles():
    """On one GPU that is Keras' default; each length of a batch would be compiled."""
    model = tfeff.tasks.Classifier(training_steps.encoder(), 2)
    assert model.pads_to_longest()
    model.compile(jit_compile=True)
    assert needs_static_shapes(model) and not model.pads_to_longest()
    model.compile(jit_compile=False)
    assert model.pads_to_longest()
