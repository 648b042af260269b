"""The weights of blocks, by the names that the references have for them."""

from tests.checks import variables_of

SUBLAYERS = ("attention", "feedforward", "attention_norm", "feedforward_norm")


def block_variables(block):
    """The block's variables, as `attention/query/kernel`; there are no others."""
    named = {}
    for name in SUBLAYERS:
        named |= variables_of(getattr(block, name), f"{name}/")
    assert len(named) == len(block.weights)
    return named
