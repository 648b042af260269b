import contextvars
from collections.abc import Callable, Sequence
from typing import Any

import keras

from tfeff.compat.layers import seed_states
from tfeff.compat.models import (
    BuiltByShapes,
    PutsValuesBack,
    TellsAllWeights,
    report_loss_by,
)
from tfeff.compat.saving import untracked
from tfeff.encoders.layer_states import layer_states, make_with_states
from tfeff.encoders.quantization import ChecksBeforeSaving
from tfeff.training.backends import check_steps_per_execution, train_in_parts
from tfeff.training.checked_calls import ChecksCalls, call_arguments
from tfeff.training.loss_scale import LossScaleOptimizer, unscaled
from tfeff.training.losses import GlobalMean, MeanOfShares
from tfeff.training.optimizers import check_on_replicas
from tfeff.training.replica_steps import replica_function
from tfeff.training.replicas import num_replicas
from tfeff.training.sparse_gradients import sum_repeated_rows
from tfeff.training.target_weights import target_weights
from tfeff.utils.checks import check_integer, check_keywords, known_keywords
from tfeff.utils.types import Config, Tensor

_SEED = "seed_generator_"
# The arguments that Keras' functional models are made from.
_GRAPH = ("inputs", "outputs")
# The class that Keras gives a `keras.Model` of inputs and outputs.
_FUNCTIONAL: Any = type(keras.Model.__new__(keras.Model, inputs=None, outputs=None))


# The model whose loss is being computed, and the losses that its layers have added.
_ADDED: contextvars.ContextVar[tuple[Any, list]] = contextvars.ContextVar(
    "added_losses", default=(None, [])
)


