import keras
from keras import ops


class SeparableConv1D(keras.layers.SeparableConv1D):
    """Keras' layer, with the right output shape for an empty batch or sequence, too.

    A convolution of TensorFlow with oneDNN returns an empty tensor in its input shape.
    Here the pointwise convolution is a matrix product. Only the arguments of
    `Attention.make_separable` are supported.
    """

    def call(self, inputs):
        outputs = ops.depthwise_conv(
            inputs, self.depthwise_kernel, padding=self.padding
        )
        return ops.matmul(outputs, self.pointwise_kernel[0]) + self.bias
