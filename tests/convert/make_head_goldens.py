"""Makes the goldens of Hugging Face's heads: tiny random checkpoints and their logits.

Run by hand, from the repository's root, in the environment of
`tests/convert/make_goldens.py`:

    python -m tests.convert.make_head_goldens

Each folder under `tests/convert/head_goldens` is a checkpoint of three layers as its
authors would publish it, with `outputs.npz`: a batch, padded raggedly (XLNet's at the
left), and the logits.
"""

import shutil
from pathlib import Path

import numpy as np
import torch
import transformers as hf

from tests.convert.make_goldens import batch, inputs_of, randomise

FOLDER = Path(__file__).parent / "head_goldens"
# Positions that are read of the logits of all tokens.
POSITIONS = np.array([[1, 6, 0], [3, 6, 2], [1, 0, 0]], np.int32)
LEFT_POSITIONS = np.array([[1, 6, 0], [5, 10, 8], [10, 10, 10]], np.int32)
NAMES = ["cold", "warm", "hot"]
LABELS = {
    "id2label": dict(enumerate(NAMES)),
    "label2id": {name: index for index, name in enumerate(NAMES)},
}
SIZES = dict(
    vocab_size=220,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=12,
    max_position_embeddings=13,
)
BERT = dict(SIZES, layer_norm_eps=1e-3)
ALBERT = dict(SIZES, embedding_size=6)
CONVBERT = dict(SIZES, embedding_size=6, conv_kernel_size=3)
ELECTRA = dict(SIZES, embedding_size=6, hidden_act="relu")
ROBERTA = dict(
    SIZES,
    type_vocab_size=1,
    max_position_embeddings=15,
    layer_norm_eps=1e-5,
    hidden_act="relu",
)
DISTILBERT = dict(
    vocab_size=220,
    dim=8,
    n_layers=3,
    n_heads=4,
    hidden_dim=12,
    max_position_embeddings=13,
    activation="gelu_new",
)
XLNET = dict(vocab_size=220, d_model=8, n_layer=3, n_head=4, d_inner=12)
# Hugging Face reads these though its configuration does not have them.
SUMMARY = dict(summary_type="first", summary_use_proj=True, summary_activation="gelu")


def write(name, model, arrays, read):
    """Saves a checkpoint, its inputs and what `read` takes of its outputs."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    randomise(model).save_pretrained(folder, safe_serialization=True)
    with torch.no_grad():
        outputs = read(model(**inputs_of(arrays, model)))
    arrays |= {key: value.numpy() for key, value in outputs.items()}
    np.savez_compressed(folder / "outputs.npz", **arrays)


def choices(arrays):
    """Two options of each of three questions, as different rows of the batch."""
    return {
        name: np.stack([array, array[[2, 0, 1]]], axis=1)
        for name, array in arrays.items()
    }


def fine_tuned(family, base, left_padding=False, questions="QuestionAnswering", **more):
    """Writes the goldens of a family's fine-tuned models."""
    prefix = {"convbert": "ConvBert", "distilbert": "DistilBert", "xlnet": "XLNet"}
    prefix = prefix.get(family, family.title())

    def config(**changes):
        return getattr(hf, f"{prefix}Config")(**base, **changes)

    def model(kind, **changes):
        return getattr(hf, f"{prefix}For{kind}")(config(**changes))

    arrays = batch(left_padding)
    logits = {"read": lambda outputs: {"logits": outputs.logits}}
    write(
        f"{family}_classifier",
        model("SequenceClassification", **LABELS, **more.get("classifier", {})),
        dict(arrays),
        **logits,
    )
    write(
        f"{family}_regressor",
        model("SequenceClassification", num_labels=1),
        dict(arrays),
        **logits,
    )
    write(
        f"{family}_tokens",
        model("TokenClassification", **LABELS, **more.get("tokens", {})),
        dict(arrays),
        **logits,
    )
    write(
        f"{family}_questions",
        model(questions),
        dict(arrays),
        lambda o: {"start": o.start_logits, "end": o.end_logits},
    )
    write(
        f"{family}_choice",
        model("MultipleChoice", **more.get("choice", {})),
        choices(arrays),
        **logits,
    )


