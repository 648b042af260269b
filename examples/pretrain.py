r"""Pretrains any encoder of tfeff by any of the papers' objectives, on any text.

Without further flags, a small Shatter on the documentation strings of the installed
packages:

    python examples/pretrain.py --run_dir=runs/first

The paper's setting, on one's own text and every GPU of the machine:

    python examples/pretrain.py --run_dir=runs/shatter --preset=shatter_base \
        --corpus='corpus/*.txt' --vocabulary_size=32000 --sequence_length=512 \
        --batch_size=256 --steps=1000000 --eval_every=10000 --warmup_steps=10000 \
        --learning_rate=1e-4 --dtype=mixed_bfloat16 --strategy=mirrored

Other objectives, here as ConvBERT's and ALBERT's authors set them:

    python examples/pretrain.py --run_dir=runs/convbert --preset=convbert_small \
        --objective=replaced_token --learning_rate=3e-4 --nobias_correction
    python examples/pretrain.py --run_dir=runs/albert --preset=albert_base \
        --objective=sentence_order --masking=ngram

A run that was stopped goes on when it is started again with the same flags. The run
directory holds the configuration, tokenizer, token caches, checkpoints, metrics,
curves and, at the end, `metrics.json`: those of the validation text, `preset/`: the
encoder with its tokenizer, and `export/`: a SavedModel that takes text.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import interruption  # Before the others, which take long.

# isort: split
import command
import keras
import keras_hub
import pictures
from absl import flags, logging
from run_directory import make_once, open_run

import tfeff

FLAGS = flags.FLAGS
flags.DEFINE_string("run_dir", None, "Folder of the run.", required=True)
flags.DEFINE_string("preset", "shatter_tiny", "A name of tfeff.encoders.presets().")
flags.DEFINE_string(
    "pretrained",
    None,
    "A preset or a run, whose encoder and tokenizer to start from.",
)
flags.DEFINE_multi_string(
    "override",
    [],
    "NAME=VALUE (JSON), an argument of Encoder to replace the preset's.",
)
flags.DEFINE_list(
    "corpus", ["docstrings"], "Text files and globs, or tfds:NAME, or docstrings."
)
flags.DEFINE_list("validation", [], "Like --corpus; default: a part of the corpus.")
flags.DEFINE_float("validation_fraction", 0.02, "Documents held out of the corpus.")
flags.DEFINE_integer(
    "max_characters", 10_000_000, "Where the docstrings corpus ends.", lower_bound=1
)
flags.DEFINE_string("tokenizer", None, "A tokenizer file; default: train one.")
flags.DEFINE_integer("vocabulary_size", 32_000, "Pieces of the tokenizer to train.")
flags.DEFINE_integer("sequence_length", 128, "Tokens in a sequence.", lower_bound=3)
flags.DEFINE_boolean("cross_documents", False, "Whether sequences span documents.")
flags.DEFINE_enum("objective", "masked_lm", tfeff.objectives.names(), "What to learn.")
flags.DEFINE_float("mask_rate", 0.15, "Share of tokens to guess.", 0.0, 1.0)
flags.DEFINE_enum(
    "masking", "token", ["token", "whole_word", "ngram"], "What is masked as one."
)
flags.DEFINE_float(
    "mask_share",
    None,
    "Share of [MASK] among the tokens to guess; default: 0.8, replaced_token 0.85.",
)
flags.DEFINE_float(
    "random_share",
    None,
    "Share of random tokens among them; default: 0.1, replaced_token 0.",
)
flags.DEFINE_boolean(
    "masked_lm", True, "Whether to guess tokens beside sentence_order, next_sentence."
)
flags.DEFINE_float(
    "generator_ratio", 0.25, "Width of replaced_token's generator to the encoder's."
)
flags.DEFINE_multi_string(
    "generator_override", [], "Like --override, for replaced_token's generator."
)
flags.DEFINE_boolean("bias_correction", True, "Whether Adam corrects its means.")
flags.DEFINE_integer("batch_size", 16, "Sequences in a batch, over all replicas.", 1)
flags.DEFINE_integer("steps", 1000, "Training steps.", lower_bound=1)
flags.DEFINE_integer(
    "eval_every",
    None,
    "Steps between validations and checkpoints; default: 200, or less for few steps.",
    lower_bound=1,
)
flags.DEFINE_float("learning_rate", 2e-3, "Peak learning rate.")
flags.DEFINE_integer(
    "warmup_steps",
    None,
    "Steps up to the peak; default: 100, or a fifth of few steps.",
    lower_bound=0,
)
flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and norms.")
flags.DEFINE_float("global_clipnorm", 1.0, "Largest norm of the batch's gradient.")
flags.DEFINE_integer("seed", 0, "Seed of weights, order, masks and dropout.")
flags.DEFINE_enum(
    "dtype", "float32", ["float32", "mixed_bfloat16", "mixed_float16"], "Precision."
)
flags.DEFINE_enum(
    "strategy",
    "default",
    ["default", "mirrored", "multi_worker", "tpu"],
    "Where to train; with multi_worker each worker has a --run_dir of its own.",
)
flags.DEFINE_string("tpu", "", "Name or address of the TPU.")
flags.DEFINE_integer("steps_per_execution", 1, "Steps in one call.", lower_bound=1)
flags.DEFINE_boolean("jit_compile", False, "Whether to compile the step with XLA.")
flags.DEFINE_integer("keep_checkpoints", 2, "How many to keep.", lower_bound=1)

# What a checkpoint holds or depends on; the other flags may change on resuming.
CONFIGURATION = (
    "preset",
    "override",
    "corpus",
    "validation",
    "validation_fraction",
    "max_characters",
    "tokenizer",
    "vocabulary_size",
    "sequence_length",
    "cross_documents",
    "objective",
    "mask_rate",
    "batch_size",
    "steps",
    "eval_every",
    "learning_rate",
    "warmup_steps",
    "weight_decay",
    "global_clipnorm",
    "seed",
    "dtype",
    "steps_per_execution",
    "jit_compile",
)
# Like those, where they are not left at their defaults: older runs do not know them.
LATER = (
    "pretrained",
    "masking",
    "mask_share",
    "random_share",
    "masked_lm",
    "generator_ratio",
    "generator_override",
    "bias_correction",
)
# Settings of some objectives; those that the chosen one does not have are errors.
OBJECTIVE = (
    "mask_rate",
    "masking",
    "mask_share",
    "random_share",
    "masked_lm",
    "generator_ratio",
    "generator_override",
)


def main(_):
    """Pretrains the model that the flags describe."""
    settle()
    pretrain(make_model, tfeff.training.RunDirectory.fit, configuration())


def settle(stages=1):
    """Sets the numbers of steps that the flags leave open, and checks the flags."""
    if FLAGS.eval_every is None:
        FLAGS.eval_every = command.eval_every(FLAGS.steps, stages)
    if FLAGS.warmup_steps is None:
        FLAGS.warmup_steps = min(100, FLAGS.steps // 5)
    command.check_eval_every(FLAGS.steps, FLAGS.eval_every)
    objective()
    own = ("preset", "override", "tokenizer", "vocabulary_size")
    if FLAGS.pretrained and any(FLAGS[name].present for name in own):
        raise ValueError(
            "--pretrained stands for --preset, --override, --tokenizer and "
            "--vocabulary_size: it cannot be given with one of them"
        )
    if FLAGS.warmup_steps >= FLAGS.steps:
        raise ValueError(
            "--warmup_steps must be below --steps. "
            f"Received: --warmup_steps={FLAGS.warmup_steps}, --steps={FLAGS.steps}"
        )


@tfeff.training.lost_workers_named()
def pretrain(make_model, fit, configuration):
    """Corpus, tokenizer, caches, training by `fit`, as `RunDirectory.fit`, export."""
    logging.set_verbosity(logging.WARNING)  # TensorFlow tells much when it exports.
    if FLAGS.strategy == "multi_worker":
        interruption.end_at_once()  # A worker may wait for others for ever.
    run = open_run(FLAGS.run_dir, configuration)
    strategy = tfeff.training.make_strategy(FLAGS.strategy, FLAGS.tpu)
    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        tfeff.training.check_equal_settings(configuration)
        model = make_model()
    given = given_tokenizer(run)
    train_text, valid_text = corpora()
    tokenizer = make_tokenizer(run, given, train_text)
    train, valid = (
        tfeff.data.build_cache(
            text,
            tokenizer,
            run.path("cache", name),
            FLAGS.sequence_length,
            cross_documents=FLAGS.cross_documents,
        )
        for name, text in (("train", train_text), ("validation", valid_text))
    )
    with strategy.scope():
        tfeff.training.check_equal_settings(
            {"training text": train.corpus_hash, "validation text": valid.corpus_hash}
        )
    print(
        f"training text: {train.num_tokens:,} tokens; "
        f"validation text: {valid.num_tokens:,} tokens"
    )

    settings = {"batch_size": FLAGS.batch_size, "tokenizer": tokenizer}
    examples = objective().examples
    validation_data = valid.batches(examples, shuffle=False, repeat=False, **settings)
    with strategy.scope(), tfeff.data.damage_named(train, valid):
        model = fit(
            run,
            lambda: model,
            lambda skipped: train.batches(
                examples, seed=FLAGS.seed, skip_batches=skipped, **settings
            ),
            total_steps=FLAGS.steps,
            steps_per_epoch=FLAGS.eval_every,
            tokens_per_step=FLAGS.batch_size * FLAGS.sequence_length,
            validation_data=validation_data,
            keep_checkpoints=FLAGS.keep_checkpoints,
        )
        metrics = model.evaluate(validation_data, verbose=0, return_dict=True)
    tfeff.training.write_metrics(metrics, run.path("metrics.json"))
    report(model, metrics, valid.unigram_entropy())
    pictures.draw(model.encoder, validation_data, run)
    make_once(
        run.path("preset"),
        lambda path: tfeff.tasks.save_pretrained(model.encoder, tokenizer, path),
    )
    fills = isinstance(model, tfeff.objectives.MaskedLM)
    served = model if fills else model.encoder
    make_once(
        run.path("export"),
        lambda path: tfeff.export.save_for_serving(served, tokenizer, path),
    )
    run.finish()
    print(f"the encoder and its tokenizer, to fine-tune: {run.path('preset')}")
    outputs = "embeddings and fillings" if fills else "embeddings"
    print(f"text in, {outputs} out: {run.path('export')}")


def configuration():
    """What the run's numbers depend on, by flag."""
    later = [name for name in LATER if FLAGS[name].value != FLAGS[name].default]
    return {name: FLAGS[name].value for name in (*CONFIGURATION, *later)}


