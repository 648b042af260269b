"""Checkpoints of Hugging Face, Model Garden, KerasHub and authors in, and out again.

The command `tfeff convert SOURCE DESTINATION` calls `convert`, with `--to=huggingface`
it calls `to_huggingface`.
"""

from tfeff.convert.conversion import Converted, convert, load, load_task
from tfeff.convert.huggingface import Written, to_huggingface
from tfeff.convert.replaced_token import load_replaced_token
from tfeff.convert.tokenizer_source import load_tokenizer
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.xlm_roberta_tokenizer import XLMRobertaTokenizer
from tfeff.data.text.xlnet_tokenizer import XLNetTokenizer
from tfeff.encoders import swap_positions

__all__ = [
    "BertTokenizer",
    "Converted",
    "RobertaTokenizer",
    "Written",
    "XLMRobertaTokenizer",
    "XLNetTokenizer",
    "convert",
    "load",
    "load_replaced_token",
    "load_task",
    "load_tokenizer",
    "swap_positions",
    "to_huggingface",
]
