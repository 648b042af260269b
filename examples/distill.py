r"""Distils a teacher into a smaller student, as TinyBERT: in general, then on a task.

In general, on any text. `--teacher` is a preset with its tokenizer, or a run of
`examples/pretrain.py`; the student is a name of tfeff.encoders.presets():

    python examples/distill.py --run_dir=runs/small --teacher=runs/large \
        --student=bert_tiny --override=num_layers=2 --corpus='corpus/*.txt'

On a task of texts or pairs: GLUE's nine, BoolQ, MultiRC. `--teacher` is a run of
`tfeff finetune`, `--student` the general run; the layers are distilled first, the
predictions then, and the best student on the development set is kept:

    python examples/distill.py --stage=task --run_dir=runs/small-sst2 \
        --teacher=runs/large-sst2 --student=runs/small --task=SST-2 --data=glue \
        --augment_with=runs/large --word_vectors=glove.6B.300d.txt

Attention maps are compared before the softmax where both encoders have one
(`--attention`). A general run that was stopped goes on when it is started again with
the same flags; a task's run starts anew until it is finished, then is left as it is.
In the end the run directory holds `metrics.json`, `preset/`: the student with the
tokenizer, after a task `model.keras`, and `export/`: a SavedModel that takes text.
"""

import contextlib
import math
import os
import shutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import interruption  # noqa: F401  Before the others, which take long.

# isort: split
import command
import keras
import pictures
from absl import flags, logging
from run_directory import make_once, open_run

import tfeff

FLAGS = flags.FLAGS
flags.DEFINE_string("run_dir", None, "Folder of the run.", required=True)
flags.DEFINE_enum("stage", "general", ["general", "task"], "What to distil.")
flags.DEFINE_string("teacher", None, "A preset, or the folder of a run.", required=True)
flags.DEFINE_string(
    "student",
    None,
    "general: a name of presets(); task: a preset or run.",
    required=True,
)
flags.DEFINE_multi_string(
    "override",
    [],
    "general: NAME=VALUE (JSON), an argument of Encoder to replace the preset's.",
)
flags.DEFINE_string(
    "layer_map", "uniform", "uniform, top, bottom, or the teacher's layers: 2,4."
)
flags.DEFINE_enum(
    "attention",
    None,
    ["scores", "probabilities", "none"],
    "Maps to compare; default: scores, or probabilities if a layer has no scores "
    "before a softmax, or none if one has no map.",
)
flags.DEFINE_enum("reduction", "mean", ["mean", "sum_squares"], "Over positions.")
flags.DEFINE_float("temperature", 1.0, "Of the softmax of predictions.")
flags.DEFINE_enum("soften", "both", ["both", "student"], "Logits to be divided by it.")
flags.DEFINE_list(
    "corpus", ["docstrings"], "general: text files and globs, or docstrings."
)
flags.DEFINE_float("validation_fraction", 0.02, "Documents held out of the corpus.")
flags.DEFINE_integer("max_characters", 10_000_000, "Where docstrings end.", 1)
flags.DEFINE_string("task", None, "task: one of GLUE's, BoolQ or MultiRC.")
flags.DEFINE_string("data", None, "task: folder of the benchmark's files.")
flags.DEFINE_boolean(
    "skip_malformed", False, "task: leave out malformed lines of GLUE; QQP has some."
)
flags.DEFINE_string(
    "augment_with", None, "task: a run of masked language modelling, to replace words."
)
flags.DEFINE_string("word_vectors", None, "task: a file like GloVe's, for long words.")
flags.DEFINE_integer("copies", 20, "Copies of an example with words replaced.", 1)
flags.DEFINE_integer("train_examples", None, "task: how many of the training part.", 1)
flags.DEFINE_integer("prediction_steps", 1000, "task: steps on predictions.", 1)
flags.DEFINE_float("prediction_rate", 3e-5, "task: peak rate on predictions.")
flags.DEFINE_integer("sequence_length", 128, "Tokens in a sequence.", lower_bound=3)
flags.DEFINE_integer("batch_size", 16, "Sequences in a batch, over all replicas.", 1)
flags.DEFINE_integer("steps", 1000, "Steps on layers.", lower_bound=1)
flags.DEFINE_integer(
    "eval_every",
    None,
    "Steps between evaluations; default: 200, or less for few steps.",
    lower_bound=1,
)
flags.DEFINE_float("learning_rate", 5e-4, "Peak learning rate on layers.")
flags.DEFINE_float("warmup", 0.1, "Share of the steps up to the peak.", 0.0, 0.99)
flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and norms.")
flags.DEFINE_integer("seed", 0, "Seed of weights, order, replaced words, dropout.")
flags.DEFINE_enum(
    "strategy", "default", ["default", "mirrored", "tpu"], "Where to train."
)
flags.DEFINE_string("tpu", "", "Name or address of the TPU.")

