"""Good arguments of public functions: models, and files in the working directory."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import tensorflow as tf

from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff import data, encoders, export, objectives, recipes, tasks, training
from tfeff.recipes.fields import fields_of


def tiny(**changes):
    sizes = dict(vocabulary_size=60, num_layers=1, hidden_dim=8, num_heads=2)
    sizes |= dict(intermediate_dim=8, dropout=0.0)
    return encoders.build("bert_tiny", **sizes | changes)


def batches():
    ids = np.ones((1, 6), "int32")
    return [{"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}]


def labelled():
    return tf.data.Dataset.from_tensors((batches()[0], np.array([1])))


def cache():
    options = dict(sequence_length=16, num_threads=1, progress=False)
    data.build_cache(DOCUMENTS, tokenizer(), "cache", **options)
    return "cache"


def saved_tokenizer():
    data.save_tokenizer(tokenizer(), "t.spm")
    return "t.spm"


def compiled():
    model = tasks.Classifier(tiny(), 2)
    model.compile()
    return model


def saved_model():
    training.save_checkpoint(compiled(), "m.keras")
    return "m.keras"


def saved_scores():
    row = {"setting": {"pretrained_step": 2}, "mean": {"m": 1.0}, "deviation": {}}
    training.write_metrics({"metric": "m", "rows": [row]}, "scores.json")
    return {"a": "scores.json"}


def saved_table():
    with open("t.tsv", "w") as file:
        file.write("a\tb\nthe cat\t1.5\n")
    return "t.tsv"


def saved_preset():
    tasks.save_pretrained(tiny(), tokenizer(), "preset")
    return "preset"


def saved_preset_with_head():
    tasks.save_pretrained(objectives.MaskedLM(tiny()), tokenizer(), "preset")
    return "preset"


def adapted():
    encoder = tiny()
    encoder.enable_lora(2)
    return encoder


def frozen():
    """The same weights every time, without adapters."""
    encoder = tiny()
    encoder.set_weights([0.1 * np.ones(w.shape) for w in encoder.weights])
    return encoder


def saved_lora():
    encoder = frozen()
    encoder.enable_lora(2)
    tasks.save_lora(encoder, "l.safetensors")
    return "l.safetensors"


def saved_lines():
    Path("a.jsonl").write_text('{"text": "a"}\n')
    return "a.jsonl"


def saved_parquet():
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), "a.parquet")
    return "a.parquet"


def saved_description():
    Path("Own").mkdir()
    Path("Own/dataset.json").write_text('{"types": ["PER"]}')
    return "."


def saved_words():
    Path("words.txt").write_text("the O\ncat B-PER\n")
    return "words.txt"


class Stream:
    """What a data set of Hugging Face does."""

    column_names = ("text",)

    def select_columns(self, columns):
        return [{"text": "a"}]


def exported():
    export.save_for_serving(tiny(), tokenizer(), "export")
    return "export"


def shaw():
    return tiny(attention={"name": "relative", "method": "shaw"})


def described(recipe):
    """The settings of a recipe: those that must be given, of what is not there."""
    cls = getattr(recipes, f"{recipe.__name__.capitalize()}Settings")
    given = {
        field.name: ["none"] if field.is_tuple else "none"
        for field in fields_of(cls)
        if field.required
    }
    return cls(**given)


def generator(encoder=None):
    return objectives.generator_for(encoder or tiny(), 0.5)
