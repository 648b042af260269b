"""Finding a published checkpoint: a folder, or a name on the Hugging Face hub."""

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import NoReturn

from tfeff.convert import (
    bert_tf1,
    convbert_tf1,
    electra_tf1,
    electra_tf1_generator,
    model_garden,
)
from tfeff.convert.architectures import ARCHITECTURES
from tfeff.convert.config import Config
from tfeff.convert.folders import (
    MODULES,
    TOKENIZER_FILES,
    check_listed,
    download,
    module_folder,
    without_scheme,
)
from tfeff.convert.format import Format
from tfeff.convert.keras_hub_presets import (
    NAMES,
    keras_hub_class,
    read_keras_hub_preset,
)
from tfeff.convert.reading import check_fetched, read_json
from tfeff.convert.safetensors import INDEX, read_safetensors
from tfeff.convert.tf_checkpoint import read_tf_checkpoint
from tfeff.encoders.encoder import foreign_class
from tfeff.encoders.preset_layout import ENCODER_CONFIG, is_weights_file, preset_folder
from tfeff.utils.paths import check_model_path

FAMILIES = ARCHITECTURES | {
    "camembert": ARCHITECTURES["roberta"],
    "xlm-roberta": ARCHITECTURES["roberta"],
}
_WITH_TOKENS_OF_BERT = ("convbert", "distilbert", "electra")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".pdparams")
_OTHERS = (".h5", ".msgpack", ".onnx", ".gguf", ".ot", ".npz")
_AS_SAFETENSORS = (
    "If you trust them, load the model in transformers, by the class that its "
    "config.json names, and save it with `model.save_pretrained(folder, "
    "safe_serialization=True)`, and the tokenizer with its own `save_pretrained`"
)
_MUST_HOLD = (
    "`source` must hold safetensors, a TensorFlow checkpoint or an encoder of KerasHub"
)
_MODULES_AS_SAFETENSORS = (
    "If you trust them, load the model in sentence-transformers and save it with "
    "`SentenceTransformer(source).save_pretrained(folder)`"
)
_FILES = ["*.safetensors", "*.weights.h5", *TOKENIZER_FILES]


@dataclasses.dataclass(frozen=True)
class Source:
    """A checkpoint on disk.

    Args:
        directory: the folder.
        family: the tokenizer's family, such as `"bert"`, `"albert"` or `"xlnet"`.
        format: the checkpoint's format.
        config: the configuration.
        tensors: the tensors by their names in the format, unread.
        root: the folder that may list modules of sentence-transformers; `None` where
            the format knows none.
    """

    directory: str
    family: str
    format: Format
    config: Config
    tensors: dict
    root: str | None = None


