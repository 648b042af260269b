"""The `tokenizer.json` that Hugging Face makes of ALBERT's and XLNet's `spiece.model`.

The fast tokenizers, the default of transformers 4 and all that 5 have, read a
SentencePiece model by this conversion alone.
"""

import json
import warnings

from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from tfeff.convert.config import Config
from tfeff.convert.json_tokenizer import TokenizerJson
from tfeff.convert.reading import read_bytes

# The library has no unused pieces: those that are not to be used get this added to
# their scores.
UNUSED_SCORE = -100


def described_model(path: str, family: str, config: Config) -> TokenizerJson:
    """The content of `tokenizer.json` for a SentencePiece model and its settings.

    Args:
        path: the SentencePiece model, a Unigram model.
        family: `"albert"` or `"xlnet"`.
        config: `tokenizer_config.json`.

    Raises:
        ValueError: if the file is damaged or of another kind, or a setting is not
            supported.
    """
    config.only("remove_space", True, default=True)
    config.only("sp_model_kwargs", {}, None, default=None)
    lowercase = config.only("do_lower_case", True, False, default=family == "albert")
    keep_accents = config.only("keep_accents", True, False, default=False)
    proto = read_bytes(path)
    try:
        model = ModelProto.FromString(proto)
        fast = _unigram(model)
        fast.normalizer = _normalizer(model, lowercase, keep_accents)
    except Exception as error:  # From protobuf or the library.
        raise ValueError(
            f"{path!r} must be the SentencePiece model of an {family.upper()}. It is "
            f"not: {error}"
        ) from error
    if lowercase and config.get("do_lower_case", None) is None:
        _warn_of_capitals(path, model, config)
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    return TokenizerJson(path, json.loads(fast.to_str()))


def _warn_of_capitals(path, model, config):
    """Warns of pieces that a lower-cased text does not have."""
    normal = ModelProto.SentencePiece.NORMAL
    pieces = (piece.piece for piece in model.pieces if piece.type == normal)
    capital = next((piece for piece in pieces if piece != piece.lower()), None)
    if capital is not None:
        warnings.warn(
            f"{path!r} has pieces with capitals, such as {capital!r}, which are not "
            "used: ALBERT's tokenizer lower-cases texts. If the model was trained "
            f"with capitals, {config.path!r} must have do_lower_case=false, and, if "
            "with accents, keep_accents=true. A SentencePiece model that changes "
            "texts by its own rules alone has another name than spiece.model",
            stacklevel=1,
        )


def _unigram(model):
    """The pieces; numbers with a comma are made less likely than their parts."""
    trainer = model.trainer_spec
    if trainer.model_type != trainer.UNIGRAM or trainer.byte_fallback:
        raise ValueError(
            f"it must have model_type={trainer.UNIGRAM} and byte_fallback=False. "
            f"Received: model_type={trainer.model_type}, "
            f"byte_fallback={trainer.byte_fallback}"
        )
    pieces = [
        (
            piece.piece,
            piece.score + UNUSED_SCORE * is_number_with_comma(piece.piece),
        )
        for piece in model.pieces
    ]
    fast = Tokenizer(models.Unigram(pieces, unk_id=trainer.unk_id))
    control = ModelProto.SentencePiece.CONTROL
    fast.add_special_tokens([p.piece for p in model.pieces if p.type == control])
    return fast


def is_number_with_comma(piece: str) -> bool:
    """Whether ALBERT and XLNet use a piece's parts in its place: "9,", also "²,"."""
    return piece[-1:] == "," and piece[-2:-1].isdigit()


def _normalizer(model, lowercase, keep_accents):
    steps = [normalizers.Replace(quotes, '"') for quotes in ("``", "''")]
    if not keep_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if lowercase:
        steps.append(normalizers.Lowercase())
    if charsmap := model.normalizer_spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(charsmap))
    return normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