# What the results depend on.
CONFIGURATION = (
    "stage",
    "teacher",
    "student",
    "override",
    "layer_map",
    "attention",
    "reduction",
    "temperature",
    "soften",
    "corpus",
    "validation_fraction",
    "max_characters",
    "task",
    "data",
    "skip_malformed",
    "augment_with",
    "word_vectors",
    "copies",
    "train_examples",
    "prediction_steps",
    "prediction_rate",
    "sequence_length",
    "batch_size",
    "steps",
    "eval_every",
    "learning_rate",
    "warmup",
    "weight_decay",
    "seed",
)


def main(_):
    """The stage that the flags ask for."""
    logging.set_verbosity(logging.WARNING)  # TensorFlow tells much when it exports.
    keras.utils.set_random_seed(FLAGS.seed)
    strategy = tfeff.training.make_strategy(FLAGS.strategy, FLAGS.tpu)
    {"general": distil_in_general, "task": distil_on_a_task}[FLAGS.stage](strategy)


def distil_in_general(strategy):
    """From an encoder to an encoder, on text."""
    if FLAGS.eval_every is None:
        FLAGS.eval_every = command.eval_every(FLAGS.steps)
    command.check_eval_every(FLAGS.steps, FLAGS.eval_every)
    run = open_run(FLAGS.run_dir, configuration())
    with strategy.scope():
        teacher, tokenizer = tfeff.tasks.load_pretrained(FLAGS.teacher)
        check_length(teacher)
        student = tfeff.encoders.build(
            FLAGS.student,
            **{
                "vocabulary_size": teacher.vocabulary_size,
                "max_sequence_length": FLAGS.sequence_length,
                **dict(command.override(text) for text in FLAGS.override),
            },
        )
        model = tfeff.objectives.Distillation(
            student, teacher, **layer_settings(student, teacher)
        )
        model.compile(optimizer(FLAGS.learning_rate, FLAGS.steps))
    documents = (
        tfeff.data.docstrings(max_characters=FLAGS.max_characters)
        if FLAGS.corpus == ["docstrings"]
        else tfeff.data.text_files(FLAGS.corpus)
    )
    train, valid = (
        tfeff.data.build_cache(
            text, tokenizer, run.path("cache", name), FLAGS.sequence_length
        )
        for name, text in zip(
            ("train", "validation"),
            tfeff.data.split(documents, FLAGS.validation_fraction),
        )
    )
    print(f"{train.num_tokens:,} tokens of text, {valid.num_tokens:,} to validate")
    # The text as it is: of the tokens to guess none is replaced.
    plain = tfeff.data.MaskedTokens(mask_share=0.0, random_share=0.0)
    validation_data = valid.batches(
        plain, FLAGS.batch_size, shuffle=False, repeat=False
    )
    with strategy.scope(), tfeff.data.damage_named(train, valid):
        model = run.fit(
            lambda: model,
            lambda batches: train.batches(
                plain, FLAGS.batch_size, FLAGS.seed, skip_batches=batches
            ),
            total_steps=FLAGS.steps,
            steps_per_epoch=FLAGS.eval_every,
            tokens_per_step=FLAGS.batch_size * FLAGS.sequence_length,
            validation_data=validation_data,
        )
        metrics = model.evaluate(validation_data, verbose=0, return_dict=True)
    print(f"validation: {line(metrics)}")
    pictures.draw(model.student, validation_data, run)
    write(run, metrics, model.student, model.student, tokenizer)
    finish(run)


