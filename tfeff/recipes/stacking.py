"""Pretraining by progressive stacking."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import keras

import tfeff
from tfeff.recipes.pretrain_settings import PretrainSettings
from tfeff.recipes.pretraining import run_pretraining, settle
from tfeff.recipes.pretraining_model import make_model
from tfeff.recipes.settings import check_settings
from tfeff.recipes.stack_settings import StackSettings
from tfeff.training.double_depth import check_grows
from tfeff.training.stacking import check_switch_steps
from tfeff.utils.checks import check_choice
from tfeff.utils.naming import named_as


def stack(
    settings: StackSettings,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> keras.Model:
    """Pretrains a deep encoder through shallower ones.

    Args:
        settings: see `StackSettings`.
        callbacks: Keras callbacks beside those of the settings, or functions that make
            one for each training.

    Returns:
        The trained model.

    Raises:
        TypeError: if `settings` are not `StackSettings`.
        ValueError, OSError, Diverged, LostWorker: as `pretrain`.

    Example:
    ```python
    from tfeff.recipes import StackSettings, stack

    model = stack(
        StackSettings(
            run_dir="stacked",
            preset="bert_tiny",
            num_layers=2,
            max_characters=500_000,
            vocabulary_size=300,
            steps=4,
        )
    )
    assert model.encoder.num_layers == 2
    ```

    Reference:
        Gong et al., "Efficient training of BERT by progressively stacking", 2019.
    """
    check_settings(settings, StackSettings)
    preset, num_layers = _preset_and_depth(settings)
    settings = dataclasses.replace(settings, preset=preset, num_layers=num_layers)
    switch_steps = settings.switch_steps or ()
    settings = settle(settings, settings.doublings + 1, switch_steps)
    first, rest = divmod(num_layers, 2**settings.doublings)
    if "num_layers" in settings.generator_override:
        raise ValueError(
            "`generator_override` must leave out num_layers: the generator grows with "
            "the encoder. Received: "
            f"generator_override={dict(settings.generator_override)}"
        )
    if rest:
        raise ValueError(
            "`num_layers` must be a multiple of 2 to the power of `doublings`. "
            f"Received: num_layers={num_layers}, doublings={settings.doublings}"
        )
    steps = _switch_steps(settings)
    fit = functools.partial(
        tfeff.training.train_by_stacking,
        num_layers=num_layers,
        switch_steps=steps,
        optimizer=settings.optimizer,
    )
    return run_pretraining(
        settings, lambda: _first_model(settings, first), fit, callbacks
    )


def _first_model(settings, num_layers):
    """The model of the first stage, which is one that can grow."""
    with named_as(num_layers="num_layers / 2**doublings"):
        model = make_model(settings, num_layers=num_layers)
    with named_as(model="preset"):
        check_grows(model)
    return model


def _preset_and_depth(settings):
    """The preset and the number of layers in the end."""
    preset, num_layers = settings.preset, settings.num_layers
    if preset is None:
        return PretrainSettings.preset, num_layers or 4
    if num_layers is None:
        presets = tfeff.encoders.presets()
        check_choice("preset", preset, presets)
        num_layers = presets[preset]["config"]["num_layers"]
    return preset, num_layers


def _switch_steps(settings):
    """The steps that are given, or those of equally many validations a stage."""
    if settings.switch_steps is None:
        stages = settings.doublings + 1
        epochs = settings.steps // settings.eval_every
        if epochs < stages:
            raise ValueError(
                "`eval_every` must leave an evaluation for each of the stages, "
                f"`doublings` + 1. Received: eval_every={settings.eval_every}, "
                f"steps={settings.steps}, doublings={settings.doublings}"
            )
        return [
            settings.eval_every * (epochs * stage // stages)
            for stage in range(1, stages)
        ]
    if len(settings.switch_steps) != settings.doublings:
        raise ValueError(
            "`switch_steps` must be one for each of `doublings`. Received: "
            f"switch_steps={settings.switch_steps}, doublings={settings.doublings}"
        )
    switch_steps = list(settings.switch_steps)
    with named_as(total_steps="steps", steps_per_epoch="eval_every"):
        check_switch_steps(switch_steps, settings.steps, settings.eval_every)
    return switch_steps
