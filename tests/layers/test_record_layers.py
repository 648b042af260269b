"""Hidden states and maps are those of one encoder call."""

import keras
import numpy as np
import pytest

from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tfeff.layers import record_layers


@pytest.mark.parametrize("sharing", [{}, {"sharing": "all"}])
def test_one_call(sharing):
    encoder = tiny("bert_base", num_layers=3, **sharing)
    batch = batch_of(encoder, [7, 4])
    for given in ({}, {"encoder": encoder}):
        with record_layers(**given) as recording:
            outputs = encoder(batch)
        assert (len(recording.hidden_states), len(recording.attention)) == (4, 3)
        for own, expected in zip(recording.hidden_states, outputs["hidden_states"]):
            np.testing.assert_array_equal(own, expected)


@pytest.mark.parametrize("sharing", [{}, {"sharing": "all"}])
def test_a_second_call_is_refused(sharing):
    encoder, other = (tiny("bert_base", num_layers=2, **sharing) for _ in range(2))
    batch = batch_of(encoder, [7, 4])
    for second in (encoder, other):
        message = "`encoder` must be given where several .*encoder=None and a second"
        with record_layers(), pytest.raises(ValueError, match=message):
            encoder(batch)
            second(batch)
    message = "`encoder` must be called once while .*another call of its first"
    with record_layers(encoder=encoder), pytest.raises(ValueError, match=message):
        encoder(batch)
        encoder(batch)
    with record_layers(encoder=other) as recording:
        encoder(batch)
        other(batch)
    assert len(recording.hidden_states) == 3


def test_twins_in_one_model():
    encoder = tiny("bert_base", num_layers=2)
    left, right = ({k: keras.Input((None,), dtype="int32") for k in encoder.input},) * 2
    both = [encoder(side)["sequence_output"] for side in (left, right)]
    model = keras.Model(left, keras.layers.Add()(both))
    with record_layers(), pytest.raises(ValueError, match="`encoder` must be given"):
        model(batch_of(encoder, [7, 4]))
