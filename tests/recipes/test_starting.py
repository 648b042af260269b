"""What recipes say of the encoder that they begin with."""

import pytest

from tests.subjects.encoders import tiny
from tfeff.recipes.starting import print_frozen


@pytest.mark.parametrize("preset", ["bert_base", "xlnet_base", "shatter_base"])
def test_encoders_that_are_trained_whole(preset, capsys):
    print_frozen(tiny(preset))
    assert not capsys.readouterr().out


def test_frozen_layers_are_told(capsys):
    encoder = tiny("bert_base", num_layers=2)
    for block in encoder.blocks:
        block.trainable = False
    total = encoder.count_params()
    frozen = sum(block.count_params() for block in encoder.blocks)
    print_frozen(encoder)
    told = f"{frozen:,} of the {total:,} parameters of the encoder are not trained"
    assert capsys.readouterr().out.startswith(told)
