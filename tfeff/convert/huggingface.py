"""Writing of models as checkpoints that Hugging Face's transformers load."""

import dataclasses
import json
import os
import warnings
from collections.abc import Mapping

import keras
import keras_hub
import numpy as np

from tfeff.compat.layers import sublayers
from tfeff.convert.architectures import (
    ARCHITECTURES,
    find_architecture,
    make_configuration,
)
from tfeff.convert.head_writing import WrittenHeads, write_heads
from tfeff.convert.sentence_modules import sentence_modules
from tfeff.convert.tokenizer_writing import tokenizer_files
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer, with_prefix_space
from tfeff.data.text.tokenizers import check_tokenizer
from tfeff.encoders import Encoder
from tfeff.encoders.adapters import adapted_layers
from tfeff.encoders.own_calls import has_own_call
from tfeff.encoders.preset_heads import read_heads, read_task
from tfeff.encoders.preset_layout import (
    ENCODER_CONFIG,
    TOKENIZER_CONFIG,
    is_weights_file,
    preset_folder,
)
from tfeff.objectives.heads import trained_model
from tfeff.objectives.objective import Objective
from tfeff.storage.arguments import READ_MODEL, WRITE, paths
from tfeff.tasks.encoder_limits import check_vocabulary
from tfeff.tasks.pretrained import (
    find_preset,
    head_arrays,
    load_pretrained,
    read_step,
    split_step,
    task_config,
)
from tfeff.utils.checks import check_choice
from tfeff.utils.digests import write_digests
from tfeff.utils.files import atomic_folder
from tfeff.utils.naming import named_as
from tfeff.utils.paths import check_new_path, check_path
from tfeff.utils.safetensors import write_safetensors

# Encoders of one of these may be encoders of the others.
_ALIKE = {"bert", "electra", "roberta"}


@dataclasses.dataclass(frozen=True)
class Written:
    """The result of `to_huggingface`.

    Args:
        model: the name of the class of transformers, such as `"BertForMaskedLM"`.
        heads: the names of the heads that it has.
        tokenizer: the name of the tokenizer's class, or `None` if there is none.
        modules: the names of the modules of sentence-transformers; none but for a
            `SentenceEmbedding`.

    Example: see `to_huggingface`.
    """

    model: str
    heads: tuple[str, ...]
    tokenizer: str | None
    modules: tuple[str, ...] = ()


