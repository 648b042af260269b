"""Makes the Model Garden goldens: random weights and what the peers compute of them.

Run by hand, from the repository's root, with the `garden` extra:

    python -m tests.peers.make_garden_goldens

Made with tf-models-official 2.20.0 and TensorFlow 2.20.
"""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, networks

GOLDENS = Path(__file__).parent / "goldens"
VOCABULARY, LENGTH = 30, 7
LENGTHS = (7, 4, 6)
# The order of prediction: -1 for tokens that are given. Each predicted token sees one,
# as the peer averages the padding where nothing is visible, and stands in one slot, as
# it adds up the queries of one position.
RANKS = np.array(
    [[-1, 1, -1, 0, 2, -1, -1], [0, -1, 1, -1, -1, -1, -1], [1, 2, -1, 0, 3, 4, -1]]
)
TARGETS = np.array([[3, 1], [0, 2], [5, 3]])


def xlnet(two_stream):
    """A tiny XLNet with random weights, the same for both kinds."""
    network = networks.XLNetBase(
        vocab_size=VOCABULARY,
        num_layers=2,
        hidden_size=16,
        num_attention_heads=4,
        head_size=4,
        inner_size=24,
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
        attention_type="bi",
        bi_data=False,
        initializer=tf_keras.initializers.Zeros(),
        two_stream=two_stream,
        tie_attention_biases=False,
        # Model Garden's own name "gelu" is the approximation by tanh.
        inner_activation=tf_keras.activations.gelu,
    )
    return network


def main():
    """Writes one file a peer."""
    generator = np.random.default_rng(0)
    visible = np.arange(LENGTH) < np.array(LENGTHS)[:, None]
    tokens = generator.integers(0, VOCABULARY, size=visible.shape) * visible
    segments = (np.arange(LENGTH) >= 3) * visible
    arrays = dict(
        token_ids=tokens.astype("int32"),
        segment_ids=segments.astype("int32"),
        padding_mask=visible.astype("int32"),
        ranks=RANKS.astype("int32"),
        target_positions=TARGETS.astype("int32"),
    )
    weights = {}
    # Given tokens are visible to all; the peer lets every content see itself.
    sees = (RANKS[:, None, :] < RANKS[:, :, None]) | (RANKS < 0)[:, None, :]
    for stream in ("content", "query"):
        network = xlnet(two_stream=stream == "query")
        inputs = dict(
            segment_ids=tf.constant(arrays["segment_ids"]),
            input_mask=tf.constant(arrays["padding_mask"]),
        )
        if stream == "query":
            inputs |= dict(
                permutation_mask=tf.constant(sees.astype("int32")),
                target_mapping=tf.one_hot(TARGETS, LENGTH),
                masked_tokens=tf.constant(arrays["token_ids"]),
            )
        # The first call makes the weights.
        network(tf.constant(arrays["token_ids"]), **inputs)
        for weight in network.weights:
            name = weight.name.split(":")[0].removeprefix(f"{network.name}/")
            if name not in weights:
                value = generator.normal(scale=0.3, size=weight.shape)
                weights[name] = (value + ("gamma" in name)).astype("float32")
            weight.assign(weights[name])
        output, _ = network(tf.constant(arrays["token_ids"]), **inputs)
        arrays[stream] = output.numpy()
    np.savez_compressed(
        GOLDENS / "garden_xlnet.npz",
        **arrays,
        **{f"weights/{name}": value for name, value in weights.items()},
    )

    bias = layers.RelativePositionBias(num_heads=2)
    table = generator.normal(size=(32, 2)).astype("float32")
    bias.set_weights([table])
    sequence = tf.zeros((1, 301, 4))
    laid_out = bias(sequence, sequence)[0].numpy()
    # All rows hold the same numbers: the first and the last have each once.
    np.savez_compressed(
        GOLDENS / "garden_t5_bias.npz",
        table=table,
        first_row=laid_out[:, 0],
        last_row=laid_out[:, -1],
    )


if __name__ == "__main__":
    main()
