"""Phrases that labels of words mark, one word at a time."""


def phrases(labels):
    """Phrases (type, first, last) as conlleval finds them."""
    found, begin, kind = set(), None, None
    for index, label in enumerate([*labels, "O"]):
        mark, _, of = label.partition("-")
        if begin is not None and (mark in "OB" or of != kind):
            found.add((kind, begin, index - 1))
            begin = None
        if mark != "O" and (mark == "B" or begin is None):
            begin, kind = index, of
    return found
