"""The objective and the model that the settings of a pretraining describe."""

import dataclasses

import keras

import tfeff
from tfeff.objectives.heads import heads_of
from tfeff.objectives.masked_lm_head import head_settings_like
from tfeff.objectives.objective import Objective
from tfeff.objectives.registry import is_of_tfeff
from tfeff.recipes.heads import PretrainedHeads
from tfeff.recipes.pretrain_settings import OBJECTIVE, PretrainSettings
from tfeff.recipes.settings import changed
from tfeff.recipes.starting import load_for_training, print_frozen
from tfeff.utils.checks import check_choice
from tfeff.utils.naming import named_as


def objective(settings: PretrainSettings):
    """The objective, its examples and model as the settings have them."""
    name = check_choice("objective", settings.objective, tfeff.objectives.names())
    chosen = tfeff.objectives.get(name)
    own = changed(settings).intersection(OBJECTIVE)
    given = {name: getattr(settings, name) for name in own}
    if "generator_override" in given:  # Messages print a plain dict.
        given["generator_override"] = dict(settings.generator_override)
    if not settings.masked_lm and chosen.has_setting("masked"):
        given["masked"] = None
    return chosen.override(**given)


def mask_rate(chosen: tfeff.objectives.PretrainingObjective) -> float | None:
    """The share of tokens that an objective predicts; `None` if it is no setting."""
    if not chosen.has_setting("mask_rate"):
        return None
    masked = getattr(chosen.examples, "masked", None)
    examples = masked if dataclasses.is_dataclass(masked) else chosen.examples
    return getattr(examples, "mask_rate", None)


def make_model(settings: PretrainSettings, **changes) -> keras.Model:
    """The compiled model of the settings; `changes` are arguments of the encoder."""
    if settings.pretrained:
        encoder, _ = load_for_training(settings, seed=settings.seed)
        print_frozen(encoder)
    else:
        names = ("dropout", "attention_dropout", "memory_efficient")
        given = {name: getattr(settings, name) for name in names}
        with named_as(overrides="override"):
            encoder = tfeff.encoders.build(
                settings.preset,
                **{
                    "vocabulary_size": settings.vocabulary_size,
                    "max_sequence_length": settings.sequence_length,
                    "dtype": settings.dtype,
                    **{name: x for name, x in given.items() if x is not None},
                    **settings.override,
                    **changes,
                },
            )
    chosen = objective(settings)
    with named_as(overrides="generator_override", ratio="generator_ratio"):
        if settings.pretrained:
            model = _with_heads(settings, chosen, encoder)
        else:
            model = chosen.make_model(encoder, **_head_settings(chosen, encoder))
    if not isinstance(model, Objective):
        raise TypeError(
            "`objective` must be one whose `make_model` makes an `Objective`. "
            f"Received: objective={settings.objective!r}, which makes a "
            f"{type(model).__name__}"
        )
    model.compile(
        optimizer=tfeff.training.adamw(
            settings.peak_rate,
            settings.warmup_steps or 0,
            settings.steps,
            weight_decay=settings.weight_decay,
            **settings.adam(),
        ),
        steps_per_execution=settings.steps_per_execution,
        jit_compile=settings.jit_compile,
        accumulation_steps=settings.accumulation_steps,
    )
    return model


def _with_heads(settings, chosen, encoder):
    """The objective's model with the heads of what it starts from, if they fit."""
    found = PretrainedHeads(settings.pretrained, settings.objective)
    like = _head_settings(chosen, encoder, found.settings())
    model = chosen.make_model(encoder, **like)
    kept = found.copy(model)
    own = heads_of(model) or {settings.objective}
    new = sorted(set(own) - set(kept))
    kept = f", its heads of {', '.join(kept)}" if kept else ""
    new = f", with new heads of {', '.join(new)}" if new else ""
    print(f"starting from {settings.pretrained}: its encoder and tokenizer{kept}{new}")
    return model


def _head_settings(chosen, encoder, found=None):
    """The settings of the head of masked tokens: those of `found`, or the encoder's.

    Published models' heads are like their encoders. An objective of one's own has the
    settings that it wants.
    """
    if not chosen.has_setting("activation"):
        return {}
    if found or not is_of_tfeff(chosen.name):
        return found or {}
    return head_settings_like(encoder)


def token_loss(model: keras.Model, metrics: dict[str, float]) -> float | None:
    """The loss of the predicted tokens; `None` if the model predicts none."""
    if "mask_positions" not in model.input:
        return None
    return metrics.get("masked_lm_loss", metrics["loss"])
