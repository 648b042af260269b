"""The modules of sentence-transformers that make embeddings of an encoder's states."""

import os
import warnings
from collections.abc import Mapping

from tfeff.convert.config import Config
from tfeff.convert.folders import MODULES, sentence_configs
from tfeff.convert.reading import read_json
from tfeff.convert.sources import Source
from tfeff.convert.weights import NotKept
from tfeff.encoders import Encoder
from tfeff.tasks import SentenceEmbedding
from tfeff.utils.paths import is_name

# Their names for poolings, of today and in older files, by those of tfeff.
_POOLINGS = {
    "cls": ("cls", "cls_token"),
    "mean": ("mean", "mean_tokens"),
    "last": ("lasttoken",),
}
_CONFIG = "config.json"
_OF_LENGTH = "sentence_bert_config.json"


def find_sentence_embedding(
    found: Source, encoder: Encoder
) -> SentenceEmbedding | None:
    """The model that the modules beside a checkpoint make with its encoder.

    Args:
        found: the checkpoint.
        encoder: its encoder.

    Returns:
        The model, whose weights are the encoder's alone; `None` without modules.

    Raises:
        NotKept: if they do what a `SentenceEmbedding` does not.
        ValueError: if a file of theirs is missing or damaged.
    """
    if found.root is None:
        return None
    path = os.path.join(found.root, MODULES)
    if not os.path.exists(path):
        return None
    kinds, folders = _modules(path)
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        shown = ", ".join(f"{kind} ({name!r})" for kind, name in zip(kinds, folders))
        raise NotKept(
            f"{path!r} has the modules {shown}. A `SentenceEmbedding` of tfeff has "
            "those of Transformer, Pooling and perhaps Normalize, in this order"
        )
    if found.family == "xlnet":
        raise NotKept(
            f"{path!r} is of texts that end in <sep> <cls>. Those of tfeff have <cls> "
            "before them for XLNet, too"
        )
    pooling = _pooling(os.path.join(found.root, folders[1], _CONFIG))
    _check_use(os.path.join(found.root, "config_sentence_transformers.json"))
    return SentenceEmbedding(
        encoder,
        pooling,
        sequence_length=_length(found.directory, encoder),
        normalize=len(kinds) > 2,
    )


def sentence_modules(
    encoder: Encoder, config: Mapping
) -> tuple[tuple[str, ...], dict[str, object]]:
    """The modules that make a `SentenceEmbedding`'s vectors, and their files.

    All versions of sentence-transformers read them: they have the names of the older
    ones.

    Args:
        encoder: the encoder.
        config: the configuration of the `SentenceEmbedding`, as presets keep it.

    Returns:
        The names of the modules, and what the files beside the checkpoint's contain, by
        their paths in its folder.
    """
    kinds = ["Transformer", "Pooling", *["Normalize"] * config.get("normalize", False)]
    folders = ["", *(f"{index}_{kind}" for index, kind in enumerate(kinds) if index)]
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": folder,
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, (kind, folder) in enumerate(zip(kinds, folders))
    ]
    # The mean is the default; versions before 2.3 know no last token.
    modes = dict.fromkeys((_POOLINGS["cls"][-1], _POOLINGS["mean"][-1]), False)
    modes[_POOLINGS[config["pooling"]][-1]] = True
    pooling = {
        "word_embedding_dimension": encoder.hidden_dim,
        **{f"pooling_mode_{name}": value for name, value in modes.items()},
    }
    length = config.get("sequence_length") or encoder.max_sequence_length
    files: dict[str, object] = {
        MODULES: modules,
        f"{folders[1]}/{_CONFIG}": pooling,
        _OF_LENGTH: {"max_seq_length": length, "do_lower_case": False},
    }
    return tuple(kinds), files


def _modules(path):
    """The classes of the modules, without their packages, and their folders."""
    modules = read_json(path, list)
    try:
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        folders = [os.path.normpath(module["path"]) for module in modules]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path!r} must give the path and the type of each module. It is damaged: "
            f"{error!r}"
        ) from error
    # The list must not lead out of its folder.
    if not all(name == os.curdir or is_name(name) for name in folders):
        raise ValueError(f"{path!r} must name folders beside it. It names {folders}")
    return kinds, folders


def _pooling(path):
    """The pooling in the configuration of the module, by its name in tfeff."""
    config = Config.read(path)
    modes = config.get("pooling_mode", None)
    if modes is None:
        prefix = "pooling_mode_"
        names = [name for name, value in config.values.items() if value is True]
        modes = [x.removeprefix(prefix) for x in names if x.startswith(prefix)]
    modes = [modes] if isinstance(modes, str) else modes
    if config.get("include_prompt", True) is False:
        warnings.warn(
            f"{path!r} leaves prompts out of the pooling, include_prompt=False. tfeff "
            "does not: a text's prompt counts as the text",
            stacklevel=1,
        )
    for name, theirs in _POOLINGS.items():
        if len(modes) == 1 and modes[0] in theirs:
            return name
    raise NotKept(
        f"{path!r} asks for a pooling of {modes}. A `SentenceEmbedding` of tfeff has "
        f"one of {[theirs[0] for theirs in _POOLINGS.values()]}"
    )


def _length(folder, encoder):
    """The most tokens of a text, or `None` for as many as the encoder reads."""
    length = None
    for path in sentence_configs(folder)[:1]:
        config = Config.read(path)
        if more := config.get("processing_kwargs", None):
            raise NotKept(f"{path!r} reads texts otherwise, processing_kwargs={more}")
        if config.get("max_seq_length", None) is not None:
            length = config.integer("max_seq_length")
    path = os.path.join(folder, "tokenizer_config.json")
    if length is None and os.path.exists(path):
        length = Config.read(path).get("model_max_length", None)
    is_less = isinstance(length, int) and length < encoder.max_sequence_length
    return length if is_less else None


def _check_use(path):
    """Warns of what sentence-transformers do beside the modules.

    Raises:
        NotKept: if vectors are cut.
    """
    config = Config.read(path) if os.path.exists(path) else Config({}, path)
    if (size := config.get("truncate_dim", None)) is not None:
        raise NotKept(f"{path!r} cuts the vectors, truncate_dim={size}")
    if (similarity := config.get("similarity_fn_name", None)) not in (None, "cosine"):
        warnings.warn(
            f"{path!r} compares vectors by {similarity!r}, which a preset does not "
            "keep: `tfeff embed` compares their cosines",
            stacklevel=1,
        )
    prompts = config.get("prompts", {})
    if (name := config.get("default_prompt_name", None)) is not None:
        warnings.warn(
            f"{path!r} puts a prompt before each text, default_prompt_name={name!r} of "
            f"prompts={prompts!r}. tfeff does not: begin the texts with it",
            stacklevel=1,
        )
    elif isinstance(prompts, dict) and any(prompts.values()):
        warnings.warn(
            f"{path!r} has prompts for texts of some kinds, prompts={prompts!r}, which "
            "a preset does not keep: begin such texts with them",
            stacklevel=1,
        )
