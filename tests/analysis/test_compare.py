"""Tests of comparisons: matched components, rivals, suggested models, errors on hidden cells."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA, FactorAnalysis

from appca import PPCA, AdaptivePPCA
from appca.analysis import compare
from appca.analysis.compare import (
    METHODS,
    PAPER,
    VARIANTS,
    Cap,
    ComponentPair,
    MaskedConfig,
    ModelsConfig,
    RivalProjection,
    Split,
    advise,
    better,
    filled_in,
    gaussian_mixture,
    hide,
    matched,
    moves,
    ranked_models,
    share_at_limits,
    split_of,
)
from appca.data.dataset import Dataset
from appca.models.draws import match
from appca.words import InputError
from tests.models import synthetic


def uses(rng: np.random.Generator, n: int, k: int, active: int) -> np.ndarray:
    return np.argsort(rng.random((n, k)), axis=1) < active


@pytest.mark.parametrize(("k", "other"), [(4, 5), (5, 4)])
def test_the_pairs_have_the_largest_sum_of_cosines_of_all_assignments(k, other, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((k, 6)), rng.standard_normal((other, 6))
    cosines = np.abs(A @ B.T / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1))
    wide, found = cosines if k <= other else cosines.T, match(A, B)
    orders = permutations(range(wide.shape[1]), wide.shape[0])
    best = max(sum(wide[i, j] for i, j in enumerate(order)) for order in orders)
    assert found.cosine.sum() == pytest.approx(best)
    np.testing.assert_allclose(found.cosine, cosines[found.first, found.second])
    assert found.first.tolist() == sorted(set(found.first.tolist()))
    assert len(found.first) == len(set(found.second.tolist())) == 4
    pairs = zip(found.first, found.second, found.cosine, strict=True)
    assert matched(A, B) == [ComponentPair(*pair) for pair in pairs if pair[2] >= 0.5]
    second = np.array([[0.0, -1, 0.1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])  # too far apart, or unused
    cosine = pytest.approx(1 / np.hypot(1, 0.1))
    assert matched(np.eye(4)[:3], second) == [ComponentPair(1, 0, cosine)]


def test_moved_rows_are_those_whose_matched_sets_differ(seed):
    rng = np.random.default_rng(seed)
    first, second = uses(rng, 200, 4, 2), uses(rng, 200, 3, 2)
    W, names = np.eye(5), {2: 0, 0: 1, 1: 2}
    # Components 0, 1, 2 of the first fit are 2, 0 and 1 of the second; its fourth has none.
    found = matched(W[:4], W[[1, 2, 0]])
    assert {p.second: p.first for p in found} == names
    before = [frozenset(np.flatnonzero(row).tolist()) for row in first]
    after = [frozenset(names[j] for j in np.flatnonzero(row).tolist()) for row in second]
    moved, overlap = moves(first, second, found)
    assert moved.tolist() == [a != b for a, b in zip(before, after, strict=True)]
    shared = [len(a & b) / len(a | b) for a, b in zip(before, after, strict=True)]
    assert overlap == pytest.approx(np.mean(shared))


def dataset(X: np.ndarray) -> Dataset:
    return Dataset("rows", X, np.arange(len(X)).astype(str))


def halves(X: np.ndarray, n: int) -> Split:
    """Learn from the first n rows and test on the others."""
    return Split(X[:n], X[n:], dataset(X[:n]), {})


@pytest.fixture
def split(seed) -> Split:
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((3, 6)) * [[4], [2], [1]]
    return halves(rng.standard_normal((190, 3)) @ loadings + rng.standard_normal((190, 6)), 150)


def test_densities_and_rebuilt_rows_are_those_the_methods_themselves_give(split, monkeypatch):
    own, known = compare.ours(PPCA, {"n_components": 2}, split, Cap(60)), PCA(2).fit(split.train)
    # scikit-learn divides by N - 1, the maximum of the likelihood by N.
    assert own.log_likelihood.mean() == pytest.approx(known.score(split.test), abs=0.05)
    # Factor analysis in parts ends where one fit ends.
    made, known = compare.factor_analysis(2, split, Cap(60)), FactorAnalysis(2).fit(split.train)
    assert made.note == ""
    np.testing.assert_allclose(made.log_likelihood, known.score_samples(split.test), atol=0.02)
    back = known.transform(split.test) @ known.components_ + known.mean_
    np.testing.assert_allclose(made.reconstruction, back, atol=0.05)
    monkeypatch.setattr(compare, "_FA_PASSES", 2)
    few = compare.factor_analysis(2, split, Cap(60))
    kinds = [compare.mixture(2, 2, split, Cap(60), **of) for of in compare.MIXTURES.values()]
    assert len({made.n_parameters for made in kinds}) == len(kinds)
    assert few.note == "stopped after 2 iterations, not converged"
    split.train[:, 2] = 1.0  # without noise there is no density
    constant = compare.factor_analysis(2, split, Cap(60))
    assert (constant.log_likelihood, "hardly vary" in constant.note) == (None, True)


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_the_gaussian_mixture_finds_the_planted_pieces_and_has_their_density(kind, seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 3)) * 12.0
    X = centres[rng.integers(4, size=900)] + rng.normal(size=(900, 3)) * [1.0, 2.0, 0.5]
    made = gaussian_mixture(kind, halves(X, 600), Cap(60))
    assert made.note == "4 pieces"
    assert made.n_parameters == 4 * (3 + (3 if kind == "diag" else 6)) + 3
    pieces, density = np.linalg.norm(X[:600, None] - centres, axis=2).argmin(axis=1), np.zeros(300)
    for k in range(4):
        mine = X[:600][pieces == k]
        S = np.cov(mine.T, bias=True) * (np.eye(3) if kind == "diag" else 1.0)
        density += len(mine) / 600 * multivariate_normal(mine.mean(axis=0), S).pdf(X[600:])
    assert np.median(np.abs(made.log_likelihood - np.log(density))) < 0.05
    assert made.at_floor == 0.0
    if kind == "full":
        with pytest.raises(ValueError, match="of 40 features need at least 80 rows; there are 50"):
            gaussian_mixture("full", halves(rng.normal(size=(60, 40)), 50), Cap(60))
        X = rng.normal(size=(400, 4))
        X[:, 3] = X[:, 0] + X[:, 1]
        assert gaussian_mixture("full", halves(X, 300), Cap(60)).at_floor == 0.25


def planted(seed: int, n: int = 400) -> np.ndarray:
    """Rows with one of two components each, and a noise of its own in each of eight features."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    scores = 3.0 * rng.standard_normal((n, 2)) * (rng.integers(2, size=(n, 1)) == [0, 1])
    return scores @ W.T + rng.standard_normal((n, 8)) * np.geomspace(0.6, 3.0, 8)


