import subprocess
import sys

import keras
import keras_hub
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.checks.replicas import two_replicas
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.serving import load, make_encoder, make_model, serve
from tfeff.export import fill_mask
from tfeff.export.text_encoder import TextEncoder

PAD, CLS, SEP, MASK = 0, 2, 3, 4
TEXTS = [
    "The small cat watched seven boxes",
    "",
    "Zebra ÉTÉ 日本 🦓",
    "cat",
    "a [MASK] in square brackets is plain text here",
]
# Every text with its ids, from pieces of SentencePiece's own: no space, no mark.
MASKED = {
    "The small [MASK] watched": ("The small", MASK, "watched"),
    "cat": ("cat",),
    "[MASK][MASK] was [MASK]": (MASK, MASK, "was", MASK),
    "": (),
}


def ids_of(text, length=60):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer().proto)
    return [CLS, *processor.encode(text)[: length - 2], SEP]


def batch_of(rows):
    """Padded encoder inputs, written out with NumPy."""
    length = max(len(row) for row in rows)
    ids = np.array([row + [PAD] * (length - len(row)) for row in rows], "int32")
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": (np.arange(length) < [[len(row)] for row in rows]).astype(int),
    }


def expected_sentences(encoder, rows):
    hidden = np.array(encoder(batch_of(rows))["sequence_output"], "float64")
    result = np.zeros((len(rows), hidden.shape[-1]))
    for index, row in enumerate(rows):
        own = [place for place, id in enumerate(row) if id not in (PAD, CLS, SEP, MASK)]
        if own:
            result[index] = sum(hidden[index, place] for place in own) / len(own)
    return result


def expected_fillings(model, rows, top_k):
    """For each row a list of its masks: of each the k ids and probabilities."""
    places = [[place for place, id in enumerate(row) if id == MASK] for row in rows]
    slots = max(len(row) for row in places)
    positions = [row + [0] * (slots - len(row)) for row in places]
    inputs = batch_of(rows) | {"mask_positions": np.array(positions, "int32")}
    if "ranks" in model.input:  # No mask sees another one.
        inputs["ranks"] = np.where(inputs["token_ids"] == MASK, 0, -1).astype("int32")
    logits = model(inputs)
    logits = np.array(logits, "float64")
    result = []
    for index, row in enumerate(places):
        result.append([])
        for slot in range(len(row)):
            exponentials = np.exp(logits[index, slot] - logits[index, slot].max())
            probabilities = exponentials / exponentials.sum()
            # Rows of the encoder beyond the vocabulary have no piece to show.
            known = probabilities[: tokenizer().vocabulary_size()]
            best = np.argsort(-known)[:top_k]
            result[-1].append((best, known[best]))
    return result


def check_fillings(outputs, expected, top_k, tolerance=1e-5):
    pieces = tokenizer().get_vocabulary()
    slots = max(len(row) for row in expected)
    for name in ("fillings", "token_ids", "probabilities"):
        assert outputs[name].shape == (len(expected), slots, top_k)
    for index, row in enumerate(expected):
        for slot, (ids, probabilities) in enumerate(row):
            np.testing.assert_array_equal(outputs["token_ids"][index, slot], ids)
            np.testing.assert_allclose(
                outputs["probabilities"][index, slot], probabilities, atol=tolerance
            )
            words = [word.decode() for word in outputs["fillings"][index, slot]]
            assert words == [pieces[id].removeprefix("▁") for id in ids]
        assert np.all(outputs["token_ids"][index, len(row) :] == -1)
        assert np.all(outputs["probabilities"][index, len(row) :] == 0)
        assert np.all(outputs["fillings"][index, len(row) :] == b"")


