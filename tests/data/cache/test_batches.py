"""The batches of a cache: masks, order, epochs, and where a run goes on."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from keras_hub.tokenizers import BertTokenizer

from tests.checks import two_replicas
from tests.checks.masking import check_rule
from tests.subjects.corpus import token_lists
from tfeff.data import MaskedTokens, SentencePairs, build_cache
from tfeff.data.cache import layout, record_order, record_reader

B = 8
InputContext = tf.distribute.InputContext
MASKED = MaskedTokens()


@pytest.fixture(scope="module")
def cache(documents, tokenizer, tmp_path_factory):
    """238 sequences in many shards; a window holds 50 of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))
        path = tmp_path_factory.mktemp("batches") / "cache"
        return build_cache(documents, tokenizer, path, 33, num_threads=1)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(record_order, "WINDOW", 50)


def take(dataset, count=None):
    """Batches as flat tuples of arrays."""
    return [
        tuple(part.numpy() for part in tf.nest.flatten(batch))
        for batch in itertools.islice(dataset, count)
    ]


def assert_equal(batches, others):
    assert len(batches) == len(others)
    for a, b in zip(batches, others):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


def rows(batches, field):
    """One field of all examples; fields in the order of `take`."""
    names = ["mask_positions", "padding_mask", "segment_ids", "token_ids"]
    names += ["labels", "weights"]
    return np.concatenate([batch[names.index(field)] for batch in batches])


def originals(batches):
    """The sequences before masking, without padding."""
    result = []
    for ids, mask, positions, labels, weights in zip(
        *(
            rows(batches, name)
            for name in (
                "token_ids",
                "padding_mask",
                "mask_positions",
                "labels",
                "weights",
            )
        )
    ):
        ids = ids.copy()
        used = weights == 1
        ids[positions[used]] = labels[used]
        result.append(tuple(ids[mask == 1].tolist()))
    return result


@pytest.fixture(scope="module")
def sequences(documents, tokenizer):
    return [
        (2, *ids[start : start + 31], 3)
        for ids in token_lists(tokenizer, documents)
        for start in range(0, len(ids), 31)
    ]