def distil_on_a_task(strategy):
    """From a fine-tuned model to one, on the examples of its task."""
    if FLAGS.eval_every is None:
        FLAGS.eval_every = min(200, FLAGS.prediction_steps)
    if not FLAGS.task or not FLAGS.data:
        raise ValueError("--stage=task needs --task and --data")
    # Models that choose among options, or find spans, are not distilled.
    dataset = command.dataset(FLAGS.task, tfeff.data.TextExamples)
    run = open_run(FLAGS.run_dir, configuration())
    if os.path.exists(run.path("metrics.json")):
        finish(run)
        return
    for name in ("preset", "export"):  # Of a start that was killed.
        shutil.rmtree(run.path(name), ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.remove(run.path("dev_metrics.csv"))
    with strategy.scope():
        teacher = tfeff.training.load_checkpoint(
            os.path.join(FLAGS.teacher, "model.keras")
        )
        if not isinstance(teacher, (tfeff.tasks.Classifier, tfeff.tasks.Regressor)):
            raise ValueError(f"--teacher must classify or rate texts: {teacher!r}")
        check_length(teacher.encoder)
        encoder, tokenizer = tfeff.tasks.load_pretrained(FLAGS.student)
        check_length(encoder)
        _, teachers_tokenizer = tfeff.tasks.load_pretrained(FLAGS.teacher)
        student = make_student(teacher, encoder)
        layers = tfeff.objectives.Distillation(
            student.encoder,
            teacher.encoder,
            tokenizers=(tokenizer, teachers_tokenizer),
            **layer_settings(student.encoder, teacher.encoder),
        )
        predictions = tfeff.objectives.Distillation(
            student,
            teacher,
            attention=None,
            hidden=False,
            embedding=False,
            temperature=FLAGS.temperature,
            soften=FLAGS.soften,
        )
    options = {"skip_malformed": True} if FLAGS.skip_malformed else {}
    train, dev = (
        dataset.read(split, FLAGS.data, **options)
        for split in ("train", dataset.dev_splits[0])
    )
    if count := len(train.skipped) + len(dev.skipped):
        print(f"{count:,} lines left out, such as {(*train.skipped, *dev.skipped)[0]}")
    if FLAGS.train_examples is not None:
        train = train.sample(FLAGS.train_examples, FLAGS.seed)
    if FLAGS.augment_with:
        train = augmented(train, tokenizer)
    train_rows, dev_rows = (
        tfeff.data.text_features(examples, tokenizer, FLAGS.sequence_length)
        for examples in (train, dev)
    )
    print(f"{dataset.name}: {len(train):,} examples to train on, {len(dev):,} of dev")

    def score(model):
        batches = dev_rows.dataset(32, shuffle=False, repeat=False)
        outputs = model.predict(batches, verbose=0)[: len(dev)].astype("float32")
        outputs = outputs if outputs.ndim == 1 else outputs.argmax(-1)
        return dataset.metrics(dev, outputs)

    teachers = score(teacher)
    print(f"teacher: {line(teachers)}")
    with strategy.scope():
        history = fit(layers, train_rows, FLAGS.learning_rate, FLAGS.steps)
        command.check_finite(layers)
        print(f"layers after {FLAGS.steps:,} steps: {line(history)}")
        best = tfeff.training.KeepBest(
            lambda model: score(model.student),
            dataset.metric_names[0],
            FLAGS.eval_every,
            run.directory,
        )
        fit(
            predictions,
            train_rows,
            FLAGS.prediction_rate,
            FLAGS.prediction_steps,
            [best],
        )
    command.check_finite(student)
    print(f"student, best at step {best.best_step:,}: {line(best.best)}")
    tfeff.training.save_checkpoint(student, run.path("model.keras"))
    batches = dev_rows.dataset(8, shuffle=False, repeat=False)
    pictures.draw(student.encoder, batches, run)
    options = {"pairs": dev.second is not None}
    if dev.label_names is not None:
        options["label_names"] = dev.label_names
    write(
        run,
        {"student": best.best, "teacher": teachers},
        student,
        student.encoder,
        tokenizer,
        sequence_length=FLAGS.sequence_length,
        **options,
    )
    finish(run)


def make_student(teacher, encoder):
    """A model like the teacher around another encoder."""
    if isinstance(teacher, tfeff.tasks.Classifier):
        model = tfeff.tasks.Classifier(encoder, teacher.num_classes, teacher.pooling)
    else:
        model = tfeff.tasks.Regressor(encoder, teacher.pooling)
    model.compile()  # Checkpoints are of compiled models.
    return model


def augmented(examples, tokenizer):
    """The examples and their copies."""
    path, _ = tfeff.training.latest_checkpoint(
        os.path.join(FLAGS.augment_with, "checkpoints")
    )
    if path is None:
        raise ValueError(f"--augment_with has no checkpoint: {FLAGS.augment_with}")
    known = tfeff.data.tokenizer_fingerprint(
        tfeff.tasks.load_pretrained(FLAGS.augment_with)[1]
    )
    if tfeff.data.tokenizer_fingerprint(tokenizer) != known:
        raise ValueError("--augment_with must have the student's tokenizer")
    vectors = FLAGS.word_vectors and tfeff.tasks.read_word_vectors(FLAGS.word_vectors)
    return tfeff.tasks.augment(
        examples,
        tfeff.training.load_checkpoint(path),
        tokenizer,
        copies=FLAGS.copies,
        word_vectors=vectors or None,
        seed=FLAGS.seed,
    )


def layer_settings(student, teacher):
    """What of the layers of two encoders is compared, and how."""
    layer_map = FLAGS.layer_map
    if layer_map not in ("uniform", "top", "bottom"):
        layer_map = command.numbers("layer_map", layer_map.split(","), int)
    attention = FLAGS.attention
    if attention is None:
        attention = tfeff.objectives.common_maps(student, teacher) or "none"
        print(f"attention maps to compare, by what both encoders have: {attention}")
    return {
        "layer_map": layer_map,
        "attention": None if attention == "none" else attention,
        "reduction": FLAGS.reduction,
    }


def fit(model, rows, learning_rate, steps, callbacks=()):
    """Trains for so many steps; returns the metrics of the training."""
    model.compile(optimizer(learning_rate, steps))
    history = model.fit(
        rows.dataset(FLAGS.batch_size, FLAGS.seed),
        steps_per_epoch=steps,
        shuffle=False,  # The rows come shuffled.
        verbose=0,
        callbacks=list(callbacks),
    ).history
    return {name: values[-1] for name, values in history.items()}


def optimizer(learning_rate, steps):
    """AdamW that warms up and decays within the steps."""
    return tfeff.training.adamw(
        learning_rate,
        math.floor(FLAGS.warmup * steps),
        steps,
        weight_decay=FLAGS.weight_decay,
    )


def check_length(encoder):
    """Raises where the sequences would be too long for the encoder's table."""
    longest = encoder.max_sequence_length
    if encoder.position == "absolute" and FLAGS.sequence_length > longest:
        raise ValueError(
            f"--sequence_length must be at most {longest}, the table of positions. "
            f"Received: {FLAGS.sequence_length}"
        )


def configuration():
    """What the run's numbers follow from."""
    return {name: FLAGS[name].value for name in CONFIGURATION}


def write(run, metrics, model, encoder, tokenizer, **options):
    """The student's preset, what serves, and the metrics last."""
    make_once(
        run.path("preset"),
        lambda path: tfeff.tasks.save_pretrained(encoder, tokenizer, path),
    )
    make_once(
        run.path("export"),
        lambda path: tfeff.export.save_for_serving(model, tokenizer, path, **options),
    )
    tfeff.training.write_metrics(metrics, run.path("metrics.json"))


def finish(run):
    """Notes the digests of what was written, and tells where it is."""
    run.finish()
    print(
        f"the student and its tokenizer: {run.path('preset')}\n"
        f"text in: {run.path('export')}"
    )


def line(metrics):
    """Metrics in a line."""
    return ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())


if __name__ == "__main__":
    command.run(main)
