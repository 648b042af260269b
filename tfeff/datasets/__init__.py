"""Data sets to fine-tune on, one object each: `get("SST-2")`, `names()`, `register`.

A `Dataset` reads its splits, computes the official metrics of predictions, and writes
them in the benchmark's format:

    glue        CoLA, SST-2, MRPC, QQP, STS-B, MNLI, QNLI, RTE, WNLI
    superglue   BoolQ, MultiRC
    race        RACE
    squad       SQuAD 1.1 and 2.0
    mrqa        HotpotQA, NewsQA, SearchQA, TriviaQA, NaturalQuestions
    conll       CoNLL-2003 and CoNLL-2000, WikiANN, WNUT-17

`read_sentences` reads texts, pairs and triplets to learn embeddings from.

To add one, pass a `Dataset`, `tsv_dataset`, `span_dataset` or `conll_dataset` to
`register`; `described_dataset` reads one of a file, which is all that commands need.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
