"""The pretraining objectives by name: a model, its examples, its paper's settings."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from tfeff.data.cache.batches import Examples
from tfeff.data.pretraining.masked_tokens import MaskedTokens
from tfeff.data.pretraining.permuted_tokens import PermutedTokens
from tfeff.data.pretraining.sentence_pairs import SentencePairs
from tfeff.encoders import Encoder
from tfeff.objectives.generator import generator_for
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.objectives.objective import Objective
from tfeff.objectives.permutation_lm import PermutationLM
from tfeff.objectives.replaced_token import ReplacedTokenDetection
from tfeff.objectives.sentence_pair import SentencePairPrediction
from tfeff.utils.checks import check_choice, check_integer, check_string
from tfeff.utils.definitions import parameters_of, refusal


@dataclasses.dataclass(frozen=True)
class PretrainingObjective:
    """Examples and the model that is trained on them, to pretrain an encoder.

    Args:
        name: the name that `register` and `get` use.
        examples: the settings of its examples, such as `tfeff.data.MaskedTokens()`;
            those of the paper. `tfeff.data.Cache.batches` takes them.
        make_model: a subclass of `Objective`, such as `MaskedLM`, or a function that
            makes one, called with a `tfeff.encoders.Encoder` and with settings of the
            model, by keyword.
        num_segments: how many segments the examples show, from 0 on; `None` where that
            is not known. Of 1, `tfeff finetune` begins the others as the first one for
            pairs of texts.

    Raises:
        TypeError: if an argument has the wrong type, or `make_model` does not take an
            encoder.
        ValueError: if `num_segments` is below 1.

    Example:

    >>> import tfeff
    >>> objective = tfeff.objectives.get("replaced_token")
    >>> objective.examples
    MaskedTokens(mask_rate=0.15, masking='token', mask_share=0.85, random_share=0.0)
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> objective.make_model(encoder, generator_ratio=1 / 2).generator.hidden_dim
    64
    """

    name: str
    examples: Examples
    make_model: Callable[..., keras.Model]
    num_segments: int | None = None

    def __post_init__(self):
        check_string("name", self.name)
        is_dataclass = dataclasses.is_dataclass(type(self.examples))
        if not (is_dataclass and isinstance(self.examples, Examples)):
            raise TypeError(
                "`examples` must be a dataclass of settings such as `MaskedTokens()`. "
                f"Received: examples={self.examples!r:.80}"
            )
        if not _takes_encoder(self.make_model):
            raise TypeError(
                "`make_model` must be a subclass of `Objective`, or a function whose "
                "first argument is the encoder and that makes one. "
                f"Received: make_model={self.make_model!r:.80}"
            )
        if self.num_segments is not None:
            check_integer("num_segments", self.num_segments)

    def override(self, **settings: Any) -> "PretrainingObjective":
        """The same objective with other settings.

        Args:
            **settings: fields of the examples, or of settings within them, and
                keyword arguments of `make_model`, by name.

        Returns:
            A `PretrainingObjective`.

        Raises:
            ValueError: if the objective has no setting of a name, or one is out of
                range.
            TypeError: if a setting has the wrong type.

        Example:

        >>> import tfeff
        >>> objective = tfeff.objectives.get("sentence_order")
        >>> objective.override(masking="ngram").examples.masked.masking
        'ngram'
        >>> tfeff.objectives.get("permutation_lm").override(masking="ngram")
        Traceback (most recent call last):
        ...
        ValueError: Objective 'permutation_lm' has the settings mask_rate. \
