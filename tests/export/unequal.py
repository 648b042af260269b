"""Sends requests of very unequal rows to SavedModels, and weighs what they take.

Called as `unequal.py FOLDER`, of SavedModels as `hostile.py` takes them. The process
may take 8 GB more than it has when they are loaded. Prints what came as JSON: of each
signature how many answers and errors it gave, the most memory in MB that a request
took, and which one. It fails at an error that names no input.
"""

import collections
import json
import re
import resource
import sys

from hostile import load, memory, most_taken  # of the folder of this file

ROWS = (40, 5000)
LONG = {
    "words": "a " * 3000,
    "more words": "a " * 40_000,
    "many words": "a " * 100_000,
    "one word": "fox" * 30_000,
    "masks": "[MASK]" * 510,
    "gaps": "a_" * 3000,
    "gaps alone": "_a" * 20_000,
}


def requests(names):
    """Inputs by name, with what they are: one long row among short ones."""
    for rows in ROWS:
        for kind, long in LONG.items():
            # Of all inputs, and of one alone.
            for chosen in {tuple(names), *((name,) for name in names)}:
                last = {name: long if name in chosen else "a" for name in names}
                inputs = {n: [""] * (rows - 1) + [text] for n, text in last.items()}
                if "options" in names:
                    columns = 64 if rows == min(ROWS) else 2
                    inputs["options"] = [[x] * columns for x in inputs["options"]]
                yield f"{rows} rows, one of {kind} in {chosen}", inputs
    # Beside a long question, a passage is cut into many windows.
    texts = ["a " * 400] * 40
    options = {"options": [["a_"] * 64] * 40} if "options" in names else {}
    yield "40 long rows", dict.fromkeys(names, texts) | options


def error_of(function, inputs):
    """The message of a request's error; None where it is answered."""
    import tensorflow as tf

    try:
        function(**inputs)
    except tf.errors.InvalidArgumentError as error:
        return str(error)
    return None


def weigh(served):
    """What the requests to `(name, function, names of inputs)` take."""
    import tensorflow as tf

    found = {}
    for name, function, names in served:
        counts, most = collections.Counter(), (0, "")
        for kind, inputs in requests(names):
            tensors = {key: tf.constant(value) for key, value in inputs.items()}
            error, taken = most_taken(lambda f=function, x=tensors: error_of(f, x))
            if error:
                named = re.search(r"assertion failed: \[`(\w+)` must", error)
                assert named and named[1] in names, (name, kind, error)
            counts["errors" if error else "answers"] += 1
            most = max(most, (taken, kind))
        found[name] = {**counts, "most": most}
    return found


def main(folder):
    served = load(folder)
    most = int(1e3 * memory("VmSize")) + 8 * 10**9
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(json.dumps(weigh(served)))


if __name__ == "__main__":
    main(sys.argv[1])
