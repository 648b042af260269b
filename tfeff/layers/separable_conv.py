import keras
from keras import ops


class SeparableConv1D(keras.layers.SeparableConv1D):
    """Keras' layer, which has the right shape for an empty batch or sequence too.

    A convolution of TensorFlow with oneDNN gives an empty tensor back as it came. The
    pointwise one is a matrix product here, which does not. Only what
    `Attention.make_separable` sets is supported.
    """

    def call(self, inputs):
        outputs = ops.depthwise_conv(
            inputs, self.depthwise_kernel, padding=self.padding
        )
        return ops.matmul(outputs, self.pointwise_kernel[0]) + self.bias
