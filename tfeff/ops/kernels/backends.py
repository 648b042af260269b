"""Operations that Keras lacks, by backend.

Custom gradients, vector-Jacobian products, branches with custom gradients, loops with
any outputs, and JAX's fused attention.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops, tree

from tfeff.compat.models import transforms_calls

# The implementation of JAX's attention.
IMPLEMENTATION = "cudnn"
_FORWARD_ONLY = contextvars.ContextVar("forward_only", default=False)


@contextlib.contextmanager
def forward_only() -> Iterator[None]:
    """A context without custom gradients, for programs that are only run.

    TensorFlow does not save custom gradients within loops, and warns about that on
    loading.
    """
    token = _FORWARD_ONLY.set(True)
    try:
        yield
    finally:
        _FORWARD_ONLY.reset(token)


def custom_gradient(function):
    """`keras.ops.custom_gradient` of a function that may close over any tensor.

    Under `jax.checkpoint` and outside of `jax.jit`, JAX takes gradients after tracing,
    and a mask that was traced with the function is then gone. So the function is traced
    here, and the tensors that it closes over become arguments. They get no gradient.

    Within `torch.func.vmap` and its like, PyTorch itself differentiates the function:
    they refuse Keras' custom gradients.

    Args:
        function: from tensors to a tensor, and the function from its upstream gradient
            to the gradients of the arguments.
    """
    is_jax = keras.backend.backend() == "jax"
    with_gradient = (_gradient_of_jax if is_jax else _gradient_of_keras)(function)

    def call(*arguments):
        if _FORWARD_ONLY.get() or _transformed_by_torch():
            result, _ = function(*map(ops.convert_to_tensor, arguments))
            return result
        return with_gradient(*arguments)

    return call


def _transformed_by_torch():
    if keras.backend.backend() != "torch":
        return False
    import torch

    return transforms_calls(torch)


def _gradient_of_keras(function):
    def keras_function(*arguments):
        result, gradient = function(*arguments)

        def keras_gradient(*args, upstream=None):
            if upstream is None:
                return gradient(*args)
            # PyTorch passes the arguments, too, and the upstream gradient by name.
            if not _differentiates_gradients():
                return gradient(upstream)
            # The values that the gradient closes over were computed without a graph.
            return function(*args)[1](upstream)

        return result, keras_gradient

    return ops.custom_gradient(keras_function)


def _gradient_of_jax(function):
    import jax
    from jax.extend.core import jaxpr_as_fun

    def call(*arguments):
        rules = []

        def traced(*arguments):
            result, gradient = function(*arguments)
            rules.append(jax.make_jaxpr(gradient)(result))
            return result, *rules[0].consts

        arguments = [ops.convert_to_tensor(x) for x in arguments]
        program = jax.make_jaxpr(traced)(*arguments)

        def forward(closed_over, arguments):
            run = jaxpr_as_fun(program.replace(consts=closed_over))
            result, *saved = run(*arguments)
            return result, saved

        def backward(saved, upstream):
            return None, jaxpr_as_fun(rules[0].replace(consts=saved))(upstream)

        with_gradient = jax.custom_vjp(lambda *given: forward(*given)[0])
        with_gradient.defvjp(forward, backward)
        return with_gradient(program.consts, arguments)

    return call


def pull_back(function, arguments, upstream):
    """The vector-Jacobian product of a function: the gradients of its arguments.

    Args:
        function: function of float tensors, with one tensor as its result.
        arguments: list of float tensors.
        upstream: the gradient of the result.

    Returns:
        List of one tensor for each argument.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(arguments)
            result = function(*arguments)
        return tape.gradient(
            result,
            arguments,
            output_gradients=upstream,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
    if keras.backend.backend() == "jax":
        import jax

        return list(jax.vjp(function, *arguments)[1](upstream))
    import torch

    # Not `torch.func.vjp`, which refuses functions with a custom gradient of Keras.
    again = _differentiates_gradients()
    with torch.enable_grad():
        # One argument may be a function of another.
        arguments = [
            x.view_as(x) if again and x.requires_grad else x.detach().requires_grad_()
            for x in arguments
        ]
        result = function(*arguments)
    return list(
        torch.autograd.grad(
            result, arguments, upstream, create_graph=again, materialize_grads=True
        )
    )


def _differentiates_gradients() -> bool:
    """Whether PyTorch's backward pass is itself differentiated (`create_graph`)."""
    import torch

    return torch.is_grad_enabled()


def cond(predicate, true, false, operands):
    """`keras.ops.cond` of functions of the same operands.

    A custom gradient within them may close over these, but not over other tensors from
    outside: where TensorFlow differentiates a branch in another graph, it finds the
    tensors of the branch alone.

    Args:
        predicate: scalar bool tensor.
        true, false: functions of the operands.
        operands: list of nested structures of tensors.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.cond(predicate, lambda: true(*operands), lambda: false(*operands))
    import tensorflow as tf

    def branch(function):
        return lambda: function(*tree.map_structure(tf.identity, operands))

    return ops.cond(predicate, branch(true), branch(false))


def scan(step, carry, xs, like):
    """A sequential loop over the first axis of `xs`.

    As `keras.ops.scan`, which on TensorFlow requires outputs like its carry.

    Args:
        step: function `(carry, x) -> (carry, y)`; carry, `x` and `y` are lists of
            tensors.
        carry: the carry of the first step.
        xs: list of tensors `[count, ...]`.
        like: dtype and known shape of each `y`.

    Returns:
        `(carry, ys)`: the carry after the last step, and all `y` stacked.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.scan(step, carry, xs)
    import tensorflow as tf

    count = ops.shape(xs[0])[0]

    def array(dtype, shape):
        return tf.TensorArray(dtype, count, element_shape=shape)

    arrays = [array(x.dtype, x.shape[1:]).unstack(x) for x in xs]

    def body(index, carry, outputs):
        carry, ys = step(carry, [x.read(index) for x in arrays])
        return index + 1, carry, [to.write(index, y) for to, y in zip(outputs, ys)]

    _, carry, outputs = tf.while_loop(
        lambda index, *_: index < count,
        body,
        (0, carry, [array(*y) for y in like]),
        parallel_iterations=2,
        # XLA needs it where TensorFlow prepares for gradients of gradients.
        maximum_iterations=count,
    )
    return carry, [y.stack() for y in outputs]


def in_turn(tensors, earlier):
    """Returns the tensors; operations on them begin after others are done.

    TensorFlow's executor begins whatever is ready, and keeps all of the results. Within
    XLA this changes nothing.

    Args:
        tensors: list of tensors.
        earlier: list of tensors that are computed first.
    """
    if keras.backend.backend() != "tensorflow":
        return tensors
    import tensorflow as tf

    with after(earlier):
        return [tf.identity(x) for x in tensors]


def after(tensors) -> contextlib.AbstractContextManager[None]:
    """A context in which TensorFlow begins operations after computing the tensors.

    Otherwise, what depends on weights or shapes alone, such as rows of relative
    positions and zeros to add to, would be computed for all layers at the start of a
    step, and kept.

    Args:
        tensors: list of tensors.
    """
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    import tensorflow as tf

    return tf.control_dependencies(tensors)


def eagerly() -> contextlib.AbstractContextManager[Any]:
    """A context that computes operations on known values, also while Keras traces."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.init_scope()
    if backend == "jax":
        import jax

        return jax.ensure_compile_time_eval()
    return keras.device("cpu")  # Keras traces on the device "meta".


def cuda_capability() -> float:
    """The compute capability of the NVIDIA GPU that JAX runs on, or 0."""
    if keras.backend.backend() != "jax":
        return 0.0
    import jax

    device = jax.devices()[0]
    # AMD's GPUs have the platform "gpu", too.
    if device.platform != "gpu" or "cuda" not in device.client.platform_version:
        return 0.0
    return float(device.compute_capability)


def rows_in_order(x, order):
    """Rows of `x` `[B, S, H]` in orders `[B, S]`, on JAX.

    An order has each row once, so the gradient writes rows instead of adding them.
    """
    import jax

    return jax.vmap(lambda x, order: x.at[order].get(unique_indices=True))(x, order)


def attention(query, key, value, lengths=None):
    """`jax.nn.dot_product_attention` of `[B, t or S, N, H]`, by cuDNN.

    Only the first `lengths` `[B]` keys are attended to; all if `None`.
    """
    import jax

    return jax.nn.dot_product_attention(
        query,
        key,
        value,
        key_value_seq_lengths=lengths,
        implementation=IMPLEMENTATION,
    )
