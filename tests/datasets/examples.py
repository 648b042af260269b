"""Examples that have labels and ids alone, for metrics and submissions."""

from tfeff.data import ChoiceExamples, TextExamples
from tfeff.datasets import get


def examples(name, labels, ids=None):
    """Examples of the data set with the labels; without labels, as many as ids."""
    ids = tuple(map(str, range(len(labels)))) if ids is None else ids
    columns = dict(labels=labels, label_names=get(name).label_names, ids=tuple(ids))
    texts = ("",) * len(columns["ids"])
    if get(name).kind is ChoiceExamples:
        options = (("",) * 4,) * len(texts)
        return ChoiceExamples(texts, texts, options, **columns)
    return TextExamples(texts, None, **columns)


def metrics(name, labels, predictions, ids=None):
    """The data set's metrics of predictions for such examples."""
    return get(name).metrics(examples(name, labels, ids), predictions)