def pretrained():
    """Writes the goldens of heads of pretraining."""

    def at_positions(logits):
        index = torch.from_numpy(POSITIONS)[..., None].long()
        return torch.take_along_dim(logits, index, dim=1)

    for name, model, sentence in (
        (
            "bert_pretraining",
            hf.BertForPreTraining(hf.BertConfig(**BERT, hidden_act="gelu_new")),
            "seq_relationship_logits",
        ),
        (
            "albert_pretraining",
            hf.AlbertForPreTraining(hf.AlbertConfig(**ALBERT)),
            "sop_logits",
        ),
    ):
        write(
            name,
            model,
            batch(),
            lambda o, sentence=sentence: {
                "mask_positions": torch.from_numpy(POSITIONS),
                "masked_lm": at_positions(o.prediction_logits),
                "sentence": o[sentence],
            },
        )
    for name, model in (
        (
            "convbert_masked_lm",
            hf.ConvBertForMaskedLM(hf.ConvBertConfig(**CONVBERT, hidden_act="relu")),
        ),
        ("electra_generator", hf.ElectraForMaskedLM(hf.ElectraConfig(**ELECTRA))),
        ("roberta_masked_lm", hf.RobertaForMaskedLM(hf.RobertaConfig(**ROBERTA))),
        (
            "distilbert_masked_lm",
            hf.DistilBertForMaskedLM(hf.DistilBertConfig(**DISTILBERT)),
        ),
    ):
        write(
            name,
            model,
            batch(),
            lambda o: {
                "mask_positions": torch.from_numpy(POSITIONS),
                "masked_lm": at_positions(o.logits),
            },
        )
    # Of one seed with the generator: it has the same tables.
    config = hf.ElectraConfig(**dict(ELECTRA, hidden_size=12, num_attention_heads=2))
    write(
        "electra_discriminator",
        hf.ElectraForPreTraining(config),
        batch(),
        lambda o: {"replaced": o.logits},
    )


def xlnet_lm():
    """Writes the golden of XLNet's head: logits of tokens, and of hidden targets."""
    arrays = batch(left_padding=True)
    # The targets do not see each other, and each sees something.
    hidden = np.zeros((3, 11), np.int64)
    np.put_along_axis(hidden, LEFT_POSITIONS.astype(np.int64), 1, axis=1)
    perm_mask = torch.from_numpy(hidden)[:, None, :].expand(-1, 11, -1).float()
    positions = torch.from_numpy(LEFT_POSITIONS).long()
    mapping = torch.nn.functional.one_hot(positions, 11).float()
    model = randomise(hf.XLNetLMHeadModel(hf.XLNetConfig(**XLNET)))
    with torch.no_grad():
        targets = model(
            **inputs_of(arrays, model), perm_mask=perm_mask, target_mapping=mapping
        ).logits
    write(
        "xlnet_lm",
        model,
        arrays,
        lambda o: {
            "mask_positions": torch.from_numpy(LEFT_POSITIONS),
            "ranks": torch.from_numpy(hidden - 1).int(),
            "targets": targets,
            "tokens": torch.take_along_dim(o.logits, positions[..., None], dim=1),
        },
    )


def main():
    pretrained()
    xlnet_lm()
    relative = dict(position_embedding_type="relative_key")
    query = dict(position_embedding_type="relative_key_query")
    fine_tuned("bert", BERT, classifier=relative, tokens=query)
    fine_tuned("albert", ALBERT)
    fine_tuned("convbert", CONVBERT, choice=SUMMARY)
    fine_tuned("electra", ELECTRA)
    fine_tuned("roberta", ROBERTA)
    fine_tuned("distilbert", DISTILBERT)
    fine_tuned("xlnet", XLNET, True, "QuestionAnsweringSimple")


if __name__ == "__main__":
    main()
