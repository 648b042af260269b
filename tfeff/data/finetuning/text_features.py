"""Texts, pairs of texts and questions with options as rows of token ids."""

import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.encoding import encode
from tfeff.data.finetuning.examples import ChoiceExamples, TextExamples
from tfeff.data.finetuning.feature_rows import FeatureRows, with_empty
from tfeff.data.finetuning.packing import (
    fill_gaps,
    is_cut,
    pack,
    padded_inputs,
    pair_frame,
)
from tfeff.data.text.tokenizers import FRAME_NAMES, special_token_ids
from tfeff.utils.checks import check_integer


class TextFeatures(FeatureRows):
    """Examples as an encoder reads them, ready to train on.

    A batch is `(inputs, labels, weights)`: a dictionary of `token_ids`, `segment_ids`
    and `padding_mask`, int32 `[B, T]`, or `[B, C, T]` of questions with options; labels
    `[B]`; weights `[B]` float32, 1 or 0. Without labels it is `(inputs,)`.

    Attributes:
        labels: `[N]`, int32 classes or float32 ratings; None where there are none.
        sequence_length: T, the length of all rows.
        num_choices: C, options of a question; None for texts.
        num_cut: how many examples are longer than T and have lost tokens.
    """

    def __init__(
        self, rows, starts, labels, sequence_length, num_choices, pad_token_id, cut
    ):
        choices = num_choices or 1
        count = int(rows.nrows()) // choices
        rows = with_empty(rows, choices)
        super().__init__(count, rows, sequence_length, pad_token_id)
        self.labels = labels
        self.num_choices = num_choices
        self.num_cut = int(cut.numpy().reshape(-1, choices).any(axis=1).sum())
        self._starts = tf.concat([starts, tf.zeros([choices], tf.int32)], axis=0)

    def _batch(self, rows, length):
        order = rows
        if self.num_choices is not None:
            options = tf.range(self.num_choices, dtype=tf.int64)
            order = tf.reshape(rows[:, None] * self.num_choices + options, [-1])
        inputs = padded_inputs(
            tf.gather(self._tokens, order),
            tf.gather(self._starts, order),
            self._pad_token_id,
            length,
        )
        if self.num_choices is not None:
            shape = [-1, self.num_choices, length or tf.shape(inputs["token_ids"])[1]]
            inputs = {name: tf.reshape(x, shape) for name, x in inputs.items()}
        if self.labels is None:
            return (inputs,)
        labels = tf.gather(tf.pad(self.labels, [[0, 1]]), rows)
        return inputs, labels, tf.cast(rows < len(self), tf.float32)


def text_features(
    examples: TextExamples | ChoiceExamples,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
) -> TextFeatures:
    """Turns the examples of a task into rows of token ids.

    A text becomes `[CLS] text [SEP]`, a pair `[CLS] first [SEP] second [SEP]` with
    segment 1 from the second text on. With RoBERTa's and XLM-RoBERTa's tokenizers a
    pair has two `[SEP]` between its texts and no segment 1. What is too long loses
    tokens at its end, in a pair always from the longer text; `num_cut` says how many.

    Each option of a question becomes `[CLS] passage [SEP] question option [SEP]`; an
    option fills the gap that a question marks by "_". Only the passage is cut.

    Args:
        examples: `TextExamples` or `ChoiceExamples`, as from `tfeff.datasets.get(name)`
            by its `read`.
        tokenizer: the KerasHub tokenizer of the encoder.
        sequence_length: T, at least 3 for texts and 5 for pairs and questions, or 6
            with RoBERTa's and XLM-RoBERTa's tokenizers.

    Returns:
        The rows and labels.

    Raises:
        ValueError: if there are no examples, an argument is out of range, no token of a
            passage has room beside its question, or the tokenizer pads, truncates, adds
            marks by itself or gives strings.
        TypeError: if `examples` are of another kind, or the tokenizer has no `[CLS]`,
            `[SEP]` or padding.

    Example:
    ```python
    import tfeff

    examples = tfeff.data.TextExamples(
        ["a joy", "a bore"], labels=[1, 0], label_names=("bad", "good")
    )
    tokenizer = tfeff.data.train_tokenizer(["a joy", "a bore"], 13)
    features = tfeff.data.text_features(examples, tokenizer, sequence_length=8)
    assert features.inputs["token_ids"].shape == (2, 8)
    for inputs, labels, weights in features.dataset(batch_size=4, repeat=False):
        assert weights.numpy().tolist() == [1, 1, 0, 0]
    ```

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", 2019, sections 3 and 4.1.
    """
    if not isinstance(examples, (TextExamples, ChoiceExamples)):
        raise TypeError(
            "`examples` must be `TextExamples` or `ChoiceExamples`. Received: examples "
            f"of type {type(examples).__name__}"
        )
    special_token_ids(tokenizer, FRAME_NAMES)
    if not len(examples):
        raise ValueError("`examples` must hold examples. Received: none")
    num_choices = None
    if isinstance(examples, TextExamples):
        pairs = examples.second is not None
        sequence_length = check_integer(
            "sequence_length",
            sequence_length,
            pair_frame(tokenizer) + 2 if pairs else 3,
        )
        first = encode(tokenizer, examples.first)
        second = None if examples.second is None else encode(tokenizer, examples.second)
        keep = "neither"
    else:
        num_choices = len(examples.options[0])
        # The special tokens of a row, and one of the passage.
        frame = pair_frame(tokenizer) + 1
        sequence_length = check_integer("sequence_length", sequence_length, frame + 1)
        asked = fill_gaps(
            tf.repeat(examples.questions, num_choices),
            tf.reshape(examples.options, [-1]),
        ).numpy()
        passages = [p for p in examples.passages for _ in range(num_choices)]
        second = encode(tokenizer, asked)
        longest = int(tf.argmax(second.row_lengths()))
        if (needed := int(second.row_lengths()[longest]) + frame) > sequence_length:
            raise ValueError(
                f"`sequence_length` must be at least {needed} for question "
                f"{examples.ids[longest // num_choices]!r}. Received: "
                f"sequence_length={sequence_length}"
            )
        first, keep = encode(tokenizer, passages), "second"
    rows, starts = pack(first, second, tokenizer, sequence_length, keep)
    return TextFeatures(
        rows,
        starts,
        examples.labels,
        sequence_length,
        num_choices,
        tokenizer.pad_token_id,
        is_cut(first, second, tokenizer, sequence_length),
    )
