"""Makes the Model Garden goldens: tiny random checkpoints and what they compute.

Run by hand, from the repository's root, with the `garden` extra:

    python -m tests.convert.make_garden_goldens

Made with tf-models-official 2.20.0 and TensorFlow 2.20. The folders under
`tests/convert/goldens` are as in Model Garden's archives, with `outputs.npz` more.
Vocabularies are copied from the Hugging Face goldens, which must be made before.
"""

import json
import os
import shutil
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from official.nlp.modeling import models, networks

GOLDENS = Path(__file__).parent / "goldens"
CONFIG = dict(
    vocab_size=220,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    max_position_embeddings=13,
    type_vocab_size=2,
    hidden_act="gelu",
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
    initializer_range=0.02,
)


def randomise(model):
    """Gives every weight a value that shows in the outputs."""
    generator = np.random.default_rng(0)
    for weight in model.weights:
        value = generator.normal(scale=0.3, size=weight.shape)
        weight.assign(value + ("gamma" in weight.name))
    return model


def write(name, prefix, encoder, config, items=None):
    """Saves the checkpoint of an encoder and what it computes."""
    folder = GOLDENS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tf.train.Checkpoint(**(items or {"encoder": encoder})).write(
        str(folder / f"{prefix}_model.ckpt")
    )
    (folder / f"{prefix}_config.json").write_text(json.dumps(config, indent=1))
    arrays = dict(np.load(GOLDENS / "bert" / "outputs.npz"))
    del arrays["hidden_states"]
    outputs = encoder(
        dict(
            input_word_ids=arrays["token_ids"],
            input_mask=arrays["padding_mask"],
            input_type_ids=arrays["segment_ids"],
        )
    )
    arrays["blocks"] = np.stack([x.numpy() for x in outputs["encoder_outputs"]])
    np.savez_compressed(folder / "outputs.npz", **arrays)
    return folder


def bert():
    """A BERT encoder."""
    encoder = networks.BertEncoder(
        vocab_size=CONFIG["vocab_size"],
        hidden_size=CONFIG["hidden_size"],
        num_layers=CONFIG["num_hidden_layers"],
        num_attention_heads=CONFIG["num_attention_heads"],
        inner_dim=CONFIG["intermediate_size"],
        max_sequence_length=CONFIG["max_position_embeddings"],
        type_vocab_size=CONFIG["type_vocab_size"],
        embedding_width=None,
        dict_outputs=True,
        return_all_encoder_outputs=True,
    )
    return randomise(encoder)


def albert(embedding_size):
    """An ALBERT encoder."""
    encoder = networks.AlbertEncoder(
        vocab_size=CONFIG["vocab_size"],
        embedding_width=embedding_size,
        hidden_size=CONFIG["hidden_size"],
        num_layers=3,
        num_attention_heads=CONFIG["num_attention_heads"],
        intermediate_size=CONFIG["intermediate_size"],
        max_sequence_length=CONFIG["max_position_embeddings"],
        type_vocab_size=CONFIG["type_vocab_size"],
        dict_outputs=True,
    )
    return randomise(encoder)


def main():
    """Writes all of them."""
    folder = write("garden_bert", "bert", bert(), CONFIG)
    shutil.copy(GOLDENS / "bert" / "vocab.txt", folder)
    pretrainer = models.BertPretrainerV2(encoder_network=bert())
    pretrainer(pretrainer.inputs)
    write(
        "garden_bert_pretrainer",
        "bert",
        pretrainer.encoder_network,
        CONFIG,
        pretrainer.checkpoint_items,
    )
    for name, size in ("garden_albert", 12), ("garden_albert_unfactorised", 16):
        config = CONFIG | dict(
            num_hidden_layers=3,
            embedding_size=size,
            num_hidden_groups=1,
            inner_group_num=1,
        )
        write(name, "albert", albert(size), config)


if __name__ == "__main__":
    main()
