"""Tests of T2 and Q against dense algebra, of single rows, similar rows and new rows."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2, kstest, multivariate_normal
from sklearn.metrics import adjusted_rand_score

from appca import AdaptivePPCA, row_types
from appca.analysis import rows
from appca.analysis.components import Subspace, ranked
from appca.analysis.fitted import DescribedRows, FittedModel
from appca.analysis.groups import types_of
from appca.analysis.new_rows import new_rows_table, standing_out, verdict
from appca.analysis.rows import Distances, SimilarRows, distances, limits_of, mixtures
from appca.analysis.tables import Columns, projection_table
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources import load
from appca.jobs import tasks
from appca.runs.fit import fit_run, keep_rows, project, stored
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.words import InputError
from tests.fitted_runs import fitted_model, fitted_run

D, K, NOISE = 12, 5, 0.3
LEVELS = 0.95, 0.99, 0.999
TAU2 = np.array([4.0, 3.0, 2.0, 1.5, 1.0])


def run_of(W, active, Y, tau2=TAU2, noise=NOISE):
    """A run whose rows have the given sets: posterior means one row at a time."""
    scores, error = np.zeros(active.shape), np.empty(len(Y))
    for n, (y, S) in enumerate(zip(Y, active, strict=True)):
        A = W[S]
        C = A.T * tau2[S] @ A + noise * np.eye(W.shape[1])  # covariance of y
        scores[n, S] = tau2[S] * (A @ np.linalg.solve(C, y))
        error[n] = np.mean((y - scores[n] @ W) ** 2)
    rows = {"scores": scores, "error": error}
    return fitted_run(active, **rows, components=W, noise_variance=noise, latent_variance=tau2)


def drawn(rng, W, n, sizes=(2,)):
    active = np.zeros((n, K), dtype=bool)
    for row in active:
        row[rng.permutation(K)[: rng.choice(sizes)]] = True
    x = rng.normal(size=(n, K)) * np.sqrt(TAU2) * active
    return active, x @ W + rng.normal(size=(n, W.shape[1])) * np.sqrt(NOISE)


def orthonormal(rng):
    return np.linalg.qr(rng.normal(size=(D, K)))[0].T


@pytest.mark.parametrize("how", ["leaning", "coinciding"])
def test_both_statistics_split_the_mahalanobis_distance_of_the_row(seed, how):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(K, D))
    W[1] = W[0] if how == "coinciding" else W[1]
    active, Y = drawn(rng, W, 40, sizes=(0, 1, 2, 4))
    found = distances(run_of(W, active, Y))
    for n, (y, S) in enumerate(zip(Y, active, strict=True)):
        A = W[S]
        C = A.T * TAU2[S] @ A + NOISE * np.eye(D)
        onto = np.linalg.pinv(A) @ A  # projector on the row's subspace
        off = y - onto @ y
        np.testing.assert_allclose(found.q[n], off @ off / NOISE, rtol=1e-9)
        np.testing.assert_allclose(found.t2[n] + found.q[n], y @ np.linalg.solve(C, y), rtol=1e-9)
        rank = np.linalg.matrix_rank(A) if S.any() else 0
        assert (found.inside[n], found.outside[n]) == (rank, D - rank)
    # Rows without components, or without a rest, are never flagged for it.
    Y = np.array([[1.0, 2.0, 3.0], [9.0, 9.0, 9.0]])
    found = distances(run_of(np.eye(3), np.array([[False] * 3, [True] * 3]), Y, tau2=np.ones(3)))
    share = found.over(limits_of(found, 0.99))
    assert (share[[0, 1], [0, 1]] == 0).all()
    assert (share[[0, 1], [1, 0]] > 1).all()


@pytest.mark.parametrize("how", ["leaning", "fitted"])
def test_rows_drawn_from_the_model_have_chi_square_statistics(seed, how):
    rng = np.random.default_rng(seed)
    if how == "leaning":
        W = rng.normal(size=(K, D))
        found = distances(run_of(W, *drawn(rng, W, 1500)))
    else:
        W = orthonormal(rng)
        Z = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])[rng.integers(3, size=1500)]
        Y = 100 * (rng.normal(size=(1500, 3)) * Z) @ W[:3] + rng.normal(size=(1500, D)) * 0.1
        found = distances(described_by(Y))
    assert kstest(found.t2, chi2(2).cdf).pvalue > 1e-5
    assert kstest(found.q, chi2(D - 2).cdf).pvalue > 1e-5
    for level in LEVELS:
        above = (found.over(limits_of(found, level)) > 1).sum(axis=0)
        assert (np.abs(above - 1500 * (1 - level)) < 5 * np.sqrt(1500 * level * (1 - level))).all()


def described_by(Y, K=3, **options):
    model = AdaptivePPCA(n_components=K, n_active=2, init="pca", random_state=0, **options).fit(Y)
    rows = DescribedRows.from_description(model.describe(Y))
    return FittedModel.from_estimator(model, Preprocessing().fit(Y)).with_rows(rows)


@pytest.mark.parametrize(("by_feature", "d"), [(False, 4), (True, 6)])
def test_limits_with_row_scales_have_their_level(seed, by_feature, d):
    rng = np.random.default_rng(seed)
    values, p = np.array([0.1, 0.5, 2.0, 10.0]), np.array([0.2, 0.4, 0.3, 0.1])
    noise, tau2 = np.ones(d) if by_feature else 0.3, np.array([3.0, 1.0])
    W, u = np.linalg.qr(rng.normal(size=(d, 2)))[0].T, rng.choice(values, 40_000, p=p)
    x = rng.normal(size=(40_000, 2)) * np.sqrt(tau2)
    Y = np.sqrt(u)[:, None] * (x @ W + np.sqrt(noise) * rng.normal(size=(40_000, d)))
    C = W.T * tau2 @ W + np.diag(np.broadcast_to(noise, d))
    scores = Y @ np.linalg.solve(C, W.T * tau2)
    given = {"scores": scores, "error": np.square(Y - scores @ W).mean(axis=1)}
    given |= {"components": W, "noise_variance": noise, "latent_variance": tau2}
    given |= {"row_scales": u, "row_scale_values": values, "row_scale_probabilities": p}
    found = distances(fitted_run(np.ones((40_000, 2), bool), **given))
    for level in (0.5, *LEVELS):
        beyond = (found.over(limits_of(found, level)) > 1).mean(axis=0)
        tolerance = 0.003 * (1 - level) / 0.05 + 4 * np.sqrt(level * (1 - level) / 40_000)
        assert (np.abs(beyond[: 1 if by_feature else 2] - (1 - level)) < tolerance).all(), level


def test_rows_that_are_rebuilt_badly_come_first_although_rows_have_scales(seed):
    rng = np.random.default_rng(seed)
    W = orthonormal(rng)
    Y = drawn(rng, W, 600)[1] * rng.lognormal(0, 0.4, (600, 1))
    off = rng.normal(size=(12, D)) @ (np.eye(D) - W.T @ W)
    Y[:12] += 8 * off / np.linalg.norm(off, axis=1, keepdims=True)
    order = standing_out(distances(described_by(Y, K, row_scale="learned"))).order
    assert np.argsort(order)[:12].max() < 22


def test_limits_of_the_data_flag_the_share_asked_for(seed):
    rng = np.random.default_rng(seed)
    W = orthonormal(rng)
    active, Y = drawn(rng, W, 800, sizes=(1, 3))
    heavy = Y * np.exp(rng.normal(size=(800, 1)))  # not Gaussian at all
    found = distances(run_of(W, active, heavy))
    assert (found.over(limits_of(found, 0.99)) > 1).mean() > 0.1
    rows = np.flatnonzero(active[:, 0])
    limits = limits_of(found, 0.95, Distances(*(of_all[rows] for of_all in found[:4])))
    flagged = found.over(limits)[rows] > 1
    assert (np.abs(flagged.mean(axis=0) - 0.05) < 1.5 / len(rows)).all()


def test_with_noise_per_feature_t2_is_in_noise_units_and_q_says_nothing(seed):
    rng = np.random.default_rng(seed)
    V, psi = orthonormal(rng), rng.uniform(0.2, 3.0, D)
    active, Y = drawn(rng, V, 30)
    plain, W = run_of(V, active, Y, noise=1.0), V * np.sqrt(psi)
    rows = {"scores": plain.scores, "error": plain.error}
    run = fitted_run(active, **rows, components=W, noise_variance=psi, latent_variance=TAU2)
    found = distances(run)
    np.testing.assert_allclose(found.t2, distances(plain).t2, rtol=1e-6)
    assert not found.outside.any()
    assert np.isinf(limits_of(found, 0.99)[:, 1]).all()


def wine_run(model, preprocessing=None, **parameters):
    dataset = load("wine")
    return dataset, run_for(dataset, model, preprocessing, **parameters)[1]


@pytest.mark.parametrize("reduce", [{}, {"pca": 6}])
def test_average_terms_and_residual_add_up_to_the_row_in_its_own_units(reduce):
    dataset, fitted = wine_run("aPPCA", {"divide": 2.0, "scale": "feature", **reduce}, init="pca")
    before, found = fitted.preprocessing, rows.parts(dataset, fitted, 11)
    assert found.components == tuple(np.flatnonzero(fitted.active[11]))
    np.testing.assert_array_equal(found.original, dataset.X[11])
    total = found.average + found.terms.sum(axis=0)
    np.testing.assert_allclose(total, found.reconstruction, rtol=1e-10)
    wanted = fitted.mean + fitted.scores[11] @ fitted.components
    np.testing.assert_allclose(
        found.reconstruction, before.inverse_transform(wanted[None])[0], rtol=1e-6
    )
    if not reduce:
        scaled = (found.original - found.reconstruction) / (before.scale * before.divide)
        np.testing.assert_allclose(np.mean(scaled**2), fitted.error[11], rtol=1e-4)


def test_probabilities_of_sets_are_those_of_dense_normal_densities(seed):
    rng = np.random.default_rng(seed)
    K, D, L, noise = 4, 5, 2, 0.4
    W, tau2, mean = rng.normal(size=(K, D)), rng.uniform(0.5, 2, K), rng.normal(size=D)
    y = rng.normal(size=D) * 2
    given = {"mean": mean, "n_active": L, "noise_variance": noise, "latent_variance": tau2}
    fitted = fitted_model(W, **given)
    log_p = {
        S: multivariate_normal(
            mean, (W[list(S)].T * tau2[list(S)]) @ W[list(S)] + noise * np.eye(D)
        ).logpdf(y)
        for S in itertools.combinations(range(K), L)
    }
    total = np.logaddexp.reduce(list(log_p.values()))
    sets, probability = zip(*rows.alternatives(fitted, y, most=3), strict=True)
    assert list(sets) == sorted(log_p, key=log_p.get, reverse=True)[:3]
    np.testing.assert_allclose(probability, [np.exp(log_p[S] - total) for S in sets], rtol=1e-9)
    assert rows.alternatives(fitted_model(np.eye(20), n_active=10), np.zeros(20)) == []


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("aPPCA", {"latent_variance": "component", "init": "pca"}),
        ("aPPCA", {"noise": "feature", "row_scale": "learned", "init": "pca"}),
        ("aPPCA", {"noise": "feature", "n_active": "learned", "init": "pca"}),
        ("PPCA", {"n_components": 3}),
        ("aFA", {"n_components": 4, "init": "pca"}),
        ("isFA", {"max_components": 4, "burn_in": 5, "n_draws": 5, "n_chains": 1}),
    ],
)
def test_the_best_set_and_its_probability_are_those_of_the_run(model, parameters):
    dataset, fitted = wine_run(model, **parameters)
    Y = fitted.preprocessing.transform(dataset.X)
    for row in range(0, dataset.n_rows, 20):
        found = rows.alternatives(fitted, Y[row], most=5000)
        assert found[0][0] == tuple(np.flatnonzero(fitted.active[row]))
        np.testing.assert_allclose(found[0][1], fitted.membership[row], rtol=1e-4)
        included = np.zeros(len(fitted.components))
        for S, probability in found:
            included[list(S)] += probability
        if not fitted.draws:  # the page tells of the published draw, the run of all
            np.testing.assert_allclose(included, fitted.inclusion[row], atol=1e-4)
        if fitted.size_probabilities is not None:
            by_size = np.bincount([len(S) for S, _ in found], [p for _, p in found], minlength=5)
            sizes = rows.size_probabilities(fitted, Y[row].astype(np.float64))
            np.testing.assert_allclose(sizes, by_size, atol=1e-6)


def test_nearest_rows_are_those_of_all_distances(seed, monkeypatch):
    monkeypatch.setattr(rows, "_BLOCK_VALUES", 100)
    X = np.random.default_rng(seed).integers(0, 9, (80, 6)).astype(np.uint8)
    X[50] = X[3]
    fitted = Preprocessing(divide=3.0, scale="feature").fit(X)
    Y = fitted.transform(X).astype(float)
    distance, found = np.linalg.norm(Y - Y[3], axis=1), rows.near_in_data(X, fitted, 3, 7)
    assert found[0] == 50
    assert 3 not in found
    np.testing.assert_allclose(distance[found], np.sort(np.delete(distance, 3))[:7], rtol=1e-5)


def test_nearest_in_the_subspace_are_nearest_in_reconstruction():
    _, fitted = wine_run("aFA", n_components=4, init="pca")
    found = rows.near_in_subspace(fitted, 5, 6)
    same = np.flatnonzero((fitted.active == fitted.active[5]).all(axis=1))
    rebuilt = fitted.scores.astype(float) @ fitted.components
    distance, others = np.linalg.norm(rebuilt - rebuilt[5], axis=1), np.setdiff1d(same, [5])
    assert set(found) <= set(others)
    np.testing.assert_allclose(distance[found], np.sort(distance[others])[:6], atol=1e-5)
    alone = np.array([[True, False], [False, True], [False, True]])
    fitted = fitted_run(alone, scores=np.array([[2.0, 0], [0, 1], [0, 4]]))
    assert [rows.near_in_subspace(fitted, n, 3).tolist() for n in (0, 1)] == [[], [2]]


CENTRES = np.array([[6.0, 6.0], [-6.0, 6.0], [6.0, -6.0], [-6.0, -6.0]])


def planted(seed: int, n_rows: int = 240):
    """Two subspaces of three leaning components with four far clusters each; who is in which."""
    rng, active = np.random.default_rng(seed), np.zeros((n_rows, 3), bool)
    pairs = np.array([[0, 1], [1, 2]])
    space, cluster = rng.integers(2, size=n_rows), rng.permutation(np.arange(n_rows) % 4)
    np.put_along_axis(active, pairs[space], True, axis=1)
    scores = np.zeros((n_rows, 3), np.float32)
    values = CENTRES[cluster] + 0.3 * rng.standard_normal((n_rows, 2))
    np.put_along_axis(scores, pairs[space], values.astype(np.float32), axis=1)
    components = np.linalg.qr(rng.standard_normal((5, 3)))[0].T
    components[2] = 2 * components[2] + components[1]
    return scores, active, components, 4 * space + cluster


def test_a_mixture_counts_classes_and_those_that_join_come_first_the_tighter_among_equals():
    group = SimilarRows((0,), np.arange(20), 0.1)
    ((_, found),) = mixtures([group], np.array([1] * 10 + [0] * 7 + [2] + [-1] * 2), 4)
    assert (found.counts.tolist(), found.joined) == ([7, 10, 1, 0], (1, 0))
    shares = np.array([7, 10, 1]) / 18
    assert found.effective == pytest.approx(np.prod(shares**-shares))
    assert mixtures([group], np.full(20, -1), 4)[0][1].joined == ()
    spreads = enumerate([0.1, 0.5, 0.2])
    groups = [SimilarRows((0,), np.arange(4) + 4 * i, spread) for i, spread in spreads]
    mixed = mixtures(groups, np.array([0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1]), 2)
    assert [group.spread for group, _ in mixed] == [0.2, 0.5, 0.1]
    scores = np.zeros((9, 2), np.float32)
    spaces = [((0, 1), np.arange(6)), ((0,), np.arange(6, 9)), ((), np.arange(9))]
    for scores[:6] in ([1.5, -0.3], [0.0, 0.0]):  # equal rows are one group, thin subspaces none
        (group,) = rows.similar(scores, np.eye(2), [Subspace(*space) for space in spaces], 2)
        assert (sorted(group.rows), group.spread) == ([*range(6)], 0.0)


def test_planted_clusters_are_recovered_nearest_rows_first_and_with_their_spread(seed):
    scores, active, components, truth = planted(seed)
    spaces = ranked(active)
    groups = rows.similar(scores, components, spaces, len(truth) // 8)
    assert len(groups) == 8
    labels = np.full(len(truth), -1)
    for number, group in enumerate(groups):
        assert (labels[group.rows] == -1).all()
        labels[group.rows] = number
        assert active[np.ix_(group.rows, group.components)].all()
        # The projections in data space, rather than the coordinates used inside.
        W, columns = components[list(group.components)], list(group.components)
        whole = next(space.rows for space in spaces if space.components == group.components)
        own, every = (scores[rows][:, columns] @ W for rows in (group.rows, whole))
        away = np.linalg.norm(own - own.mean(axis=0), axis=1)
        assert (np.diff(away) > -1e-4).all()
        outer = np.linalg.norm(every - every.mean(axis=0), axis=1)
        expected = np.sqrt((away**2).mean() / (outer**2).mean())
        assert group.spread == pytest.approx(expected, rel=1e-5)
    assert adjusted_rand_score(truth, labels) == 1.0
    again = rows.similar(scores, components, spaces, len(truth) // 8)
    for group, same in zip(groups, again, strict=True):
        np.testing.assert_array_equal(group.rows, same.rows)
    smaller = [group.components for group in rows.similar(scores, components, spaces, 20)]
    for space in spaces:
        assert smaller.count(space.components) == round(len(space.rows) / 20)


def test_planted_groups_are_types_named_by_their_columns_and_noise_has_none(seed):
    rng = np.random.default_rng(seed)
    truth, noise = rng.integers(3, size=600), rng.normal(size=(600, 6))
    for apart in (0.0, 8.0):
        X = noise + apart * np.eye(3, 6)[truth]
        X[:9] += 4 * apart  # too few for a type
        fitted, dataset = described_by(X), Dataset("d", X, np.arange(600), {}, None, None)
        codes, names = types_of(dataset, fitted)
        table = projection_table(dataset, fitted, columns=Columns(types=True))
        assert table["type"].tolist() == [names[code] for code in codes]
        assert (len(names) == 1) == (names == ("no clear types",)) == (not apart)
    assert adjusted_rand_score(truth[9:], codes[9:]) > 0.9
    assert {name[:14] for name in names} == {f"high feature {j}" for j in (1, 2, 3)}
    assert (row_types.grouped(X) == row_types.grouped(X)).all()


DIGITS = load("digits")


def run_for(dataset: Dataset, model: str = "aPPCA", preprocessing=None, **parameters):
    options = preprocessing or suggest(dataset).to_dict()
    config = RunConfig(dataset.digest, options, model, parameters)
    return config, fit_run(dataset, config).fitted


def test_many_rows_of_a_compiled_model_are_described_in_the_blocks_of_the_fit():
    config, fitted = run_for(DIGITS, "aFA", max_iter=2)  # 1,797 rows are more than one block
    told = []
    found = project(config, fitted, DIGITS.X, told.append)
    np.testing.assert_array_equal(found.scores, fitted.scores)
    assert [(one.iteration, one.max_iter) for one in told] == [(i, 4) for i in range(1, 5)]


def test_limits_pass_one_in_a_hundred_rows_of_the_fit_few_held_back_and_no_noise(seed):
    rng = np.random.default_rng(seed)
    some = DIGITS.take(np.sort(rng.permutation(DIGITS.n_rows)[:900]))
    classes = np.asarray(some.class_column[1])
    rest = rng.permutation(np.flatnonzero(classes != 2))
    noise, known = rng.integers(0, 17, (100, 64)).astype(np.uint8), some.take(np.sort(rest[:-200]))
    config, fitted = run_for(known, n_components=8, n_active=4, init="pca")
    own = distances(fitted)
    said = verdict(own, own)
    assert (np.abs((said.ratios > 1).sum(axis=0) - 0.01 * len(own.t2)) <= 1.5).all()
    parts = (some.X[rest[-200:]], some.X[classes == 2], noise)
    said = verdict(distances(fitted.with_rows(project(config, fitted, np.vstack(parts)))), own)
    held_back, left_out = said.fits[:200], said.fits[200:-100]
    assert held_back.mean() > 0.92
    assert left_out.mean() < 0.75, "a class that was left out of the fit"
    assert not said.fits[-100:].any()
    assert (said.order[:100] >= len(said.fits) - 100).mean() > 0.95  # those that fit least first


def test_the_table_adds_distances_limits_and_fit_to_the_projection():
    wine = load("wine")
    clashing = Dataset("w", wine.X, wine.ids, {"fits": np.full(178, "label")})
    config, fitted = run_for(wine, n_components=4, n_active=2, init="pca")
    found = project(config, fitted, wine.X)
    own = distances(fitted.with_rows(found))
    for run, level, limits in (
        (distances(fitted), 0.99, ["model", "run"]),
        (None, 0.95, ["model"]),
    ):
        table = new_rows_table(clashing, found, verdict(own, run, level))
        names = [f"{name}_limit_{limit}" for limit in limits for name in ("t2", "q")]
        assert list(table.columns[-3 - len(names) :]) == ["t2", "q", *names, "fits"]
        np.testing.assert_allclose(table["t2_limit_model"], chi2.ppf(level, 2))
        np.testing.assert_allclose(table["q_limit_model"], chi2.ppf(level, 11))
        np.testing.assert_array_equal(table["q"], own.q)
        within = table["t2"] <= table[f"t2_limit_{limits[-1]}"]
        within &= table["q"] <= table[f"q_limit_{limits[-1]}"]
        np.testing.assert_array_equal(table["fits"], within)
        assert set(table["label_fits"]) == {"label"}


def test_rows_are_described_once_and_kept_under_run_and_rows(tmp_path):
    wine = load("wine")
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aFA", {"max_iter": 5})
    result = fit_run(wine, config)
    RunStore(tmp_path).save(config, result)
    key = wine.digest
    assert stored(tmp_path, key) is None
    keep_rows(tmp_path, key, wine.X)
    spec = {"key": key, "run": config.id}
    assert tasks.project(spec, tasks.Context(tmp_path)) == {"key": key}
    found = stored(tmp_path, key)
    for name in ("scores", "active", "membership", "error", "log_likelihood_rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(result.fitted, name))
    (kept,) = (tmp_path / "projections").iterdir()  # the rows themselves are gone
    RunStore(tmp_path).delete(config.id)
    assert tasks.project(spec, tasks.Context(tmp_path)) == {"key": key}  # known
    kept.unlink()
    with pytest.raises(InputError, match="no longer exist; open both again"):
        tasks.project(spec, tasks.Context(tmp_path))
    kept.parent.rmdir()
    kept.parent.write_text("a file where the folder would be")
    with pytest.raises(InputError, match=r"^The new rows could not be stored in .*; free some"):
        keep_rows(tmp_path, "k", wine.X)