def find(source: str | os.PathLike, generator: bool = False) -> Source:
    """The checkpoint in a folder, or with a name on the hub.

    Args:
        source: the folder or the name.
        generator: whether the generator is read of a checkpoint that holds it beside
            the discriminator.

    Raises:
        TypeError: if `source` is not a path.
        ValueError: if there is none, or none in a format that tfeff reads.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            f"`source` must be a path or a name. Received: source={source!r}"
        )
    directory = os.fspath(without_scheme(source))
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise ValueError(
            "`source` must be a folder, or a name on the Hugging Face hub. "
            f"Received: source={directory!r}, which is a file"
        )
    on_hub = not os.path.isdir(directory)
    if on_hub:
        directory = download(directory, _FILES)
    check_listed(directory, _FILES)
    root, directory = directory, module_folder(directory)
    files = sorted(os.listdir(directory))
    if any(name.endswith((".safetensors", INDEX)) for name in files):
        return _hugging_face(directory, files, root)
    indices = [name for name in files if name.endswith(".index")]
    if len(indices) > 1:
        raise ValueError(
            f"`source` must hold one TensorFlow checkpoint. Received: {directory!r} "
            f"with {indices}. Keep one of them"
        )
    if indices:
        name = indices[0].removesuffix(".index")
        return _tensorflow(directory, files, name, generator)
    path = os.path.join(directory, ENCODER_CONFIG)
    if ENCODER_CONFIG in files and (kind := keras_hub_class(path)):
        form, config, tensors = read_keras_hub_preset(directory, kind)
        return Source(directory, kind.family, form, config, tensors)
    _refuse(directory, files, on_hub)


def tokens_family(model_type: str | None) -> str | None:
    """The family of the tokenizers of a `model_type`; `None` for an unknown one."""
    if model_type in _WITH_TOKENS_OF_BERT:
        return "bert"
    return model_type if model_type in tuple(FAMILIES) else None


def _refuse(directory: str, files: Sequence[str], on_hub: bool) -> NoReturn:
    """Raises an error that says why a folder holds no checkpoint that tfeff reads."""
    if "config.json" in files:
        # The architecture is checked before advice that takes an hour to follow.
        config = Config.read(os.path.join(directory, "config.json"))
        if config.get("model_type", None) is not None:
            config.only("model_type", *FAMILIES)
    pickles = [name for name in files if name.endswith(_PICKLES)]
    if pickles:
        raise ValueError(
            f"{_MUST_HOLD}. Received: "
            f"{directory!r} with {pickles}. These are pickles, which can run any code "
            f"when they are read, so tfeff does not read them. {_advice(files)}"
        )
    others = [name for name in files if name.endswith(_OTHERS)]
    what = f"with {others or 'neither'}"
    preset = preset_folder(directory)
    if any(map(is_weights_file, os.listdir(preset))):
        what = _preset_words(preset)
    elif on_hub:
        what += (
            ". Pickles such as pytorch_model.bin are not downloaded from the hub. "
            + _advice(files)
        )
    raise ValueError(f"{_MUST_HOLD}. Received: {directory!r} {what}")


def _advice(files):
    return _MODULES_AS_SAFETENSORS if MODULES in files else _AS_SAFETENSORS


def _preset_words(folder):
    """The words for a preset, which is no source."""
    path = os.path.join(folder, "config.json")
    if os.path.exists(path) and (name := foreign_class(read_json(path))):
        return (
            f"with a preset of {name!r}, which tfeff does not read. Of KerasHub's it "
            f"reads those of {NAMES}"
        )
    return (
        "with a preset of tfeff. `tfeff convert --to=huggingface`, or "
        "`to_huggingface`, writes that for transformers"
    )


def _hugging_face(directory, files, root):
    if "adapter_config.json" in files:
        raise ValueError(
            f"{directory!r} must hold a model alone. It holds an adapter "
            "(adapter_config.json), which changes the model. Merge it into the "
            "weights, or remove it"
        )
    if "config.json" not in files:
        raise ValueError(
            "`source` must hold the configuration of its checkpoint, 'config.json'. "
            f"Received: {directory!r} with {files}"
        )
    config = Config.read(os.path.join(directory, "config.json"))
    for name in ("auto_map", "quantization_config"):
        config.only(name, None, default=None)
    config.only("is_encoder_decoder", False, default=False)
    family = config.only("model_type", *FAMILIES)
    form = FAMILIES[family]
    tensors = {}
    for name, tensor in read_safetensors(directory).items():
        # Old checkpoints have TensorFlow's names for the weights of layer norms.
        short = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        short = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", short)
        short = short.removeprefix(form.prefix)
        if short in tensors:
            raise ValueError(f"{directory!r} must hold one {short!r}. It holds two")
        tensors[short] = tensor
    return Source(directory, tokens_family(family), form, config, tensors, root)


def _tensorflow(directory, files, name, generator):
    for file in files:
        if file.startswith((f"{name}.index", f"{name}.data-")):
            check_fetched(os.path.join(directory, file))
    check_model_path("source", directory)
    tensors = read_tf_checkpoint(os.path.join(directory, name))
    configs = [file for file in files if file.endswith("config.json")]
    configs = [file for file in configs if file != "tokenizer_config.json"]
    if len(configs) > 1:
        raise ValueError(
            f"`source` must hold one configuration. Received: {directory!r} with "
            f"{configs}"
        )
    if any(key.startswith("electra/") for key in tensors):
        config = (
            Config.read(os.path.join(directory, configs[0]))
            if configs
            else Config({}, os.path.join(directory, name))
        )
        form = electra_tf1.ElectraTf1()
        if generator:
            form = electra_tf1_generator.ElectraTf1Generator()
        elif any("/conv_attn_key/" in key for key in tensors):
            form = convbert_tf1.ConvBertTf1()
        if not generator:
            tensors = electra_tf1.rename(tensors)
        config = form.config_of(tensors, config)
        return Source(directory, "bert", form, config, tensors)
    is_of_authors = bert_tf1.is_of_authors(tensors)
    is_of_garden = any("layer_with_weights" in x or "_layer/" in x for x in tensors)
    if not is_of_authors and not is_of_garden:
        shown = sorted(tensors)
        raise ValueError(
            f"{directory!r} must hold an encoder of Model Garden, or a BERT, an "
            "ALBERT, an ELECTRA or a ConvBERT of its authors. Its "
            f"{len(shown)} variables begin with {shown[:5]}"
        )
    if not configs:
        raise ValueError(
            "`source` must hold the configuration of its checkpoint, such as "
            "'bert_config.json' with vocab_size, hidden_size, num_hidden_layers, "
            "num_attention_heads, intermediate_size, max_position_embeddings and "
            f"type_vocab_size. Received: {directory!r} with {files}"
        )
    config = Config.read(os.path.join(directory, configs[0]))
    if is_of_authors:
        if bert_tf1.is_albert(tensors):
            return Source(directory, "albert", bert_tf1.AlbertTf1(), config, tensors)
        return Source(directory, "bert", bert_tf1.BertTf1(), config, tensors)
    family = "albert" if model_garden.is_albert(config) else "bert"
    tensors = model_garden.rename(tensors, config)
    return Source(directory, family, model_garden.ModelGarden(), config, tensors)
