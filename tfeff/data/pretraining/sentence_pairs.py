"""Examples of sentence-order and next-sentence prediction, as settings."""

import dataclasses
from collections.abc import Callable

import keras_hub
import tensorflow as tf

from tfeff.data.cache.batches import Examples, TokenBatch
from tfeff.data.cache.manifest import Manifest
from tfeff.data.pretraining.masked_tokens import MaskedTokens
from tfeff.data.pretraining.pairing import make_pairs
from tfeff.data.pretraining.sentences import sentence_pieces
from tfeff.data.text.pieces import word_starts
from tfeff.utils.checks import check_choice


@dataclasses.dataclass(frozen=True)
class SentencePairs(Examples):
    """Pairs `[CLS] A [SEP] B [SEP]`: the model predicts whether B follows A.

    Each sequence of the cache is split in two: between two sentences, or before a word
    where it has too few, if `Cache.batches` is given `tokenizer`. (Without it before
    any token; then a B that begins inside a word, or a half that ends inside a
    sentence, reveals the label. So it does in texts of one sentence, whose order is
    better not asked.) With probability 1/2 the pair is made wrong: for `"order"`, A and
    B are swapped; for `"next"`, B is taken from another document. Eight sequences are
    drawn for this, and one of another document is used; if there is none, which is
    likely with few documents only, the pair is not changed. Sequences that cannot be
    split, such as those of one token, and for the order those with parts of two
    sentences alone and an end of the document, have weight 0.

    `Cache.batches` gives `(inputs, labels, weights)`. `inputs` are those of
    `MaskedTokens` with `segment_ids` 1 for B and its `[SEP]`, and
    M = max(1, round(mask_rate · (T − 3))); without masks there are no `mask_positions`.
    `labels` has `sentence` `[B]` int32, 0 if B follows A and 1 if not, and with masks
    `masked_lm` `[B, M]`; `weights` has the same names.

    The cache must hold one document in each sequence, and sequences of at least 5
    tokens; for `"next"`, two documents at least.

    Args:
        kind: `"order"` (ALBERT) or `"next"` (BERT).
        masked: `MaskedTokens`, the masking of tokens; None masks nothing.

    Raises:
        ValueError: if `kind` is neither.
        TypeError: if `masked` is of another type.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
    pairs = tfeff.data.SentencePairs("next", masked=None)
    batches = cache.batches(pairs, batch_size=8, tokenizer=tokenizer)
    inputs, labels, weights = next(iter(batches))
    assert labels["sentence"].shape == [8]
    ```

    Reference:
        Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language
        Representations", 2020, section 3.1, for the order; Devlin et al., "BERT:
        Pre-training of Deep Bidirectional Transformers for Language Understanding",
        2019, section 3.1, Task #2, for the next sentence.
    """

    kind: str = "order"
    masked: MaskedTokens | None = MaskedTokens()

    def __post_init__(self):
        check_choice("kind", self.kind, ["order", "next"])
        if not isinstance(self.masked, MaskedTokens | None):
            raise TypeError(
                "`masked` must be `MaskedTokens` or None. "
                f"Received: masked={self.masked!r:.80}"
            )

    @property
    def needs_others(self) -> bool:  # type: ignore[override]
        return self.kind == "next"

    def mapping(
        self,
        manifest: Manifest,
        seed: int,
        tokenizer: keras_hub.tokenizers.Tokenizer | None,
    ) -> Callable[..., tuple]:
        self.check(manifest.sequence_length, manifest.cross_documents)
        if self.kind == "next" and manifest.num_documents < 2:
            raise ValueError(
                "`kind` must be 'order' for a cache of one document: 'next' takes "
                f"wrong pairs from other documents. Received: kind={self.kind!r} for a "
                f"cache of {manifest.num_documents} document"
            )
        starts = sentences = None
        if tokenizer is not None:
            starts = word_starts(tokenizer)
            sentences = sentence_pieces(tokenizer, starts)
        mask = None
        if self.masked is not None:
            num_tokens = manifest.sequence_length - 3
            mask = self.masked.masks(manifest, num_tokens, seed, tokenizer)

        def example(
            first_example: tf.Tensor,
            texts: TokenBatch,
            others: TokenBatch | None = None,
        ) -> tuple:
            inputs, label, weight = make_pairs(
                texts,
                others,
                seed=seed,
                first_example=first_example,
                manifest=manifest,
                word_starts=starts,
                sentence_pieces=sentences,
            )
            labels, weights = {"sentence": label}, {"sentence": weight}
            if mask is not None:
                ids, positions, tokens, used = mask(
                    inputs["token_ids"], first_example=first_example
                )
                inputs |= {"token_ids": ids, "mask_positions": positions}
                labels["masked_lm"], weights["masked_lm"] = tokens, used
            return inputs, labels, weights

        return example

    def check(self, sequence_length: int, cross_documents: bool) -> None:
        """Raises unless pairs can be made of the sequences of such a cache.

        Args:
            sequence_length: tokens of the cache's sequences.
            cross_documents: whether these may span documents.

        Raises:
            ValueError: if a sequence is of several documents, or has no room for two
                texts.
        """
        if cross_documents:
            raise ValueError(
                "`cross_documents` must be False for pairs of sentences, so that "
                "sequences hold one document each: in others, A and B may come from "
                "different documents. Received: cross_documents=True"
            )
        if sequence_length < 5:
            raise ValueError(
                "`sequence_length` must be at least 5 for pairs of sentences: three "
                "special tokens, and one token each of A and B. "
                f"Received: sequence_length={sequence_length}"
            )
