"""Makes the Hugging Face goldens: tiny random checkpoints and what they compute.

Run by hand, from the repository's root, in an environment of its own:

    python -m tests.convert.make_goldens

Made with transformers 4.57.6, torch 2.13.0 (CPU), tokenizers 0.22.2, safetensors
0.8.0, sentencepiece 0.2.3 and protobuf. Each folder under `tests/convert/goldens` is a
checkpoint as its authors would publish it, with two files more: `outputs.npz`, a
batch and all its hidden states, and `tokens.json`, texts and their ids.
"""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers as hf

from tests.subjects.sentence_pieces import SPECIAL

GOLDENS = Path(__file__).parent / "goldens"
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "She didn't say: \"We'll be back at 10:30, on 3/4!\"",
    "Café, naïve and über-cool São Paulo; the fiancée's résumé.",
    "It cost $1,234.56 (about 9,000 yen) in 2019, or 50% of it.",
    "  Tabs\tand   spaces\nand lines  ",
    "`` Quoted '' words -- and a well-known ellipsis... [x] {y} <z> #1 @home",
    "UPPER lower MiXeD iPhone NASA e.g. U.S.A.",
    "日本語 and 中文 text, with ελληνικά and русский.",
    "unbelievably uncharacteristically 🙂 zzzzqqq",
    "½ ﬁne ① wait… x² ™ straße ΑΣΣΟΣ zero\u200bwidth a\u00a0b soft\u00adhyphen",
    "\u3000漢字かな が ガ e\u0301te\u0301 İstanbul 한국어 \u1112\u1161\u11ab",
    "\ufeffbom a\x01b",
]
BATCH = dict(
    lengths=(11, 7, 2),
    vocabulary=48,
)


def randomise(model):
    """Gives every weight a value that shows in the outputs."""
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:  # Sinusoids.
            continue
        parameter.data.normal_(std=0.3)
        if "norm" in name.lower() and name.endswith("weight"):
            parameter.data += 1.0
    return model.eval()


def batch(left_padding=False):
    """Token ids, segment ids and mask of three sequences, the longest of 11."""
    generator = np.random.default_rng(0)
    mask = np.zeros((3, 11), np.int32)
    for row, length in enumerate(BATCH["lengths"]):
        mask[row, slice(11 - length, 11) if left_padding else slice(length)] = 1
    # Padding holds tokens too: whether they leak is part of what is compared.
    ids = generator.integers(5, BATCH["vocabulary"], mask.shape)
    segments = generator.integers(0, 2, mask.shape)
    return dict(
        token_ids=ids.astype(np.int32),
        segment_ids=segments.astype(np.int32),
        padding_mask=mask,
    )


def inputs_of(arrays, model):
    """The inputs by the names of the model, without segments that it does not have."""
    tensors = {name: torch.from_numpy(array).long() for name, array in arrays.items()}
    inputs = dict(
        input_ids=tensors["token_ids"], attention_mask=tensors["padding_mask"]
    )
    of_xlnet = isinstance(model, hf.XLNetPreTrainedModel)
    if of_xlnet or getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = tensors["segment_ids"]
    return inputs


def write(name, model, left_padding=False, tokenizer=None, **save):
    """Saves the checkpoint, its outputs, and its tokenizer's ids."""
    folder = GOLDENS / name
    shutil.rmtree(folder, ignore_errors=True)
    model = randomise(model)
    model.save_pretrained(folder, safe_serialization=True, **save)
    arrays = batch(left_padding)
    with torch.no_grad():
        inputs = inputs_of(arrays, model)
        outputs = model.base_model(**inputs, output_hidden_states=True)
    arrays["hidden_states"] = np.stack([x.numpy() for x in outputs.hidden_states])
    if isinstance(model, hf.XLNetLMHeadModel):
        arrays |= two_streams(model.transformer, arrays)
    np.savez_compressed(folder / "outputs.npz", **arrays)
    if tokenizer is not None:
        tokenizer(folder)


def two_streams(model, arrays):
    """XLNet on a permutation: targets predict each other in the order of rank."""
    # Every query sees something, and padding is never a target.
    ranks = np.array(
        [
            [-1, 3, -1, 0, -1, 1, -1, -1, 2, -1, -1],
            [-1] * 5 + [0, -1, -1, 1, -1, -1],
            [-1] * 10 + [0],
        ]
    )
    targets = np.array([[3, 5, 8, 1], [5, 8, 0, 0], [10, 0, 0, 0]])
    used = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    hidden = ranks[:, None, :] >= ranks[:, :, None]
    perm_mask = torch.from_numpy((hidden & (ranks[:, None, :] >= 0)).astype(np.float32))
    mapping = torch.nn.functional.one_hot(torch.from_numpy(targets), 11).float()
    mapping *= torch.from_numpy(used)[..., None]  # Slots of one position would add up.
    with torch.no_grad():
        outputs = model(
            **inputs_of(arrays, model),
            perm_mask=perm_mask,
            target_mapping=mapping,
            output_hidden_states=True,
        )
    content, query = outputs.hidden_states[-2:]
    return dict(
        ranks=ranks.astype(np.int32),
        target_positions=targets.astype(np.int32),
        target_used=used.astype(bool),
        content=content.numpy(),
        query=query.numpy(),
    )


def write_ids(folder, fast):
    """Ids of `TEXTS` without special tokens, nor a piece for white space at the end."""
    rows = [
        json.dumps(
            [text, fast.encode(text.rstrip(), add_special_tokens=False)],
            ensure_ascii=False,
        )
        for text in TEXTS
    ]
    tokens = "[\n" + ",\n".join(rows) + "\n]\n"
    (folder / "tokens.json").write_text(tokens, encoding="utf-8")


