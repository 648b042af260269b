"""Students and what both stages of a distillation do with them."""

import tfeff
from tfeff.objectives.distillation.layer_map import LAYER_MAPS
from tfeff.recipes.overrides import check_override
from tfeff.recipes.run_exports import newest_export, write_encoder
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import named_as
from tfeff.utils.run_files import METRICS, PRESET


def make_student_encoder(settings, teacher):
    """The student's encoder by its name, for the teacher's vocabulary."""
    sizes = {
        "vocabulary_size": teacher.vocabulary_size,
        "max_sequence_length": settings.sequence_length,
    }
    wanted = settings.override.get("vocabulary_size", teacher.vocabulary_size)
    if wanted != teacher.vocabulary_size:
        raise ValueError(
            "`override` must leave out `vocabulary_size`, which is the teacher's, "
            f"{teacher.vocabulary_size}. Received: override={dict(settings.override)}"
        )
    check_override(settings.override, {}, sizes)
    with named_as(preset="student", overrides="override"):
        student = tfeff.encoders.build(settings.student, **sizes | settings.override)
    if settings.copy_layers:
        tfeff.objectives.copy_layers(student, teacher, parse_layer_map(settings))
    return student


def layer_settings(settings, student, teacher):
    """The arguments of `Distillation` that compare the layers of two encoders."""
    widths = [encoder.hidden_dim for encoder in (student, teacher)]
    if settings.cosine_weight and widths[0] != widths[1]:
        raise ValueError(
            "`cosine_weight` must be 0 for hidden states of different widths. "
            f"Received: cosine_weight={settings.cosine_weight}, {widths[0]} in the "
            f"student, {widths[1]} in the teacher"
        )
    attention = settings.attention
    if attention is None and settings.attention_weight:
        attention = tfeff.objectives.common_maps(student, teacher) or "none"
        print(f"attention maps to compare, by what both encoders have: {attention}")
    if attention == "none" or not settings.attention_weight:
        attention = None
    weights = {
        "embedding": settings.embedding_weight,
        "hidden": settings.hidden_weight,
        "attention": settings.attention_weight if attention else 0.0,
        "cosine": settings.cosine_weight,
    }
    weights = {name: weight for name, weight in weights.items() if weight}
    return {
        "layer_map": parse_layer_map(settings),
        "attention": attention,
        "hidden": "hidden" in weights,
        "embedding": "embedding" in weights,
        "cosine": "cosine" in weights,
        "reduction": settings.reduction,
        "loss_weights": weights,
        "layer_weights": settings.layer_weights,
    }


def prediction_settings(settings):
    """The arguments of `Distillation` that compare predictions."""
    weights = {"prediction": settings.prediction_loss, "label": settings.label_weight}
    weights = {name: weight for name, weight in weights.items() if weight}
    return {
        "prediction": "prediction" in weights,
        "label": "label" in weights,
        "loss_weights": weights,
        "layer_weights": settings.layer_weights,
        "temperature": settings.temperature,
        "soften": settings.soften,
    }


def parse_layer_map(settings):
    """A kind of map, or the list of the teacher's layers that the text gives."""
    text = settings.layer_map
    if text in LAYER_MAPS:
        return text
    try:
        return [int(layer) for layer in text.split(",")]
    except ValueError:
        raise ValueError(
            "`layer_map` must be uniform, top, bottom, or integers such as 2,4. "
            f"Received: layer_map={text!r}"
        ) from None


def write(run, metrics, model, tokenizer, **options):
    """The student's preset with its heads, what serves, and the metrics last.

    Args:
        run: the run directory.
        metrics: what `metrics.json` will hold.
        model: the student, an encoder or a model around one.
        tokenizer: its tokenizer.
        **options: those of `tfeff.export.save_version`.
    """
    write_encoder(run, model, tokenizer, model, **options)
    tfeff.training.write_metrics(metrics, run.path(METRICS))


def finish(run):
    """Notes the digests of what was written, tells where it is, returns the metrics."""
    run.finish()
    print(
        f"the student and its tokenizer: {run.shown(run.path(PRESET))}\n"
        f"text in: {run.shown(newest_export(run))}"
    )
    return read_object(run.path(METRICS))