@paths(source=READ_MODEL, destination=WRITE)
def to_huggingface(
    source: Encoder | Objective | str | os.PathLike,
    destination: str | os.PathLike,
    tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
    architecture: str | None = None,
) -> Written:
    """Writes a model as a checkpoint that Hugging Face's transformers load.

    The folder has `config.json`, `model.safetensors`, the tokenizer's files, and their
    digests in `SHA256SUMS`, which `convert` compares and transformers do not read.
    Its hidden states and logits are those of the model; `convert` reads it into the
    same weights. transformers has the architectures of BERT, also with `relative_key`
    or `relative_key_query` positions, ALBERT, ConvBERT, DistilBERT, ELECTRA, RoBERTa
    and XLNet. Heads and tasks come along; a `UserWarning` names heads that
    transformers' class does not have, or not with their settings. Another one says that
    versions of transformers from 5 ignore relative positions, which 4 has.

    The folder of a `SentenceEmbedding` has the modules of sentence-transformers, too,
    with its pooling, its longest text and its norm: `SentenceTransformer(destination)`
    gives its vectors. A `UserWarning` says where they have none, which is for XLNet and
    `pooling="layerwise"`.

    Weights are written in float32. What transformers cannot express is refused before
    any file is written.

    Args:
        source: an encoder; an objective or a task of one; or the folder of a preset
            or of a run, or `"RUN@STEP"`, as `tfeff.tasks.load_pretrained` takes it.
        destination: the folder to write; it must not exist. It appears when it is
            complete, or not at all.
        tokenizer: the KerasHub tokenizer of a model in memory, or `None` to write none.
            A preset has its own.
        architecture: the `model_type` in transformers, such as `"bert"`; `None` for
            the one that fits. BERT, ELECTRA with `embedding_dim=hidden_dim` and
            RoBERTa are one encoder: ELECTRA has a discriminator's head, or a pooler
            with another activation than `"tanh"`, RoBERTa has its own tokenizer, and
            the rest are BERT.

    Returns:
        A `Written`: the names of transformers' classes, and of the heads.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if `destination` exists; if transformers has no such encoder, and
            then the message lists those that it has; if it has no such task; if a
            layer is quantized or has an adapter; or if its tokenizer would give other
            ids, and then the message shows the texts.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, 60, kind="wordpiece")
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=60)
    model = tfeff.objectives.MaskedLM(encoder)
    written = tfeff.convert.to_huggingface(model, "for_transformers", tokenizer)
    assert written.model == "BertForMaskedLM"
    ```
    """
    destination = check_new_path("destination", destination)
    if architecture is not None:
        check_choice("architecture", architecture, sorted(ARCHITECTURES))
    encoder, heads, task, tokenizer = _parts(source, tokenizer)
    for model in (encoder, source):
        if isinstance(model, keras.Model) and has_own_call(model):
            raise ValueError(
                "`source` must compute what transformers' models do. Received: a model "
                f"of the class {type(model).__name__}, which has a `call` of its own"
                + (". Its `encoder` has none" if model is not encoder else "")
            )
    name = architecture or find_architecture(encoder, heads, tokenizer, task)
    parts = encoder, heads, task
    try:
        configuration, tensors, written = checkpoint(*parts, name)
    except ValueError as error:
        advice = _other_architectures(*parts, tokenizer, name)
        raise ValueError(f"{error}{advice}") from error
    if written.left_out:
        advice = _other_architectures(*parts, tokenizer, name, written.names)
        warnings.warn(f"{written.left_out}{advice}", stacklevel=1)
    files, tokens = {}, None
    if tokenizer is not None:
        _check_tokenizer(tokenizer, encoder, configuration)
        words = task is not None and task["class_name"] == "TokenClassifier"
        if words and isinstance(tokenizer, RobertaTokenizer):
            # Each word was read with a space before it, a text's first one, too.
            tokenizer = with_prefix_space(tokenizer, True)
        files = tokenizer_files(tokenizer, _tokenizer_settings(encoder, name))
        tokens = json.loads(files["tokenizer_config.json"])["tokenizer_class"]
        configuration["pad_token_id"] = int(tokenizer.pad_token_id)
    files["config.json"] = to_json(configuration)
    modules: tuple[str, ...] = ()
    if task is not None and task["class_name"] == "SentenceEmbedding":
        modules, contents = _sentence_modules(encoder, task["config"], name)
        files |= {path: to_json(content) for path, content in contents.items()}
    if configuration.get("position_embedding_type", "absolute") != "absolute":
        warnings.warn(
            "transformers must be of version 4 to load this encoder. Version 5 ignores "
            f"its position_embedding_type={configuration['position_embedding_type']!r} "
            "and computes other numbers",
            stacklevel=1,
        )
    with atomic_folder(destination) as unfinished:
        os.mkdir(unfinished)
        for file_name, content in files.items():
            path = os.path.join(unfinished, file_name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        write_tensors(unfinished, tensors)
        write_digests(unfinished)
    return Written(written.model, written.names, tokens, modules)


def checkpoint(
    encoder: Encoder,
    heads: Mapping[str, Mapping[str, np.ndarray]],
    task: Mapping | None,
    name: str,
) -> tuple[dict, dict[str, np.ndarray], WrittenHeads]:
    """The configuration, the tensors and the heads of a checkpoint.

    Args:
        encoder: the encoder.
        heads: the arrays of each head by its name, as presets keep them.
        task: the model's configuration, as presets keep it, or `None`.
        name: the architecture's `model_type`.

    Raises:
        ValueError: as `to_huggingface`.
    """
    configuration = make_configuration(encoder, name)
    tensors = encoder_tensors(encoder, name)
    written = write_heads(ARCHITECTURES[name], encoder, heads, task)
    configuration |= {"architectures": [written.model]} | written.configuration
    tensors = {written.prefix + key: array for key, array in tensors.items()}
    # A head may have what an encoder does not use.
    return configuration, tensors | written.tensors, written


def _other_architectures(encoder, heads, task, tokenizer, name, written=None):
    """Advice: the architectures beside `name` in which more of a model can be written.

    `written` are the names of the heads that `name` has; `None` if it is refused.
    """
    better = []
    for other in _ALIKE - {name}:
        try:
            configuration = make_configuration(encoder, other)
            found = write_heads(ARCHITECTURES[other], encoder, heads, task)
            if tokenizer is not None:
                _check_tokenizer(tokenizer, encoder, configuration)
            if written is None:
                encoder_tensors(encoder, other)  # May be what is refused.
        except ValueError:
            continue
        if written is None or set(found.names) > set(written):
            better.append(f'`architecture="{other}"`')
    if not better:
        return ""
    what = "it" if written is None else "more"
    return f". With {' or '.join(sorted(better))} {what} can be written"


def encoder_tensors(encoder: Encoder, name: str) -> dict[str, np.ndarray]:
    """An encoder's tensors in the format of an architecture.

    Args:
        encoder: the encoder.
        name: the architecture's `model_type`.

    Returns:
        The tensors by their names in a model without a head. Those that the format has
        and the encoder does not use are zeros.

    Raises:
        ValueError: if a weight is of another dtype than float32, a layer is quantized
            or has an adapter, or the format lacks a weight that is not zero.
    """
    _check_layers(encoder)
    form = ARCHITECTURES[name]
    weights = list(form.weights(encoder))
    said = {id(weight.variable) for weight in weights}
    for variable in encoder.weights:
        if id(variable) not in said and np.any(keras.ops.convert_to_numpy(variable)):
            raise ValueError(
                f"`source` must have zeros where {form.name} of transformers has no "
                f"weights. Received: {variable.path} with other values"
            )
    tensors = {weight.name: weight.tensor() for weight in weights}
    for unused, shape in form.unused(encoder).items():
        tensors[unused] = np.zeros(shape, "float32")
    return tensors


def write_tensors(folder: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes `model.safetensors` to a folder."""
    path = os.path.join(folder, "model.safetensors")
    # transformers refuses files that do not say whose format they have.
    write_safetensors(path, tensors, {"format": "pt"})


def to_json(values: object) -> bytes:
    """A JSON value as transformers write it."""
    text = json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def _parts(source, tokenizer):
    """The encoder, the arrays of its heads, the task's configuration, the tokenizer."""
    if isinstance(source, Encoder):
        return source, {}, None, tokenizer
    if isinstance(source, Objective):
        return source.encoder, head_arrays(source), task_config(source), tokenizer
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            "`source` must be a `tfeff.encoders.Encoder`, a task or an objective of "
            f"one, or the path of a preset. Received: source={source!r}"
        )
    if tokenizer is not None:
        raise ValueError(
            "`tokenizer` must be None for a preset, which has its own. "
            f"Received: tokenizer={tokenizer!r}, source={source!r}"
        )
    path = check_path("source", source)
    run_dir, step = split_step(path)
    if step is not None:
        with named_as(path="source", step="source"):
            model, encoder, tokenizer = read_step(run_dir, step, {"dtype": "float32"})
            check_vocabulary("path", tokenizer, encoder)
        model = trained_model(model)
        try:
            heads = head_arrays(model) if isinstance(model, Objective) else None
        except TypeError:  # It has weights that are no heads.
            heads = None
        if heads is None:
            return encoder, {}, None, tokenizer
        return encoder, heads, task_config(model), tokenizer
    preset = preset_folder(path)
    # `tfeff convert` writes the encoder alone where a checkpoint has no tokenizer.
    present = os.listdir(preset) if os.path.isdir(preset) else []
    if (
        ENCODER_CONFIG in present
        and TOKENIZER_CONFIG not in present
        and any(map(is_weights_file, present))
    ):
        encoder = Encoder.from_preset(os.path.abspath(preset), dtype="float32")
    else:
        with named_as(path="source"):
            preset = find_preset(path)
            encoder, tokenizer = load_pretrained(path, dtype="float32")
    return encoder, read_heads(preset), read_task(preset), tokenizer


def _sentence_modules(encoder, config, name):
    if name == "xlnet":
        reason = "put <cls> at the end of XLNet's texts, and tfeff at their beginning"
    elif config.get("pooling") == "layerwise":
        reason = "have no pooling='layerwise'"
    else:
        return sentence_modules(encoder, config)
    warnings.warn(
        f"sentence-transformers {reason}: the model's embeddings are left out",
        stacklevel=2,
    )
    return (), {}


def _tokenizer_settings(encoder, name):
    """Settings of a tokenizer that the encoder determines."""
    has_segments = name == "xlnet" or encoder.num_segments > 1
    # Without these names transformers 5 give no segments to most encoders.
    names = ["input_ids", "token_type_ids", "attention_mask"]
    if not has_segments:
        names.remove("token_type_ids")
    settings = {"model_input_names": names}
    if name != "xlnet":  # It reads any length.
        settings["model_max_length"] = encoder.max_sequence_length
    return settings


def _check_tokenizer(tokenizer, encoder, configuration):
    check_tokenizer(tokenizer)
    check_vocabulary("tokenizer", tokenizer, encoder)
    padding = configuration.get("pad_token_id", tokenizer.pad_token_id)
    if padding != tokenizer.pad_token_id:
        raise ValueError(
            f"`tokenizer` must have the id {padding} for padding, from which "
            "transformers' positions are counted. Received: pad_token_id="
            f"{tokenizer.pad_token_id}"
        )


def _check_layers(encoder):
    for layer in sublayers(encoder):
        if getattr(layer, "quantization_mode", None) is not None:
            raise ValueError(
                "`source` must not be quantized: transformers would not read it. "
                f"Received: quantization_mode={layer.quantization_mode!r} in the "
                f"layer {layer.path}"
            )
    for layer in adapted_layers(encoder):
        raise ValueError(
            "`source` must have no LoRA adapters, which `tfeff.encoders.merge_lora` "
            f"merges. Received: an adapter on the layer {layer.path}"
        )
    for variable in encoder.weights:
        if variable.dtype != "float32":
            raise ValueError(
                "`source` must have weights in float32; `dtype='float32'` of "
                "`from_preset` loads them so. Received: weights in "
                f"{variable.dtype} ({variable.path})"
            )
