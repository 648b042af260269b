"""The memory of a training pass of one attention, in units of its scores.

python -m tests.subjects.peak_memory huang3
"""

import resource
import sys

import tensorflow as tf

from tfeff import layers

NUM_HEADS, WIDTH, BATCH, LENGTH = 12, 768, 2, 512
SCORES = 4 * BATCH * NUM_HEADS * LENGTH**2
ATTENTIONS = {
    "self": lambda: layers.SelfAttention(NUM_HEADS),
    "one_head": lambda: layers.OneHeadAttention(NUM_HEADS),
    "partitioned": lambda: layers.PartitionedAttention(NUM_HEADS),
    "blockwise": lambda: layers.BlockwiseAttention(NUM_HEADS, "8:4"),
    "sparse": lambda: layers.SparseAttention(NUM_HEADS),
    "mixed": lambda: layers.MixedAttention(NUM_HEADS),
    **{
        method: lambda method=method: layers.RelativeAttention(NUM_HEADS, method)
        for method in ("bias", "xlnet")
    },
    **{
        method: lambda method=method: layers.RelativeAttention(NUM_HEADS, method, 127)
        for method in ("shaw", "rpe", "huang1", "huang2", "huang3", "huang4")
    },
}


def peak() -> int:
    """Bytes that the process had at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    layer = ATTENTIONS[sys.argv[1]]()
    layer.build((BATCH, LENGTH, WIDTH))

    @tf.function(autograph=False)
    def step(hidden):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = layer(hidden)
        return tape.gradient(output, [hidden, *layer.trainable_variables])

    step(tf.zeros((1, 2, WIDTH)))  # What the libraries need once.
    before = peak()
    step(tf.random.normal((BATCH, LENGTH, WIDTH), seed=0))
    print((peak() - before) / SCORES)
