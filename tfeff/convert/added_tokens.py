"""Check that the tokens named in files beside a vocabulary do not change it.

Hugging Face first splits a text at added tokens, even within words. KerasHub's
tokenizers have no such step, so a source with more tokens than the special ones of its
family is refused.
"""

import os

from tfeff.convert.config import Config

_BERT = dict(
    unk_token="[UNK]",
    sep_token="[SEP]",
    pad_token="[PAD]",
    cls_token="[CLS]",
    mask_token="[MASK]",
)
_ROBERTA = dict(
    unk_token="<unk>",
    bos_token="<s>",
    eos_token="</s>",
    sep_token="</s>",
    pad_token="<pad>",
    cls_token="<s>",
    mask_token="<mask>",
)
ROLES = {
    "bert": _BERT,
    "albert": _BERT | dict(unk_token="<unk>", pad_token="<pad>"),
    "xlnet": dict(
        unk_token="<unk>",
        sep_token="<sep>",
        pad_token="<pad>",
        cls_token="<cls>",
        mask_token="<mask>",
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
OTHERS = {
    "xlnet": ("<s>", "</s>", "<eod>", "<eop>"),
    "xlm-roberta": ("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"),  # CamemBERT's
}


def check_added_tokens(directory: str, family: str, tokenizer, config: Config) -> None:
    """Raises if a file beside the vocabulary changes or extends it.

    Args:
        directory: the checkpoint's folder.
        family: `"bert"`, `"albert"`, `"xlnet"`, `"roberta"` or `"xlm-roberta"`.
        tokenizer: the KerasHub tokenizer made of the vocabulary.
        config: `tokenizer_config.json`.

    Raises:
        ValueError: if one does; it names the file and the token.
    """
    tokens = _entries(config, _named)
    for name, entries in _FILES.items():
        path = os.path.join(directory, name)
        if os.path.exists(path):
            tokens += _entries(Config.read(path), entries)
    ids = {token: i for i, token in enumerate(tokenizer.get_vocabulary())}
    roles = ROLES[family]
    known = {*roles.values(), *OTHERS.get(family, ())}
    for file, name, token, number in tokens:
        if roles.get(name, token) != token:
            raise ValueError(
                f"{file.path!r} asks for {name}={token!r}, which tfeff does not "
                f"support. It supports: {name}={roles[name]!r}"
            )
        if token not in known or token not in ids:
            raise ValueError(
                f"{file.path!r} adds {token!r} ({name}) to the vocabulary, which tfeff "
                f"does not support. It supports: {', '.join(sorted(known))}"
            )
        if number not in (None, ids[token]):
            raise ValueError(
                f"{file.path!r} says that {token!r} has the id {number!r}. In the "
                f"vocabulary it has {ids[token]}"
            )


def _entries(file, entries):
    """Of each token in a file: the file, the setting, the token and its id."""
    try:
        return [(file, *entry) for entry in entries(file)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{file.path!r} must name tokens. It is damaged: {error!r}"
        ) from error


def _added(file):
    """The tokens in added_tokens.json."""
    for token, number in file.values.items():
        yield "added_tokens", token, number


def _named(file):
    """The tokens in the other files. The id is None if a file does not give it."""
    for name in (*_BERT, "bos_token", "eos_token"):
        if (token := file.get(name, None)) is not None:
            yield name, _content(token), None
    for name in ("additional_special_tokens", "extra_special_tokens"):
        tokens = file.get(name, None) or []
        for token in tokens.values() if isinstance(tokens, dict) else tokens:
            yield name, _content(token), None
    for number, token in (file.get("added_tokens_decoder", None) or {}).items():
        yield "added_tokens_decoder", _content(token), int(number)


def _listed(file):
    """The tokens in tokenizer.json."""
    for token in file.get("added_tokens", None) or []:
        yield "added_tokens", _content(token), token.get("id")


_FILES = {
    "special_tokens_map.json": _named,
    "added_tokens.json": _added,
    "tokenizer.json": _listed,
}


def _content(token):
    """The token's text; the token may be a dict with further settings."""
    content = token["content"] if isinstance(token, dict) else token
    if not isinstance(content, str):
        raise TypeError(f"not a token: {token!r}")
    return content
