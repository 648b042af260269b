"""Choosing of words as a loop: BERT's rule for whole-word masks."""


def choose_units(sizes, order, budget):
    """Takes units in the given order as long as they fit; returns their numbers."""
    taken, left = set(), budget
    for unit in order:
        if 0 < sizes[unit] <= left:
            taken.add(unit)
            left -= sizes[unit]
    return taken


def word_spans(row, special, starts):
    """The words of a sequence as (start, end), by their first tokens."""
    spans = []
    for place, token in enumerate(row):
        if token in special:
            continue
        inside = place > 0 and row[place - 1] not in special
        if inside and not starts[token]:
            spans[-1] = (spans[-1][0], place + 1)
        else:
            spans.append((place, place + 1))
    return spans
