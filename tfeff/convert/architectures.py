"""The architecture of Hugging Face's transformers that an encoder is."""

import inspect
from collections.abc import Collection, Mapping

from tfeff.convert.albert import Albert
from tfeff.convert.bert import Bert
from tfeff.convert.config import Config
from tfeff.convert.convbert import ConvBert
from tfeff.convert.distilbert import DistilBert
from tfeff.convert.electra import Electra
from tfeff.convert.format import Format
from tfeff.convert.roberta import Roberta
from tfeff.convert.xlnet import XLNet
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.xlm_roberta_tokenizer import XLMRobertaTokenizer
from tfeff.encoders import Encoder
from tfeff.encoders.attentions import layer_specs
from tfeff.encoders.stack import make_blocks
from tfeff.utils.definitions import as_dict

# Formats by `model_type`.
ARCHITECTURES: dict[str, Format] = {
    "bert": Bert(),
    "albert": Albert(),
    "convbert": ConvBert(),
    "distilbert": DistilBert(),
    "electra": Electra(),
    "roberta": Roberta(),
    "xlnet": XLNet(),
}
_KNOWN = """
BERT and RoBERTa (attention="self"; or "relative" with method="shaw" or "huang4",
shared_heads=True and position="none"), ELECTRA (likewise, with an embedding_dim),
DistilBERT (attention="self", num_segments=0), ALBERT (attention="self", sharing="all",
another embedding_dim than hidden_dim), ConvBERT (attention="mixed" with
mask_conv=False) and XLNet (attention="relative" with method="xlnet" and
relative_segments=True, num_segments=0, embedding_layer_norm=False, position="none")
"""
KNOWN = " ".join(_KNOWN.split())
_METHODS = (None, "shaw", "huang4")
_OF_ROBERTA = (RobertaTokenizer, XLMRobertaTokenizer)
# These arguments change no hidden state, and are in no checkpoint.
_FREE = {
    *("name", "trainable", "dtype", "memory_efficient"),
    *("quantized_layers", "frozen_layers"),
    *("kernel_initializer", "bias_initializer", "query_block_size"),
}
_OF_BLOCKS = set(inspect.signature(make_blocks).parameters)


def find_architecture(
    encoder: Encoder,
    heads: Collection[str] = (),
    tokenizer=None,
    task: Mapping | None = None,
) -> str:
    """The `model_type` of the architecture that fits an encoder's arguments.

    Args:
        encoder: the encoder.
        heads: the names of its heads: a discriminator is an ELECTRA.
        tokenizer: its tokenizer, or `None`: an encoder with RoBERTa's is a RoBERTa.
        task: the model's configuration, as presets keep it, or `None`: one with
            segments that pools by another activation than BERT is an ELECTRA.

    Raises:
        ValueError: if there is none; the message lists those that there are.
    """
    specs = [as_dict(x) for x in layer_specs(encoder.attention, encoder.num_layers)]
    names = {spec["name"] for spec in specs}
    methods = {spec.get("method") for spec in specs}
    if names == {"mixed"}:
        return "convbert"
    if methods == {"xlnet"}:
        return "xlnet"
    if names <= {"self", "relative"} and methods <= set(_METHODS):
        if encoder.sharing == "all":
            return "albert"
        if encoder.sharing == "none":
            return _like_bert(encoder, heads, tokenizer, task)
    raise ValueError(
        f"`source` must be an encoder that transformers has: {KNOWN}. Received: "
        f"attention={encoder.attention!r}, sharing={encoder.sharing!r}"
    )


def _like_bert(encoder, heads, tokenizer, task):
    if encoder.embedding_dim != encoder.hidden_dim or "replaced_token" in heads:
        return "electra"
    pooled_by = (task or {}).get("config", {}).get("pooler_activation", "tanh")
    if pooled_by != "tanh" and encoder.num_segments:
        return "electra"
    if isinstance(tokenizer, _OF_ROBERTA) and encoder.num_segments:
        return "roberta"
    return "distilbert" if encoder.num_segments == 0 else "bert"


def make_configuration(encoder: Encoder, name: str) -> dict:
    """The configuration of an architecture that says what an encoder's arguments say.

    Args:
        encoder: the encoder.
        name: the architecture's `model_type`.

    Raises:
        ValueError: if it cannot say all; the message names what it cannot.
    """
    form = ARCHITECTURES[name]
    configuration = {"model_type": name} | form.configuration(encoder)
    try:
        arguments = form.arguments(Config(configuration, "config.json"))
    except ValueError as error:
        raise ValueError(
            f"`source` must be an encoder that transformers has: {KNOWN}. {error}"
        ) from error
    different = argument_differences(encoder.get_config(), arguments, _FREE | form.free)
    if different:
        raise ValueError(
            f"`source` must be an encoder that transformers has: {KNOWN}. As "
            f"{form.name}, it would be another one. Received: "
            + ", ".join(f"{what}={a!r}, not {b!r}" for what, a, b in different)
        )
    return configuration


def argument_differences(
    ours: Mapping, theirs: Mapping, free: Collection[str]
) -> list[tuple[str, object, object]]:
    """The arguments in which two encoders differ: names with both values.

    Args:
        ours, theirs: arguments of `Encoder`; those that are left out have defaults.
        free: names of arguments that do not count.
    """
    found: dict = {}
    for one, other in zip(_described(ours), _described(theirs), strict=True):
        # Another attention has other arguments.
        same = one.get("attention") == other.get("attention")
        for name in {**one, **other}:
            part, _, argument = name.rpartition(" ")
            values = one.get(name), other.get(name)
            if argument in free or (part == "attention" and not same):
                continue
            if values[0] != values[1]:
                found.setdefault(name, values)
    return [(name, *values) for name, values in found.items()]


def _described(arguments):
    """The encoder's own arguments, then those of each layer's parts, defaults too."""
    parameters = inspect.signature(Encoder).parameters.values()
    values = {p.name: p.default for p in parameters if p.default is not p.empty}
    values.update(arguments)
    blocks = make_blocks(**{name: values[name] for name in _OF_BLOCKS})
    specs = layer_specs(values["attention"], values["num_layers"])
    # The layers below have these.
    for name in ("attention", "attention_dropout", "feedforward"):
        del values[name]
    values["embedding_dim"] = values["embedding_dim"] or values["hidden_dim"]
    if values["sharing"] != "none" and values["sharing_group_size"] is None:
        values["sharing_group_size"] = values["num_layers"]
    yield values
    for spec, block in zip(specs, blocks, strict=True):
        parts = {"attention": block.attention, "feedforward": block.feedforward}
        yield {"attention": as_dict(spec)["name"]} | {
            f"{part} {name}": value
            for part, layer in parts.items()
            for name, value in layer.get_config().items()
        }
