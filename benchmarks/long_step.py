"""One training step of a whole encoder on one long sequence: memory and time.

Base width, extended from 512 tokens, masked language modelling with AdamW, float32, no
dropout, TensorFlow without XLA, on the CPU. Each step runs in a process of its own; its
memory is the highest resident size of the process. Rows are added to `long_step.csv` in
`--results`, and `long_step.md` is written from it.

    python benchmarks/long_step.py
    python benchmarks/long_step.py --presets=shatter_base --length=4096 --layers=2
"""

import os
import resource
import time

import environment
from absl import app, flags
from rows import markdown, read, record, write_tables
from steps import in_own_process

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "presets",
    ["no_position_base", "shatter_base", "bert_rab_base", "huang4_base"],
    "Presets of `tfeff.encoders`.",
)
flags.DEFINE_integer("length", 16384, "Tokens of the sequence.", lower_bound=3)
flags.DEFINE_integer("layers", 12, "Layers of the encoder.", lower_bound=1)
flags.DEFINE_enum(
    "memory_efficient", "none", ["none", "attention", "block"], "What is recomputed."
)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")

SETTINGS = ("length", "layers")
FIELDS = (*SETTINGS, "preset", "memory_efficient", "gigabytes", "seconds")


def main(_):
    """Makes the rows that are missing."""
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "long_step.csv")
    for preset in FLAGS.presets:
        case = {
            "length": str(FLAGS.length),
            "layers": str(FLAGS.layers),
            "preset": preset,
            "memory_efficient": FLAGS.memory_efficient,
        }
        if any(case.items() <= row.items() for row in read(path)):
            continue
        gigabytes, seconds = in_own_process(
            step, preset, FLAGS.length, FLAGS.layers, FLAGS.memory_efficient
        )
        row = case | {
            "gigabytes": f"{gigabytes:.2f}",
            "seconds": f"{seconds:.0f}",
        }
        record(path, FIELDS, [row])
        print(row, flush=True)
        write_tables(path, SETTINGS, head(), table)


def step(preset, length, layers, memory_efficient):
    """Gigabytes and seconds of one step."""
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="2")
    from steps import make_batch

    import tfeff

    encoder = tfeff.encoders.build(
        preset,
        vocabulary_size=8000,
        num_layers=layers,
        dropout=0.0,
        memory_efficient=False if memory_efficient == "none" else memory_efficient,
    )
    # As after pretraining on 512 tokens: tables of relative positions keep their rows.
    encoder = tfeff.encoders.extend_length(encoder, length)
    model = tfeff.objectives.MaskedLM(encoder)
    model.compile(tfeff.training.adamw(1e-4, 1, 10), jit_compile=False)
    inputs, labels, weights = make_batch(1, length)
    inputs["padding_mask"] = inputs["padding_mask"] + 1
    start = time.perf_counter()
    model.train_on_batch(inputs, labels, weights)
    seconds = time.perf_counter() - start
    # Kilobytes, on Linux.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, seconds


def head():
    """The lines before the tables."""
    return [
        "# One training step on one long sequence\n",
        f"Environment: `{environment.description()}`. Memory is the process's, with "
        "weights and moments; time is that of the first step, tracing included.\n",
    ]


def table(rows):
    """Lines of a table of rows."""
    columns = ("memory_efficient", "gigabytes", "seconds", "machine")
    return markdown(
        ("preset", "recomputed", "memory, GB", "time, s", "processor"),
        [(f"`{row['preset']}`", *(row[name] for name in columns)) for row in rows],
    )


if __name__ == "__main__":
    environment.ensure()
    app.run(main)
