"""The importance of each attention head: the metrics of the model without it."""

import dataclasses
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from tfeff.encoders.encoder import encoder_of
from tfeff.layers.encoder_block import blocks_of
from tfeff.layers.head_masks import masked_heads
from tfeff.training.replicas import num_replicas
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.checks import check_choice, check_finite_batches


@dataclasses.dataclass(frozen=True)
class HeadImportance:
    """The metrics of a model with all its heads, and with each of them off.

    Args:
        metrics: float by metric, the loss among them, with all heads.
        without: float array `[L, N]` by metric: the metric with head `h` of layer `l`
            off. NaN where a layer has no such head, has it off already, or has no
            other.

    Example: see `head_importance`.
    """

    metrics: Mapping[str, float]
    without: Mapping[str, np.ndarray]

    def change(self, metric: str = "loss") -> np.ndarray:
        """The change of the metric with each head off, `[L, N]`.

        Of the loss, it is the importance of the head: below 0 where the head hurts.

        Args:
            metric: the name of the metric.

        Raises:
            ValueError: if there is no such metric.
        """
        check_choice("metric", metric, self.without)
        return self.without[metric] - self.metrics[metric]


def head_importance(model: keras.Model, batches: tf.data.Dataset) -> HeadImportance:
    """Evaluates a model with each head of its encoder off, one at a time.

    The output of the head is 0 (`tfeff.layers.masked_heads`), and the rest of the model
    is as it was. A model of `L` layers with `N` heads is evaluated `L N + 1` times.

    Args:
        model: a compiled model with an `encoder`, such as `tfeff.tasks.Classifier`, on
            one device.
        batches: finitely many batches of examples, as for `model.evaluate`.

    Returns:
        `HeadImportance`.

    Raises:
        TypeError: if the model has no `encoder`, or `batches` is not a data set.
        ValueError: if the model is not compiled or runs on several replicas, or the
            data set is infinite; on another backend than TensorFlow.

    Example:

    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=50)
    >>> model = tfeff.tasks.Classifier(encoder, num_classes=2)
    >>> model.compile()
    >>> ids = np.ones((4, 6), "int32")
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    >>> batches = tf.data.Dataset.from_tensors((inputs, np.array([0, 1, 1, 0])))
    >>> head_importance(model, batches).change("loss").shape
    (2, 2)

    Reference:
        Saidov, "Optimized BERT modifications", "Motivation": without some of its heads
        BERT gained 0.1 % to 1.2 % on GLUE; Michel et al., "Are sixteen heads really
        better than one?", section 3.2.
    """
    # JAX would take the masks for constants.
    check_tensorflow("`head_importance`")
    encoder = encoder_of(model)
    if encoder is None:
        raise TypeError(
            f"`model` must have an `encoder`. Received: model={model!r:.80}"
        )
    if not isinstance(batches, tf.data.Dataset):
        raise TypeError(
            f"`batches` must be a `tf.data.Dataset`. Received: batches={batches!r:.80}"
        )
    if not getattr(model, "compiled", False):
        raise ValueError("`model` must be compiled. Received: one that is not")
    replicas = num_replicas(model)
    if replicas > 1:
        raise ValueError(
            f"`model` must be on one device. Received: one on {replicas} replicas"
        )
    check_finite_batches(batches)
    attentions = [block.attention for block in blocks_of(encoder)]
    # Variables, so that one compiled function serves all evaluations.
    masks = [
        keras.Variable(np.ones(layer.output_heads, "float32"), trainable=False)
        for layer in attentions
    ]

    def evaluate():
        results = model.evaluate(batches, verbose=0, return_dict=True)
        return {name: float(value) for name, value in results.items()}

    with masked_heads(encoder, masks):
        model.make_test_function(force=True)
        try:
            metrics = evaluate()
            shape = len(masks), max(mask.shape[0] for mask in masks)
            without = {name: np.full(shape, np.nan) for name in metrics}
            for index, (layer, mask) in enumerate(zip(attentions, masks)):
                heads = set(range(layer.output_heads)) - {*layer.disabled_heads}
                for head in heads if len(heads) > 1 else ():
                    mask.assign(np.arange(layer.output_heads) != head)
                    for name, value in evaluate().items():
                        without[name][index, head] = value
                mask.assign(np.ones(layer.output_heads))
        finally:
            model.test_function = None  # It has the masks in it.
    return HeadImportance(metrics, without)