def objective():
    """The objective, its examples and model with the settings that the flags give."""
    given = {name: FLAGS[name].value for name in OBJECTIVE if FLAGS[name].present}
    if "generator_override" in given:
        overrides = map(command.override, given["generator_override"])
        given["generator_override"] = dict(overrides)
    if not FLAGS.masked_lm:
        given["masked"] = None
    else:  # Without the flag, too: some papers predict another share.
        given["mask_rate"] = FLAGS.mask_rate
    return tfeff.objectives.get(FLAGS.objective).override(**given)


def report(model, metrics, entropy):
    """Prints the metrics of the validation text, next to guessing by frequency."""
    if "mask_positions" not in model.input:
        print(f"validation loss: {metrics['loss']:.3f} nats a pair")
    else:
        loss = metrics.get("masked_lm_loss", metrics["loss"])
        print(
            f"unigram entropy of the validation text: {entropy:.3f} nats a token\n"
            f"validation loss: {loss:.3f} nats a masked token, "
            f"{abs(entropy - loss):.3f} {'below' if loss < entropy else 'above'} that"
        )
    for name, value in metrics.items():
        print(f"{name}: {value:.4f}")


def make_model(**changes):
    """The model that the flags describe, compiled; `changes` are of the encoder."""
    if FLAGS.pretrained:
        encoder, _ = tfeff.tasks.load_pretrained(
            FLAGS.pretrained,
            sequence_length=FLAGS.sequence_length,
            dtype=FLAGS.dtype,
            seed=FLAGS.seed,
        )
        return compiled(encoder)
    encoder = tfeff.encoders.build(
        FLAGS.preset,
        **{
            "vocabulary_size": FLAGS.vocabulary_size,
            "max_sequence_length": FLAGS.sequence_length,
            "dtype": FLAGS.dtype,
            **dict(command.override(text) for text in FLAGS.override),
            **changes,
        },
    )
    return compiled(encoder)


