"""Objectives by name: their examples fit their models, and settings that they lack."""

import dataclasses

import pytest
import tensorflow as tf

import tfeff
from tests.subjects.corpus import make_documents
from tests.subjects.objectives import make_encoder
from tfeff.data import MaskedTokens, PermutedTokens, SentencePairs
from tfeff.objectives import MaskedLM, PretrainingObjective, get, names, register
from tfeff.objectives import registry as module

NAMES = [
    "masked_lm",
    "next_sentence",
    "permutation_lm",
    "replaced_token",
    "sentence_order",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    documents = make_documents(40, 30)
    tokenizer = tfeff.data.train_tokenizer(documents, 60)
    path = tmp_path_factory.mktemp("registry") / "cache"
    options = {"num_threads": 1, "progress": False}
    return tfeff.data.build_cache(documents, tokenizer, path, 16, **options)


def test_names():
    assert [name for name in names() if name in NAMES] == NAMES
    assert all(get(name).name == name for name in NAMES)


def test_the_papers_settings():
    assert get("masked_lm").examples == MaskedTokens(0.15, "token", 0.8, 0.1)
    assert get("replaced_token").examples == MaskedTokens(0.15, "token", 0.85, 0.0)
    assert get("permutation_lm").examples == PermutedTokens(1 / 6)
    for name, kind in (("sentence_order", "order"), ("next_sentence", "next")):
        assert get(name).examples == SentencePairs(kind, get("masked_lm").examples)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_a_model_is_trained_on_its_examples(name, cache):
    objective = get(name)
    model = objective.make_model(make_encoder(vocabulary_size=60))
    model.compile()
    batches = cache.batches(objective.examples, batch_size=4)
    logs = model.fit(batches, steps_per_epoch=2, verbose=0).history
    assert tf.math.is_finite(logs["loss"][0])


def test_override():
    objective = get("sentence_order")
    changed = objective.override(masking="ngram", mask_rate=0.3, masked_lm=False)
    masked = MaskedTokens(0.3, "ngram")
    assert changed.examples == SentencePairs("order", masked)
    assert not changed.make_model(make_encoder()).masked_lm
    assert objective == get("sentence_order") and objective.override() == objective
    alone = objective.override(masked=None)
    assert alone.examples.masked is None
    # Both at once, as one after the other would be out of range in between.
    shares = get("masked_lm").override(mask_share=0.0, random_share=1.0).examples
    assert (shares.mask_share, shares.random_share) == (0.0, 1.0)

    detection = get("replaced_token")
    detection = detection.override(generator_ratio=0.5, mask_rate=0.25)
    detection = detection.override(generator_override={"num_heads": 1})
    generator = detection.make_model(make_encoder()).generator
    assert (generator.hidden_dim, generator.num_heads) == (8, 1)
    assert detection.examples == MaskedTokens(0.25, mask_share=0.85, random_share=0.0)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "permutation_lm",
            {"masking": "ngram"},
            "mask_rate. Received: masking='ngram'",
        ),
        ("masked_lm", {"generator_ratio": 0.5}, "Received: generator_ratio=0.5"),
        ("masked_lm", {"masked_lm": False}, "Received: masked_lm=False"),
        ("masked_lm", {"name": "x"}, "Received: name='x'"),
        (
            "replaced_token",
            {"kind": "next", "masked": None},
            "kind='next', masked=None",
        ),
        (
            "sentence_order",
            {"masked": None, "mask_rate": 0.3},
            "activation, kind, layer_norm_epsilon, masked, masked_lm",
        ),
        ("masked_lm", {"mask_rate": 2}, "`mask_rate` must be"),
        ("next_sentence", {"masking": "words"}, "`masking` must be"),
    ],
)
def test_settings_that_an_objective_lacks_are_named(name, settings, message):
    with pytest.raises(ValueError, match=message):
        get(name).override(**settings)


@pytest.mark.slow
def test_an_objective_of_ones_own(cache, monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class LastTokens(tfeff.data.Examples):
        """The last tokens of a text are hidden, as many as `count`."""

        count: int = 1

        def mapping(self, manifest, seed, tokenizer):
            def example(first_example, texts):
                ends = tf.reduce_sum(texts.padding_mask, axis=1, keepdims=True) - 1
                positions = tf.maximum(ends - 1 - tf.range(self.count), 0)
                labels = tf.gather(texts.token_ids, positions, batch_dims=1)
                mask_token = tf.fill(tf.shape(positions), manifest.mask_token_id)
                rows = tf.repeat(tf.range(tf.shape(positions)[0]), self.count)
                places = tf.stack([rows, tf.reshape(positions, [-1])], axis=1)
                inputs = {
                    "token_ids": tf.tensor_scatter_nd_update(
                        texts.token_ids, places, tf.reshape(mask_token, [-1])
                    ),
                    "segment_ids": tf.zeros_like(texts.token_ids),
                    "padding_mask": texts.padding_mask,
                    "mask_positions": positions,
                }
                return inputs, labels, tf.cast(positions > 0, tf.float32)

            return example

    monkeypatch.setattr(module, "_REGISTRY", dict(module._REGISTRY))
    objective = PretrainingObjective("last", LastTokens(), MaskedLM)
    assert register(objective) is register(objective) is get("last")
    with pytest.raises(ValueError, match="`objective` must have a name of its own"):
        register(PretrainingObjective("last", LastTokens(2), MaskedLM))
    with pytest.raises(ValueError, match="tfeff's own: give another one"):
        register(PretrainingObjective("masked_lm", LastTokens(), MaskedLM))
    with pytest.raises(ValueError, match="'lasst'. Did you mean 'last'"):
        get("lasst")
    examples = get("last").override(count=2).examples
    inputs, labels, _ = next(iter(cache.batches(examples, 4, shuffle=False)))
    assert inputs["mask_positions"].shape == labels.shape == (4, 2)
    model = objective.make_model(make_encoder(vocabulary_size=60))
    model.compile()
    model.fit(cache.batches(examples, 4), steps_per_epoch=1, verbose=0)