Received: masking='ngram'
        """
        examples = _replace(self.examples, settings)
        of_model = self._model_settings()
        known = _names(examples) | of_model
        unknown = {name: settings[name] for name in sorted(set(settings) - known)}
        if unknown:
            received = ", ".join(f"{name}={value!r}" for name, value in unknown.items())
            raise ValueError(
                f"Objective {self.name!r} has the settings {', '.join(sorted(known))}. "
                f"Received: {received}"
            )
        model = {name: settings[name] for name in of_model & set(settings)}
        make_model = partial(self.make_model, **model) if model else self.make_model
        return dataclasses.replace(self, examples=examples, make_model=make_model)

    def has_setting(self, name: str) -> bool:
        """Whether `override` takes a setting of this name.

        Args:
            name: the name of a setting, such as `"mask_rate"`.

        Example:

        >>> import tfeff
        >>> tfeff.objectives.get("permutation_lm").has_setting("masking")
        False
        """
        return name in _names(self.examples) | self._model_settings()

    def _model_settings(self):
        return {
            p.name
            for _, *parameters in parameters_of(self.make_model, Objective)
            for p in parameters
            if p.kind is not p.VAR_KEYWORD
        }


def register(objective: PretrainingObjective) -> PretrainingObjective:
    """Registers a pretraining objective, so that `get` returns it by its name.

    A cell that is run again replaces what it had registered: an objective of equal
    settings, whose classes and functions have the same names in their modules.

    Args:
        objective: a `PretrainingObjective`.

    Returns:
        The objective.

    Raises:
        ValueError: if an objective of tfeff, or another one, has the name.
        TypeError: if `objective` is of another type.

    Example:

    >>> import tfeff
    >>> words = tfeff.objectives.PretrainingObjective(
    ...     "masked_words",
    ...     tfeff.data.MaskedTokens(masking="whole_word"),
    ...     tfeff.objectives.MaskedLM,
    ... )
    >>> tfeff.objectives.register(words) is tfeff.objectives.get("masked_words")
    True
    """
    if not isinstance(objective, PretrainingObjective):
        raise TypeError(
            "`objective` must be a `PretrainingObjective`. "
            f"Received: objective={objective!r:.80}"
        )
    if advice := refusal(_REGISTRY, _OWN, objective.name, objective):
        raise ValueError(
            f"`objective` must have a name of its own. Received: {objective}, "
            f"while the name is that of {_REGISTRY[objective.name]}. {advice}"
        )
    _REGISTRY[objective.name] = objective
    return objective


def get(name: str) -> PretrainingObjective:
    """The pretraining objective of a name.

    Args:
        name: one of `names()`.

    Returns:
        The `PretrainingObjective`.

    Raises:
        ValueError: if there is none of this name.

    Example: see `PretrainingObjective`.
    """
    return _REGISTRY[check_choice("name", name, names())]


def names() -> list[str]:
    """The names of the registered pretraining objectives, sorted.

    Returns:
        Names that `get` and `tfeff pretrain --objective` take.

    Example:

    >>> "masked_lm" in names()
    True
    """
    return sorted(_REGISTRY)


def is_of_tfeff(name: str) -> bool:
    """Whether an objective's name is one of tfeff's own."""
    return name in _OWN


def _takes_encoder(make_model):
    """Whether it is a class of models, or a function with an argument for an encoder.

    What a function makes is seen when it is called.
    """
    if inspect.isclass(make_model):
        return issubclass(make_model, Objective)
    if not callable(make_model):
        return False
    first = next(iter(inspect.signature(make_model).parameters.values()), None)
    return first is not None and first.kind in (
        first.POSITIONAL_ONLY,
        first.POSITIONAL_OR_KEYWORD,
        first.VAR_POSITIONAL,
    )


def _replace(examples: Any, settings: dict) -> Any:
    """The examples, with those settings replaced that are among their fields."""
    changes = {}
    for field in dataclasses.fields(examples):
        value = settings.get(field.name, getattr(examples, field.name))
        is_within = dataclasses.is_dataclass(value)  # as `SentencePairs.masked`
        changes[field.name] = _replace(value, settings) if is_within else value
    return dataclasses.replace(examples, **changes)


def _names(examples: Any) -> set[str]:
    """The names of all settings, including those of nested examples."""
    values = {f.name: getattr(examples, f.name) for f in dataclasses.fields(examples)}
    within = filter(dataclasses.is_dataclass, values.values())
    return set(values).union(*map(_names, within))


def _replaced_token(
    encoder: Encoder,
    generator_ratio: float = 1 / 4,
    generator_override: dict | None = None,
) -> ReplacedTokenDetection:
    """The encoder as a discriminator, with a generator of its kind."""
    generator = generator_for(encoder, generator_ratio, **generator_override or {})
    return ReplacedTokenDetection(generator, encoder)


_REGISTRY = {
    objective.name: objective
    for objective in (
        PretrainingObjective("masked_lm", MaskedTokens(), MaskedLM, num_segments=1),
        PretrainingObjective(
            "replaced_token",
            MaskedTokens(mask_share=0.85, random_share=0.0),
            _replaced_token,
            num_segments=1,
        ),
        PretrainingObjective(
            "permutation_lm", PermutedTokens(), PermutationLM, num_segments=1
        ),
        PretrainingObjective(
            "sentence_order",
            SentencePairs("order"),
            SentencePairPrediction,
            num_segments=2,
        ),
        PretrainingObjective(
            "next_sentence",
            SentencePairs("next"),
            partial(SentencePairPrediction, kind="next"),
            num_segments=2,
        ),
    )
}
_OWN = frozenset(_REGISTRY)
