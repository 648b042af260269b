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

Texts, pairs and options become rows of tokens (`text_features`); so do words that have
labels (`token_features`), and texts to learn embeddings from (`sentence_features`).
Questions and passages become windows of tokens (`make_span_features`), and logits for
them become answers (`best_spans`). `tfeff.datasets` reads the published ones.

The names are imported when first used: the processes that write a cache import
this package too, and must not wait for TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
