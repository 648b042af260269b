import keras
from keras import ops

from tfeff.compat.layers import frozen_kernel
from tfeff.layers.initializer import bert_initializer


class _Adaptable:
    """Mixin of Keras' layers with a kernel, which may be quantized or adapted."""

    def quantize(self, mode=None, type_check=True, config=None):
        # Keras does not quantize subclasses, which may compute something else.
        super().quantize(mode, type_check=False, config=config)

    def save_own_variables(self, store):
        arrays = {}
        super().save_own_variables(arrays)
        if self.lora_enabled and self.quantization_mode is None:
            # Keras rounds the merged kernel to the dtype in which the layer computes.
            arrays["0"] = merged_kernel(self)
        for name, array in arrays.items():
            store[name] = array


@keras.saving.register_keras_serializable(package="tfeff")
class EinsumDense(_Adaptable, keras.layers.EinsumDense):
    """Keras' layer, whose kernel with an adapter is saved in full precision."""


@keras.saving.register_keras_serializable(package="tfeff")
class Dense(_Adaptable, keras.layers.Dense):
    """Keras' layer with an accurate gradient of the bias in bfloat16.

        y = g(x W + b)

    Keras adds `b` by TensorFlow's `BiasAdd`, whose gradient on CPUs is summed in
    bfloat16: it is off by 3 % for 1,024 rows and by 8 % for 8,192. The gradient of
    a plain addition is off by 0.2 % for any number of rows.

    Arguments, weights, LoRA and quantization are those of `keras.layers.Dense`.

    Example:

    >>> tuple(Dense(6)(keras.ops.ones((2, 5, 8))).shape)
    (2, 5, 6)
    """

    def call(self, inputs, training=None):
        x = ops.matmul(inputs, self.kernel)
        if self.bias is not None:
            # `ops.add` would be `BiasAdd` again.
            x = x + ops.convert_to_tensor(self.bias)
        return x if self.activation is None else self.activation(x)

    def project(self, vectors):
        """`x W` of vectors `[M, D]`, without bias and activation.

        Adding and subtracting the bias would leave a rounding error, in the gradient
        that of a sum over all vectors. Only Keras' own call multiplies with a quantized
        kernel; it adds the bias, which is subtracted here.
        """
        if self.quantization_mode is None:
            return ops.matmul(vectors, self.kernel)
        outputs = self(ops.expand_dims(vectors, 0))[0]
        return outputs if self.bias is None else outputs - self.bias


def bert_dense(units: int, **kwargs) -> Dense:
    """A new `Dense` layer with BERT's initial kernel.

    Args:
        units: integer, as of `Dense`.
        **kwargs: other arguments of `Dense`, such as `dtype` and `name`.
    """
    return Dense(units, kernel_initializer=bert_initializer(), **kwargs)


def merged_kernel(layer: keras.layers.Layer):
    """`W + s A B` of a layer with a LoRA adapter, in the precision of `W`."""
    kernel = frozen_kernel(layer)
    change = ops.matmul(
        ops.convert_to_tensor(layer.lora_kernel_a),
        ops.convert_to_tensor(layer.lora_kernel_b),
    )
    change = ops.cast(layer.lora_alpha / layer.lora_rank * change, kernel.dtype)
    return ops.convert_to_tensor(kernel) + change
