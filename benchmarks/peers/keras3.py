"""A contender of Keras 3, whoever its encoder is by."""

import keras

from peers.common import Contender, compiled, count, tensors


def contender(encoder, model, optimizer, task, batch):
    """A contender of Keras 3."""
    inputs, labels = tensors(batch)
    if task == "inference":
        del inputs["mask_positions"]
        return Contender(
            count(encoder),
            compiled(lambda x: encoder(x, training=False)["sequence_output"], inputs),
        )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, weighted_metrics=[])
    optimizer.build(model.trainable_variables)

    def step(*data):
        return model.train_step(data)["loss"]

    return Contender(count(model), compiled(step, inputs, labels))
