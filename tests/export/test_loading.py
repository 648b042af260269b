"""A SavedModel is loaded without a word."""

import logging

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.sentences import tokenizer


@pytest.mark.quick("False-bert_tiny")
@pytest.mark.parametrize(
    "preset", ["shatter_tiny", "bert_tiny", "huang4_base", "convbert_small"]
)
@pytest.mark.parametrize("with_text", [True, False])
def test_nothing_is_warned(preset, with_text, tmp_path, caplog):
    """Not of the loops over blocks of queries either, which long texts take."""
    encoder = tfeff.encoders.build(
        preset,
        vocabulary_size=60,
        num_layers=1,
        hidden_dim=16,
        num_heads=2,
        intermediate_dim=16,
        embedding_dim=16,
        max_sequence_length=1100,
    )
    ids = np.random.randint(5, 60, (1, 1100)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    if with_text:
        tfeff.export.save_for_serving(encoder, tokenizer(), tmp_path / "saved")
    else:
        encoder.export(str(tmp_path / "saved"), verbose=False)
    with caplog.at_level(logging.WARNING):
        loaded = tf.saved_model.load(str(tmp_path / "saved"))
    assert [record.getMessage() for record in caplog.records] == []
    if not with_text:
        served = loaded.serve({name: tf.constant(x) for name, x in inputs.items()})
        expected = encoder(inputs)["sequence_output"]
        np.testing.assert_allclose(
            served["sequence_output"], expected, rtol=1e-4, atol=1e-5
        )
