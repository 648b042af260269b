"""Sentence order and next sentence, with and without masked tokens."""

import numpy as np
import pytest

from tests.checks import assert_close, randomize
from tests.reference.objectives import (
    cross_entropies,
    masked_lm_logits,
    pair_logits,
)
from tests.subjects.objectives import (
    arrays,
    batches,
    head_weights,
    make_encoder,
    make_model,
)
from tfeff.objectives import SentencePairPrediction


@pytest.mark.parametrize("kind", ["sentence_order", "sentence_alone"])
def test_losses_and_metrics_equal_the_literal_ones(kind):
    model = make_model(kind, compiled={"run_eagerly": True})
    randomize({w.path: w for w in model.weights if "seed" not in w.path})
    weights_of = {
        "/".join(w.path.split("/")[-2:]): w.numpy().astype("float64")
        for w in model.weights
    }
    names = ["sentence"] + ["masked_lm"] * (kind == "sentence_order")
    sums = {name: np.zeros(3) for name in names}
    dataset = batches(kind, 3)
    for batch in dataset:
        inputs, labels, weights = arrays(batch)
        hidden = np.asarray(model.encoder(inputs)["sequence_output"], "float64")
        expected = {"sentence": pair_logits(hidden, weights_of)}
        if kind == "sentence_order":
            head = next(x for x in model.layers if x.name == "head")
            table = model.encoder.token_embedding.embeddings.numpy()
            expected["masked_lm"] = masked_lm_logits(
                hidden, inputs["mask_positions"], head_weights(head), table
            )
        outputs = model(batch[0])
        assert sorted(outputs) == sorted(names)
        for name in names:
            assert_close(outputs[name], expected[name], 1e-5)
            right = expected[name].argmax(-1) == labels[name]
            sums[name] += (
                *cross_entropies(expected[name], labels[name], weights[name]),
                (right * weights[name]).sum(),
            )
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    means = {name: total / count for name, (total, count, _) in sums.items()}
    literal = {"loss": sum(means.values())}
    if kind == "sentence_alone":
        literal["accuracy"] = sums["sentence"][2] / sums["sentence"][1]
    else:
        for name, (_, count, right) in sums.items():
            literal[f"{name}_loss"] = means[name]
            literal[f"{name}_accuracy"] = right / count
    assert set(logs) == set(literal)
    for name, value in literal.items():
        assert logs[name] == pytest.approx(value, rel=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize("num_segments", [0, 1])
def test_an_encoder_of_one_segment_tells_sentences_by_separators(num_segments):
    model = make_model("sentence_alone", num_segments=num_segments)
    dataset = batches("sentence_alone", 1).map(
        lambda x, *targets: (x | {"segment_ids": x["padding_mask"]}, *targets)
    )
    inputs = next(iter(dataset))[0]
    zeros = inputs | {"segment_ids": 0 * inputs["segment_ids"]}
    outputs = np.asarray(model(inputs)["sentence"])
    np.testing.assert_array_equal(model(zeros)["sentence"], outputs)
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()


def test_masked_lm_must_be_a_bool():
    with pytest.raises(TypeError, match="`masked_lm` must.*Received"):
        SentencePairPrediction(make_encoder(), masked_lm=0.15)
