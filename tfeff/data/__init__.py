"""Text to tokens to a cache on disk to examples for training.

    text          corpora, tokenizers, where tokens stand in their text
    cache         token ids on disk, read in batches
    pretraining   examples of pretraining objectives: masks, orders, sentence pairs
    finetuning    examples of tasks: rows of texts, windows of passages, answers

A corpus (`docstrings`, `text_files`, `json_lines`, `parquet`, `hugging_face`, `tfds`,
or any list of strings) trains a tokenizer (`train_tokenizer`); both make a cache of
token ids (`build_cache`), from which any number of runs read batches (`Cache.batches`)
of an objective's examples (`MaskedTokens`, `PermutedTokens`, `SentencePairs`, or
`Examples` of your own).

Texts, pairs and options become rows of tokens (`text_features`). Questions and passages
become windows of tokens (`make_span_features`), and logits for them become answers
(`best_spans`). `tfeff.datasets` reads the published ones.

The names are imported when first used: the processes that write a cache import
this package too, and must not wait for TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cache.batches": ["Examples"],
        "cache.build": ["build_cache"],
        "cache.cache": ["Cache", "damage_named", "open_cache"],
        "finetuning.examples": [
            "ChoiceExamples",
            "Question",
            "SpanAnswer",
            "SpanExamples",
            "TextExamples",
            "TokenExamples",
        ],
        "finetuning.passage_lengths": ["passage_lengths"],
        "finetuning.span_decoding": ["best_spans"],
        "finetuning.span_features": ["make_span_features"],
        "finetuning.text_features": ["text_features"],
        "finetuning.token_features": ["token_features"],
        "pretraining.masked_tokens": ["MaskedTokens"],
        "pretraining.masking": ["mask_tokens"],
        "pretraining.permutation": ["permute_targets"],
        "pretraining.permuted_tokens": ["PermutedTokens"],
        "pretraining.sentence_pairs": ["SentencePairs"],
        "pretraining.word_masking": ["word_starts"],
        "text.bert_tokenizer": ["BertTokenizer"],
        "text.corpora": ["split", "text_files", "tfds"],
        "text.docstrings": ["docstrings"],
        "text.records": ["hugging_face", "json_lines", "parquet"],
        "text.roberta_tokenizer": ["RobertaTokenizer"],
        "text.tokenizers": [
            "load_tokenizer",
            "save_tokenizer",
            "tokenizer_fingerprint",
            "train_tokenizer",
        ],
        "text.xlm_roberta_tokenizer": ["XLMRobertaTokenizer"],
        "text.xlnet_tokenizer": ["XLNetTokenizer"],
    },
)