def word_piece(lowercase):
    """Saves a WordPiece tokenizer trained on `TEXTS`."""

    def save(folder):
        trained = tokenizers.BertWordPieceTokenizer(lowercase=lowercase)
        trained.train_from_iterator(TEXTS * 2, vocab_size=220, show_progress=False)
        trained.save_model(str(folder))
        slow = hf.BertTokenizer(folder / "vocab.txt", do_lower_case=lowercase)
        fast = hf.BertTokenizerFast(
            vocab_file=str(folder / "vocab.txt"), do_lower_case=lowercase
        )
        slow.save_pretrained(folder)
        write_ids(folder, fast)

    return save


def sentence_piece(slow_class, fast_class, special, vocabulary_size=200):
    """Saves a SentencePiece tokenizer trained on `TEXTS` in lower case or not."""

    def save(folder):
        model = io.BytesIO()
        lowercase = slow_class is hf.AlbertTokenizer
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(
                [text.lower() if lowercase else text for text in TEXTS[:7] * 2]
            ),
            model_writer=model,
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            minloglevel=2,
            **special,
        )
        (folder / "spiece.model").write_bytes(model.getvalue())
        slow = slow_class(str(folder / "spiece.model"))
        fast = fast_class.from_pretrained(folder, from_slow=True)
        slow.save_pretrained(folder)
        write_ids(folder, fast)

    return save


SIZES = dict(
    vocab_size=220,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    max_position_embeddings=13,
)


def bert(**changes):
    return hf.BertConfig(**SIZES | changes)


def albert(**changes):
    sizes = SIZES | dict(embedding_size=12, num_hidden_layers=4)
    return hf.AlbertConfig(**sizes | changes)


def convbert(**changes):
    sizes = SIZES | dict(
        hidden_size=24, embedding_size=24, intermediate_size=32, conv_kernel_size=5
    )
    return hf.ConvBertConfig(**sizes | changes)


def xlnet(**changes):
    return hf.XLNetConfig(
        vocab_size=220, d_model=16, n_layer=2, n_head=4, d_inner=24, **changes
    )


def electra(**changes):
    sizes = SIZES | dict(num_hidden_layers=3, embedding_size=12)
    return hf.ElectraConfig(**sizes | changes)


def roberta(**changes):
    sizes = SIZES | dict(
        num_hidden_layers=3,
        type_vocab_size=1,
        max_position_embeddings=15,
        layer_norm_eps=1e-5,
    )
    return hf.RobertaConfig(**sizes | changes)


def distilbert(**changes):
    return hf.DistilBertConfig(
        vocab_size=220,
        dim=16,
        n_layers=3,
        n_heads=4,
        hidden_dim=24,
        max_position_embeddings=13,
        **changes,
    )


def main():
    write("bert", hf.BertModel(bert()), tokenizer=word_piece(lowercase=True))
    write(
        "bert_pretraining",
        hf.BertForPreTraining(bert(layer_norm_eps=1e-3, hidden_act="gelu_new")),
        tokenizer=word_piece(lowercase=False),
        max_shard_size="12KB",
    )
    for kind in ("relative_key", "relative_key_query"):
        config = bert(position_embedding_type=kind)
        write(f"bert_{kind}", hf.BertForMaskedLM(config))
    spiece = sentence_piece(
        hf.AlbertTokenizer, hf.AlbertTokenizerFast, SPECIAL["albert"]
    )
    write("albert", hf.AlbertForMaskedLM(albert()), tokenizer=spiece)
    write(
        "albert_groups",
        hf.AlbertModel(albert(num_hidden_groups=2, hidden_act="gelu")),
    )
    write("convbert_small", hf.ConvBertModel(convbert(embedding_size=12)))
    write(
        "convbert_grouped",
        hf.ConvBertForMaskedLM(convbert(embedding_size=12, num_groups=2)),
    )
    write("convbert_base", hf.ConvBertModel(convbert()))
    spiece = sentence_piece(hf.XLNetTokenizer, hf.XLNetTokenizerFast, SPECIAL["xlnet"])
    write("xlnet", hf.XLNetLMHeadModel(xlnet()), left_padding=True, tokenizer=spiece)
    write("xlnet_clamped", hf.XLNetModel(xlnet(clamp_len=3)), left_padding=True)
    # Of one seed, so that generator and discriminator have the same embedding.
    model = hf.ElectraForMaskedLM(electra(hidden_act="gelu_new"))
    write("electra_generator", model)
    model = hf.ElectraForPreTraining(electra(hidden_size=24))
    write("electra_discriminator", model, tokenizer=word_piece(lowercase=True))
    config = electra(embedding_size=16, position_embedding_type="relative_key")
    write("electra_relative_key", hf.ElectraForPreTraining(config))
    write("roberta", hf.RobertaForMaskedLM(roberta()))
    config = roberta(
        type_vocab_size=2,
        position_embedding_type="relative_key_query",
        hidden_act="gelu_new",
    )
    write("roberta_relative_key_query", hf.RobertaModel(config))
    write("distilbert", hf.DistilBertForMaskedLM(distilbert(activation="relu")))
    config = distilbert(sinusoidal_pos_embds=True)
    write("distilbert_sinusoidal", hf.DistilBertModel(config))


if __name__ == "__main__":
    main()
