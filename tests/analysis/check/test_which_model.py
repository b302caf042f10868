"""Which model?: the same features for all, honest numbers, and which variant is proposed."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from appca import AdaptivePPCA
from appca.analysis import compare
from appca.analysis.compare import (
    METHODS,
    PAPER,
    VARIANTS,
    Cap,
    HeldOutFit,
    ModelsConfig,
    Split,
    advise,
    gaussian_mixture,
    ranked_models,
    split_of,
)
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


def measured(X: np.ndarray, home, monkeypatch, keys=tuple(METHODS), **changes):
    """Fits of some methods to the data."""
    monkeypatch.setattr(compare, "METHODS", {key: METHODS[key] for key in keys})
    config = settings(dataset(X), **changes)
    config.complete(dataset(X), home)
    return config.measured(home)


def lines(**nats: tuple[float, int]) -> dict[str, HeldOutFit]:
    """Fits whose rows differ from the paper's model by a mean, with 1 nat of spread, of 100."""
    spread = np.tile([-1.0, 1.0], 50)
    return {
        key.replace("_and_", "+"): HeldOutFit(np.zeros(100) + mean + spread * (mean != 0), n, 0, "")
        for key, (mean, n) in nats.items()
    }


@pytest.mark.thorough
def test_a_noise_of_each_feature_is_found_where_it_was_planted(seed, tmp_path, monkeypatch):
    fits = measured(planted(seed), tmp_path, monkeypatch)
    assert list(fits) == list(METHODS)
    ranked = ranked_models(fits)
    assert "noise" in advise(ranked).key
    # The same difference by another route: both estimators by hand, on the same rows.
    split = split_of(dataset(planted(seed)), settings(dataset(planted(seed))))
    models = [
        AdaptivePPCA(2, 1, noise=noise, random_state=0).fit(split.train)
        for noise in ("feature", "shared")
    ]
    gaps = np.subtract(*(model.score_samples(split.test) for model in models))
    line = next(line for line in ranked if line.key == "noise")
    assert line.nats == pytest.approx(gaps.mean(), rel=1e-6)
    assert line.error == pytest.approx(gaps.std(ddof=1) / np.sqrt(len(gaps)), rel=1e-6)
    assert line.fit.n_parameters == models[0].n_parameters_


def test_features_that_hardly_vary_are_left_out_for_all(seed):
    X = planted(seed)
    X[:, 3] *= 0.01
    split = split_of(dataset(X), settings(dataset(X)))
    assert split.train.shape[1] == split.test.shape[1] == 7
    assert len(split.test) == 120
    assert not set(map(tuple, split.train)) & set(map(tuple, split.test))


def test_all_models_are_compared_on_the_same_features_so_the_unit_decides_nothing(
    seed, tmp_path, monkeypatch
):
    X = planted(seed, 200)
    train = split_of(dataset(X), settings(dataset(X))).train
    row = np.flatnonzero((train[0] == X).all(axis=1))
    X[:, 2] = 0.0
    X[row, 2] = 40.0  # lit in one row: noise per feature has no density of it
    differences = []
    for unit in (1.0, 1000.0):
        keys = (PAPER, "noise", "noise+scale", "gaussian")
        fits = measured(unit * X, tmp_path / str(unit), monkeypatch, keys)
        differences.append([line.nats for line in sorted(ranked_models(fits))])
    assert len(differences[0]) == 4
    np.testing.assert_allclose(*differences, atol=1e-3)


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_the_gaussian_mixture_finds_the_planted_pieces_and_has_their_density(kind, seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 3)) * 12.0
    X = centres[rng.integers(4, size=900)] + rng.normal(size=(900, 3)) * [1.0, 2.0, 0.5]
    split = Split(X[:600], X[600:], dataset(X[:600]), {})
    made = gaussian_mixture(kind, split, Cap(60), lambda _share: None)
    assert made.note == "4 pieces"
    assert made.n_parameters == 4 * (3 + (3 if kind == "diag" else 6)) + 3
    pieces = np.linalg.norm(X[:600, None] - centres, axis=2).argmin(axis=1)
    density = np.zeros(300)
    for k in range(4):
        mine = X[:600][pieces == k]
        S = np.cov(mine.T, bias=True) * (np.eye(3) if kind == "diag" else 1.0)
        normal = multivariate_normal(mine.mean(axis=0), S)
        density += len(mine) / 600 * normal.pdf(X[600:])
    assert np.median(np.abs(made.log_likelihood - np.log(density))) < 0.05
    assert made.at_floor == 0.0


def test_full_covariances_need_rows_and_a_variance_at_its_floor_is_counted(seed):
    X = np.random.default_rng(seed).normal(size=(60, 40))
    split = Split(X[:50], X[50:], dataset(X[:50]), {})
    with pytest.raises(ValueError, match="of 40 features need at least 80 rows; there are 50"):
        gaussian_mixture("full", split, Cap(60), lambda _share: None)
    X = np.random.default_rng(seed).normal(size=(400, 4))
    X[:, 3] = X[:, 0] + X[:, 1]
    split = Split(X[:300], X[300:], dataset(X[:300]), {})
    made = gaussian_mixture("full", split, Cap(60), lambda _share: None)
    assert made.at_floor == 0.25
    plain = GaussianMixture(1, reg_covar=1e-9).fit(X[:300])
    assert np.linalg.eigvalsh(plain.covariances_)[0, 0] < 1e-8