def test_validation_holds_every_sequence_once_in_order(cache, sequences):
    dataset = cache.batches(MASKED, B, shuffle=False, repeat=False)
    assert len(sequences) % B
    count = -(-len(sequences) // B)
    assert dataset.cardinality() == count
    batches = take(dataset)
    assert len(batches) == count
    found = originals(batches)
    assert found[: len(sequences)] == sequences
    assert found[len(sequences) :] == [()] * (-len(sequences) % B)
    assert not rows(batches, "weights")[len(sequences) :].any()
    assert not rows(batches, "token_ids")[len(sequences) :].any()
    assert_equal(batches, take(dataset))  # the same masks at each evaluation


@pytest.mark.parametrize("rate", [0.01, 0.15, 0.5])
def test_batches_follow_the_rule(cache, sequences, rate):
    max_masks = max(1, round(rate * 31))
    dataset = cache.batches(MaskedTokens(rate), B, shuffle=False, repeat=False)
    batches = take(dataset)
    padded = [(*s, *[0] * (33 - len(s))) for s in sequences]
    result = [
        rows(batches, name)[: len(padded)]
        for name in ("token_ids", "mask_positions", "labels", "weights")
    ]
    # The vocabulary of 120 is larger than that of `check_rule`.
    small = [np.where(r >= 50, 5 + r % 45, r) for r in result[:1]]
    check_rule(
        np.array([[5 + t % 45 if t >= 50 else t for t in s] for s in padded]),
        [
            *small,
            result[1],
            np.where(result[2] >= 50, 5 + result[2] % 45, result[2]),
            result[3],
        ],
        max_masks,
        rate,
    )


@pytest.mark.parametrize("examples", [MASKED, SentencePairs("order")], ids=type)
def test_padding_is_the_tokenizers(examples, documents, tmp_path):
    words = sorted({word for text in documents for word in text.lower().split()})
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"]
    tokenizer = BertTokenizer([*words, *special], lowercase=True)
    path = tmp_path / "cache"
    batches = take(build_cache(documents, tokenizer, path, 33).batches(examples, B), 2)
    ids, visible = rows(batches, "token_ids"), rows(batches, "padding_mask")
    assert tokenizer.pad_token_id == len(words) + 4 and (visible == 0).any()
    assert set(ids[visible == 0]) == {tokenizer.pad_token_id}


def test_shapes_are_static(cache):
    for settings in ({}, {"shuffle": False, "repeat": False}):
        inputs, labels, weights = cache.batches(MASKED, B, **settings).element_spec
        assert set(inputs) == {
            "token_ids",
            "segment_ids",
            "padding_mask",
            "mask_positions",
        }
        ids = tf.TensorSpec([B, 33], tf.int32)
        slots = tf.TensorSpec([B, 5], tf.int32)
        assert inputs["token_ids"] == inputs["segment_ids"] == ids
        assert inputs["padding_mask"] == ids
        assert inputs["mask_positions"] == labels == slots
        assert weights == tf.TensorSpec([B, 5], tf.float32)


def test_every_epoch_holds_every_sequence_once(cache, sequences):
    n = len(sequences)
    batches = take(cache.batches(MASKED, B), -(-3 * n // B))
    found = originals(batches)
    epochs = [found[i * n : (i + 1) * n] for i in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == sorted(sequences)
    assert len({tuple(e) for e in [sequences, *epochs]}) == 4  # each in its own order
    # A sequence is masked anew in each epoch.
    place = [{s: i for i, s in enumerate(epoch)} for epoch in epochs]
    positions = rows(batches, "mask_positions")
    long = [s for s in sequences if len(s) == 33]
    same = sum(
        np.array_equal(positions[place[0][s]], positions[n + place[1][s]]) for s in long
    )
    assert len(long) > 50 and same <= 2


def test_shuffling_mixes_the_shards(cache, sequences):
    found = originals(take(cache.batches(MASKED, B, repeat=False)))[: len(sequences)]
    place = {s: i for i, s in enumerate(sequences)}
    moved = np.array([place[s] for s in found])
    first_half = moved[: len(moved) // 2]
    assert abs(first_half.mean() - len(moved) / 2) < 0.15 * len(moved)
    assert (np.abs(np.diff(moved)) == 1).mean() < 0.1  # neighbours are parted


@pytest.mark.quick("True")
@pytest.mark.parametrize("shuffle", [True, False])
def test_skipping_goes_on_exactly(cache, sequences, shuffle):
    """An epoch is 29 batches and six examples of the next."""
    settings = {"seed": 3, "shuffle": shuffle}
    whole = take(cache.batches(MASKED, B, **settings), 140)
    for skip in (0, 1, 13, 29, 30, 61, 100):
        rest = cache.batches(MASKED, B, skip_batches=skip, **settings)
        assert_equal(take(rest, 40), whole[skip : skip + 40])


@pytest.mark.slow
@pytest.mark.parametrize("shuffle", [True, False])
def test_skipping_in_one_epoch(cache, shuffle):
    settings = {"shuffle": shuffle, "repeat": False}
    batches = take(cache.batches(MASKED, B, **settings))
    for skip in (0, 1, len(batches) - 1, len(batches)):
        dataset = cache.batches(MASKED, B, skip_batches=skip, **settings)
        assert dataset.cardinality() == len(batches) - skip
        assert_equal(take(dataset), batches[skip:])
    with pytest.raises(ValueError, match=f"`skip_batches`.* {len(batches)} batches"):
        cache.batches(MASKED, B, skip_batches=len(batches) + 1, **settings)


def test_skipping_far_is_arithmetic(cache, sequences):
    """A hundred thousand epochs; reading them would take hours."""
    n = len(sequences)
    found = originals(take(cache.batches(MASKED, n, skip_batches=100_000), 1))
    assert sorted(found) == sorted(sequences)


@pytest.mark.slow
def test_seeds(cache):
    first = take(cache.batches(MASKED, B, seed=1), 5)
    assert_equal(take(cache.batches(MASKED, B, seed=1), 5), first)
    for seed in (0, 2, -1, 2**63 - 1, -(2**63)):
        other = take(cache.batches(MASKED, B, seed=seed), 5)
        assert not np.array_equal(rows(first, "labels"), rows(other, "labels"))


@pytest.mark.slow
def test_the_programs_seed_changes_nothing(cache):
    tf.random.set_seed(1)
    first = take(cache.batches(MASKED, B), 5)
    tf.random.set_seed(2)
    assert_equal(take(cache.batches(MASKED, B), 5), first)


def test_batch_size_changes_neither_order_nor_masks(cache):
    small = take(cache.batches(MASKED, 3), 20)
    large = take(cache.batches(MASKED, 12), 5)
    for field in ("token_ids", "mask_positions", "labels"):
        np.testing.assert_array_equal(rows(small, field), rows(large, field))


def test_replicas_get_parts_of_the_batches(cache):
    strategy = two_replicas()
    expected = take(cache.batches(MASKED, 8), 4)
    batches = []
    for inputs, labels, _ in itertools.islice(
        strategy.experimental_distribute_dataset(cache.batches(MASKED, 8)), 4
    ):
        ids = strategy.experimental_local_results(inputs["token_ids"])
        labels = strategy.experimental_local_results(labels)
        assert [part.shape[0] for part in ids] == [4, 4]
        batches.append((np.concatenate(ids), np.concatenate(labels)))
    for (ids, labels), batch in zip(batches, expected):
        np.testing.assert_array_equal(ids, batch[3])
        np.testing.assert_array_equal(labels, batch[4])


@pytest.mark.quick("True-examples0-2-2")
@pytest.mark.parametrize("pipelines, replicas", [(2, 2), (4, 4), (2, 4), (1, 2)])
@pytest.mark.parametrize("examples", [MASKED, SentencePairs()])
@pytest.mark.parametrize("repeat", [True, False])
def test_pipelines_have_the_rows_of_their_replicas(
    cache, examples, pipelines, replicas, repeat
):
    """Together they are the batches of one pipeline, bit for bit."""
    settings = dict(shuffle=repeat, repeat=repeat, skip_batches=27)
    whole = take(cache.batches(examples, B, **settings), 8)
    contexts = [InputContext(pipelines, p, replicas) for p in range(pipelines)]
    parts = [
        take(
            cache.batches(examples, B, **settings, input_context=context),
            8 * replicas // pipelines,
        )
        for context in contexts
    ]
    in_turn = replicas // pipelines
    joined = [
        tuple(
            map(
                np.concatenate,
                zip(
                    *(
                        part
                        for own in parts
                        for part in own[batch * in_turn : (batch + 1) * in_turn]
                    )
                ),
            )
        )
        for batch in range(len(whole))
    ]
    assert_equal(joined, whole)
    assert all(len(own) == len(whole) * in_turn for own in parts)


@pytest.mark.slow
def test_a_pipeline_reads_no_rows_but_its_own(cache, monkeypatch):
    read = []
    own = record_reader.RecordReader.read
    monkeypatch.setattr(
        record_reader.RecordReader,
        "read",
        lambda self, numbers: read.extend(numbers) or own(self, numbers),
    )
    for pipeline in range(4):
        context = InputContext(4, pipeline, 4)
        batches = cache.batches(MASKED, B, repeat=False, input_context=context)
        assert len(take(batches)) == 30
    assert sorted(read) == list(range(238))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "`batch_size`"),
        ({"batch_size": 2.0}, TypeError, "`batch_size`"),
        ({"seed": 2**63}, ValueError, "`seed`"),
        ({"seed": None}, TypeError, "`seed`"),
        ({"examples": "masked_lm"}, TypeError, "`examples`.*'masked_lm'"),
        ({"examples": MaskedTokens}, TypeError, "`examples`.*class"),
        ({"tokenizer": 3}, TypeError, "`tokenizer`.*int"),
        ({"skip_batches": -1}, ValueError, "`skip_batches`"),
        ({"input_context": InputContext(3, 0, 3)}, ValueError, "`batch_size`.* 3 rep"),
        ({"input_context": 3}, TypeError, "`input_context`.*Received.*3"),
        ({"input_context": {}}, TypeError, "`input_context`.*Received.*{}"),
        ({"shuffle": "no"}, TypeError, "`shuffle` must be True or False.*'no'"),
        ({"repeat": "no"}, TypeError, "`repeat` must be True or False.*'no'"),
    ],
)
def test_bad_arguments(cache, arguments, error, message):
    with pytest.raises(error, match=message):
        cache.batches(**{"examples": MASKED, "batch_size": B, **arguments})