def compiled(encoder):
    """The model of --objective around an encoder, compiled."""
    model = objective().make_model(encoder)
    model.compile(
        optimizer=make_optimizer(FLAGS.steps),
        steps_per_execution=FLAGS.steps_per_execution,
        jit_compile=FLAGS.jit_compile,
    )
    return model


def make_optimizer(steps):
    """The optimizer that the flags describe, for so many steps."""
    return tfeff.training.adamw(
        FLAGS.learning_rate,
        FLAGS.warmup_steps,
        steps,
        weight_decay=FLAGS.weight_decay,
        global_clipnorm=FLAGS.global_clipnorm,
        bias_correction=FLAGS.bias_correction,
    )


def corpora():
    """Training and validation documents."""
    documents = corpus(FLAGS.corpus)
    if FLAGS.validation:
        return documents, corpus(FLAGS.validation)
    return tfeff.data.split(documents, FLAGS.validation_fraction)


def corpus(names):
    """Documents by the names that --corpus takes."""
    if names == ["docstrings"]:
        return tfeff.data.docstrings(max_characters=FLAGS.max_characters)
    if len(names) == 1 and names[0].startswith("tfds:"):
        return tfeff.data.tfds(names[0].removeprefix("tfds:"))
    return tfeff.data.text_files(names)


