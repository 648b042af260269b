"""Checks of the arguments of `fit`, `evaluate`, `predict` and the like."""

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import keras

from tfeff.compat.layers import sublayers
from tfeff.encoders.quantization import (
    check_keeps_quantization,
    check_keeps_training,
    check_keeps_weights,
)
from tfeff.training.fit_data import (
    check_batches,
    check_class_weight,
    check_ends,
    num_updates,
)
from tfeff.training.loss_scale import unscaled
from tfeff.training.replicas import num_replicas
from tfeff.training.schedules import schedule_warnings


class ChecksCalls(keras.Model):
    """The mixin of `DistributedModel` that checks `fit`, `evaluate` and `predict`.

    After an error it forgets what was traced half.
    """

    # Keras sets these.
    optimizer: Any
    train_function: Any
    _trains: Any = None

    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As `keras.Model.fit`. Data sets, which come shuffled, cause no warning.

        Keras would warn that it ignores `shuffle=True`, its own default. A
        `UserWarning` says where the optimizer's schedule is over, or ends before the
        training does, so that nothing is trained, or a task's encoder is frozen, so
        that its head learns alone.

        Raises:
            TypeError: if `x` are features, examples, a cache or texts, of which no
                batches were made, or `class_weight` is no mapping to numbers.
            ValueError: if the model was compiled without an optimizer; if there is no
                batch; if arrays of labels have ids that are no classes; if a data set
                has no end, and `steps_per_epoch`, or `validation_steps`, is not given;
                if keys of `class_weight` are no classes, or there is one for ratings,
                for labels of tokens or of several outputs, or beside weights of
                examples; if other weights train than when the model was trained before,
                without another `compile`; if a callback saves the model, and adapters
                keep it from being loaded as it was; on several replicas, if batches
                have a `None`, if the optimizer has an `ema_overwrite_frequency`, or is
                not of tfeff where weights are quantized to float8.
        """
        given = call_arguments("fit", x, y, *args, **kwargs)
        check_batches(self, x, y, given.get("sample_weight"))
        traced = self._trains if self.train_function is not None else None
        if traced not in (None, self._trained_weights()):
            raise ValueError(
                "The model must be compiled again before it is trained on: since it "
                "was trained, other weights train, as after `trainable` was set. It "
                "would go on with those of before"
            )
        check_class_weight(
            self, given.get("class_weight"), x, y, given.get("sample_weight")
        )
        validation = given.get("validation_data")
        if isinstance(validation, (tuple, list)) and len(validation) > 1:
            names = [f"validation_data[{i}]" for i in range(3)]
            inputs, labels, weights = (*validation, None)[:3]
            check_batches(self, inputs, labels, weights, names)
        else:
            check_batches(self, validation, names=("validation_data", "y"))
        _check_callbacks(self, given.get("callbacks"))
        check_ends(x, "steps_per_epoch", given)
        check_ends(validation, "validation_steps", given)
        for text in self._fit_warnings(num_updates(x, given)):
            warnings.warn(text, stacklevel=2)
        is_dataset = getattr(x, "element_spec", None) is not None
        if is_dataset and "shuffle" not in given:
            kwargs["shuffle"] = False
        with self._anew_after_errors("train_function", "test_function"):
            return super().fit(x, y, *args, **kwargs)

    def evaluate(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As `keras.Model.evaluate`.

        Raises:
            TypeError: as `fit`.
            ValueError: if there is no batch, a data set has no end, and `steps` is not
                given, or an array of labels has ids that are no classes.
        """
        given = call_arguments("evaluate", x, *args, **kwargs)
        check_batches(self, x, given.get("y"), given.get("sample_weight"))
        check_ends(x, "steps", given)
        with self._anew_after_errors("test_function"):
            return super().evaluate(x, *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """As `keras.Model.predict`.

        Raises:
            TypeError: as `fit`.
            ValueError: if a data set has no end, and `steps` is not given.
        """
        check_batches(self, x)
        check_ends(x, "steps", call_arguments("predict", x, *args, **kwargs))
        with self._anew_after_errors("predict_function"):
            return super().predict(x, *args, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """As `keras.Model.predict_on_batch`; several replicas share the rows."""
        check_batches(self, x)
        if num_replicas(self) == 1:
            with self._anew_after_errors("predict_function"):
                return super().predict_on_batch(x)
        return self.predict(x, batch_size=len(keras.tree.flatten(x)[0]), verbose=0)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """As `keras.Model.train_on_batch`.

        Raises:
            TypeError, ValueError: for a `class_weight` or `y`, or without an optimizer,
                as `fit`.
        """
        if class_weight is not None and y is None:
            raise ValueError(
                "`y` must be the targets of the batch beside `class_weight`. "
                "Received: y=None"
            )
        check_batches(self, x, y, sample_weight)
        check_class_weight(self, class_weight, x, y, sample_weight)
        with self._anew_after_errors("train_function"):
            return super().train_on_batch(
                x, y, sample_weight, class_weight, return_dict
            )

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """As `keras.Model.test_on_batch`.

        Raises:
            TypeError, ValueError: for `x` or `y`, as `evaluate`.
        """
        check_batches(self, x, y, sample_weight)
        with self._anew_after_errors("test_function"):
            return super().test_on_batch(x, y, sample_weight, return_dict)

    @contextlib.contextmanager
    def _anew_after_errors(self, *functions: str) -> Iterator[None]:
        """Forgets what was traced half: it would fail in each later call, too.

        Args:
            *functions: the attributes of what the block may trace. Others may be
                running: a callback of `fit` may catch an error of `predict`.
        """
        try:
            yield
        except BaseException as error:
            self.put_values_back()
            if isinstance(error, Exception):
                for function in functions:
                    setattr(self, function, None)
            raise
        self.forget_values()
        if self._trains is None and self.train_function is not None:
            self._trains = self._trained_weights()

    def _fit_warnings(self, steps: int | None) -> Iterator[str]:
        """The texts that `fit` warns of: here, of a schedule that is over, or too soon.

        Args:
            steps: how many updates `fit` makes at most; `None` if that is not known.
        """
        if self.compiled and self.optimizer is not None:  # Otherwise it is an error.
            yield from schedule_warnings(unscaled(self.optimizer), steps)

    def note_trained_weights(self) -> None:
        """Notes which weights the function of training is made for.

        Layers that the first step builds have theirs only then.
        """
        is_built = all(layer.built for layer in sublayers(self))
        self._trains = self._trained_weights() if is_built else None

    def _trained_weights(self):
        """The identities of the weights that train."""
        return frozenset(map(id, self.trainable_variables))


def _check_callbacks(model, callbacks):
    """Raises where Keras' callbacks would save what nothing could go on from.

    They would save it, or raise, after an epoch.
    """
    callbacks = getattr(callbacks, "callbacks", callbacks)  # Of a `CallbackList`.
    for callback in keras.tree.flatten(callbacks or ()):
        # What a class of one's own saves is not known.
        if type(callback) is keras.callbacks.BackupAndRestore:
            check_keeps_training(model)
        elif type(callback) is keras.callbacks.ModelCheckpoint:
            whole = not callback.save_weights_only
            (check_keeps_quantization if whole else check_keeps_weights)(model)


def call_arguments(method: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments of a method of Keras' models by their names."""
    signature = inspect.signature(getattr(keras.Model, method))
    given = signature.bind(None, *args, **kwargs).arguments
    return {name: value for name, value in given.items() if name != "self"}
