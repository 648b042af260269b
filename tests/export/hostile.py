"""Fires hostile requests at SavedModels, as a server without tfeff gets them.

Called as `hostile.py FOLDER REQUESTS SEED`. FOLDER holds SavedModels, each in a folder
`TOKENIZER-KIND`. Prints what came as JSON: how many answers and errors each signature
gave, and the resident memory in MB after a fifth of the requests and at the end. It
fails at the first answer of a wrong shape and the first error that names no input.
"""

import collections
import gc
import json
import math
import os
import random
import re
import sys
import time

UNITS = [
    *("a", "fox", "The quick", "zebras", ".", " ", "\n", "\t "),
    *("ф\v", "x_", "_", "\0", "▁"),
    *("[MASK]", "[MASK", "[CLS]", "##a", "é", "e\u0301", "\u0301", "ß", "İ", "ﬁ", "½"),
    *("漢", "한", "ｶﾞ", "עברית", "\u202eمرحبا", "\u200b", "\u200d", "\ufeff", "\ufffd"),
    *(
        "😀",
        "👩\u200d👩\u200d👧",
        "\U000e0001",
        "\U0010ffff",
        "\ufdd0",
        "\u2028",
        "\x1b",
    ),
]
BROKEN = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80", b"\xc0\x80", b"\x80" * 9]


def make_text(source):
    """Bytes of a text: usual ones mostly, now and then far too long ones."""
    kind = source.random()
    if kind < 0.05:
        return b""
    if kind < 0.10:
        return source.randbytes(source.randrange(40))
    if kind < 0.15:
        return source.choice(UNITS).encode() * source.randrange(400)
    if kind < 0.151:  # up to megabytes
        units = [unit.encode() for unit in UNITS] + BROKEN
        return source.choice(units) * source.choice([2_000, 20_000, 100_000])
    text = [source.choice(UNITS).encode() for _ in range(source.randrange(12))]
    if kind < 0.25:
        text.insert(source.randrange(len(text) + 1), source.choice(BROKEN))
    return source.choice([b"", b" "]).join(text)


def make_request(source, names, has_windows):
    """Inputs by name, rows and columns of the answer, and what it must be."""
    rows = source.choice([0, 1, 1, 1, 2, 2, 3])
    sizes = {name: rows for name in names}
    if len(names) > 1 and source.random() < 0.2:
        sizes[source.choice(names)] = source.choice([0, 1, 2, 3, 4, 7])
    inputs = {name: [make_text(source) for _ in range(n)] for name, n in sizes.items()}
    columns = 0
    if "options" in names:
        columns = source.choice([1, 2, 2, 3, 4])
        if source.random() < 0.1:
            columns = source.choice([0, 65, 1000, 20_000])
        inputs["options"] = [
            [b"o" if columns > 4 else make_text(source) for _ in range(columns)]
            for _ in range(sizes["options"])
        ]
    if len(set(sizes.values())) > 1 or ("options" in names and not 0 < columns < 65):
        return inputs, rows, columns, "error"
    # A question may leave no room, and a text may have too many windows.
    return inputs, rows, columns, "either" if has_windows else "answer"


def of_other_rank(source, names, rows):
    """Texts for one of the inputs, in a flat list, and a shape that is not its own."""
    name = source.choice(names)
    columns = source.choice([0, 1, 2, 3])
    shapes = [(), (rows,), (rows, columns), (rows, columns, 2), (1, rows, 1, 1)]
    del shapes[2 if name == "options" else 1]
    shape = source.choice(shapes)
    return name, [make_text(source) for _ in range(math.prod(shape))], shape


def check_answer(outputs, rows, columns):
    """Each output has a row for each of the inputs', and numbers are numbers."""
    import numpy as np

    for name, value in outputs.items():
        value = value.numpy()
        assert value.shape[:1] == (rows,), (name, value.shape, rows)
        if value.dtype.kind == "f":
            assert np.isfinite(value).all(), name
        if name == "probabilities" and value.ndim == 2:
            assert not columns or value.shape == (rows, columns)
            np.testing.assert_allclose(value.sum(axis=1), np.ones(rows), atol=1e-4)


def resident():
    """Resident memory of this process in MB."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def most_taken(call):
    """What a call gives, and the MB that it takes at its peak, beside those before."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # The peak is from here on.
    before = memory("VmRSS")
    result = call()
    return result, memory("VmHWM") - before


def memory(key):
    """A size of this process in MB, as Linux names it."""
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) / 1e3 for x in file if x.startswith(f"{key}:"))


def fire(served, requests, seed, ranks=0.05):
    """Requests in turn to `(name, function, names of inputs)`; what came of them.

    The share `ranks` of them has an input of another rank.
    """
    import tensorflow as tf

    source = random.Random(seed)
    counts = {name: collections.Counter() for name, _, _ in served}
    early, named, started = None, set(), time.monotonic()
    for number in range(requests):
        name, function, names = served[number % len(served)]
        has_windows = name.endswith(("answer", "tag", "entities"))
        inputs, rows, columns, must = make_request(source, names, has_windows)
        tensors = {
            key: tf.constant(value, tf.string, [len(value), columns])
            if key == "options"
            else tf.constant(value, tf.string)
            for key, value in inputs.items()
        }
        if source.random() < ranks:
            key, texts, shape = of_other_rank(source, names, rows)
            tensors[key], must = tf.constant(texts, tf.string, shape), "error"
        try:
            outputs = function(**tensors)
        except tf.errors.InvalidArgumentError as error:
            found = re.search(r"assertion failed: \[`(\w+)` must", str(error))
            assert found and found[1] in names, (name, inputs, str(error))
            assert must != "answer", (name, inputs, str(error))
            counts[name]["errors"] += 1
            named.add(f"{name} {found[1]}")
        else:
            assert must != "error", (name, inputs)
            check_answer(outputs, rows, columns)
            counts[name]["answers"] += 1
        if number + 1 == requests // 5:
            early = resident()
    return {
        "counts": counts,
        "named": sorted(named),
        "early": early,
        "late": resident(),
        "seconds": time.monotonic() - started,
    }


def load(folder):
    """The signatures of its SavedModels: name, function and names of inputs."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401, which has the tokenizers' operations

    served = []
    for name in sorted(os.listdir(folder)):
        loaded = tf.saved_model.load(os.path.join(folder, name))
        for signature, function in loaded.signatures.items():
            if signature != "serving_default":
                names = sorted(function.structured_input_signature[1])
                function.loaded = loaded  # else its variables were gone
                served.append((f"{name} {signature}", function, names))
    return served


def main(folder, requests, seed):
    print(json.dumps(fire(load(folder), requests, seed)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