def settings(X: np.ndarray, **changes: object) -> ModelsConfig:
    wanted = {"n_components": 2, "n_active": 1, "parameters": {"init": "pca", "random_state": 0}}
    return ModelsConfig(dataset(X).digest, {}, "aPPCA", **{**wanted, **changes})


def measured(X: np.ndarray, home, monkeypatch, keys=METHODS):
    monkeypatch.setattr(compare, "METHODS", keys)
    settings(X).complete(dataset(X), home)
    return settings(X).measured(home)


def test_a_noise_of_each_feature_is_found_where_it_was_planted(seed, tmp_path, monkeypatch):
    X = planted(seed)
    fits = measured(X, tmp_path, monkeypatch, (PAPER, "noise"))
    lines = {line.key: line for line in ranked_models(fits)}
    assert "noise" in advise(list(lines.values())).chosen.key
    # The same difference by another route: both estimators by hand, on the same rows.
    split, given = split_of(dataset(X), settings(X)), settings(X).parameters
    kinds = [AdaptivePPCA(2, 1, noise=one, **given) for one in ("feature", "shared")]
    gaps = np.subtract(*(model.fit(split.train).score_samples(split.test) for model in kinds))
    error, found = gaps.std(ddof=1) / np.sqrt(len(gaps)), lines["noise"]
    assert (found.nats, found.error) == pytest.approx((gaps.mean(), error), rel=1e-6)
    assert found.fit.n_parameters == kinds[0].n_parameters_
    assert len(set(VARIANTS)) == 9
    assert set(VARIANTS) < set(METHODS)
    config = settings(X, parameters={"noise": "feature", "mean": "sample"})
    assert config.parameters == {"mean": "sample"}, "extensions are set by the variants"


