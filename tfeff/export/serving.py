"""SavedModels that take text: one, or the next version of several."""

import logging
import os
from typing import Any

import keras
import keras_hub

from tfeff.encoders import Encoder
from tfeff.export.archive import make_archive
from tfeff.export.versions import versions
from tfeff.ops.kernels.backends import forward_only
from tfeff.storage.arguments import WRITE, paths
from tfeff.storage.fetching import is_published
from tfeff.storage.publishing import claimed
from tfeff.utils.digests import write_digests
from tfeff.utils.files import new_path
from tfeff.utils.loggers import quieter
from tfeff.utils.numbered import write_numbered
from tfeff.utils.paths import check_model_path, check_path, check_utf8, exists, is_url


@paths(path=WRITE)
def save_for_serving(
    model: keras.Model,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    path: str | os.PathLike,
    *,
    sequence_length: int | None = None,
    encoder: Encoder | None = None,
    **options: Any,
) -> None:
    """Writes a SavedModel that takes text, for TensorFlow without tfeff.

    It becomes exactly the folder `path`. `save_version` writes the next version of
    several, as TensorFlow Serving wants them.

    Loading it needs `import tensorflow, tensorflow_text` alone. Its signatures depend
    on the model. Each takes string tensors of any batch size `[B]` and gives
    a dict of tensors; the first one is also the default signature.

    Of a `tfeff.encoders.Encoder`, a `tfeff.objectives.MaskedLM` or a `PermutationLM` (T
    is the longest text of the batch in tokens, `[CLS]` and `[SEP]` included;
    `sequence_length` where the encoder is `length_dependent`):

    - `sentence_embeddings(text)`: `embeddings` `[B, D]` float32, the mean of the last
      hidden state over the text's own tokens (without `[CLS]` and `[SEP]`); zeros for
      a text that has none.
    - `token_embeddings(text)`: `embeddings` `[B, T, D]` float32, the last hidden
      state; `mask` `[B, T]` int32, 1 at real tokens and 0 at padding; `token_ids`
      `[B, T]` int32; `tokens` `[B, T]` string, the pieces of the vocabulary.
    - `fill_mask(text)`, of the latter two, for texts with the literal `[MASK]`, or the
      tokenizer's own, such as `<mask>`, in any number of masks (M is the largest
      number in the batch): `fillings` `[B, M, k]` string, the k likeliest pieces,
      likeliest first, without the mark of a word's beginning; `token_ids`
      `[B, M, k]` int32; `probabilities` `[B, M, k]` float32, of the softmax over the
      whole vocabulary. Slots beyond a text's own masks hold "", -1 and 0. Option:
      `top_k`, integer k, 5 by default.

    Of the fine-tuned models, which read texts as `tfeff.data.text_features` does:

    - `classify(text)` or `classify(text, text_pair)`, of a `tfeff.tasks.Classifier`:
      `label` `[B]` string, the likeliest; `labels` `[B, C]` string, all of them;
      `probabilities` `[B, C]` float32, of each. Options: `pairs`, whether there is
      a `text_pair`, False by default; `label_names`, the C labels, by default the
      model's, or else "0", "1" …
    - `rate(text)` or `rate(text, text_pair)`, of a `tfeff.tasks.Regressor`: `score`
      `[B]` float32, as the model gives it: not clipped to a data set's range. Option:
      `pairs`.
    - `choose(passage, question, options)`, of a `tfeff.tasks.MultipleChoice`, with
      `options` `[B, C]`: `option` `[B]` string, the likeliest; `index` `[B]` int32,
      its index; `probabilities` `[B, C]` float32.

    - `sentence_embeddings(text)`, of a `tfeff.tasks.SentenceEmbedding`: `embeddings`
      `[B, D]` float32, by the model's own pooling, which for `"mean"` takes `[CLS]` and
      `[SEP]` in. They have length 1 if the model was made with `normalize=True`.

    Of a `tfeff.tasks.SpanQA`, in whose windows passages of any length fit:

    - `answer(question, passage)`: `answer` `[B]` string, cut out of the passage;
      `start` and `end` `[B]` int32, its first character there and the one behind its
      last, in Unicode code points; `score` `[B]` float32, start logit + end logit;
      `no_answer_probability` `[B]` float32. No answer is "", 0 and 0. Options:
      `stride`, `max_answer_tokens` and `no_answer_threshold`, as of
      `tfeff.data.make_span_features` and `best_spans`; `max_windows`, of a passage,
      1024 by default. It is an error if a question leaves no room for the passage, or
      if a passage has more windows or, with SentencePiece, a word of more than 20,000
      characters.

    Of a `tfeff.tasks.TokenClassifier`, which reads the words of texts of any length as
    `tfeff.data.token_features` does; they are those of `tfeff.data.split_words`. W is
    the largest number of words in the batch, E that of entities; "" and 0 are behind a
    text's own ones, and offsets count Unicode code points:

    - `tag(text)`: `words` `[B, W]` string; `label` `[B, W]` string, the likeliest of
      each word, that of its first piece; `start` and `end` `[B, W]` int32, its first
      character in the text and the one behind its last; `labels` `[B, C]` string, all
      of them; `probabilities` `[B, W, C]` float32, of each. Options: `label_names`, as
      above; `max_windows`, of a text, 1024 by default. A text of more windows is an
      error, and so is, with SentencePiece, a word of more than 20,000 characters.
    - `entities(text)`, where the labels are `O`, `B-` and `I-` of types: the phrases
      that they mark, `entity` `[B, E]` string, cut out of the text; `type` `[B, E]`
      string, such as "PER"; `start` and `end` `[B, E]` int32; `probability` `[B, E]`
      float32, the mean of its words' likeliest. An `I-` that continues no phrase begins
      a new one.

    Of any other `keras.Model` over an `Encoder`, functional, subclassed or sequential:

    - `predict(text)` or `predict(text, text_pair)`: the model's own outputs by name. A
      single tensor is `output`; those of a dict have its keys, those of a list
      `output_0`, `output_1` …, nested ones both, joined by "_". Half precision becomes
      float32. The model takes `token_ids`, `segment_ids` and `padding_mask`, or some of
      them, `[B, T]`: as a dict, or by these names. Where an input has a fixed length,
      texts are cut and padded to it. Options: `pairs`; `max_tokens`, of a request, each
      row counted as long as the longest, 32,768 by default. It alone bounds the memory
      of a request: how large outputs are is known when they are computed.

    Other texts longer than `sequence_length` are cut: a single text at its end, masks
    there included; in a pair the longer text; next to a question the passage. Before it
    is tokenized, a text is cut to its first `4 n (l + 1)` characters (`n (l + 1)` with
    `RobertaTokenizer`), with n = `sequence_length` and l the characters of the
    vocabulary's longest piece. Only texts with long runs of unknown characters, of
    white space or of characters that are dropped lose tokens by this.

    An error names the input that has another number of axes, if inputs have different
    numbers of texts, if there are fewer than 1 or more than 64 options, or if the
    answer, padded to the longest text of the request, would have more than 256 MB.
    Without a text, the answer has no rows. Bytes that are not UTF-8 count as U+FFFD.
    `SHA256SUMS` in the folder has the digests of all files: see `check_export`.

    Args:
        model: a `keras.Model`, as above.
        tokenizer: the KerasHub tokenizer that the model was trained with; it has the
            ids of `[CLS]`, `[SEP]`, padding and mask, and adds none by itself.
        path: the folder to write; it must not exist, as a server may read it. The
            folders above it are made. It appears when it is complete, or not at all.
        sequence_length: integer, most tokens of a text, `[CLS]` and `[SEP]`
            included. Default: that of a `SentenceEmbedding` that has one, or else the
            encoder's `max_sequence_length`.
        encoder: the `Encoder` of the model that reads the texts. Default: the one that
            is found among the model's layers. It is needed where there are several, or
            where the model is made of the encoder's outputs without being called on it.
        **options: those named above, of the model's kind.

    Raises:
        TypeError: if an argument is of another type, an option is none of the model's,
            an output no tensor, or the tokenizer lacks a special token.
        ValueError: if `path` exists; if the model has no encoder, several of them, or
            inputs that texts do not give, or pools the last token; if the tokenizer
            pads, truncates, adds marks by itself, gives strings, or has more ids than
            the encoder; if `sequence_length` is less than 3 (5 where there are two
            texts, 6 with RoBERTa's and XLM-RoBERTa's tokenizers) or beyond a table of
            absolute positions; if `top_k` is not between 1 and the
            tokenizer's size; if `label_names` are not one for each class; on another
            backend than TensorFlow.

    Example:
    ```python
    import tensorflow as tf
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    model = tfeff.objectives.MaskedLM(encoder)
    tfeff.export.save_for_serving(model, tokenizer, "export/1")

    served = tf.saved_model.load("export/1")
    text = tf.constant(["[MASK] green bottles", "hanging on the wall"])
    embeddings = served.signatures["sentence_embeddings"](text)["embeddings"]
    fillings = served.signatures["fill_mask"](text)["fillings"]

    model = tfeff.tasks.Classifier(encoder, num_classes=2)
    names = ["still", "moving"]
    tfeff.export.save_for_serving(model, tokenizer, "export/2", label_names=names)
    served = tf.saved_model.load("export/2")
    label = served.signatures["classify"](text)["label"]
    ```
    """
    check_model_path("path", check_path("path", path))
    archive = make_archive(
        model, tokenizer, sequence_length=sequence_length, encoder=encoder, **options
    )
    advice = "`tfeff.export.save_version` writes the next number in a folder"
    with new_path("path", path, advice) as unfinished:
        _write(archive, unfinished)


