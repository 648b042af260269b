import keras
from keras import ops

from tfeff.layers.checks import check_floats
from tfeff.ops.kernels.backends import custom_gradient


class SeparableConv1D(keras.layers.SeparableConv1D):
    """Keras' layer, which is also right for an empty batch or sequence.

    There, TensorFlow's convolution with oneDNN returns an empty tensor of its input's
    shape; here the pointwise convolution is a matrix product. TensorFlow's gradient of
    the depthwise kernel is uninitialised memory, and fails with XLA; here it is 0. Only
    the arguments of `Attention.make_separable` are supported.
    """

    def call(self, inputs):
        check_floats("hidden", inputs)
        if inputs.shape[1] == 0:
            return self.call(ops.pad(inputs, ((0, 0), (0, 1), (0, 0))))[:, :0]
        kernel = _without_gradient_of_nothing(self.depthwise_kernel, inputs)
        outputs = ops.depthwise_conv(
            inputs, kernel, padding=self.padding, data_format=self.data_format
        )
        return ops.matmul(outputs, self.pointwise_kernel[0]) + self.bias


def _without_gradient_of_nothing(kernel, inputs):
    """`kernel`, whose gradient is 0 if there are no inputs, as on an idle replica."""
    if None not in inputs.shape and 0 not in inputs.shape:
        return kernel

    def gradient(upstream):
        return ops.where(ops.size(inputs) > 0, upstream, ops.zeros_like(upstream))

    same = custom_gradient(lambda kernel: (kernel, gradient))
    return same(ops.convert_to_tensor(kernel))