def masked_rows():
    rows = []
    for parts in MASKED.values():
        row = [CLS]
        for part in parts:
            row += [MASK] if part == MASK else ids_of(part)[1:-1]
        rows.append([*row, SEP])
    return rows


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Models and the folders of their exports, below folders that did not exist."""
    result = {}
    for attention, position in (("self", "absolute"), ("one_head", "none")):
        model = make_model(attention, position=position)
        path = tmp_path_factory.mktemp("export") / "some" / "model" / "1"
        tfeff.export.save_for_serving(model, tokenizer(), path, top_k=7)
        result[attention] = model, path
    return result


@pytest.fixture(params=["self", "one_head"])
def exported(request, exports):
    return exports[request.param]


# TensorFlow imports Keras by itself; nothing else of what made the model may be used.
LOADER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"keras_hub", "sentencepiece", "tfeff"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy, tensorflow, tensorflow_text

one, other, *texts = sys.argv[1:]
for path, target in ((one, "0.npz"), (other, "1.npz")):
    signatures = tensorflow.saved_model.load(path).signatures
    numpy.savez(target, **{
        f"{name} {key}": value.numpy()
        for name, signature in signatures.items()
        for key, value in signature(text=tensorflow.constant(texts)).items()
    })
"""


@pytest.mark.slow
def test_a_process_with_tensorflow_alone_agrees(exports, tmp_path):
    texts = [*TEXTS[:-1], *MASKED]
    paths = [str(path) for _, path in exports.values()]
    arguments = [sys.executable, "-c", LOADER, *paths, *texts]
    subprocess.run(arguments, check=True, cwd=tmp_path)
    for index, (model, _) in enumerate(exports.values()):
        outputs = dict(np.load(tmp_path / f"{index}.npz", allow_pickle=True))
        check_outputs(model, texts, outputs)


def check_outputs(model, texts, outputs):
    rows = [ids_of(text) for text in texts]
    sentences = expected_sentences(model.encoder, rows)
    for name in ("sentence_embeddings", "serving_default"):
        np.testing.assert_allclose(
            outputs[f"{name} embeddings"], sentences, atol=1e-5, rtol=1e-5
        )
    tokens = model.encoder(batch_of(rows))["sequence_output"]
    np.testing.assert_allclose(
        outputs["token_embeddings embeddings"], tokens, atol=1e-5, rtol=1e-5
    )
    rows = [ids_of(text) for text in TEXTS[:-1]] + masked_rows()
    fillings = {
        name.removeprefix("fill_mask "): value
        for name, value in outputs.items()
        if name.startswith("fill_mask")
    }
    check_fillings(fillings, expected_fillings(model, rows, 7), 7)


@pytest.mark.slow
def test_sentence_embeddings(exported):
    model, path = exported
    outputs = serve(path, "sentence_embeddings", TEXTS)
    expected = expected_sentences(model.encoder, [ids_of(text) for text in TEXTS])
    assert outputs["embeddings"].dtype == np.float32
    np.testing.assert_allclose(outputs["embeddings"], expected, atol=1e-5, rtol=1e-5)
    assert np.all(outputs["embeddings"][1] == 0)