def test_all_models_are_compared_on_the_same_features_so_the_unit_decides_nothing(
    seed, tmp_path, monkeypatch
):
    X = planted(seed, 200)
    X[:, 3] *= 0.01  # hardly varies
    split = split_of(dataset(X), settings(X))
    assert (split.train.shape, split.test.shape) == ((140, 7), (60, 7))
    assert not set(map(tuple, split.train)) & set(map(tuple, split.test))
    row = np.flatnonzero((split.train[0] == np.delete(X, 3, axis=1)).all(axis=1))
    X[:, 2] = 0.0
    X[row, 2] = 40.0  # lit in one row: noise per feature has no density of it
    differences = []
    for unit in (1.0, 1000.0):
        keys = (PAPER, "noise", "noise+scale", "gaussian")
        fits = measured(unit * X, tmp_path / str(unit), monkeypatch, keys)
        differences.append([line.nats for line in sorted(ranked_models(fits))])
    assert len(differences[0]) == 4
    np.testing.assert_allclose(*differences, atol=1e-3)


@pytest.mark.parametrize(
    ("keys", "at_floor"), [((PAPER, "fa"), 0.0), (("noise", "noise+scale", PAPER), 0.5)]
)
def test_fits_that_ended_at_a_floor_are_named_with_their_share(
    keys, at_floor, tmp_path, monkeypatch
):
    rng, X = np.random.default_rng(42), planted(42, 300)
    if at_floor:  # four features are those of the components to 0.1%
        scores = 10.0 * rng.standard_normal((300, 2)) * (rng.integers(2, size=(300, 1)) == [0, 1])
        X = np.column_stack([scores, -scores, X[:, :4]])
        X[:, :4] += 1e-2 * rng.standard_normal((300, 4))
    fits = measured(X, tmp_path, monkeypatch, keys)
    line = next(line for line in ranked_models(fits) if line.key == keys[0])
    assert line.fit.at_floor == at_floor
    assert ("50% of noise variances at their floor" in line.flaws) == (at_floor > 0)
    assert line.is_reliable == (at_floor == 0)


def test_a_method_that_fails_or_is_out_of_time_says_so_and_the_others_go_on(
    seed, tmp_path, monkeypatch
):
    def broken(*_given: object) -> None:
        msg = "broken on purpose"
        raise ValueError(msg)

    monkeypatch.setattr(compare, "factor_analysis", broken)
    monkeypatch.setattr(compare, "SECONDS", 1e-9)
    fits = measured(planted(seed, 60), tmp_path, monkeypatch, (PAPER, "fa", "ppca"))
    assert (fits["fa"].log_likelihood, fits["fa"].note) == (None, "broken on purpose")
    lines = {line.key: line for line in ranked_models(fits)}
    assert sorted(lines) == [PAPER, "ppca"]
    assert "not converged" in lines[PAPER].flaws[-1]


def of_rows(density: np.ndarray, n_parameters: int) -> RivalProjection:
    return RivalProjection(np.empty((0, 0)), 0.0, density, n_parameters=n_parameters)


