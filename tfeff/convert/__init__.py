"""Published checkpoints in: Hugging Face, Model Garden, ConvBERT's authors.

`tfeff convert SOURCE DESTINATION` is the same as `convert`.
"""

from tfeff.convert.bert_tokenizer import BertTokenizer
from tfeff.convert.conversion import Converted, convert, load
from tfeff.convert.positions import swap_positions
from tfeff.convert.xlnet_tokenizer import XLNetTokenizer

__all__ = [
    "BertTokenizer",
    "Converted",
    "XLNetTokenizer",
    "convert",
    "load",
    "swap_positions",
]