@pytest.mark.parametrize(
    ("keys", "at_floor"), [((PAPER, "fa"), 0.0), (("noise", "noise+scale", PAPER), 0.5)]
)
def test_fits_that_ended_at_a_floor_are_named_with_their_share(
    keys, at_floor, seed, tmp_path, monkeypatch
):
    rng = np.random.default_rng(seed)
    X = planted(seed, 300)
    if at_floor:  # four features are those of the components to 0.1%
        scores = 10.0 * rng.standard_normal((300, 2)) * (rng.integers(2, size=(300, 1)) == [0, 1])
        X = np.column_stack([scores, -scores, X[:, :4]])
        X[:, :4] += 1e-2 * rng.standard_normal((300, 4))
    fits = measured(X, tmp_path, monkeypatch, keys)
    line = next(line for line in ranked_models(fits) if line.key == keys[0])
    assert line.fit.at_floor == at_floor
    assert ("50% of noise variances at their floor" in line.flaws) == (at_floor > 0)
    assert line.is_reliable == (at_floor == 0)


def test_a_method_that_fails_says_why_and_the_others_go_on(seed, tmp_path, monkeypatch):
    def broken(*_given: object) -> None:
        msg = "broken on purpose"
        raise ValueError(msg)

    monkeypatch.setattr(compare, "METHODS", METHODS)
    monkeypatch.setitem(METHODS, "fa", lambda _config: broken)
    fits = measured(planted(seed, 60), tmp_path, monkeypatch, (PAPER, "fa", "ppca"))
    assert (fits["fa"].log_likelihood, fits["fa"].note) == (None, "broken on purpose")
    assert sorted(line.key for line in ranked_models(fits)) == [PAPER, "ppca"]


def test_a_fit_that_is_out_of_time_says_so(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "SECONDS", 1e-9)
    fits = measured(planted(seed, 60), tmp_path, monkeypatch, (PAPER, "ppca"))
    (line,) = (line for line in ranked_models(fits) if line.key == PAPER)
    assert "not converged" in line.flaws[-1]


def test_no_method_loses_a_hundred_nats_on_one_row_without_being_named():
    rng = np.random.default_rng(0)
    base = rng.normal(size=200)
    losses = {PAPER: 0.0, "noise": 99.0, "scale": 0.0, "fa": 101.0, "gaussian": 26_000.0}
    fits = {}
    for key, lost in losses.items():
        density = base.copy() + (key != PAPER) * 0.1 * rng.normal(size=200)
        density[7] = base[7] - lost
        fits[key] = HeldOutFit(density, 5, 0.0, "")
    named = {line.key: line.flaws for line in ranked_models(fits) if line.flaws}
    assert named == {
        "fa": ["loses 101 nats on one row"],
        "gaussian": ["loses 26,000 nats on one row"],
    }
    # The paper's model itself is compared with the median of the others.
    fits[PAPER].log_likelihood[9] -= 500.0
    line = next(line for line in ranked_models(fits) if line.key == PAPER)
    assert line.flaws[0].startswith(("loses 499", "loses 500"))
    assert not line.is_reliable


def spoiled(fit: HeldOutFit, lost: float) -> HeldOutFit:
    density = fit.log_likelihood.copy()
    density[3] -= lost
    return fit._replace(log_likelihood=density)


def close_to(fit: HeldOutFit, n_parameters: int) -> HeldOutFit:
    wobble = np.tile([0.5, 0.5, -0.5, -0.4], 25)
    return HeldOutFit(fit.log_likelihood + wobble, n_parameters, 0, "")


ALL = lines(paper=(0, 10), noise=(1.0, 12), scale=(0.5, 15), noise_and_scale=(2.0, 14))


@pytest.mark.parametrize(
    ("fits", "key", "is_best"),
    [
        (ALL, "noise+scale", True),
        (ALL | {"number": close_to(ALL["noise+scale"], 13)}, "number", False),
        # row scales first where they suffice, though they have more parameters
        (ALL | {"scale": close_to(ALL["noise+scale"], 20)}, "scale", False),
        (ALL | {PAPER: close_to(ALL["noise+scale"], 30)}, PAPER, False),
        # a variant at its floor, or that one row could ruin, is not proposed
        (ALL | {"noise+scale": ALL["noise+scale"]._replace(at_floor=0.3)}, "noise", True),
        (ALL | {"noise+scale": spoiled(ALL["noise+scale"], 150.0)}, "noise", True),
        ({key: fit._replace(at_floor=0.3) for key, fit in ALL.items()}, "noise+scale", True),
    ],
)
def test_the_proposal_is_the_best_or_the_plainest_that_is_as_good(fits, key, is_best):
    advice = advise(ranked_models(fits))
    assert (advice.key, advice.is_best) == (key, is_best)


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
    with pytest.raises(InputError, match=said):
        split_of(dataset(X), settings(dataset(X), n_components=size))


def test_variants_are_all_combinations_and_settings_of_extensions_are_set_by_them(seed):
    assert len(set(VARIANTS)) == 8
    assert set(VARIANTS) < set(METHODS)
    config = settings(dataset(planted(seed)), parameters={"noise": "feature", "mean": "sample"})
    assert config.parameters == {"mean": "sample"}
