r"""Pretrains a deep encoder through shallower ones: progressive stacking.

It takes all flags of `pretrain.py`, and those of the stages. Here 1, 2 and at last 4
layers, for 200 steps each:

    python examples/stack.py --run_dir=runs/stacked --num_layers=4 --doublings=2 \
        --steps=600 --eval_every=100

BERT-base in the paper's way, from 3 layers, the optimizer as new in each stage:

    python examples/stack.py --run_dir=runs/bert --preset=bert_base --num_layers=12 \
        --doublings=2 --switch_steps=50000,120000 --steps=400000 --eval_every=10000 \
        --optimizer=reset --corpus='corpus/*.txt'

A run that was stopped goes on when it is started again with the same flags. The run
directory is that of `pretrain.py`; `metrics.csv` has the depth of each row.
"""

import functools

import interruption  # noqa: F401  Before the others, which take long.

# isort: split
import command
import pretrain
from absl import flags

import tfeff

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_layers", 4, "Layers in the end.", lower_bound=1)
flags.DEFINE_integer(
    "doublings", 1, "How often the depth doubles on the way.", lower_bound=1
)
flags.DEFINE_list(
    "switch_steps", None, "Steps after which it doubles; default: equal stages."
)
flags.DEFINE_integer(
    "patience",
    None,
    "Validations without a new lowest loss after which it doubles earlier.",
    lower_bound=1,
)
flags.DEFINE_enum(
    "optimizer",
    "copy",
    ["copy", "reset"],
    "Moments copied with their layers, or a new optimizer for the steps left.",
)
STAGES = ("num_layers", "doublings", "switch_steps", "patience", "optimizer")


def main(_):
    """Pretraining in stages."""
    pretrain.settle(FLAGS.doublings + 1)
    if FLAGS.pretrained:
        raise ValueError("--pretrained has no shallower encoder to begin with")
    configuration = pretrain.configuration()
    configuration |= {name: FLAGS[name].value for name in STAGES}
    first, rest = divmod(FLAGS.num_layers, 2**FLAGS.doublings)
    if rest:
        raise ValueError(
            "--num_layers must be a multiple of 2 to the power of --doublings. "
            f"Received: {FLAGS.num_layers} and {FLAGS.doublings}"
        )
    steps = switch_steps()
    is_reset = FLAGS.optimizer == "reset"
    if is_reset and FLAGS.warmup_steps >= FLAGS.steps - steps[-1]:
        raise ValueError(
            "--warmup_steps must be fewer than the last stage has with "
            f"--optimizer=reset. Received: {FLAGS.warmup_steps}, --steps={FLAGS.steps} "
            f"after --switch_steps={steps}"
        )
    fit = functools.partial(
        tfeff.training.train_by_stacking,
        num_layers=FLAGS.num_layers,
        switch_steps=steps,
        patience=FLAGS.patience,
        make_optimizer=pretrain.make_optimizer if is_reset else None,
    )
    pretrain.pretrain(
        functools.partial(pretrain.make_model, num_layers=first), fit, configuration
    )


def switch_steps():
    """The steps of the flag, or those of equally many validations a stage."""
    if FLAGS.switch_steps is None:
        stages = FLAGS.doublings + 1
        epochs = FLAGS.steps // FLAGS.eval_every
        return [
            FLAGS.eval_every * (epochs * stage // stages) for stage in range(1, stages)
        ]
    if len(FLAGS.switch_steps) != FLAGS.doublings:
        raise ValueError(
            "--switch_steps must be one for each of --doublings. "
            f"Received: {FLAGS.switch_steps} and {FLAGS.doublings}"
        )
    return command.numbers("switch_steps", FLAGS.switch_steps, int)


if __name__ == "__main__":
    command.run(main)
