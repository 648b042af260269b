from .cache.batches import Examples as Examples
from .cache.build import build_cache as build_cache
from .cache.cache import (
    Cache as Cache,
)
from .cache.cache import (
    damage_named as damage_named,
)
from .cache.cache import (
    open_cache as open_cache,
)
from .finetuning.examples import (
    ChoiceExamples as ChoiceExamples,
)
from .finetuning.examples import (
    Question as Question,
)
from .finetuning.examples import SentenceExamples as SentenceExamples
from .finetuning.examples import (
    SpanAnswer as SpanAnswer,
)
from .finetuning.examples import (
    SpanExamples as SpanExamples,
)
from .finetuning.examples import (
    TextExamples as TextExamples,
)
from .finetuning.examples import (
    TokenExamples as TokenExamples,
)
from .finetuning.passage_lengths import passage_lengths as passage_lengths
from .finetuning.sentence_features import sentence_features as sentence_features
from .finetuning.span_decoding import best_spans as best_spans
from .finetuning.span_features import make_span_features as make_span_features
from .finetuning.text_features import text_features as text_features
from .finetuning.token_features import token_features as token_features
from .pretraining.masked_tokens import MaskedTokens as MaskedTokens
from .pretraining.masking import mask_tokens as mask_tokens
from .pretraining.permutation import permute_targets as permute_targets
from .pretraining.permuted_tokens import PermutedTokens as PermutedTokens
from .pretraining.sentence_pairs import SentencePairs as SentencePairs
from .text.bert_tokenizer import BertTokenizer as BertTokenizer
from .text.corpora import (
    split as split,
)
from .text.corpora import (
    text_files as text_files,
)
from .text.corpora import (
    tfds as tfds,
)
from .text.docstrings import docstrings as docstrings
from .text.pieces import word_starts as word_starts
from .text.records import (
    hugging_face as hugging_face,
)
from .text.records import (
    json_lines as json_lines,
)
from .text.records import (
    parquet as parquet,
)
from .text.roberta_tokenizer import RobertaTokenizer as RobertaTokenizer
from .text.samples import sample as sample
from .text.tokenizers import (
    load_tokenizer as load_tokenizer,
)
from .text.tokenizers import (
    save_tokenizer as save_tokenizer,
)
from .text.tokenizers import (
    tokenizer_fingerprint as tokenizer_fingerprint,
)
from .text.tokenizers import (
    train_tokenizer as train_tokenizer,
)
from .text.words import split_words as split_words
from .text.xlm_roberta_tokenizer import XLMRobertaTokenizer as XLMRobertaTokenizer
from .text.xlnet_tokenizer import XLNetTokenizer as XLNetTokenizer
