import keras

from tfeff.training.schedules import LinearWarmupDecay


@keras.saving.register_keras_serializable(package="tfeff")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW, made for Transformers and for many replicas.

    It differs from `keras.optimizers.AdamW` in two ways:

    - Biases and the scales and shifts of norms do not decay: every weight named
      `bias`, `..._bias`, `gamma` or `beta` is left out of `weight_decay`.
    - `global_clipnorm` acts on the gradient of the whole batch, after the replicas'
      gradients are summed. Keras clips what each replica holds before the sum, so
      that the same number means something else on another number of replicas.

    The arguments are those of `keras.optimizers.AdamW`.

    Example:

    >>> optimizer = AdamW(learning_rate=1e-4, weight_decay=0.01, global_clipnorm=1.0)

    Reference:
        Loshchilov and Hutter, "Decoupled weight decay regularization"; Devlin et
        al., "BERT", section A.2, for what decays.
    """

    def _use_weight_decay(self, variable):
        name = variable.name.split("/")[-1].split(":")[0]
        no_decay = name in ("gamma", "beta") or name.endswith("bias")
        return not no_decay and super()._use_weight_decay(variable)

    def _clip_gradients(self, grads):
        if self._clips_after_reduction:
            return grads
        return super()._clip_gradients(grads)

    @property
    def _clips_after_reduction(self):
        # Only TensorFlow has replicas; elsewhere gradients are global already.
        return self.global_clipnorm and keras.backend.backend() == "tensorflow"

    def _all_reduce_sum_gradients(self, grads_and_vars):
        import tensorflow as tf

        grads, variables = zip(*grads_and_vars)
        # Rows of a sparse gradient repeat; only their sums have the right norm.
        grads = [g if g is None else tf.convert_to_tensor(g) for g in grads]
        reduced = super()._all_reduce_sum_gradients(list(zip(grads, variables)))
        if not self._clips_after_reduction:
            return reduced
        grads, variables = zip(*reduced)
        clipped, _ = tf.clip_by_global_norm(grads, self.global_clipnorm)
        return list(zip(clipped, variables))


def adamw(
    learning_rate: float,
    warmup_steps: int,
    total_steps: int,
    weight_decay: float = 0.01,
    epsilon: float = 1e-6,
    global_clipnorm: float | None = 1.0,
) -> AdamW:
    """AdamW with linear warm-up and linear decay, as encoders are pretrained.

    Args:
        learning_rate: float, the peak rate.
        warmup_steps: integer, steps from 0 up to the peak.
        total_steps: integer, the step at which the rate is back at 0.
        weight_decay: float, decoupled decay; not of biases and norms.
        epsilon: float added to the denominator of the update.
        global_clipnorm: float, the largest norm of the gradient of the whole batch
            over all weights; `None` to leave it as it is.

    Returns:
        A `tfeff.training.AdamW`.

    Raises:
        ValueError: as `LinearWarmupDecay`.

    Example:

    >>> optimizer = adamw(1e-4, warmup_steps=10_000, total_steps=1_000_000)

    Reference:
        Tian et al., "Shatter", section A.2.
    """
    return AdamW(
        LinearWarmupDecay(learning_rate, warmup_steps, total_steps),
        weight_decay=weight_decay,
        epsilon=epsilon,
        global_clipnorm=global_clipnorm,
    )