def test_token_embeddings(exported):
    model, path = exported
    outputs = serve(path, "token_embeddings", TEXTS)
    batch = batch_of([ids_of(text) for text in TEXTS])
    hidden = model.encoder(batch)["sequence_output"]
    np.testing.assert_allclose(outputs["embeddings"], hidden, atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(outputs["mask"], batch["padding_mask"])
    np.testing.assert_array_equal(outputs["token_ids"], batch["token_ids"])
    pieces = np.array(tokenizer().get_vocabulary())
    tokens = np.vectorize(bytes.decode)(outputs["tokens"])
    np.testing.assert_array_equal(tokens, pieces[batch["token_ids"]])


def test_fill_mask(exported):
    model, path = exported
    outputs = serve(path, "fill_mask", list(MASKED))
    check_fillings(outputs, expected_fillings(model, masked_rows(), 7), 7)


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_many_masks_of_a_text_are_filled_in_parts(at_once, monkeypatch):
    model = make_model("one_head", position="none")
    size = model.encoder.vocabulary_size
    monkeypatch.setattr(fill_mask, "_LOGITS_AT_ONCE", at_once * size)
    endpoint = fill_mask.fill_mask_endpoint(model, TextEncoder(tokenizer(), 9), 3)
    counts = (7, 0, 1, 4, 3)
    rows = [[CLS, *[MASK] * count, SEP] for count in counts]
    outputs = endpoint(tf.constant(["[MASK] " * count for count in counts]))
    outputs = {name: value.numpy() for name, value in outputs.items()}
    check_fillings(outputs, expected_fillings(model, rows, 3), 3)


@pytest.mark.slow
def test_fill_mask_of_a_permutation_language_model(tmp_path):
    relative = {"name": "relative", "method": "xlnet"}
    encoder = make_encoder(relative, position="none")
    model = tfeff.objectives.PermutationLM(encoder)
    randomize({w.path: w for w in model.weights}, scale=0.3)
    tfeff.export.save_for_serving(model, tokenizer(), tmp_path / "model", top_k=7)
    outputs = serve(tmp_path / "model", "fill_mask", list(MASKED))
    check_fillings(outputs, expected_fillings(model, masked_rows(), 7), 7)


def test_one_text_at_a_time_is_as_in_a_batch(exported):
    _, path = exported
    together = serve(path, "sentence_embeddings", TEXTS)["embeddings"]
    for text, row in zip(TEXTS, together, strict=True):
        alone = serve(path, "sentence_embeddings", [text])["embeddings"]
        np.testing.assert_allclose(alone, row[np.newaxis], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "signature, name, shape",
    [
        ("sentence_embeddings", "embeddings", (0, 16)),
        ("token_embeddings", "embeddings", (0, 1, 16)),  # As `padded_inputs` says.
        ("fill_mask", "fillings", (0, 0, 7)),
    ],
)
def test_empty_batch(exported, signature, name, shape):
    assert serve(exported[1], signature, [])[name].shape == shape


def test_texts_without_masks_have_no_fillings(exported):
    assert serve(exported[1], "fill_mask", TEXTS[:2])["fillings"].shape == (2, 0, 7)


@pytest.mark.slow
def test_truncation_drops_what_does_not_fit(tmp_path):
    model = make_model()
    path = tmp_path / "model"
    tfeff.export.save_for_serving(model, tokenizer(), path, sequence_length=8)
    rows = [ids_of(text, length=8) for text in DOCUMENTS]
    outputs = serve(path, "sentence_embeddings", DOCUMENTS)
    expected = expected_sentences(model.encoder, rows)
    np.testing.assert_allclose(outputs["embeddings"], expected, atol=1e-5, rtol=1e-5)

    rows = [[CLS, MASK, MASK, *ids_of("was was was was")[1:-1][:4], SEP]]
    text = "[MASK][MASK] was was was was [MASK]"
    expected = expected_fillings(model, rows, 5)
    check_fillings(serve(path, "fill_mask", [text]), expected, 5)


@pytest.mark.slow
def test_positions_none_serve_texts_longer_than_trained_on(tmp_path):
    encoder = make_encoder("one_head", position="none", max_sequence_length=6)
    path = tmp_path / "model"
    tfeff.export.save_for_serving(encoder, tokenizer(), path, sequence_length=40)
    text = DOCUMENTS[0]
    expected = expected_sentences(encoder, [ids_of(text, length=40)])
    outputs = serve(path, "sentence_embeddings", [text])
    np.testing.assert_allclose(outputs["embeddings"], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_encoder_alone_has_the_embeddings_only(tmp_path):
    tfeff.export.save_for_serving(make_encoder(), tokenizer(), tmp_path / "model")
    assert set(load(tmp_path / "model").signatures) == {
        "sentence_embeddings",
        "token_embeddings",
        "serving_default",
    }


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_gives_float32(tmp_path, policy):
    model = make_model(dtype=policy)
    tfeff.export.save_for_serving(model, tokenizer(), tmp_path / "model")
    sentences = serve(tmp_path / "model", "sentence_embeddings", TEXTS)["embeddings"]
    tokens = serve(tmp_path / "model", "token_embeddings", TEXTS)
    fillings = serve(tmp_path / "model", "fill_mask", list(MASKED))
    rows = [ids_of(text) for text in TEXTS]
    hidden = model.encoder(batch_of(rows))["sequence_output"]
    assert hidden.dtype == policy.removeprefix("mixed_")
    # The same operations in the same precision: only their fusion may differ.
    step = np.finfo(np.float16).eps if policy[6:] == "float16" else 2.0**-7
    for outputs, expected in [
        (sentences, expected_sentences(model.encoder, rows)),
        (tokens["embeddings"], np.array(hidden, "float32")),
    ]:
        assert outputs.dtype == np.float32
        np.testing.assert_allclose(outputs, expected, atol=4 * step, rtol=4 * step)
    assert fillings["probabilities"].dtype == np.float32
    used = fillings["token_ids"] >= 0
    assert np.all(fillings["probabilities"][used] > 0)


@pytest.mark.slow
def test_model_of_two_replicas(tmp_path):
    with two_replicas().scope():
        model = make_model()
    tfeff.export.save_for_serving(model, tokenizer(), tmp_path / "model")
    outputs = serve(tmp_path / "model", "sentence_embeddings", TEXTS)
    expected = expected_sentences(model.encoder, [ids_of(text) for text in TEXTS])
    np.testing.assert_allclose(outputs["embeddings"], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_word_piece_tokenizer(tmp_path):
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "cat",
        "s",
        "##s",
        ".",
    ]
    word_piece = keras_hub.tokenizers.BertTokenizer(vocabulary=words, lowercase=True)
    model = make_model()
    tfeff.export.save_for_serving(model, word_piece, tmp_path / "model", top_k=2)
    texts = ["The [MASK] cats.", "[MASK].", "dog"]
    outputs = serve(tmp_path / "model", "token_embeddings", ["The cats.", "dog"])
    np.testing.assert_array_equal(
        outputs["token_ids"], [[2, 5, 6, 8, 9, 3], [2, 1, 3, 0, 0, 0]]
    )
    outputs = serve(tmp_path / "model", "fill_mask", texts)
    rows = [[2, 5, 4, 6, 8, 9, 3], [2, 4, 9, 3], [2, 1, 3]]
    positions = np.array([[2], [1], [0]], "int32")
    logits = model(batch_of(rows) | {"mask_positions": positions})
    probabilities = np.array(keras.ops.softmax(logits))[:, :, : len(words)]
    best = np.argsort(-probabilities)[:2, :, :2]
    np.testing.assert_array_equal(outputs["token_ids"][:2], best)
    np.testing.assert_allclose(
        outputs["probabilities"][:2],
        np.take_along_axis(probabilities[:2], best, axis=-1),
        atol=1e-5,
    )
    assert np.all(outputs["token_ids"][2] == -1)


def test_refuses_bad_arguments_before_writing(tmp_path):
    encoder = make_encoder()
    path = tmp_path / "new" / "model"

    def refused(error, match, **changes):
        arguments = {"model": encoder, "tokenizer": tokenizer(), "path": path}
        with pytest.raises(error, match=match):
            tfeff.export.save_for_serving(**(arguments | changes))
        assert not (tmp_path / "new").exists()

    refused(TypeError, "`model` must be", model=keras.layers.Dense(1))
    refused(TypeError, "`tokenizer` must be", tokenizer="tokenizer.spm")
    refused(TypeError, "`path` must be", path=7)
    refused(TypeError, "`sequence_length` must be", sequence_length=4.5)
    refused(ValueError, "`sequence_length` must be.*=2", sequence_length=2)
    refused(ValueError, "`sequence_length` must be.*at most 60", sequence_length=61)
    model = make_model()
    refused(ValueError, "`top_k` must be.*top_k=0", model=model, top_k=0)
    refused(ValueError, "`top_k` must be.*at most 60.*=61", model=model, top_k=61)
    refused(TypeError, "`top_k` must be an option of Encoder: it has none", top_k=5)
    refused(
        ValueError,
        r"more ids.* 60 ids, 59 rows",
        model=make_encoder(vocabulary_size=59),
    )
    proto = tokenizer().proto
    bare = keras_hub.tokenizers.SentencePieceTokenizer(proto=proto)
    refused(TypeError, "without .*cls_token_id", tokenizer=bare)
    eager = keras_hub.tokenizers.AlbertTokenizer(proto=proto, sequence_length=9)
    refused(ValueError, "neither pad .*sequence_length=9", tokenizer=eager)


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_existing_path_is_left_alone(tmp_path, kind):
    path = tmp_path / "model"
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="`path` must not exist.*save_version"):
        tfeff.export.save_for_serving(make_encoder(), tokenizer(), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert kind != "file" or path.read_text() == "precious"


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(self, path, **kwargs):
        with open(path, "w") as file:
            file.write("half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(keras.export.ExportArchive()), "write_out", full)
    with pytest.raises(OSError, match="No space left"):
        tfeff.export.save_for_serving(make_encoder(), tokenizer(), tmp_path / "model")
    assert not list(tmp_path.iterdir())
