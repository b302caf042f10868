"""Which model?: what is compared, in which direction, and what is proposed."""

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.analysis import compare
from appca.analysis.compare import (
    PAPER,
    VARIANTS,
    Cap,
    HeldOutFit,
    ModelsConfig,
    advise,
    fill,
    methods,
    ranked_models,
    split_of,
    stored_models,
)
from appca.analysis.journal import JournalStore
from appca.data.dataset import Dataset
from appca.words import InputError


def dataset(X: np.ndarray) -> Dataset:
    return Dataset("rows", X, np.arange(len(X)).astype(str), {}, None, None, {})


def planted(seed: int, n: int = 400) -> np.ndarray:
    """Rows with one of two components each, and a noise of its own in each of eight features."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    scores = 3.0 * rng.standard_normal((n, 2)) * (rng.integers(2, size=(n, 1)) == [0, 1])
    return scores @ W.T + rng.standard_normal((n, 8)) * np.geomspace(0.6, 3.0, 8)


def settings(data: Dataset, **changes: object) -> ModelsConfig:
    wanted = {"n_components": 2, "n_active": 1, "parameters": {"random_state": 0}}
    return ModelsConfig(data.digest, {}, **{**wanted, **changes})


def lines(**nats: tuple[float, int]) -> dict[str, HeldOutFit]:
    """Fits whose rows differ from the paper's model by a mean, with 1 nat of spread, of 100."""
    spread = np.tile([-1.0, 1.0], 50)
    return {
        key.replace("_and_", "+"): HeldOutFit(np.zeros(100) + mean + spread * (mean != 0), n, 0, "")
        for key, (mean, n) in nats.items()
    }


@pytest.fixture
def store(tmp_path) -> JournalStore:
    return JournalStore(tmp_path, compare.MODELS_FOLDER)


@pytest.mark.thorough
def test_a_noise_of_each_feature_is_found_where_it_was_planted(seed, store):
    data = dataset(planted(seed))
    config = settings(data)
    fill(data, config, store, lambda _key, _share: None)
    fits = stored_models(store, config)
    assert list(fits) == list(methods(config))
    best = advise(ranked_models(fits))
    assert "noise" in best.key
    # The same difference by another route: both estimators by hand, on the same rows.
    split = split_of(data, config)
    by_hand = [
        AdaptivePPCA(2, 1, noise=noise, random_state=0).fit(split.train).score_samples(split.test)
        for noise in ("feature", "shared")
    ]
    gaps = by_hand[0] - by_hand[1]
    line = next(line for line in ranked_models(fits) if line.key == "noise")
    assert line.nats == pytest.approx(gaps.mean(), rel=1e-6)
    assert line.error == pytest.approx(gaps.std(ddof=1) / np.sqrt(len(gaps)), rel=1e-6)
    assert (
        line.fit.n_parameters == AdaptivePPCA(2, 1, noise="feature").fit(split.train).n_parameters_
    )


@pytest.mark.thorough
def test_what_was_measured_is_not_measured_again(seed, store):
    data = dataset(planted(seed, 60))
    config, seen = settings(data), []

    class Enough(Exception):
        pass

    def third(key: str, _share: float) -> None:
        if key not in seen:
            seen.append(key)
        if len(seen) == 3:
            raise Enough

    with pytest.raises(Enough):
        fill(data, config, store, third)
    first = stored_models(store, config)
    assert list(first) == list(methods(config))[:2]
    again: list[str] = []
    fill(data, config, store, lambda key, _share: again.append(key))
    assert not set(first) & set(again)
    np.testing.assert_array_equal(
        stored_models(store, config)[PAPER].log_likelihood, first[PAPER].log_likelihood
    )


def test_features_that_hardly_vary_are_left_out_for_all(seed):
    X = planted(seed)
    X[:, 3] *= 0.01
    config = settings(dataset(X))
    split = split_of(dataset(X), config)
    assert split.train.shape[1] == split.test.shape[1] == 7
    assert len(split.test) == 120
    assert not set(map(tuple, split.train)) & set(map(tuple, split.test))


def test_a_method_that_fails_says_why_and_the_others_go_on(seed, store, monkeypatch):
    def broken(*_given: object) -> None:
        msg = "broken on purpose"
        raise ValueError(msg)

    some = methods(settings(dataset(planted(seed))))
    kept = {PAPER: some[PAPER], "fa": broken, "ppca": some["ppca"]}
    monkeypatch.setattr(compare, "methods", lambda _config: kept)
    data = dataset(planted(seed, 60))
    fill(data, settings(data), store, lambda _key, _share: None)
    fits = stored_models(store, settings(data))
    assert fits["fa"].log_likelihood is None
    assert fits["fa"].note == "broken on purpose"
    assert [line.key for line in ranked_models(fits)].count("fa") == 0
    assert len(ranked_models(fits)) == 2


def test_a_fit_that_is_out_of_time_says_so(seed, store):
    data = dataset(planted(seed, 60))
    fill(data, settings(data), store, lambda _key, _share: None, lambda: Cap(1e-9))
    assert "not converged" in stored_models(store, settings(data))[PAPER].note


def test_the_best_is_proposed_only_where_it_leads_by_two_standard_errors():
    clear = advise(ranked_models(lines(paper=(0, 10), noise=(1.0, 12), noise_and_scale=(2.0, 14))))
    assert (clear.key, clear.is_best) == ("noise+scale", True)
    fits = lines(paper=(0, 10), noise=(1.0, 12))
    close = fits["noise"].log_likelihood + np.tile([0.5, 0.5, -0.5, -0.4], 25)
    level = advise(ranked_models(fits | {"noise+scale": HeldOutFit(close, 14, 0, "")}))
    assert (level.key, level.is_best) == ("noise", False)


def test_a_rival_is_never_proposed_and_its_lead_has_a_sign():
    fits = lines(paper=(0, 10), noise=(1.0, 12), mixture=(5.0, 40), fa=(3.0, 30))
    advice = advise(ranked_models(fits))
    assert (advice.key, advice.best_rival.key) == ("noise", "mixture")
    assert advice.lead == pytest.approx(-4.0)
    assert advise(ranked_models(lines(fa=(3.0, 30)))) is None


@pytest.mark.parametrize(
    ("X", "size", "said"),
    [
        (np.random.default_rng(0).standard_normal((12, 5)), 2, "at least 20 rows"),
        (np.random.default_rng(0).standard_normal((60, 5)), 5, "at most K = 4"),
    ],
)
def test_data_that_are_too_small_are_refused(X, size, said):
    config = settings(dataset(X), n_components=size)
    with pytest.raises(InputError, match=said):
        split_of(dataset(X), config)


def test_variants_are_all_combinations_and_settings_of_extensions_are_set_by_them(seed):
    assert len(set(VARIANTS)) == 8
    config = settings(dataset(planted(seed)), parameters={"noise": "feature", "mean": "sample"})
    assert config.parameters == {"mean": "sample"}
    assert config.id == ModelsConfig.from_dict(config.to_dict()).id
