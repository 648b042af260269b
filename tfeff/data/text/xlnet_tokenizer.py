from typing import Any

import keras
import keras_hub

from tfeff.compat.tokenizers import add_special_token
from tfeff.encoders import Encoder
from tfeff.encoders.preset_mixins import TokenizerFiles


@keras.saving.register_keras_serializable(package="tfeff")
class XLNetTokenizer(TokenizerFiles, keras_hub.tokenizers.SentencePieceTokenizer):
    """The SentencePiece tokenizer of XLNet, with its special tokens' names.

    Text to ids, without special tokens. `cls_token_id`, `sep_token_id`,
    `pad_token_id` and `mask_token_id` are those of `<cls>`, `<sep>`, `<pad>` and
    `<mask>`. XLNet appends `<sep>` and `<cls>` to a text and pads on the left.

    Args:
        proto: path or bytes of a SentencePiece model.
        **kwargs: arguments of `keras_hub.tokenizers.SentencePieceTokenizer`.

    Raises:
        ValueError: if the model lacks a special token.

    Example:
    ```python
    import io
    import sentencepiece
    import tfeff

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["one two three"] * 9),
        model_writer=model,
        vocab_size=16,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>"],
        minloglevel=2,
    )
    tokenizer = tfeff.data.XLNetTokenizer(model.getvalue())
    assert tokenizer.pad_token_id == tokenizer.token_to_id("<pad>")
    ```

    Reference:
        Yang et al., "XLNet", section 2.
    """

    # KerasHub finds the tokenizer of a preset by the class of its backbone.
    backbone_cls = Encoder

    def __init__(self, proto: Any, **kwargs: Any):
        for name in ("cls", "sep", "pad", "mask"):
            add_special_token(self, f"<{name}>", f"{name}_token")
        # KerasHub's preprocessors know these two by other names.
        add_special_token(self, "<cls>", "start_token")
        add_special_token(self, "<sep>", "end_token")
        super().__init__(proto=proto, **kwargs)
