"""PyTorch encoders of Hugging Face: run eagerly, or exported to ONNX."""

import os

import runtimes
import torch
import transformers as hf
from steps import TWO_STREAMS

from peers.common import (
    CLIP_NORM,
    HEADS,
    OPTIMIZER,
    Contender,
    target_rows,
    visible_pairs,
)


def make(model, sizes, task, dtype, batch):
    """A PyTorch encoder of Hugging Face, run eagerly, with its default attention."""
    torch.set_num_threads(os.cpu_count())
    encoder = _encoder(model, sizes)
    tensors = {name: torch.from_numpy(value).long() for name, value in batch.items()}
    inputs = dict(
        input_ids=tensors["token_ids"],
        token_type_ids=tensors["segment_ids"],
        attention_mask=tensors["padding_mask"],
    )
    two_streams = model == TWO_STREAMS
    if two_streams:
        inputs["perm_mask"] = torch.from_numpy(1.0 - visible_pairs(batch)).float()
        inputs["target_mapping"] = torch.from_numpy(target_rows(batch)).float()

    def autocast():
        enabled = dtype == "mixed_bfloat16"
        return torch.autocast("cpu", torch.bfloat16, enabled=enabled)

    def count(module):
        return sum(parameter.numel() for parameter in module.parameters())

    def infer():
        with torch.inference_mode(), autocast():
            return float(encoder(**inputs).last_hidden_state[0, 0, 0])

    if task == "inference":
        encoder.eval()
        return Contender(count(encoder), {"eager": infer})

    table = encoder.get_input_embeddings().weight
    head = torch.nn.Sequential(
        torch.nn.Linear(sizes.width, table.shape[1]),
        torch.nn.GELU(),
        torch.nn.LayerNorm(table.shape[1], eps=1e-12),
    )
    bias = torch.nn.Parameter(torch.zeros(sizes.vocabulary))
    parameters = [*encoder.parameters(), *head.parameters(), bias]
    encoder.train()
    optimizer = torch.optim.AdamW(
        parameters,
        lr=OPTIMIZER["learning_rate"],
        weight_decay=OPTIMIZER["weight_decay"],
        eps=OPTIMIZER["epsilon"],
        fused=True,  # As Hugging Face's trainer.
    )
    rows = torch.arange(sizes.batch_size)[:, None]

    def train():
        with autocast():
            hidden = encoder(**inputs).last_hidden_state
            if not two_streams:
                hidden = hidden[rows, tensors["mask_positions"]]
            logits = torch.nn.functional.linear(head(hidden), table, bias)
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), tensors["labels"].flatten()
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Contender(sum(p.numel() for p in parameters), {"eager": train})


def exported(model, sizes, folder):
    """The ways to run an encoder after an export, and eagerly beside them.

    `torch.onnx.export` with a batch and a length of any size, as Hugging Face's own
    exporters call it: by tracing, and by PyTorch's newer way; and what ONNX Runtime's
    optimizer of Transformers makes of the first.
    """
    torch.set_num_threads(os.cpu_count())

    def traced():
        return _onnx(model, sizes, os.path.join(folder, "traced.onnx"), dynamo=False)

    def optimized():
        path = os.path.join(folder, "optimized.onnx")
        if not os.path.exists(path):
            from onnxruntime.transformers.optimizer import optimize_model

            optimize_model(
                traced(), "bert", num_heads=HEADS, hidden_size=sizes.width
            ).save_model_to_file(path)
        return path

    def dynamo():
        return _onnx(model, sizes, os.path.join(folder, "dynamo.onnx"), dynamo=True)

    modes = {
        "ONNX Runtime": lambda: runtimes.onnx_runtime(traced()),
        "ONNX Runtime, dynamo": lambda: runtimes.onnx_runtime(dynamo()),
    }
    if model == "bert":
        modes["ONNX Runtime, its optimizer"] = lambda: runtimes.onnx_runtime(
            optimized()
        )
    for attention in ("eager", "sdpa"):
        modes[f"PyTorch, {attention}"] = lambda attention=attention: _eagerly(
            _encoder(model, sizes, attention)
        )
    return modes


NAMES = ("input_ids", "attention_mask", "token_type_ids")


class _HiddenStates(torch.nn.Module):
    """The last hidden states alone, of the inputs in the order of `NAMES`."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, *inputs):
        return self.encoder(**dict(zip(NAMES, inputs))).last_hidden_state


def _onnx(model, sizes, path, dynamo):
    if os.path.exists(path):
        return path
    encoder = _HiddenStates(_encoder(model, sizes)).eval()
    example = tuple(torch.ones((2, 16), dtype=torch.long) for _ in NAMES)
    axes = {0: "batch", 1: "length"}
    options = (
        dict(dynamic_shapes=((axes, axes, axes),))
        if dynamo
        else {"dynamic_axes": dict.fromkeys((*NAMES, "last_hidden_state"), axes)}
    )
    torch.onnx.export(
        encoder,
        example,
        path,
        input_names=list(NAMES),
        output_names=["last_hidden_state"],
        opset_version=18 if dynamo else 17,
        dynamo=dynamo,
        **options,
    )
    return path


def _eagerly(encoder):
    encoder.eval()

    def runner(batch):
        inputs = {
            name: torch.from_numpy(batch[ours]).long()
            for name, ours in zip(NAMES, ("token_ids", "padding_mask", "segment_ids"))
        }

        def run():
            with torch.inference_mode():
                return encoder(**inputs).last_hidden_state.numpy()

        return run

    return runner


def _encoder(model, sizes, attention=None):
    shared = dict(vocab_size=sizes.vocabulary)
    if attention:
        shared["attn_implementation"] = attention
    if model.startswith("xlnet"):
        config = hf.XLNetConfig(
            **shared,
            d_model=sizes.width,
            n_layer=sizes.layers,
            n_head=HEADS,
            d_inner=4 * sizes.width,
            dropout=sizes.dropout,
            use_mems_eval=False,
            use_mems_train=False,
        )
        return hf.XLNetModel(config)
    shared |= dict(
        hidden_size=sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=HEADS,
        intermediate_size=4 * sizes.width,
        max_position_embeddings=max(512, sizes.length),
        type_vocab_size=2,
        hidden_dropout_prob=sizes.dropout,
        attention_probs_dropout_prob=sizes.dropout,
    )
    if model == "albert":
        config = hf.AlbertConfig(**shared, embedding_size=128, hidden_act="gelu_new")
        return hf.AlbertModel(config, add_pooling_layer=False)
    if model == "convbert":
        config = hf.ConvBertConfig(
            **shared, embedding_size=sizes.width, head_ratio=2, conv_kernel_size=9
        )
        return hf.ConvBertModel(config)
    return hf.BertModel(hf.BertConfig(**shared), add_pooling_layer=False)