def test_no_method_loses_a_hundred_nats_on_one_row_without_being_named():
    rng = np.random.default_rng(0)
    base = rng.normal(size=200)
    losses, fits = {PAPER: 0.0, "noise": 99.0, "scale": 0.0, "fa": 101.0, "gaussian": 26_000.0}, {}
    for key, lost in losses.items():
        density = base.copy() + (key != PAPER) * 0.1 * rng.normal(size=200)
        density[7] = base[7] - lost
        fits[key] = of_rows(density, 5)
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


def lines(**nats: tuple[float, int]) -> dict[str, RivalProjection]:
    """Fits whose rows differ from the paper's model by a mean, with 1 nat of spread, of 100."""
    spread = np.tile([-1.0, 1.0], 50)
    return {
        key.replace("_and_", "+"): of_rows(np.zeros(100) + mean + spread * (mean != 0), n)
        for key, (mean, n) in nats.items()
    }


ALL = lines(paper=(0, 10), noise=(1.0, 12), scale=(0.5, 15), noise_and_scale=(2.0, 14))
BEST = ALL["noise+scale"]
SPOILED = BEST._replace(log_likelihood=BEST.log_likelihood - 150.0 * (np.arange(100) == 3))


def close(n_parameters: int) -> RivalProjection:
    return of_rows(BEST.log_likelihood + np.tile([0.5, 0.5, -0.5, -0.4], 25), n_parameters)


@pytest.mark.parametrize(
    ("fits", "key", "is_best"),
    [
        (ALL, "noise+scale", True),
        (ALL | {"number": close(13)}, "number", False),
        # row scales first where they suffice, though they have more parameters
        (ALL | {"scale": close(20)}, "scale", False),
        (ALL | {PAPER: close(30)}, PAPER, False),
        # a variant at its floor, or that one row could ruin, is not proposed
        (ALL | {"noise+scale": BEST._replace(at_floor=0.3)}, "noise", True),
        (ALL | {"noise+scale": SPOILED}, "noise", True),
        ({key: fit._replace(at_floor=0.3) for key, fit in ALL.items()}, "noise+scale", True),
    ],
)
def test_the_proposal_is_the_best_or_the_plainest_that_is_as_good(fits, key, is_best):
    advice = advise(ranked_models(fits))
    assert (advice.chosen.key, advice.is_best) == (key, is_best)


def test_row_scales_of_which_many_are_at_their_limits_are_not_offered():
    u = np.array([0.1, 1.0, 10.0, 0.104])
    assert share_at_limits(u, np.array([0.1, 1, 10])) == 0.75
    assert share_at_limits(u, None) == share_at_limits(None, u) == 0
    fits = lines(paper=(0, 10), scale=(3.0, 12))
    assert better(fits, {"latent_variance": "shared"})[0].key == "scale"
    slight = lines(paper=(0, 10), scale=(0.2, 12))  # clear, but of little worth
    assert better(slight, {"latent_variance": "shared"})[0].key == PAPER
    fits["scale"] = fits["scale"]._replace(note="25% of row scales at their limits")
    assert better(fits, {"latent_variance": "shared"})[0].key == PAPER
    assert "at their limits" in ranked_models(fits)[0].flaws[0]


def test_a_rival_is_never_proposed_and_its_lead_has_a_sign():
    fits = lines(paper=(0, 10), noise=(1.0, 12), mixture=(5.0, 40), fa=(3.0, 30))
    advice = advise(ranked_models(fits))
    assert (advice.chosen.key, advice.rival.key) == ("noise", "mixture")
    assert advice.lead == pytest.approx(-4.0)
    assert advise(ranked_models(lines(fa=(3.0, 30)))) is None


def test_data_that_are_too_small_are_refused():
    X = np.random.default_rng(0).standard_normal((60, 5))
    for n, size, said in ((12, 2, "at least 20 rows"), (60, 5, "at most K = 4")):
        with pytest.raises(InputError, match=said):
            split_of(dataset(X[:n]), settings(X[:n], n_components=size))