class DistributedModel(
    ChecksCalls,
    ChecksBeforeSaving,
    BuiltByShapes,
    PutsValuesBack,
    TellsAllWeights,
    keras.Model,
):
    """A Keras model that trains correctly on several replicas and after loading.

    It adds to `keras.Model`:

    - **Loops over replicas.** Keras 3 loops over the steps of an execution with
      optional values and nested conditionals, in which TensorFlow cannot run several
      replicas (keras-team/keras#19246), and it reduces each step's result in a way that
      fails on several workers (keras-team/keras#20585). On several replicas this class
      uses a plain loop, so that `steps_per_execution` and `MultiWorkerMirroredStrategy`
      work; the loop is not compiled by XLA, whatever `jit_compile` says. The shapes
      of batches build the model, where Keras reads one, and loses it. The batches of
      `train_on_batch`, `test_on_batch` and `predict_on_batch` are shared among the
      replicas, where Keras gives each of them all rows. A Python generator of
      `tf.data.Dataset.from_generator` must yield new arrays each time: several replicas
      on a CPU may write into those that TensorFlow has read.
    - **The end of the data.** Where their number is not known, Keras on one device with
      TensorFlow counts an update that it does not make, and draws dropout for it: the
      schedule runs ahead by a step an epoch. The steps of this class wait for a batch.
    - **Overflow.** Keras scales the loss of mixed float16 by what one replica sees.
      This class skips a step where any replica overflows.
    - **The scale after loading.** Keras scales the loss of a model by the policy of the
      process that loads it; this class as the model did that was saved.
    - **Dropout after loading.** Keras does not save the state of dropout's random
      numbers. This class does: a model that was loaded goes on with the masks that it
      would have had. `jit_compile="auto"` is saved as such, and decided anew.
    - **Rates by layer.** An optimizer with `layer_decay` has to know the layers. This
      class tells it which those of the model's `encoder` are, whenever the model is
      compiled or loaded.
    - **Large batches.** Batches that are too large for the memory are trained on in
      parts (`accumulation_steps`). Keras' optimizers accumulate gradients, too, but
      over steps of `fit`: schedules then count batches, not updates, every batch weighs
      the same, however many targets it has, and what replicas but the first have
      accumulated is not saved. Such an optimizer is refused.
    - **Hooks.** `prepare_batch` changes a batch before a step, and `target_weights`
      tells the weights of targets.
    - **Losses of layers.** Those that layers have added reach the loss of their own
      replica, also where it waits for other replicas.
    - **Weights on PyTorch.** `parameters` and `state_dict` have all of them, and their
      gradients are cleared before each step, also where weights have the same path.
    - **Errors** for what Keras takes without a word: a keyword that a functional model
      does not know, a data set without an end and without a number of steps, data
      without a batch, a `class_weight` for labels of tokens, and quantized layers or
      adapters that could not be saved or loaded. A `class_weight` beside weights of
      examples is refused with the way that works.
    - **Warnings** before `fit` trains nothing, since the schedule is over, or, in
      objectives and tasks, a head alone, since the encoder is frozen. Keras' own
      warning about data sets that are shuffled already does not come.

    Args:
        *args: those of `keras.Model`: none in a subclass, or inputs and outputs.
        **kwargs: those of `keras.Model`, such as `name`.

    Raises:
        TypeError: if a functional model is given a keyword that it does not know.

    Example:

    >>> x = keras.Input((4,))
    >>> model = DistributedModel(x, keras.layers.Dense(3)(x))
    >>> loss = tfeff.objectives.GlobalMeanCrossentropy()
    >>> model.compile("sgd", loss, accumulation_steps=2)
    >>> history = model.fit(np.ones((8, 4)), np.ones(8, int), batch_size=8, verbose=0)
    >>> model.optimizer.iterations.numpy().item()  # Two parts are one update.
    1
    """

    accumulation_steps = 1
    _loss_weights: Any = None
    # Keras sets these.
    optimizer: Any
    train_function: Any
    test_function: Any
    predict_function: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is DistributedModel and _is_functional(args, kwargs):
            cls = FunctionalModel
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any):
        if _is_functional(args, kwargs):
            others = {k: v for k, v in kwargs.items() if k not in _GRAPH}
            check_keywords(type(self).__name__, others, known_keywords(type(self)))
            if not isinstance(self, _FUNCTIONAL):
                # Keras would change this class itself, and so all that it is a base of.
                type(self).__bases__ += (_FUNCTIONAL,)
        super().__init__(*args, **kwargs)

    def compile(self, *args: Any, accumulation_steps: int = 1, **kwargs: Any) -> None:
        """As `keras.Model.compile`.

        Args:
            *args: those of `keras.Model.compile`.
            accumulation_steps: integer, in how many parts a batch goes through the
                model, one after the other. The gradients of the parts are summed before
                one update, whose gradient, clipping, decay and rate are those of the
                whole batch: that of the mean over all its targets. A step of `fit` is
                an update. Each replica's batch must be a multiple of it. (The setting
                of this name of `tfeff.recipes` multiplies the batch instead.)
            **kwargs: those of `keras.Model.compile`.

        Raises:
            ValueError: if the optimizer has a `layer_decay` and the model no
                `encoder`, or accumulates gradients itself; with `accumulation_steps`
                if a loss is no mean over the global batch, such as
                `tfeff.objectives.GlobalMeanCrossentropy`; on PyTorch if
                `steps_per_execution` is not 1.
        """
        accumulation_steps = check_integer("accumulation_steps", accumulation_steps)
        given = call_arguments("compile", *args, **kwargs)
        metrics = (given.get("metrics"), given.get("weighted_metrics"))
        if self.compiled and metrics == (None, None):
            given["weighted_metrics"] = {}  # Keras would keep those from before.
        if self.compiled and given.get("loss") is None and getattr(self, "loss", None):
            # Keras keeps the one from before, and would not save it.
            given["loss"] = untracked(self.loss)
            given["loss_weights"] = untracked(self._loss_weights)
        loss = given.get("loss")
        if accumulation_steps > 1 and not _is_global(loss):
            raise ValueError(
                "`loss` must be made of means over the global batch, such as "
                "`tfeff.objectives.GlobalMeanCrossentropy`, with `accumulation_steps`. "
                f"Received: {loss=}, {accumulation_steps=}"
            )
        self.accumulation_steps = accumulation_steps
        self._loss_weights = given.get("loss_weights")
        self._jit_compile_given = given.get("jit_compile", "auto")
        check_steps_per_execution(given.get("steps_per_execution", 1))
        super().compile(**given)
        if type(self.optimizer) is keras.optimizers.LossScaleOptimizer:
            # Around the optimizer that was given, whose weights have identities.
            self.optimizer = LossScaleOptimizer(
                self.optimizer.inner_optimizer,
                self.optimizer.initial_scale,
                self.optimizer.dynamic_growth_steps,
                name=self.optimizer.name,
            )
        optimizer = unscaled(self.optimizer)
        if getattr(optimizer, "gradient_accumulation_steps", None):
            raise ValueError(
                "`optimizer` must have no `gradient_accumulation_steps`: give "
                "`compile` `accumulation_steps` and larger batches. "
                "Received: gradient_accumulation_steps="
                f"{optimizer.gradient_accumulation_steps}"
            )
        if self.optimizer is not None:
            sum_repeated_rows(self.optimizer)
        has_loss = any(x is not None for x in keras.tree.flatten(loss))
        if num_replicas(self) > 1 and has_loss and _is_global(loss):
            report_loss_by(self, MeanOfShares(name="loss"))
        if getattr(optimizer, "layer_decay", None) is None:
            return
        if getattr(self, "encoder", None) is None:
            raise ValueError(
                "`optimizer` must have no `layer_decay` for a model without an "
                f"encoder. Received: layer_decay={optimizer.layer_decay}"
            )
        optimizer.set_encoder(self.encoder)

    def get_compile_config(self) -> Config:
        config = super().get_compile_config()
        if not config:
            return config
        if self.accumulation_steps > 1:
            config["accumulation_steps"] = self.accumulation_steps
        if self._jit_compile_given == "auto":
            config["jit_compile"] = "auto"  # Keras saves what it means on this machine.
        # Keras would scale the loss, or not, by the policy of whoever loads it.
        config["optimizer"] = keras.saving.serialize_keras_object(self.optimizer)
        config["auto_scale_loss"] = False
        return config

    def compile_from_config(self, config: Config) -> None:
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**config)
        if self.built and self.optimizer is not None:  # Of a model that only predicts.
            self.optimizer.build(self.trainable_variables)

    @property
    def losses(self) -> list[Tensor]:
        """The losses that the layers added in the last call."""
        model, added = _ADDED.get()
        return added if model is self else super().losses

    def compute_loss(self, *args: Any, **kwargs: Any) -> Tensor:
        """As `keras.Model.compute_loss`.

        At the end of it, Keras reads the losses that layers have added. Before that, a
        loss of global means waits for the other replicas, whose calls replace them.
        """
        token = _ADDED.set((self, self.losses))
        try:
            return super().compute_loss(*args, **kwargs)
        finally:
            _ADDED.reset(token)

    def target_weights(
        self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None
    ) -> Any:
        """The weight of each target in the loss, before division by their sum.

        Args:
            x, y, sample_weight: a batch, as `compute_loss` gets it.

        Returns:
            Tensors, as `compute_loss` takes them for `sample_weight`, each with
            the shape of its targets. They must not depend on the model's outputs.
        """
        if isinstance(y, dict):
            if not isinstance(sample_weight, dict):
                sample_weight = dict.fromkeys(y, sample_weight)
            return {n: target_weights(sample_weight.get(n), t) for n, t in y.items()}
        if isinstance(y, (list, tuple)):
            if not isinstance(sample_weight, (list, tuple)):
                sample_weight = [sample_weight] * len(y)
            return [target_weights(w, t) for w, t in zip(sample_weight, y, strict=True)]
        return target_weights(sample_weight, y)

    @property
    def reads_labels(self) -> bool:
        """Whether the loss reads the labels that belong to `labelled` outputs."""
        return True

    def labelled(self) -> tuple[Sequence, Any]:
        """The outputs that labels belong to, none if they are not known, and the loss.

        `class_weight` is checked by them.
        """
        return getattr(self, "outputs", None) or (), getattr(self, "loss", None)

    def prepare_batch(self, data: Any) -> Any:
        """The batch that a step of training or evaluation works on; by default `data`.

        Under a strategy, on JAX and on PyTorch it is called once more, before the first
        step, to tell the shapes that the model and its metrics are built by. Where it
        cannot be traced, since it reads values, those are the shapes of the data.

        Args:
            data: a batch: `(x, y, sample_weight)`, the last two optional.
        """
        return data

    def train_step(self, *arguments: Any) -> Any:
        if self.optimizer is None:
            raise ValueError(
                "`optimizer` of `compile` must not be None for training. "
                "Received: optimizer=None"
            )
        *state, data = arguments  # On JAX the state comes before the data.
        data = self.prepare_batch(data)
        if self.accumulation_steps == 1:
            return super().train_step(*state, data)
        return train_in_parts(self, *state, data)

    def test_step(self, *arguments: Any) -> Any:
        *state, data = arguments
        return super().test_step(*state, self.prepare_batch(data))

    def save_own_variables(self, store: Any) -> None:
        super().save_own_variables(store)
        for index, state in enumerate(seed_states(self)):
            store[f"{_SEED}{index}"] = state.numpy()

    def load_own_variables(self, store: Any) -> None:
        names = list(store.keys())
        saved = {name: store[name] for name in names}
        seeds = {name: saved.pop(name) for name in names if name.startswith(_SEED)}
        super().load_own_variables(saved)
        for index, state in enumerate(seed_states(self)):
            if f"{_SEED}{index}" in seeds:
                state.assign(seeds[f"{_SEED}{index}"])

    def make_train_function(self, force: bool = False) -> Callable:
        if self.train_function is None or force:
            if num_replicas(self) > 1 and self.optimizer is not None:
                check_on_replicas(unscaled(self.optimizer), self.weights)
            super().make_train_function(force)
            self.train_function = replica_function(
                self, self.train_step, self.train_function
            )
            self.note_trained_weights()
        return self.train_function

    def make_test_function(self, force: bool = False) -> Callable:
        if self.test_function is None or force:
            super().make_test_function(force)
            self.test_function = replica_function(
                self, self.test_step, self.test_function
            )
        return self.test_function


@keras.saving.register_keras_serializable(package="tfeff")
class FunctionalModel(DistributedModel, _FUNCTIONAL):
    """The class of a `DistributedModel` that is made of inputs and outputs."""

    def get_config(self) -> Config:
        return {**super().get_config(), **layer_states(self)}

    @classmethod
    def from_config(cls, config: Config, custom_objects: Any = None) -> Any:
        make = super().from_config

        def whole(**graph):
            return make(graph, custom_objects=custom_objects)

        return make_with_states(whole, config)


def _is_global(loss):
    """Whether all losses are means over the global batch, as far as there are any."""
    return all(x is None or isinstance(x, GlobalMean) for x in keras.tree.flatten(loss))


def _is_functional(args, kwargs):
    """Whether Keras makes a functional model of these arguments."""
    return len(args) == 2 or "outputs" in kwargs
