"""The loops in which a step of a model runs on every replica."""

import warnings

import keras

from tfeff.compat.models import has_none
from tfeff.training.replicas import num_replicas


def replica_function(model: keras.Model, step, default):
    """A function of an iterator that runs `step` on replicas, in a plain loop.

    Args:
        model: the model that the step is of.
        step: function of a replica's batch.
        default: Keras' own function, which one replica keeps, behind its batch.
    """
    if num_replicas(model) == 1:
        return _reading_first(model, default)
    import tensorflow as tf

    strategy = model.distribute_strategy
    steps = model.steps_per_execution
    logged: set[str] = set()

    def run(batch):
        for name, value in (strategy.run(step, args=(batch,)) or {}).items():
            # Some metrics of Keras report several values by their names.
            logged.update(value if isinstance(value, dict) else [name])

    @tf.function(reduce_retracing=True)
    @tf.autograph.experimental.do_not_convert
    def execute(iterator):
        def goes_on(count, batch):
            return tf.logical_and(count < steps, batch.has_value())

        def one_step(count, batch):
            run(batch.get_value())
            count += 1
            # The batch after the last step stays for the next execution.
            batch = tf.cond(count < steps, iterator.get_next_as_optional, lambda: batch)
            return count, batch

        count, _ = tf.while_loop(
            goes_on,
            one_step,
            [tf.constant(0), iterator.get_next_as_optional()],
            parallel_iterations=1,
        )
        return count

    def execute_eagerly(iterator):
        for count in range(steps):
            if (batch := next(iterator, None)) is None:
                return count
            run(batch)
        return steps

    def execute_and_report(iterator):
        if not hasattr(iterator, "get_next_as_optional"):
            iterator = _shared_batch(strategy, next(iterator))
        if not model.run_eagerly:
            _check_without_none(iterator)
        if not (execute_eagerly if model.run_eagerly else execute)(iterator):
            raise StopIteration
        result = model.get_metrics_result()
        if lost := sorted(logged - result.keys()):
            warnings.warn(
                f"What `{step.__name__}` returns beside metrics is not reported on "
                f"several replicas: {', '.join(lost)}. Metrics of the model are",
                stacklevel=2,
            )
            logged.clear()
        return result

    return _refusing_no_batch(execute_and_report)


def _reading_first(model, default):
    """Keras' function of an iterator, which runs nothing where the data have ended.

    A compiled function of TensorFlow runs what does not depend on the batch, as the
    count of updates, before it finds that there is none. Keras' loop over several steps
    looks first.
    """
    if keras.backend.backend() != "tensorflow":
        return default
    import tensorflow as tf

    @tf.function(reduce_retracing=True)
    @tf.autograph.experimental.do_not_convert
    def execute(batch):
        return default([batch.get_value()])

    @tf.function(reduce_retracing=True)
    def read_distributed(iterator):
        return iterator.get_next_as_optional()

    def read_and_execute(iterator):
        if model.run_eagerly or not hasattr(iterator, "get_next_as_optional"):
            return default(iterator)
        is_distributed = isinstance(iterator, tf.distribute.DistributedIterator)
        if model.steps_per_execution > 1:
            if is_distributed:
                _check_without_none(iterator)
            return default(iterator)
        # A strategy of one replica would tell of this batch's shape, not of all. Of
        # data that have `None` TensorFlow can read eagerly alone.
        if is_distributed and not has_none(iterator.element_spec):
            batch = read_distributed(iterator)
        else:
            batch = iterator.get_next_as_optional()
        if not batch.has_value():
            raise StopIteration
        return execute(batch)

    return _refusing_no_batch(read_and_execute)


def _refusing_no_batch(execute):
    """A function of an iterator for which data that end before a batch are an error.

    Keras would report a loss of 0, or fail on metrics that are not built.
    """
    has_begun = False

    def execute_or_tell(iterator):
        nonlocal has_begun
        try:
            result = execute(iterator)
        except StopIteration:
            if has_begun:
                raise
            raise ValueError(
                "The data must have a batch. Received: data without any"
            ) from None
        has_begun = True
        return result

    return execute_or_tell


def _check_without_none(iterator):
    """Raises for batches that TensorFlow cannot distribute."""
    if has_none(iterator.element_spec):
        raise ValueError(
            "Batches must have no `None` for several replicas, or several "
            "`steps_per_execution` under a strategy, such as (x, y) without weights. "
            f"Received: {iterator.element_spec}"
        )


def _shared_batch(strategy, batch):
    """An iterator of one batch `(x, y, sample_weight)`, of which each has its rows."""
    import tensorflow as tf

    while batch[-1] is None:
        batch = batch[:-1]
    dataset = tf.data.Dataset.from_tensors(keras.tree.lists_to_tuples(batch))
    return iter(strategy.experimental_distribute_dataset(dataset))