PARAMETERS = {"n_components": 4, "n_active": 2, "init": "quartimax", "random_state": 0}


def gappy(share=0.1):
    X = synthetic.planted(150, 8, 4, 2, seed=0, noise=0.1).X
    missing = np.random.default_rng(1).random(X.shape) < share
    full = np.where(missing, np.nanmean(np.where(missing, np.nan, X), axis=0), X)
    return Dataset("gappy", full, np.arange(150).astype(str), missing=missing)


def masked(dataset, parameters=PARAMETERS):
    return MaskedConfig(dataset.digest, {"centre": True, "scale": "feature"}, "aPPCA", parameters)


def test_only_observed_cells_are_hidden_and_every_column_keeps_two(seed):
    rng = np.random.default_rng(seed)
    observed = rng.random((30, 6)) < 0.8
    observed[2:, 3] = False
    observed[:2, 3] = True
    hidden = hide(observed, 0.5, rng)
    assert not (hidden & ~observed).any()
    assert (observed & ~hidden).sum(axis=0).min() >= 2
    share = hidden[:, [0, 1, 2, 4, 5]].sum() / observed.sum()
    assert 0.4 < share <= 0.5


def test_errors_are_those_of_fits_without_the_hidden_cells_and_the_planted_model_is_best(tmp_path):
    dataset = gappy()
    config = masked(dataset)
    config.complete(dataset, tmp_path)
    errors = config.errors(tmp_path)
    assert list(errors) == ["own", "ppca_l", "ppca_k", "ridge", "near", "means"]
    hidden = hide(~dataset.missing, 0.05, np.random.default_rng([0, 1]))
    Y = np.where(dataset.missing | hidden, np.nan, dataset.X)
    centre, scale = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    Y, truth = (Y - centre) / scale, ((dataset.X - centre) / scale)[hidden]
    for method, filled in {
        "own": AdaptivePPCA(**PARAMETERS).fit(Y).impute(Y),
        "ppca_l": PPCA(2).fit(Y).impute(Y),
        "ppca_k": PPCA(4).fit(Y).impute(Y),
        "means": np.where(np.isnan(Y), 0.0, Y),
    }.items():
        error = np.sqrt(np.mean((filled[hidden] - truth) ** 2))
        assert errors[method][1] == pytest.approx(error, rel=1e-6), method
    means = {method: values.mean() for method, values in errors.items()}
    assert means["own"] < min(0.8 * means["ppca_l"], 0.95 * means["ppca_k"])
    assert means["ppca_k"] < means["means"]
    rng = np.random.default_rng(0)  # ridge predicts each column from the others
    Z = rng.normal(size=(2000, 5)) @ (rng.normal(size=(5, 5)) + 3.0 * np.eye(5))
    Y = np.where((np.arange(2000) < 20)[:, None] & (np.arange(5) == 2), np.nan, Z)
    design = np.column_stack([np.ones(2000), np.delete(Z, 2, axis=1)])
    weights = np.linalg.lstsq(design[20:], Z[20:, 2], rcond=None)[0]
    filled = filled_in("ridge", Y, config)[:20, 2]
    np.testing.assert_allclose(filled, design[:20] @ weights, atol=0.1 * Z[:, 2].std())


def test_ppca_stands_for_itself_and_what_needs_all_cells_is_refused(tmp_path):
    dataset = Dataset(
        "no gaps", synthetic.planted(80, 6, 3, 3, seed=2).X, np.arange(80).astype(str)
    )
    config = masked(dataset, PARAMETERS | {"n_active": 4})
    config.complete(dataset, tmp_path)
    assert tuple(config.errors(tmp_path)) == ("ppca_k", "ridge", "near", "means")
    with pytest.raises(InputError, match="needs complete rows"):
        MaskedConfig(gappy().digest, {"pca": 3}, "aPPCA", PARAMETERS).complete(gappy(), tmp_path)
