"""Prints what Keras and KerasHub do not tell PyTorch of.

How many of a backbone's weights are its parameters, and of how many of two weights with
one path the gradients are cleared.
"""

import keras
import keras_hub

inputs = keras.Input((3,))
first, second = (
    keras.Model(inputs, keras.layers.Dense(2, name="dense")(inputs)) for _ in range(2)
)
model = keras.Model(inputs, first(inputs) + second(inputs))
model.compile("sgd", "mse")
x, y = keras.ops.ones((4, 3)), keras.ops.zeros((4, 2))
model.train_on_batch(x, y)
model.zero_grad()
print(len(list(keras_hub.models.BertBackbone(9, 1, 1, 2, 2).parameters())))
print(sum(weight.value.grad is None for weight in model.trainable_weights))
