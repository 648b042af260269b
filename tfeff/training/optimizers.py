import inspect
import numbers
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from tfeff.compat.optimizers import OpenAdamW, trained_variables
from tfeff.training.layerwise_decay import rate_factors
from tfeff.training.replicas import largest_of_replicas
from tfeff.training.schedules import LinearWarmupDecay
from tfeff.training.sparse_gradients import dense_gradients
from tfeff.utils.checks import (
    check_bool,
    check_number,
    check_positive,
    check_rate,
    check_weight,
)
from tfeff.utils.types import Config, Tensor

_CHECKS = {
    "beta_1": check_rate,
    "beta_2": check_rate,
    "epsilon": check_positive,
    "weight_decay": check_weight,
}
# A rate may be a schedule or a variable, too, and a limit may be None.
_NUMBERS_OR_OTHERS = ("learning_rate", "clipnorm", "clipvalue", "global_clipnorm")


@keras.saving.register_keras_serializable(package="tfeff")
class AdamW(OpenAdamW):
    """Keras' AdamW, made for Transformers and for many replicas.

    The gradient `g` of the weight `w` moves it at step `t`, from 1, by

        m ← β₁ m + (1 - β₁) g        v ← β₂ v + (1 - β₂) g²
        w ← w - f η (c m / (sqrt(v) + ε) + λ w)
        c = sqrt(1 - β₂ᵗ) / (1 - β₁ᵗ)

    It differs from `keras.optimizers.AdamW` in these ways:

    - Biases and the scales and shifts of norms do not decay: every weight named
      `bias`, `..._bias`, `gamma` or `beta` has `λ = 0`.
    - `global_clipnorm`, `clipnorm` and `clipvalue` act on the gradient of the whole
      batch, after the replicas' gradients are summed. Keras clips each replica's
      gradient before the sum, so that the effect depends on the number of replicas.
    - `layer_decay` gives lower layers smaller steps, to keep what was pretrained:
      `f = d^(L+1-l)` in block `l` of `L` (from 0), `d^(L+2)` in the embedding, 1
      in a head. It multiplies the rate, hence the decay too.
    - `bias_correction=False` sets `c = 1`, as BERT, ELECTRA and ConvBERT do.
    - What `exclude_from_weight_decay` names is saved and copied with the optimizer.
    - A weight that has had no gradient yet does not decay, also on JAX.
    - Numbers that are out of range, and weights whose dtype cannot hold Adam's means,
      are errors.

    Args:
        *args: those of `keras.optimizers.AdamW`, `learning_rate` (`η`) first.
        layer_decay: float `d` in (0, 1]; `None` for the same rate everywhere. It
            needs the layers: a `DistributedModel` with an `encoder`, such as every
            model of tfeff, names them when it is compiled; elsewhere call
            `set_encoder`.
        bias_correction: whether the means of `g` and `g²` are corrected for their
            start at 0.
        **kwargs: more arguments of `keras.optimizers.AdamW`.

    Raises:
        TypeError, ValueError: if a number is out of range, such as a negative or
            infinite rate, an `epsilon` that is not above 0 or a `beta` outside [0, 1);
            and, when the first weights come, if the layers are not known, or the
            weights' dtype cannot hold Adam's means: float16, whose squares of small
            gradients are 0, or bfloat16 with a `beta` that it rounds to 1.

    Example:

    >>> optimizer = AdamW(learning_rate=1e-4, weight_decay=0.01, global_clipnorm=1.0)
    >>> optimizer.weight_decay
    0.01

    Reference:
        Loshchilov and Hutter, "Decoupled weight decay regularization"; Devlin et
        al., "BERT", section A.2, and its authors' code, for what decays; Clark et al.,
        "ELECTRA", appendix B, for the rates of layers.
    """

    def __init__(
        self,
        *args: Any,
        layer_decay: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ):
        if layer_decay is not None:
            check_number("layer_decay", layer_decay, above=0, maximum=1)
        # Keras would train with numbers that are out of range.
        given = inspect.signature(keras.optimizers.AdamW).bind_partial(*args, **kwargs)
        for name, value in given.arguments.items():
            if name in _CHECKS:
                _CHECKS[name](name, value)
            elif name in _NUMBERS_OR_OTHERS and isinstance(value, numbers.Real):
                check_weight(name, value)
        super().__init__(*args, **kwargs)
        self.layer_decay = layer_decay
        self.bias_correction = check_bool("bias_correction", bias_correction)
        self._encoder: Callable = lambda: None
        self._factors: dict[str, float] | None = None
        self._excluded: dict[str, list] = {}
        self._excluded_keys: set[str] = set()

    @classmethod
    def from_config(cls, config: Config, custom_objects: Any = None) -> "AdamW":
        config = dict(config)
        excluded = config.pop("excluded_from_weight_decay", None)
        optimizer = super().from_config(config, custom_objects)
        if excluded:
            optimizer.exclude_from_weight_decay(var_names=excluded["names"])
            optimizer._excluded = dict(excluded)
        return optimizer

    def exclude_from_weight_decay(
        self, var_list: Any = None, var_names: Any = None
    ) -> None:
        """As the method of Keras' optimizers, before the weights are known.

        Args:
            var_list: weights that do not decay, also those that do not train yet. A
                saved or copied optimizer knows them by their paths, and those that
                train by their places among the weights of its own; so does one that is
                built for a copy of them.
            var_names: list of regular expressions of names of weights.
        """
        super().exclude_from_weight_decay(var_list, var_names)
        paths = [variable.path for variable in var_list or ()]
        self._excluded = {"names": list(var_names or ()), "paths": paths}
        self._excluded_keys = {self.variable_key(v) for v in var_list or ()}

    def exclude_copies(
        self, optimizer: "AdamW", originals: list[Any], sources: Mapping[int, Any]
    ) -> None:
        """Excludes from weight decay the copies of what another optimizer excludes.

        Args:
            optimizer: the other one; this one is built.
            originals: the weights that the other one trains.
            sources: for the identity of each weight of this one what it is a copy of.
        """
        excluded = {id(originals[i]) for i in optimizer._excluded_among(originals)}
        variables = trained_variables(self)
        copies = [i for i, v in enumerate(variables) if id(sources[id(v)]) in excluded]
        self._exclude(variables, copies)

    def _exclude(self, variables, indices):
        self._excluded_keys = {self.variable_key(variables[i]) for i in indices}
        if indices or self._excluded:
            paths = [variables[i].path for i in indices]
            # Weights that do not train now may do so later.
            others = [p for p in self._excluded.get("paths", []) if p not in paths]
            self._excluded |= {"paths": [*paths, *others], "indices": indices}

    def _excluded_among(self, variables):
        """The indices of the weights that were in a `var_list`."""
        # Several weights may have one path, so that it is the last thing to go by.
        paths = self._excluded.get("paths", [])
        indices = self._excluded.get("indices", [])
        of_all = [variable.path for variable in variables]
        found: set[int] = set()
        if self._excluded_keys:
            keys = enumerate(map(self.variable_key, variables))
            found = {i for i, key in keys if key in self._excluded_keys}
        elif [of_all[i] for i in indices if i < len(of_all)] == paths[: len(indices)]:
            found = set(indices)
        others = set(paths).difference(of_all[i] for i in found)
        return [i for i, p in enumerate(of_all) if i in found or p in others]

    def set_encoder(self, encoder: keras.Model) -> None:
        """Names the encoder whose layers `layer_decay` counts.

        Args:
            encoder: a `tfeff.encoders.Encoder`. Weights that are not its own get
                the whole rate. Its own are those of the first step, also adapters
                that it has got by then.
        """
        if self.layer_decay is not None:
            # A strong reference would make the encoder a part of the optimizer.
            self._encoder = weakref.ref(encoder)
            factors = rate_factors(encoder, self.layer_decay)
            self._factors = {self.variable_key(weight): f for weight, f in factors}

    def build(self, variables: list[Any]) -> None:
        if self.layer_decay is not None and self._factors is None:
            raise ValueError(
                "`layer_decay` must know the layers: compile a model of tfeff with "
                "the optimizer, or call `set_encoder`. "
                f"Received: layer_decay={self.layer_decay} without an encoder"
            )
        if (encoder := self._encoder()) is not None:
            self.set_encoder(encoder)  # It may have adapters since.
        self._exclude(variables, self._excluded_among(variables))
        super().build(variables)

    def decay(self, variables: list[Any]) -> None:
        """Does nothing: `update_step` decays, at the rate of the variable's layer."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        variables = trainable_variables or trained_variables(self)
        # `build` does not check this, so that a saved model loads, and predicts, even
        # if it cannot be trained. One weight of each dtype is enough, as this runs in
        # each step that is not traced.
        for variable in {x.dtype: x for x in variables}.values():
            self._check_dtype(variable)
        return super().apply(grads, trainable_variables)

    def _check_dtype(self, variable):
        """Raises where updates would change nothing, or give NaN."""
        dtype = keras.backend.standardize_dtype(variable.dtype)
        for name in ("beta_1", "beta_2"):
            value = getattr(self, name)
            is_one = bool(np.asarray(value).astype(dtype) >= 1)
            if is_one or (name == "beta_2" and dtype == "float16"):
                reason = f"{value} is 1" if is_one else "squares of gradients are 0"
                raise ValueError(
                    f"`{name}` must leave means that the weights' dtype can hold, and "
                    f"in {dtype} {reason}: use the policy 'mixed_{dtype}', whose "
                    f"weights are float32. Received: {name}={value}, and "
                    f"{variable.path} of dtype {dtype}"
                )

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Any) -> None:
        rate = ops.cast(learning_rate, variable.dtype)
        if self._factors is not None:
            rate = rate * self._factors.get(self.variable_key(variable), 1.0)
        if self.decays(variable):
            decay = variable * (rate * self.weight_decay)
            self.assign_sub(variable, self._decay_if_reached(decay, variable, gradient))
        if not self.bias_correction:
            # Keras multiplies by the inverse of this.
            step = ops.cast(self.iterations + 1, variable.dtype)
            first = 1 - ops.power(ops.cast(self.beta_1, variable.dtype), step)
            second = 1 - ops.power(ops.cast(self.beta_2, variable.dtype), step)
            rate = rate * first / ops.sqrt(second)
        super().update_step(gradient, variable, rate)

    def _decay_if_reached(self, decay, variable, gradient):
        """The decay; 0 for a weight that has had no gradient yet.

        The gradient of such a weight is zeros on JAX, and elsewhere None, for which
        there is no update.
        """
        if keras.backend.backend() != "jax":
            return decay
        moment = self.second_moment(variable)
        reached = ops.any(ops.logical_or(gradient != 0, ops.not_equal(moment, 0)))
        return ops.where(reached, decay, ops.zeros_like(decay))

    def finalize_variable_values(self, var_list: list[Any]) -> None:
        # `fit` calls it. Before the first update, averages of weights are zeros.
        if self.iterations.numpy() > 0:
            super().finalize_variable_values(var_list)

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            layer_decay=self.layer_decay, bias_correction=self.bias_correction
        )
        if any(self._excluded.values()):
            excluded = {name: list(known) for name, known in self._excluded.items()}
            config["excluded_from_weight_decay"] = excluded
        return config

    def decays(self, variable: Any) -> bool:
        # A replica's copy has a name of its own, such as "dense/bias/replica_1:0".
        name = self.original(variable).name.split("/")[-1].split(":")[0]
        no_decay = name in ("gamma", "beta") or name.endswith("bias")
        no_decay = no_decay or self.variable_key(variable) in self._excluded_keys
        return not no_decay and super().decays(variable)

    def clip(self, gradients: list[Tensor]) -> list[Tensor]:
        # Only TensorFlow has replicas; elsewhere gradients are global already.
        if keras.backend.backend() == "tensorflow":
            return gradients
        return super().clip(gradients)

    def overwriting(self, value: Tensor) -> Tensor:
        # The scales of float8 come from old values, which all replicas share, and its
        # histories hold the largest values, which are those of the global batch.
        return largest_of_replicas(value)

    def sum_over_replicas(
        self, gradients_and_variables: list[tuple[Tensor, Any]]
    ) -> list[tuple[Tensor, Any]]:
        grads, variables = zip(*gradients_and_variables)
        # Rows of a sparse gradient repeat; only their sums have the right norm.
        dense = dense_gradients(list(grads))
        reduced = super().sum_over_replicas(list(zip(dense, variables)))
        grads, variables = zip(*reduced)
        return list(zip(super().clip(list(grads)), variables))


def adamw(
    learning_rate: float,
    warmup_steps: int,
    total_steps: int,
    weight_decay: float = 0.01,
    epsilon: float = 1e-6,
    global_clipnorm: float | None = 1.0,
    layer_decay: float | None = None,
    bias_correction: bool = True,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
) -> AdamW:
    """AdamW with linear warm-up and linear decay, as encoders are pretrained.

    Args:
        learning_rate: float, the peak rate.
        warmup_steps: integer, steps from 0 up to the peak.
        total_steps: integer, the step at which the rate is back at 0.
        weight_decay: float of at least 0, decoupled decay; not of biases and norms.
        epsilon: float above 0, added to the denominator of the update.
        global_clipnorm: float above 0, the largest norm of the gradient of the whole
            batch over all weights; `None` to leave it as it is.
        layer_decay: float in (0, 1], factor of the rate from a layer to the one
            below it, as for `AdamW`; `None` for one rate.
        bias_correction: whether Adam's means are corrected for their start at 0.
        beta_1, beta_2: floats in [0, 1), the share that the old value has in each new
            value of Adam's means: of the gradient, and of its square.

    Returns:
        A `tfeff.training.AdamW`.

    Raises:
        TypeError, ValueError: as `LinearWarmupDecay` and `AdamW`; if a norm is not
            above 0.

    Example:

    >>> optimizer = adamw(1e-2, warmup_steps=4, total_steps=8)
    >>> float(optimizer.learning_rate) < 1e-2
    True

    Reference:
        Tian et al., "Shatter", section A.2.
    """
    learning_rate = check_positive("learning_rate", learning_rate)
    if global_clipnorm is not None:
        global_clipnorm = check_positive("global_clipnorm", global_clipnorm)
    return AdamW(
        LinearWarmupDecay(learning_rate, warmup_steps, total_steps),
        weight_decay=check_weight("weight_decay", weight_decay),
        epsilon=epsilon,
        global_clipnorm=global_clipnorm,
        layer_decay=layer_decay,
        bias_correction=bias_correction,
        beta_1=beta_1,
        beta_2=beta_2,
    )


def check_on_replicas(optimizer: Any, weights: Sequence[keras.Variable]) -> None:
    """Raises where Keras' optimizer would fail, or let replicas drift apart."""
    if optimizer.use_ema and optimizer.ema_overwrite_frequency:
        raise ValueError(
            "`optimizer` must have no `ema_overwrite_frequency` on several "
            "replicas, where Keras cannot overwrite the weights. The averages of "
            "`use_ema` alone become the weights at the end of `fit`. Received: "
            f"ema_overwrite_frequency={optimizer.ema_overwrite_frequency}"
        )
    is_float8 = any(weight.overwrite_with_gradient for weight in weights)
    if is_float8 and not isinstance(optimizer, AdamW):
        raise ValueError(
            "`optimizer` must be a `tfeff.training.AdamW` to train a model of "
            "float8 on several replicas: others would give each replica scales of "
            f"its own. Received: optimizer={optimizer!r}"
        )
