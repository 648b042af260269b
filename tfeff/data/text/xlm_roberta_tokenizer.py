from typing import Any

import keras
import keras_hub

from tfeff.compat.tokenizers import add_special_token
from tfeff.encoders import Encoder
from tfeff.encoders.preset_mixins import TokenizerFiles


@keras.saving.register_keras_serializable(package="tfeff")
class XLMRobertaTokenizer(TokenizerFiles, keras_hub.tokenizers.SentencePieceTokenizer):
    """The SentencePiece tokenizer of XLM-RoBERTa, with its special tokens' names.

    Text to ids, without special tokens. `cls_token_id`, `sep_token_id`,
    `pad_token_id` and `mask_token_id` are those of `<s>`, `</s>`, `<pad>` and
    `<mask>`. The model's ids are the tokenizer's: `tfeff.convert` writes the published
    offsets into it.

    Rows of pairs have two separators between the texts, `<s> A </s></s> B </s>`, and
    one segment.

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
        vocab_size=14,
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        control_symbols=["<mask>"],
        minloglevel=2,
    )
    tokenizer = tfeff.data.XLMRobertaTokenizer(model.getvalue())
    assert (tokenizer.cls_token_id, tokenizer.pad_token_id) == (0, 1)
    ```

    Reference:
        Conneau et al., "Unsupervised Cross-lingual Representation Learning at Scale",
        2020, section 3.
    """

    # KerasHub finds the tokenizer of a preset by the class of its backbone.
    backbone_cls = Encoder
    pair_separators = 2
    pair_segments = 1

    def __init__(self, proto: Any = None, **kwargs: Any):
        special = dict(cls="<s>", sep="</s>", pad="<pad>", mask="<mask>")
        for name, token in special.items():
            add_special_token(self, token, f"{name}_token")
        super().__init__(proto=proto, **kwargs)
