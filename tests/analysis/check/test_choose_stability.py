"""Components fitted again: found where the data determine them, not where they do not."""

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.analysis import choose
from appca.analysis.choose import StabilityConfig, run, stored_stability, variant
from appca.analysis.journal import JournalStore
from appca.data.dataset import Dataset
from appca.words import InputError
from tests.models.synthetic import planted


@pytest.fixture
def store(tmp_path) -> JournalStore:
    return JournalStore(tmp_path, "stability")


def dataset_of(X: np.ndarray) -> Dataset:
    return Dataset("planted", X, np.arange(len(X)).astype(str), {}, None, None, {})


def config_of(dataset: Dataset, k=3, active=1, **changes) -> StabilityConfig:
    parameters = {"n_components": k, "n_active": active, "random_state": 0}
    given = {"preprocessing": {}, "model": "aPPCA", "parameters": parameters, "repeats": 3}
    return StabilityConfig(dataset=dataset.digest, **(given | changes))


def outcome(dataset, config, store):
    run(dataset, config, store, lambda _: None)
    return stored_stability(store, config)


def test_planted_components_come_back_from_other_starts_and_rows(store, seed):
    dataset = dataset_of(planted(400, 8, 3, 1, seed=seed, noise=0.1).X)
    starts = outcome(dataset, config_of(dataset), store)
    assert starts.cosines.shape == (3, 3)
    # a random start may end elsewhere, and then says so by a lower likelihood
    settled = starts.log_likelihoods > starts.reference - 0.01
    assert (starts.cosines[settled] > 0.999).all()
    halves = outcome(dataset, config_of(dataset, way="halves"), store)
    assert (halves.cosines > 0.97).all()
    assert np.abs(halves.log_likelihoods - halves.reference).max() < 0.1


def test_components_of_round_data_do_not_come_back(store, seed):
    round_data = np.random.default_rng(seed).standard_normal((300, 8))
    dataset = dataset_of(round_data)
    found = outcome(dataset, config_of(dataset, way="halves", repeats=4), store)
    assert found.cosines.mean() < 0.95


def test_numbers_are_those_of_fits_by_hand(store):
    dataset = dataset_of(planted(90, 5, 3, 2, seed=0, noise=0.5, offset=4.0).X)
    config = config_of(dataset, 3, 2, way="halves", preprocessing={"centre": True}, repeats=2)
    found = outcome(dataset, config, store)
    Y = dataset.X - dataset.X.mean(axis=0)
    reference = AdaptivePPCA(3, 2, random_state=0).fit(Y)
    _, rows = variant(config, 2, 90)
    again = AdaptivePPCA(3, 2, random_state=0).fit(Y[rows])
    assert found.reference == pytest.approx(reference.score(Y), abs=1e-9)
    assert found.log_likelihoods[1] == pytest.approx(again.score(Y), abs=1e-7)
    cosines = np.abs(reference.components_ @ again.components_.T)  # all have length one
    best = max(
        (cosines[np.arange(3), order] for order in _orders(3)), key=lambda values: values.sum()
    )
    assert found.cosines[1] == pytest.approx(best, abs=1e-6)


def _orders(k):
    from itertools import permutations

    return [list(order) for order in permutations(range(k))]


def test_variants_differ_in_the_start_alone_or_in_the_rows_alone():
    config = config_of(dataset_of(np.eye(4)))
    (one, rows), (two, same) = variant(config, 1, 90), variant(config, 2, 90)
    assert np.array_equal(rows, np.arange(90))
    assert np.array_equal(rows, same)
    assert one["init"] == two["init"] == "random"
    assert one["random_state"] != two["random_state"]
    halves = config_of(dataset_of(np.eye(4)), way="halves")
    (one, rows), (two, other) = variant(halves, 1, 91), variant(halves, 2, 91)
    assert one == two == halves.parameters
    assert len(set(rows.tolist())) == len(rows) == 46
    assert not np.array_equal(rows, other)


def test_an_interrupted_series_goes_on_and_ends_the_same(tmp_path):
    dataset = dataset_of(planted(90, 5, 3, 1, seed=2, noise=0.3).X)
    config = config_of(dataset)
    whole = outcome(dataset, config, JournalStore(tmp_path, "whole"))
    broken = JournalStore(tmp_path, "broken")

    def stops_at_the_third(number):
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(dataset, config, broken, stops_at_the_third)
    part = stored_stability(broken, config)
    assert part.log_likelihoods.tolist() == whole.log_likelihoods[:1].tolist()
    again = outcome(dataset, config, broken)
    for one, two in zip(whole, again, strict=True):
        assert np.array_equal(one, two)
    run(dataset, config, broken, lambda _: pytest.fail("everything was there"))


def test_nothing_is_said_before_there_are_two_fits(store):
    dataset = dataset_of(planted(60, 5, 3, 1, seed=2, noise=0.3).X)
    config = config_of(dataset)
    assert stored_stability(store, config) is None
    store.begin(config.id, config.to_dict())
    store.append(config.id, [0, -1.0, 1.0, 1.0, 1.0])
    assert stored_stability(store, config) is None
    store.append(config.id, [1, -2.0, 0.5, 0.75, 1.0])
    found = stored_stability(store, config)
    assert (found.reference, found.log_likelihoods.tolist()) == (-1.0, [-2.0])
    assert found.cosines.tolist() == [[0.5, 0.75, 1.0]]


def test_settings_come_back_and_name_the_result():
    config = config_of(dataset_of(np.eye(4)))
    assert StabilityConfig.from_dict(config.to_dict()).id == config.id
    assert config_of(dataset_of(np.eye(4)), way="halves").id != config.id


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "PPCA"}, "Stability needs a model"),
        ({"way": "moons"}, "a way out of starts, halves"),
        ({"repeats": 1}, f"between 2 and {choose.MOST_REPEATS}"),
    ],
)
def test_settings_without_meaning_are_refused_in_a_sentence(change, words):
    with pytest.raises(InputError, match=words):
        config_of(dataset_of(np.eye(4)), **change)
