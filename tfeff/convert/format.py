"""Formats of checkpoints: their configurations, tensors and heads."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tfeff.convert.config import Config
from tfeff.convert.weights import Weight
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.objectives.masked_lm_head import head_settings_like
from tfeff.objectives.sentence_pair import SentencePairPrediction

# The endings of models' names, and the heads of pretraining that each has.
Models: TypeAlias = tuple[tuple[str, set[str]], ...]
# A function from a head's variables by name to its weights, by the head's name.
HeadWeights: TypeAlias = dict[str, Callable[[Mapping], Iterator[Weight]]]


class Format:
    """A format of checkpoints, as a subclass for each family.

    Attributes:
        name: what the names of its models begin with, such as `"Bert"`.
        prefix: what precedes the names of an encoder's tensors in a model with a head.
        left_out: the kinds of known tensors that may have no weight, by regular
            expressions of their names.
        free: the arguments of `Encoder` that a configuration need not say.
        padding_id: the id that padding must have, or `None` for any.
        head_activation: of the masked language model head; `None` for the encoder's.
        heads: the heads of pretraining.
        pairs: what the head of pairs of sentences beside that of masked tokens
            predicts, `"next"` or `"order"`; `None` where there is none.
        tasks: the heads of fine-tuned models by kind, such as
            `"SequenceClassification"`.
        models: those of pretraining, that with the most heads first.
    """

    name = prefix = ""
    left_out: Mapping[str, str] = {}
    free: frozenset[str] = frozenset()
    padding_id: int | None = None
    head_activation: str | None = None
    heads: HeadWeights = {}
    pairs: str | None = None
    tasks: dict[str, HeadWeights] = {}
    models: Models = ()

    def arguments(self, config: Config) -> dict:
        """The arguments of `Encoder` for the configuration."""
        raise NotImplementedError

    def configuration(self, encoder) -> dict:
        """The configuration that comes closest to an encoder: inverts `arguments`.

        For what it cannot say, `arguments` gives another value back.
        """
        raise NotImplementedError

    def weights(self, encoder) -> Iterator[Weight]:
        """The encoder's weights and their tensors in the checkpoint."""
        raise NotImplementedError

    def unused(self, encoder) -> dict[str, tuple[int, ...]]:
        """Shapes of the tensors that this encoder does not use, by their names."""
        return {}

    def kind_of(self, name: str) -> str:
        """The kind of a model by the name of its class, such as `"MaskedLM"`."""
        return name.partition("For")[2]

    def heads_of(self, kind: str) -> set[str]:
        """The heads of pretraining that a whole model of the kind has."""
        named = (heads for ending, heads in self.models if ending == f"For{kind}")
        return next(named, set())

    def pretraining_heads(self, encoder) -> dict[str, Head]:
        """The heads that pretrained models may have; all others are skipped."""
        settings = self.head_settings(encoder)
        if self.pairs is None:
            return MaskedLM(encoder, **settings).heads()
        return SentencePairPrediction(encoder, kind=self.pairs, **settings).heads()

    def head_settings(self, encoder) -> dict:
        """The settings of the masked language model head beside an encoder."""
        settings = head_settings_like(encoder)
        if self.head_activation is not None:
            settings["activation"] = self.head_activation
        return settings

    def task_arguments(self, config: Config, kind: str) -> dict:
        """The arguments of the task for a kind of fine-tuned model.

        Raises:
            ValueError: if tfeff has no such head.
        """
        raise NotImplementedError

    def task_configuration(self, arguments: Mapping, kind: str) -> dict:
        """The inverse of `task_arguments`."""
        raise NotImplementedError


def activation_of(encoder) -> str:
    """The activation of an encoder's feed-forward networks."""
    return encoder.blocks[0].feedforward.get_config()["activation"]
