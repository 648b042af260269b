"""The groups in which `--help` lists the flags of a command with many."""

from collections.abc import Iterator, Sequence

from tfeff.recipes.fields import Field

# Commands with fewer flags list them without groups.
MANY = 16
REQUIRED = "required"
GROUPS = {
    "the model": (
        *("preset", "num_layers", "override", "pretrained", "pretrained_steps"),
        *("swap_positions", "new_segments", "pooling", "pooler_activation"),
        *("dropout", "attention_dropout", "head_dropout", "lora_rank", "save_lora"),
        *("dtype", "memory_efficient"),
    ),
    "texts and examples": (
        *("corpus", "text_field", "validation", "validation_fraction"),
        *("max_characters", "tokenizer", "tokenizer_kind", "tokenizer_lowercase"),
        *("vocabulary_size", "cross_documents", "cache_dir", "task", "data"),
        *("examples", "train", "dev", "dev_split", "split", "predict_split", "test"),
        *("sequence_length", "stride", "max_answer_tokens", "train_examples"),
        *("dev_examples", "skip_malformed", "skip_mismatched", "pad_to_longest"),
    ),
    "the objective": (
        *("objective", "mask_rate", "masking", "mask_share", "random_share"),
        *("masked_lm", "generator_ratio", "generator_override", "temperature"),
        "soften",
    ),
    "stacking": ("doublings", "switch_steps", "optimizer"),
    "distillation": (
        *("stage", "copy_layers", "layer_map", "attention", "reduction"),
        *("layer_weights", "embedding_weight", "hidden_weight", "attention_weight"),
        *("cosine_weight", "prediction_weight", "label_weight", "augment_with"),
        *("word_vectors", "candidates", "copies", "threshold", "prediction_steps"),
        "prediction_rate",
    ),
    "training": (
        *("batch_size", "batch_sizes", "accumulation_steps", "steps", "epochs"),
        *("eval_every", "patience", "metric", "learning_rate", "learning_rates"),
        *("warmup_steps", "warmup", "weight_decay", "layer_decay", "seed", "seeds"),
        *("beta_1", "beta_2", "epsilon", "bias_correction", "global_clipnorm"),
    ),
    "devices, and what is kept": (
        *("strategy", "tpu", "steps_per_execution", "jit_compile"),
        *("keep_checkpoints", "keep_steps", "plots", "callbacks"),
    ),
}


def grouped(fields: Sequence[Field]) -> Iterator[tuple[str, list[Field]]]:
    """The fields by group: first what is required, then each group in its order."""
    if len(fields) < MANY:
        yield "", list(fields)
        return
    yield REQUIRED, [field for field in fields if field.required]
    by_name = {field.name: field for field in fields if not field.required}
    for group, names in GROUPS.items():
        found = [by_name[name] for name in names if name in by_name]
        if found:
            yield group, found
