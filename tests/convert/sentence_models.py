"""Folders as sentence-transformers save them, of golden checkpoints."""

import json

OLD_NAMES = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
OLD_NAMES |= {"lasttoken": "lasttoken"}


def write_modules(folder, *kinds, first="", package="sentence_transformers.models"):
    """Writes the list of a Transformer, in the folder `first`, and other modules."""
    paths = [first, *(f"{i}_{kind}" for i, kind in enumerate(kinds, 1))]
    modules = [
        dict(idx=index, name=str(index), path=path, type=f"{package}.{kind}")
        for index, (kind, path) in enumerate(zip(("Transformer", *kinds), paths))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))


def write_sentence_model(
    folder, *kinds, pooling="mean", length=None, today=False, **settings
):
    """Writes what sentence-transformers add to a checkpoint's folder.

    Args:
        folder: the folder.
        *kinds: the modules behind the pooling.
        pooling: its name, or a list of them.
        length: the longest text.
        today: whether names are those of the library's newest versions.
        **settings: others of the pooling.
    """
    modes = [pooling] if isinstance(pooling, str) else pooling
    old = {f"pooling_mode_{x}": name in modes for name, x in OLD_NAMES.items()}
    package = "sentence_transformers.models"
    if today:
        package = "sentence_transformers.sentence_transformer.modules.any"
        old = {"pooling_mode": pooling}
    write_modules(folder, "Pooling", *kinds, package=package)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(old | settings))
    lengths = {"max_seq_length": length, "do_lower_case": False}
    (folder / "sentence_bert_config.json").write_text(json.dumps(lengths))
