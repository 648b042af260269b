import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from tfeff.encoders import Encoder


@keras.saving.register_keras_serializable(package="tfeff")
class BertTokenizer(keras_hub.tokenizers.BertTokenizer):
    """KerasHub's WordPiece tokenizer, with BERT's own clean-up of the text before it.

    White space of any kind counts as a space, other invisible characters go, and
    capitals become small letters one by one. KerasHub's own `lowercase` also takes
    "…" for "..." and "½" for "1⁄2", for which BERT's vocabularies have no words.

    Args:
        vocabulary: list of the pieces in the order of their ids, or path of a file.
        lowercase: whether capitals become small letters.
        **kwargs: arguments of `keras_hub.tokenizers.BertTokenizer`, such as
            `strip_accents`, which uncased models need as well.

    Raises:
        ValueError: if the vocabulary lacks a special token.

    Example:

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "…"]
    >>> tokenizer = BertTokenizer(pieces, lowercase=True, strip_accents=True)
    >>> [int(id) for id in tokenizer("Café…")]
    [5, 6]

    Reference:
        Devlin et al., "BERT", section 3.
    """

    # KerasHub finds the tokenizer of a preset by the class of its backbone.
    backbone_cls = Encoder

    def __init__(self, vocabulary=None, lowercase: bool = False, **kwargs):
        super().__init__(vocabulary, lowercase=False, **kwargs)
        self.to_lower = bool(lowercase)

    def tokenize(self, inputs):
        text = tf.strings.regex_replace(inputs, r"[\t\n\r\p{Zs}]", " ")
        text = tf.strings.regex_replace(text, r"[\p{C}\x{FFFD}]", "")
        text = tf_text.normalize_utf8(text, "NFC")
        if self.to_lower:
            # On its own, without a look at the end of the word.
            text = tf.strings.regex_replace(text, "Σ", "σ")
            text = tf.strings.lower(text, encoding="utf-8")
        return super().tokenize(text)

    def get_config(self):
        config = super().get_config()
        # KerasHub forgets the second one.
        config.update(lowercase=self.to_lower, split_on_cjk=self.split_on_cjk)
        return config
