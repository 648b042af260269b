"""tfeff's classes are known to Keras and to KerasHub as soon as these are imported.

Keras finds a saved class by its registered name, and registers it when its module is
imported; of the modules that a configuration names it imports its own alone. KerasHub
looks through all registered classes for the tasks and tokenizers of a backbone. To
import everything with `import tfeff` would cost seconds, and TensorFlow on any backend.
So Keras gets stand-ins, and what KerasHub looks for is imported right after it.
"""

import importlib
import sys
from collections.abc import Callable

# The registered classes by their modules.
CLASSES = {
    "tfeff.data.text.bert_tokenizer": ["BertTokenizer"],
    "tfeff.data.text.roberta_tokenizer": ["RobertaTokenizer"],
    "tfeff.data.text.xlm_roberta_tokenizer": ["XLMRobertaTokenizer"],
    "tfeff.data.text.xlnet_tokenizer": ["XLNetTokenizer"],
    "tfeff.encoders.encoder": ["Encoder"],
    "tfeff.encoders.hub_tasks": [
        *("EncoderMaskedLM", "EncoderMaskedLMPreprocessor"),
        *("EncoderTextClassifier", "EncoderTextClassifierPreprocessor"),
    ],
    "tfeff.layers.blockwise_attention": ["BlockwiseAttention"],
    "tfeff.layers.dense": ["Dense", "EinsumDense"],
    "tfeff.layers.dropout": ["Dropout"],
    "tfeff.layers.dynamic_conv": ["DynamicConv1D"],
    "tfeff.layers.encoder_block": ["EncoderBlock"],
    "tfeff.layers.encoder_embedding": ["EncoderEmbedding"],
    "tfeff.layers.feedforward": ["FeedForward"],
    "tfeff.layers.grouped_dense": ["GroupedDense"],
    "tfeff.layers.layerwise_pooling": ["LayerwisePooling"],
    "tfeff.layers.lightweight_conv": ["LightweightConv1D"],
    "tfeff.layers.mean_pooling": ["MeanPooling"],
    "tfeff.layers.mixed_attention": ["MixedAttention"],
    "tfeff.layers.one_head_attention": ["OneHeadAttention"],
    "tfeff.layers.partition_of_unity_mask": ["PartitionOfUnityMask"],
    "tfeff.layers.partitioned_attention": ["PartitionedAttention"],
    "tfeff.layers.relative_attention": ["RelativeAttention"],
    "tfeff.layers.relative_embedding": ["RelativeEmbedding"],
    "tfeff.layers.segment_pooling": ["SegmentPooling"],
    "tfeff.layers.self_attention": ["SelfAttention"],
    "tfeff.layers.span_dynamic_conv": ["SpanDynamicConv1D"],
    "tfeff.layers.sparse_attention": ["SparseAttention"],
    "tfeff.layers.two_stream_blocks": ["TwoStreamBlocks"],
    "tfeff.objectives.binary_metrics": [
        *("AUC", "Accuracy", "CrossEntropy", "Precision", "Recall")
    ],
    "tfeff.objectives.distillation.model": ["Distillation"],
    "tfeff.objectives.masked_lm": ["MaskedLM"],
    "tfeff.objectives.masked_lm_head": ["MaskedLMHead"],
    "tfeff.objectives.permutation_lm": ["PermutationLM"],
    "tfeff.objectives.replaced_token": ["ReplacedTokenDetection"],
    "tfeff.objectives.sentence_pair": ["SentencePairPrediction"],
    "tfeff.objectives.token_logits": ["TokenLogits"],
    "tfeff.objectives.token_replacement": ["TokenReplacement"],
    "tfeff.tasks.classifier": ["Classifier"],
    "tfeff.tasks.groups": ["Group", "Ungroup"],
    "tfeff.tasks.in_batch_contrast": ["InBatchContrast"],
    "tfeff.tasks.multiple_choice": ["MultipleChoice"],
    "tfeff.tasks.regressor": ["GlobalMeanSquaredError", "Regressor"],
    "tfeff.tasks.sentence_embedding": ["SentenceEmbedding"],
    "tfeff.tasks.span_qa": ["SpanQA", "_SpanHead"],
    "tfeff.tasks.task": ["_LastToken"],
    "tfeff.tasks.token_classifier": ["TokenClassifier"],
    "tfeff.training.loss_scale": ["LossScaleOptimizer"],
    "tfeff.training.losses": [
        *("GlobalMeanBinaryCrossentropy", "GlobalMeanCrossentropy")
    ],
    "tfeff.training.model": ["FunctionalModel"],
    "tfeff.training.optimizers": ["AdamW"],
    "tfeff.training.schedules": ["LinearWarmupDecay", "ResumedSchedule"],
    "tfeff.training.target_metrics": ["SparseAccuracy", "SparseCrossEntropy"],
}


class AfterImports:
    """Does something right after each import of some modules.

    Python asks this finder for a module's loader before it asks the others.

    Args:
        actions: functions without arguments by the names of modules. Those of modules
            that are already imported are called at once.
    """

    def __init__(self, actions: dict[str, Callable[[], object]]):
        self._actions = actions
        sys.meta_path.insert(0, self)
        for name, action in actions.items():
            if sys.modules.get(name) is not None:
                action()

    def find_spec(self, name, path=None, target=None):
        if name not in self._actions:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                self._actions[name]()

            spec.loader.exec_module = exec_module
        return spec


def register() -> None:
    """Makes tfeff known to Keras and to KerasHub, now or when they are imported."""
    AfterImports(
        {
            "keras": _add_stand_ins,
            "keras_hub": lambda: importlib.import_module("tfeff.encoders"),
            # After the encoders, which the tokenizers import.
            "tfeff.encoders": _import_tokenizers,
        }
    )


def _add_stand_ins():
    import keras

    objects = keras.saving.get_custom_objects()
    for module, names in CLASSES.items():
        for name in names:
            # The class itself takes its place when it is imported.
            objects.setdefault(f"tfeff>{name}", _stand_in(module, name))


def _stand_in(module, name):
    """A class that Keras can make an object of, in place of one not yet imported."""

    def from_config(config):
        return getattr(importlib.import_module(module), name).from_config(config)

    return type(name, (), {"from_config": staticmethod(from_config)})


def _import_tokenizers():
    # KerasHub imports it where it is installed.
    if sys.modules.get("tensorflow_text") is not None:
        for module in CLASSES:
            if module.startswith("tfeff.data.text."):
                importlib.import_module(module)
