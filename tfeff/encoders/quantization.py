"""Checks of quantized and adapted layers, before they are saved."""

import keras

from tfeff.compat.layers import sublayers
from tfeff.encoders.adapters import adapted_layers

# The modes that Keras can restore from a configuration, without data.
_MODES = ("int8", "int4", "float8")


class ChecksBeforeSaving:
    """The mixin of a model that raises if what it saves could not be loaded.

    It raises before any file is written, and where it can, before the work is done
    that would be lost. It comes before `keras.Model` among the bases of a class.
    """

    def quantize(self, mode=None, config=None, **kwargs):
        check_can_be_quantized(self, mode, config)
        super().quantize(mode, config=config, **kwargs)

    def load_weights(self, *args, **kwargs):
        check_takes_weights(self)
        super().load_weights(*args, **kwargs)

    def save(self, filepath, *args, **kwargs):
        if str(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                "`filepath` must end in .keras: Keras could not load the model from a "
                f"file of its earlier format. Received: filepath={filepath!r}"
            )
        check_keeps_quantization(self)
        return super().save(filepath, *args, **kwargs)

    def save_weights(self, *args, **kwargs):
        check_keeps_weights(self)
        return super().save_weights(*args, **kwargs)


def check_can_be_quantized(model: keras.Model, mode, config=None) -> None:
    """Raises if a model that is quantized so could not be saved.

    Raises:
        ValueError: if the mode needs data, or the model has adapters.
    """
    mode = getattr(config, "mode", None) if mode is None else mode
    if mode not in _MODES:
        raise ValueError(
            f"`mode` must be one of {list(_MODES)}: Keras cannot restore layers of "
            f"another mode without their calibration data. Received: mode={mode!r}"
        )
    _check_no_adapters(
        model,
        "to be quantized: Keras could not save it (keras-team/keras#23244). Quantize "
        "`tfeff.encoders.merge_lora` of it",
    )


def check_takes_weights(model: keras.Model) -> None:
    """Raises if a model would learn nothing any more once it has loaded weights.

    Raises:
        ValueError: if it has adapters.
    """
    _check_no_adapters(
        model,
        "to load weights: Keras sets both factors of an adapter to 0 then, and their "
        "gradients are 0 ever after. Load the weights before `enable_lora`; "
        "`tfeff.tasks.load_lora` loads adapters",
    )


def check_keeps_quantization(model: keras.Model) -> None:
    """Raises if a saved model would not be the same when loaded.

    Raises:
        ValueError: if a layer is quantized in a mode that needs data, or is quantized
            and has an adapter.
    """
    check_keeps_weights(model)
    for layer in sublayers(model):
        if layer.quantization_mode not in (None, *_MODES):
            raise ValueError(
                f"The model must be quantized as one of {list(_MODES)} to be saved: "
                "Keras cannot restore layers of another mode without their calibration "
                "data. Received: quantization_mode="
                f"{layer.quantization_mode!r} in the layer {layer.path}"
            )


def check_keeps_weights(model: keras.Model) -> None:
    """Raises if saved weights would not be the same when loaded.

    Raises:
        ValueError: if a quantized layer has an adapter.
    """
    for layer in adapted_layers(model):
        if layer.quantization_mode is not None:
            raise ValueError(
                "The model must not have adapters on quantized layers to be saved: "
                "Keras would merge them and quantize the sum again, which changes the "
                "model (keras-team/keras#23244). `tfeff.tasks.save_lora` saves the "
                f"adapters alone. Received: an adapter on the layer {layer.path}, "
                f"quantization_mode={layer.quantization_mode!r}"
            )


def check_keeps_training(model: keras.Model) -> None:
    """Raises if training could not go on from a checkpoint of the model.

    Raises:
        ValueError: if a layer has an adapter, and as `check_keeps_quantization`.
    """
    check_keeps_quantization(model)
    _check_no_adapters(
        model,
        "for a checkpoint: Keras merges them into the saved kernels, so that training "
        "could not go on from it (keras-team/keras#23244). `model.save` saves such a "
        "model for inference, `tfeff.tasks.save_lora` its adapters",
    )


def _check_no_adapters(model, why):
    if adapted := adapted_layers(model):
        raise ValueError(
            f"The model must have no LoRA adapters {why}. Received: an adapter on the "
            f"layer {adapted[0].path}"
        )
