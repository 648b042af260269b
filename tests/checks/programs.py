"""What the compiler is asked to compute: every tensor of a traced program."""

import math
import re

import tensorflow as tf


def largest_tensor(call, variables, *inputs):
    """Elements of the largest tensor in a forward and backward pass.

    Args:
        call: takes `inputs`, gives a float tensor.
        variables: to differentiate in, beside the first of the inputs.
        *inputs: tensors; the first is float.

    Returns:
        The number of elements, from the program before the compiler improves it.
    """

    @tf.function(jit_compile=True)
    def run(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs[0])
            loss = tf.reduce_sum(tf.sin(call(*inputs)))
        return tape.gradient(loss, [inputs[0], *variables])

    inputs = [tf.convert_to_tensor(value) for value in inputs]
    program = run.experimental_get_compiler_ir(*inputs)(stage="hlo")
    shapes = re.findall(r"\b(?:pred|bf16|[fsu]\d+)\[([\d,]*)\]", program)
    return max(math.prod(int(n) for n in s.split(",") if n) for s in set(shapes))