def save_version(
    model: keras.Model,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    path: str | os.PathLike,
    **options: Any,
) -> str:
    """Writes the next version of a SavedModel that takes text.

    TensorFlow Serving serves the folder `path`, the base path of a model, and in it the
    version with the highest number: behind `path/1` this writes `path/2`. No version is
    ever overwritten, also where several processes write at once.

    Args:
        model, tokenizer: as of `save_for_serving`.
        path: the folder of the versions; made if it is missing.
        **options: those of `save_for_serving`.

    Returns:
        The folder of the new version, which has appeared when it was complete; at a
        URL, with its first file: see EXPORT.md.

    Raises:
        TypeError, ValueError: as `save_for_serving`; ValueError also if `path` is a
            file, or an export itself.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=40, num_layers=1)
    first = tfeff.export.save_version(encoder, tokenizer, "export")
    second = tfeff.export.save_version(encoder, tokenizer, "export")
    assert tfeff.export.versions("export") == [first, second]
    ```

    Reference:
        "TensorFlow Serving configuration", tensorflow.org/tfx/serving/serving_config.
    """
    if is_url(path):
        path, is_file = str(path), False
    else:
        path = check_path("path", path)
        check_utf8("path", path)
        check_model_path("path", path)
        is_file = exists("path", path) and not os.path.isdir(path)
    found = [] if is_file else versions(path)
    if is_file or found == [path]:
        raise ValueError(
            "`path` must be a folder of versions, or not there yet. Received: "
            f"path={path!r}, which is {'a file' if is_file else 'an export itself'}"
        )
    if is_url(path):
        return _save_remote_version(model, tokenizer, path, found, options)
    archive = make_archive(model, tokenizer, **options)
    return write_numbered(path, lambda new: _write(archive, new))


def _save_remote_version(model, tokenizer, url, found, options):
    """The next version at a URL, where another process cannot take its number."""
    number = max([0, *(int(path.rpartition("/")[2]) for path in found)]) + 1
    while True:
        path = f"{url.rstrip('/')}/{number}"
        with claimed("path", url, f"version-{number}") as is_own:
            # Listings of some storages lag behind.
            if is_own and not is_published(path):
                save_for_serving(model, tokenizer, path, **options)
                return path
        number += 1


def _write(archive, folder):
    with forward_only(), quieter("tensorflow", logging.WARNING):
        archive.write_out(folder, verbose=False)
    write_digests(folder)
