"""The examples that a distillation on a task trains on, and their rows of tokens."""

import os

import tfeff
from tfeff.data.finetuning.examples import take
from tfeff.recipes.answer_scores import check_answered
from tfeff.recipes.data_record import file_digest
from tfeff.recipes.shared_examples import print_shared
from tfeff.recipes.task_part import SpanPart, TaskPart, rows_of
from tfeff.utils.digests import sha256_of_arrays
from tfeff.utils.naming import named_as


def read_examples(dataset, settings):
    """The examples to train on, sampled, and those of dev."""
    names = ("skip_malformed", "skip_mismatched")
    options = {name: True for name in names if getattr(settings, name)}
    is_of_spans = dataset.kind is tfeff.data.SpanExamples
    if is_of_spans and os.path.isfile(settings.data):
        raise ValueError(
            "`data` must be the folder of the files to train on and to choose by: one "
            f"file would be read as both. Received: data={settings.data!r}"
        )
    with named_as(folder="data"):
        splits = ("train", dataset.dev_splits[0])
        train, dev = (dataset.read(s, settings.data, **options) for s in splits)
    for split, examples in zip(splits, (train, dev)):
        if not len(examples):
            raise ValueError(
                f"`data` must hold examples of {split!r} that are not all left out. "
                f"Received: {', '.join(examples.skipped[:1]) or 'none'}"
            )
        if is_of_spans:
            check_answered("data", split, examples.questions)
    if count := len(train.skipped) + len(dev.skipped):
        print(f"{count:,} lines left out, such as {(*train.skipped, *dev.skipped)[0]}")
    print_shared(dict(zip(splits, (train, dev))))
    if settings.train_examples is not None:
        with named_as(count="train_examples"):
            train = some_examples(train, settings.train_examples)
    return train, dev


def some_examples(examples, count):
    """The examples that `finetune` and `answer` train on by the same setting."""
    if isinstance(examples, tfeff.data.SpanExamples):
        return take(examples, range(min(count, len(examples))))
    return examples.sample(count)


def augmented(examples, settings, tokenizer):
    """The examples with their copies, and the digests of what made these."""
    folder, vectors = settings.augment_with, settings.word_vectors
    if not isinstance(examples, tfeff.data.TextExamples):
        raise ValueError(
            "`augment_with` must be None but for texts and pairs: other words would "
            f"change answers and options. Received: augment_with={folder!r}, "
            f"task={settings.task!r}"
        )
    with named_as(path="augment_with", step="augment_with"):
        masked_lm, known = tfeff.tasks.load_masked_lm(folder)
    fingerprint = tfeff.data.tokenizer_fingerprint
    if fingerprint(tokenizer) != fingerprint(known):
        raise ValueError(
            "`augment_with` must have the student's tokenizer. "
            f"Received: augment_with={folder!r}, student={settings.student!r}"
        )
    renamed = {"rate": "threshold", "masked_lm": "augment_with"}
    digests = {"augment_with": sha256_of_arrays(masked_lm.get_weights())}
    with named_as(path="word_vectors", **renamed):
        more = tfeff.tasks.augment(
            examples,
            masked_lm,
            tokenizer,
            copies=settings.copies,
            rate=settings.threshold,
            candidates=settings.candidates,
            word_vectors=tfeff.tasks.read_word_vectors(vectors) if vectors else None,
            seed=settings.seed,
        )
        if vectors:
            digests["word_vectors"] = file_digest(vectors)
    return more, digests


def make_part(dataset, examples, tokenizer, settings):
    """The examples of any kind with their rows of tokens."""
    length = settings.sequence_length
    if not isinstance(examples, tfeff.data.SpanExamples):
        return TaskPart(dataset, examples, rows_of(examples, tokenizer, length))
    stride = settings.stride
    return SpanPart(
        dataset,
        examples,
        tfeff.data.make_span_features(examples, tokenizer, length, stride),
        stride=stride,
        max_answer_tokens=settings.max_answer_tokens,
    )