def make_tokenizer(run, given, documents):
    """The run's tokenizer: from an earlier start, the given one, or trained now."""
    path = run.path("tokenizer.spm")
    if os.path.exists(path):
        run.seal("tokenizer.spm")  # If the start that made it was killed before.
        return tfeff.data.load_tokenizer(path)
    if given is None:
        print(f"training a tokenizer of {FLAGS.vocabulary_size:,} pieces")
        given = tfeff.data.train_tokenizer(documents, FLAGS.vocabulary_size)
    tfeff.data.save_tokenizer(given, path)
    run.seal("tokenizer.spm")
    return given


def given_tokenizer(run):
    """The tokenizer that the flags name; None where the run needs none of them."""
    if os.path.exists(run.path("tokenizer.spm")):
        return None
    if FLAGS.pretrained:
        _, tokenizer = tfeff.tasks.load_pretrained(FLAGS.pretrained)
        if not isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
            raise ValueError(
                "--pretrained must have a SentencePiece tokenizer. "
                f"Received: {FLAGS.pretrained} with a {type(tokenizer).__name__}"
            )
        return tokenizer
    if not FLAGS.tokenizer:
        return None
    tokenizer = tfeff.data.load_tokenizer(FLAGS.tokenizer)
    if tokenizer.vocabulary_size() > FLAGS.vocabulary_size:
        raise ValueError(
            "--vocabulary_size must be at least the tokenizer's "
            f"{tokenizer.vocabulary_size()}. Received: {FLAGS.vocabulary_size}"
        )
    return tokenizer


if __name__ == "__main__":
    command.run(main)
