"""Blocks and encoders under PyTorch's transforms of functions, against calls.

KERAS_BACKEND=torch python -m tests.subjects.torch_transforms
"""

import torch

from tests.subjects.backend_layers import ATTENTIONS
from tests.subjects.objectives import make_encoder
from tfeff.layers import EncoderBlock, FeedForward


def check(name: str, block: EncoderBlock, texts: torch.Tensor) -> None:
    """Raises unless what PyTorch makes of a call is what calls give.

    Args:
        name: what an error says.
        block: a block, built.
        texts: float tensor `[3, 2, T, D]`.
    """

    def same(found, expected):
        torch.testing.assert_close(
            found, expected, rtol=1e-4, atol=1e-4, msg=lambda text: f"{name}: {text}"
        )

    expected = torch.stack([block(x) for x in texts])
    same(torch.func.vmap(block)(texts), expected)
    _, along = torch.func.jvp(block, (texts[0],), (texts[1],))
    step = 1e-2 * texts[1]
    difference = (block(texts[0] + step) - block(texts[0] - step)) / 2e-2
    assert (along - difference).norm() <= 1e-2 * difference.norm(), name

    weights = [weight.value.detach() for weight in block.trainable_variables]
    others = [variable.value for variable in block.non_trainable_variables]

    def loss(weights, x):
        return block.stateless_call(weights, others, x)[0].sin().sum()

    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, texts)
    block(texts.flatten(0, 1)).sin().sum().backward()
    for gradients, weight in zip(found, block.trainable_variables, strict=True):
        if weight.value.grad is not None:
            same(gradients.sum(dim=0), weight.value.grad)


def check_encoder() -> None:
    """Raises unless an encoder gives what calls give: its ids have no values there."""
    encoder = make_encoder(num_layers=1)
    ids = torch.randint(1, 9, (3, 2, 5), generator=torch.Generator().manual_seed(0))
    names = ("token_ids", "segment_ids", "padding_mask")
    rows = [dict(zip(names, (x, x % 2, torch.ones_like(x)))) for x in ids]
    together = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    def last(row):
        return encoder(row)["sequence_output"]

    expected = torch.stack([last(row) for row in rows])
    torch.testing.assert_close(torch.func.vmap(last)(together), expected)

    weights = [weight.value.detach() for weight in encoder.trainable_variables]
    others = [variable.value for variable in encoder.non_trainable_variables]

    def loss(weights, row):
        outputs, _ = encoder.stateless_call(weights, others, row)
        return outputs["sequence_output"].sin().sum()

    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, together)
    sum(last(row).sin().sum() for row in rows).backward()
    for gradients, weight in zip(found, encoder.trainable_variables, strict=True):
        expected = weight.value.grad
        torch.testing.assert_close(gradients.sum(dim=0), expected, rtol=1e-4, atol=1e-4)


def main():
    texts = torch.randn((3, 2, 7, 8), generator=torch.Generator().manual_seed(0))
    for name, make in ATTENTIONS.items():
        block = EncoderBlock(make(), FeedForward(12))
        block.build((None, None, 8))
        check(name, block, texts)
    check_encoder()


if __name__ == "__main__":
    main()
