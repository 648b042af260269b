"""PyTorch's own fused attention."""

import os

import torch

from peers.common import HEADS, Contender


def make(model, sizes, task, dtype, batch):
    """One layer of attention with query, key, value and output projections.

    `scaled_dot_product_attention` never holds the scores of all pairs. To train is to
    compute the gradients of input and weights.
    """
    if (model, dtype) != ("fused", "float32"):
        raise ValueError(f"{model} in {dtype} is not there, only fused in float32")
    torch.set_num_threads(os.cpu_count())
    projections = [torch.nn.Linear(sizes.width, sizes.width) for _ in range(4)]
    parameters = [p for dense in projections for p in dense.parameters()]
    shape = (sizes.batch_size, sizes.length, sizes.width)
    hidden = torch.randn(shape, requires_grad=task == "train")
    upstream = torch.randn(shape)

    def attend():
        heads = (
            dense(hidden).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for dense in projections[:3]
        )
        context = torch.nn.functional.scaled_dot_product_attention(*heads)
        return projections[3](context.transpose(1, 2).flatten(2))

    def infer():
        with torch.inference_mode():
            return float(attend()[0, 0, 0])

    def train():
        gradients = torch.autograd.grad(attend(), [hidden, *parameters], upstream)
        return float(gradients[0][0, 0, 0])

    steps = {"train": train, "inference": infer}
    return Contender(sum(p.numel() for p in parameters), {"eager": steps[task]})
