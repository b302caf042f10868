"""Tests of campaigns, which can be resumed: grids over K and L, suggestions, stability."""

from dataclasses import dataclass, replace
from itertools import permutations, product
from math import comb
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.analysis import choose, compare
from appca.analysis.campaign import Campaign, sample_of
from appca.analysis.choose import (
    GridConfig,
    GridTable,
    StabilityConfig,
    advise,
    folds,
    gain,
    near,
    plainer,
    table,
    without_components,
)
from appca.analysis.compare import MaskedConfig, ModelsConfig
from appca.data.dataset import Dataset
from appca.models.settings import MODELS
from appca.storage.journal import JournalStore
from appca.words import InputError
from tests.models.synthetic import planted

NAME, GAIN = "0123456789ab", np.array([9.0, 0.0, 0.0, 0.0])
SIZES = {"n_components": 3, "n_active": 2, "random_state": 0, "init": "pca", "max_iter": 20}
DATA = Dataset("planted", planted(60, 6, 4, 2, seed=1, noise=0.3).X, np.arange(60).astype(str))
CAMPAIGNS = {
    "grid": GridConfig(DATA.digest, {}, "aPPCA", SIZES, (2, 3), (1, 2), n_folds=2),
    "stability": StabilityConfig(DATA.digest, {}, "aPPCA", SIZES, repeats=3),
    "masked": MaskedConfig(DATA.digest, {"scale": "feature"}, "aPPCA", SIZES),
    "models": ModelsConfig(DATA.digest, {}, "aPPCA", {"random_state": 0}, 2, 1),
}


@dataclass(frozen=True, eq=False)
class Squares(Campaign):
    folder: ClassVar[str] = "squares"
    dataset: str = DATA.digest
    max_rows: int = 6

    def steps(self):
        return [(n, f"{n} squared") for n in range(self.max_rows)]

    def measuring(self, dataset):
        return lambda step, report: (report(0.5), [step[0] ** 2 / 7])[1]


def test_numbers_texts_and_nothing_come_back_to_the_last_bit(tmp_path, seed):
    store = JournalStore(tmp_path, "things")
    store.begin(NAME, {"what": "a test"})
    values = np.random.default_rng(seed).standard_normal(50) * 10.0 ** np.arange(-25, 25)
    written = [[n, float(value), None, "why: “ü”\nnext"] for n, value in enumerate(values)]
    for record in written:
        store.append(NAME, record)
    store.begin(NAME, {"what": "something else"})
    assert (store.records(NAME), store.config(NAME)) == (written, {"what": "a test"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.append(NAME, [float("nan")])
    for name in ("", "../../etc", "0123456789AB", "f" * 13, "x" * 12):  # from an address
        assert (store.records(name), store.config(name)) == ([], None)


def test_each_step_is_reported_and_damaged_lines_are_measured_again(tmp_path):
    squares, told = Squares(), []
    squares.complete(DATA, tmp_path, lambda *at: told.append(at))
    assert told == [(place, share) for place in range(6) for share in (0.0, 0.5)]
    before = squares.records(tmp_path)
    assert before == {(n, f"{n} squared"): [n**2 / 7] for n in range(6)}
    file = squares.journal(tmp_path).folder / squares.id / "records.txt"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[4] = b"\x00\xff" + lines[4]  # the first line says that it was begun
    file.write_bytes(b"".join(lines)[:-7])
    told.clear()
    squares.complete(DATA, tmp_path, lambda *at: told.append(at[0]))
    assert (sorted(set(told)), squares.records(tmp_path)) == ([3, 5], before)
    second = Squares(max_rows=2)
    second.complete(DATA, tmp_path)
    Squares.journal(tmp_path).begin(NAME, {"nothing": 1})
    assert set(Squares.earlier(tmp_path)) == {squares, second}
    assert next(Squares.earlier(tmp_path, squares.id)) == squares
    assert next(Squares.earlier(tmp_path, "../../etc")) in {squares, second}
    assert list(GridConfig.earlier(tmp_path)) == []


@pytest.mark.parametrize("kind", CAMPAIGNS)
def test_an_interrupted_campaign_goes_on_where_it_was_and_ends_the_same(
    kind, tmp_path, monkeypatch
):
    monkeypatch.setattr(compare, "METHODS", ("paper", "ppca", "gaussian"))
    config, broken, told = CAMPAIGNS[kind], tmp_path / "broken", []
    config.complete(DATA, tmp_path)

    def stops_at_the_third(place, _share):
        if place == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        config.complete(DATA, broken, stops_at_the_third)
    assert list(config.records(broken)) == config.steps()[:2]
    config.complete(DATA, broken, lambda place, _share: told.append(place))
    assert sorted(set(told)) == list(range(2, len(config.steps())))
    timed = {"grid": -1, "models": 2}.get(kind, 99)  # the place of the seconds
    first, again = (
        [
            [v for i, v in enumerate(record) if i not in (timed, timed + len(record))]
            for record in config.records(at).values()
        ]
        for at in (tmp_path, broken)
    )
    assert first == again
    config.complete(DATA, broken, lambda *_: pytest.fail("everything was there"))
    assert type(config).from_dict(config.to_dict()) == config
    changes = [{"preprocessing": {"centre": True}}, {"parameters": SIZES | {"tol": 0.1}}]
    changes += {
        "grid": [{"n_folds": 5}, {"components": (2, 4)}, {"max_rows": 50}, {"model": "aFA"}],
        "stability": [{"repeats": 4}],
        "models": [{"n_active": 2}],
    }.get(kind, [])
    ids = {replace(config, **change).id for change in changes}
    assert len(ids | {config.id}) == len(changes) + 1
    assert len(config.fits(60)) == len(config.steps())


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("grid", {"model": "PPCA"}, "model with K and L"),
        ("grid", {"components": ()}, "1 to 600 cells"),
        ("grid", {"components": (1,), "actives": (2,)}, "1 to 600 cells"),
        ("grid", {"components": range(1, 60), "actives": range(1, 60)}, "choose other ranges"),
        ("grid", {"preprocessing": {"scale": "odd"}}, "scale must be"),
    ],
)
def test_settings_without_meaning_are_refused_in_a_sentence(kind, change, said):
    with pytest.raises(InputError, match=said):
        replace(CAMPAIGNS[kind], **change)


FAST = {"init": "pca", "max_iter": 40, "random_state": 3}


def dataset_of(X: np.ndarray, **labels: np.ndarray) -> Dataset:
    return Dataset("planted", X, np.arange(len(X)).astype(str), labels)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    X = planted(60, 6, 4, 2, seed=1, noise=0.3, offset=5.0).X
    return dataset_of(X * np.array([1, 2, 3, 40, 50, 600.0]))


def config_of(dataset: Dataset, **changes) -> GridConfig:
    given = {"preprocessing": {"centre": True, "scale": "feature"}, "model": "aPPCA"}
    given |= {"parameters": FAST, "components": (2, 3, 5), "actives": (1, 2)}
    return GridConfig(dataset=dataset.digest, **(given | changes))


def measured(dataset: Dataset, home, **changes):
    config = config_of(dataset, **changes)
    config.complete(dataset, home)
    return config, config.records(home)


@given(st.integers(4, 200), st.integers(2, 9), st.integers(4, 90), st.integers(1, 3))
def test_every_row_that_is_used_is_held_back_once_with_its_unit(n_rows, n_folds, max_rows, each):
    used, units = min(n_rows, max_rows), np.arange(n_rows) // each
    data = dataset_of(np.eye(n_rows), **({"Patient ID": units} if each > 1 else {}))
    assert ("Related rows" in data.facts) == (each > 1 and 10 <= units[-1] + 1 <= n_rows / 2)
    if used < n_folds:
        with pytest.raises(InputError, match="folds need at least"):
            folds(data, n_folds, max_rows)
        return
    split = folds(data, n_folds, max_rows)
    assert not any({*data.units[a]} & {*data.units[b]} for a, b in split)
    held = np.concatenate([test for _, test in split])
    assert len(held) == len(set(held.tolist())) == used
    rows = sample_of(n_rows, max_rows, 0)
    assert sorted(held.tolist()) == rows.tolist() == sorted({*rows.tolist()} & {*range(n_rows)})
    assert all(sorted([*train, *test]) == sorted(held) for train, test in split)
    sizes = [len(test) for _, test in split]
    assert max(sizes) - min(sizes) <= (1 if each == 1 else n_rows)
    if len(held) > 60:  # shuffled: neither a block nor every third row
        assert len(np.unique(np.diff(split[0][1]))) > 1


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (AdaptivePPCA, {"n_folds": 4}),
        (AdaptivePPCA, {"parameters": FAST | {"n_init": 2}}),
        (AdaptiveFactorAnalysis, {"components": (3,), "actives": (2,), "n_folds": 2}),
    ],
)
def test_a_cell_is_what_an_estimator_fitted_by_hand_says_of_the_rows_held_back(
    dataset, tmp_path, kind, changes
):
    if kind is AdaptiveFactorAnalysis:
        changes = changes | {"model": "aFA", "parameters": {"random_state": 0, "max_iter": 15}}
    if "n_init" in changes.get("parameters", {}):
        dataset = replace(dataset, missing=np.random.default_rng(0).random((60, 6)) < 0.1)
    config, measures = measured(dataset, tmp_path, **changes)
    assert set(measures) == set(config.steps())
    split, X = folds(dataset, config.n_folds, config.max_rows), dataset.with_gaps()
    for (k, active, fold), (log_likelihood, *_) in measures.items():
        scaler = StandardScaler().fit(X[split[fold][0]])
        train, test = (scaler.transform(X[rows]) for rows in split[fold])
        of_ppca = choose.OF_PPCA if k == active and kind is AdaptivePPCA else {}
        by_hand = kind(k, active, **config.parameters | of_ppca).fit(train)
        assert log_likelihood == pytest.approx(by_hand.score(test), rel=1e-7)


def test_cells_are_sorted_and_those_whose_likelihood_is_an_estimate_are_left_out(dataset):
    config = config_of(dataset, model="aFA", components=(17, 10), actives=[8, 2, 2])
    assert comb(17, 8) > MODELS["aFA"].can.exact_supports > comb(10, 8)
    assert config.cells == ((10, 2), (10, 8), (17, 2))
    assert (17, 8) in config_of(dataset, components=(10, 17), actives=(2, 8)).cells
    sized = config_of(dataset, parameters=FAST | {"n_components": 4, "n_active": 3})
    assert sized.id == config_of(dataset).id, "the sizes of the page are no settings of the grid"
    steps = config_of(dataset, components=range(2, 7), actives=(1, 3)).steps()
    expected = [(k, active) for k, active in product(range(2, 7), (1, 3)) if active <= k]
    assert [step[:2] for step in steps[::3]] == expected
    assert [step[2] for step in steps] == [0, 1, 2] * (len(steps) // 3)


def test_as_many_components_as_shares_can_vary_in_are_not_measured(tmp_path, seed):
    X = np.random.default_rng(seed).dirichlet([1, 2, 3, 4], size=60)
    grid = table(*measured(dataset_of(X), tmp_path, components=(2, 3, 4), actives=(1, 2)))
    assert np.isfinite(grid.log_likelihood).all(axis=(1, 2)).tolist() == [True, False, False]


def test_components_that_change_with_the_rows_are_told(tmp_path):
    X = planted(300, 8, 4, 2, seed=2, noise=0.3).X
    grid = table(*measured(dataset_of(X), tmp_path, components=(2, 3, 4), actives=(1, 2)))
    assert plainer(grid, (4, 2)) == ((4, 2), "")
    assert np.round(grid.cosines[2, 1], 2) == 1
    cosines = np.full_like(grid.cosines, 0.5)
    assert plainer(grid._replace(cosines=cosines), (4, 2))[0] == (4, 2)
    cosines[1, 1] = 0.95
    assert plainer(grid._replace(cosines=cosines), (4, 2))[0] == (3, 2)
    strips = made_up([[1.0, 1.02], [1.1, 1.15]], (4, 8), (1, 2), without=-7.0)
    strips = strips._replace(over_ppca=strips.over_ppca + np.array([1.0, 0.4, 0.0, 0.0]))
    assert plainer(strips, (8, 2))[0] == (4, 2), "a scatter plot before strips that are as good"
    wide = made_up([[1.0, 2.0], [1.5, 3.0]], (4, 6), (2, 3))
    assert plainer(wide, (6, 3))[0] == (6, 3)  # no gain over PCA
    wide = wide._replace(over_ppca=wide.over_ppca + np.array([1.0, 0.4, 0.0, 0.0]))
    said = "K = 6 and L = 3 have 20 panels, but predict 1.00 nats more, 1% of their whole gain."
    of_l = wide._replace(without=-1.0)  # L = 2 lacks a third
    wide = wide._replace(without=-7.0)  # L = 2 lacks 11%
    said = said.replace("1%", "10%")
    assert plainer(wide, (6, 3)) == ((4, 3), f"Its components hardly change with the rows. {said}")
    assert plainer(wide._replace(without=-100.0), (6, 3))[0] == (4, 2)
    cosines = np.ones_like(wide.cosines) - np.arange(2)
    steady, text = plainer(of_l._replace(cosines=cosines), (6, 3))
    assert steady == (4, 2), "L = 2 lacks a third, but its few panels hardly change"
    assert "no choice here is free of such flaws" in text
    assert plainer(wide._replace(cosines=cosines), (6, 3))[0] == (4, 2)
    assert plainer(wide._replace(without=0.5, cosines=cosines), (6, 3))[0] == (6, 3)


def test_cells_whose_halves_have_other_components_are_not_advised(tmp_path, monkeypatch):
    dataset = dataset_of(planted(300, 8, 4, 2, seed=2, noise=0.3).X)
    config, _ = measured(dataset, tmp_path, components=(2, 3, 4), actives=(1, 2))
    assert choose.checked(config, tmp_path)[:2] == ((4, 2), (4, 2))
    found, wrong = list[StabilityConfig](), [*[None] * 6, *[0.5] * 4]
    choose.checked(config, tmp_path, found.append)
    steady = replace(found[0], parameters=found[0].parameters | {"n_components": 3})
    journal = steady.journal(tmp_path)
    journal.begin(steady.id, steady.to_dict())
    for i in range(1, 5):
        journal.append(steady.id, [i, *[None] * 6, *[0.95] * 3])
    grid = table(config, config.records(tmp_path))
    grid = grid._replace(cosines=0 * grid.cosines, over_ppca=grid.over_ppca + GAIN)
    with monkeypatch.context() as patch:
        patch.setattr(choose, "table", lambda *_: grid)
        assert choose.checked(config, tmp_path)[0] == (3, 2), "the only one that halves recover"
    journal = found[0].journal(tmp_path)
    journal.begin(found[0].id, found[0].to_dict())
    for i in range(1, 5):
        journal.append(found[0].id, [i, *wrong])
    cell, best, text = choose.checked(config, tmp_path)
    assert (best, "components that change with the rows" in text) == ((4, 2), True)
    assert cell != (4, 2) or "no choice here" in text


def made_up(log_likelihood, components, actives, without=-100.0) -> GridTable:
    values = np.asarray(log_likelihood, dtype=float)
    if values.ndim == 2:
        values = np.repeat(values[..., None], 3, axis=2)
    of_ppca = np.zeros((*values.shape, 4))
    return GridTable(components, actives, values, of_ppca, without, np.ones(values.shape[:2]))


def test_gains_are_over_probabilistic_pca(dataset, tmp_path):
    X, parameters = planted(80, 6, 4, 2, seed=3, noise=0.3).X, {"random_state": 0, "max_iter": 5}
    plain = {"preprocessing": {}, "parameters": parameters}
    config, measures = measured(dataset_of(X), tmp_path, components=(3,), actives=(1, 3), **plain)
    grid = table(config, measures)
    for j, q in enumerate((1, 3)):
        for f, (train, test) in enumerate(folds(dataset_of(X), 3, config.max_rows)):
            pca = PCA(q).fit(X[train])
            ratio = 1 - 1 / len(train)  # scikit-learn divides by N - 1, maximum likelihood by N
            pca.explained_variance_ *= ratio
            pca.noise_variance_ *= ratio
            ours = AdaptivePPCA(3, q, **parameters | (choose.OF_PPCA if q == 3 else {})).fit(
                X[train]
            )
            ours = ours.score_samples(X[test])
            more = ours - pca.score_samples(X[test])
            found = grid.log_likelihood[0, j, f], *grid.over_ppca[0, j, f, :2]
            assert found == pytest.approx((ours.mean(), more.mean(), more.std() / len(test) ** 0.5))
        means, errors = grid.over_ppca[0, j, :, :2].T
        assert gain(grid, (3, q)) == pytest.approx((means.mean(), np.linalg.norm(errors) / 3))
    config, measures = measured(dataset, tmp_path, preprocessing={"pca": 3})
    assert set(measures) == set(config.steps())
    assert measures[5, 2, 0][:2] == [None, None], "a cell that a fold cannot carry stops nothing"
    assert np.isfinite(measures[3, 2, 0][0])


def test_cells_are_compared_fold_by_fold():
    easy = np.array([0.0, 10.0, -20.0])  # what all cells share
    worse, wobbling = np.array([1.0, 1.01, 0.99]), np.array([0.9, -0.4, 0.2])
    assert near(np.stack([easy, easy - worse, easy - wobbling])).tolist() == [True, False, True]


def test_the_smallest_l_of_cells_as_good_as_the_best_wins_then_the_smallest_k():
    values, as_good = np.full((4, 3, 3), -9.0), np.array([0.1, -0.2, 0.15])
    values[2, 1] = 0.0  # the best mean
    values[1, 1] = -np.abs(as_good.mean()) + as_good - as_good.mean()
    values[3, 0] = -1.0  # smaller L, but worse in every fold
    assert advise(made_up(values, (2, 3, 4, 5), (1, 2, 3)))[0] == (3, 2)
    k = np.arange(2, 9)  # L = 2 adds 5 of 100 or of 30 nats, and K rises to the edge
    curves = np.stack([2 * np.minimum(k, 5) + 0.1 * k - 5, 2 * np.minimum(k, 5) + 0.1 * k], axis=1)
    grid = made_up(curves, tuple(range(2, 9)), (1, 2))
    of_k = "K = {} is the smallest with 90% of the gain of K = 8, the edge."
    of_k += " Best of all: K = 8 and L = 2, at the edge of the grid."
    assert advise(grid) == (
        (2, 1),
        "L = 1 is enough: more adds under 10% of the gain. " + of_k.format(2),
    )
    of_k = "L = 2 is the largest of the grid and still helps. " + of_k.format(4)
    assert advise(grid._replace(without=-20.0)) == ((4, 2), of_k)
    assert advise(made_up([[1.0, 1.5, 9.0]], (3,), (1, 2, 3), without=-1.0))[0] == (3, 3)
    config = GridConfig("d" * 64, {}, "aPPCA", {}, (2, 3), (1, 2), n_folds=2)
    one, better = ([nats, *[0.1] * 4, -9.0, 0.1] for nats in (-5.0, -1.0))
    grid = table(config, {(2, 1, 0): one, (2, 1, 1): one, (3, 1, 0): better})
    assert np.isnan(grid.log_likelihood.mean(axis=-1)).sum() == 3  # cells without all folds
    assert (advise(grid)[0], advise(table(config, {}))) == ((2, 1), None)


def test_a_best_k_inside_the_grid_is_taken_or_one_within_a_standard_error():
    curve = [-33.57, -33.25, -33.08, -33.04, -33.07, -33.2]  # a questionnaire, L = 2
    curves = np.stack([np.array(curve) - 0.5, curve, np.array(curve) + 0.3], axis=1)
    grid = made_up(curves, tuple(range(2, 8)), (1, 2, 3), without=-36.54)
    best = "Best of all: K = 5 and L = 3, at the edge of the grid."
    said = f"L = 2 is enough: more adds under 10% of the gain. K = {{}} is the {{}}. {best}".format
    assert advise(grid) == ((5, 2), said(5, "best for this L on unseen rows"))
    noisy = grid.log_likelihood.copy()
    noisy[2, 1] += [0.2, -0.1, -0.1]  # K = 4 leads in one fold
    least = said(4, "smallest within one standard error of the best, K = 5")
    assert advise(grid._replace(log_likelihood=noisy)) == ((4, 2), least)


@pytest.mark.parametrize("settings", [{}, {"noise": "feature"}, {"row_scale": "learned"}])
def test_nats_without_components_are_those_of_a_gaussian_of_each_scale(settings):
    X = planted(80, 6, 3, 1, seed=3, noise=0.3).X
    model = AdaptivePPCA(3, 1, random_state=0, max_iter=5, **settings).fit(X[:50])
    u, p = np.ones(1), np.ones(1)
    if "row_scale" in settings:
        u, p = model.row_scale_values_, model.row_scale_probabilities_
    centre = X[:50].mean(axis=0)
    variance = np.square(X[:50] - centre).mean(axis=0 if "noise" in settings else None) / (p @ u)
    test = np.where(np.random.default_rng(0).random((30, 6)) < 0.2, np.nan, X[50:])
    of_scales = [
        weight * np.nanprod(norm(centre, np.sqrt(variance * scale)).pdf(test), axis=1)
        for scale, weight in zip(u, p, strict=True)
    ]
    found = without_components(model, X[:50], test)
    np.testing.assert_allclose(found, np.log(np.sum(of_scales, axis=0)), rtol=1e-9)


@pytest.mark.parametrize("each", [1, 2])
def test_a_stability_is_that_of_fits_to_halves_by_hand(tmp_path, each):
    dataset = dataset_of(planted(90, 5, 3, 1, seed=0, noise=0.5, offset=4.0).X)
    states = np.repeat([f"state {i:02}" for i in range(90 // each)], each)
    ids = np.char.add(np.char.add(states, ", "), np.arange(90).astype(str))
    dataset = replace(dataset, labels={"state": states}, ids=ids)
    parameters = {"n_components": 3, "n_active": 1, "random_state": 0, "init": "pca"}
    of = dataset.digest, {"centre": True}, "aPPCA"
    config = StabilityConfig(*of, parameters, repeats=2)
    assert config.outcome(tmp_path) is None
    config.complete(dataset, tmp_path)
    stability, Y = config.outcome(tmp_path), dataset.X - dataset.X.mean(axis=0)
    few = np.sort(np.random.default_rng(2000).permutation(90 // each)[: round(45 / each)])
    rows = (each * few[:, None] + np.arange(each)).ravel()
    rest = np.setdiff1d(np.arange(90), rows)
    sizes = [{}, {"n_components": 1, "latent_variance": "component"}, {"n_active": 2}]
    fits = [AdaptivePPCA(**parameters | one).fit(Y[rows]) for one in sizes]
    again, ppca, larger = (fit.score_samples(Y[rest]) for fit in fits)
    for found, gaps in ((stability.over_ppca, again - ppca), (stability.larger, larger - again)):
        assert found[1, :2] == pytest.approx(
            [gaps.mean(), gaps.std() / np.sqrt(len(rest))], abs=1e-7
        )
    whole = larger - without_components(fits[0], Y[rows], Y[rest])
    assert stability.larger[1, 2] == pytest.approx((larger - again).mean() / whole.mean())
    reference = AdaptivePPCA(**parameters).fit(Y)
    cosines = np.abs(reference.components_ @ fits[0].components_.T)  # all have length one
    orders = (cosines[np.arange(3), list(order)] for order in permutations(range(3)))
    assert stability.cosines[1] == pytest.approx(max(orders, key=sum), abs=1e-6)
    every = StabilityConfig(*of, parameters | {"n_active": 3}, repeats=2)  # no PPCA with L
    every.complete(dataset, tmp_path)
    (gap,) = np.diff([AdaptivePPCA(k, k).fit(Y[rows]).score(Y[rest]) for k in (3, 4)])
    assert every.outcome(tmp_path).larger[1, 0] == pytest.approx(gap, abs=1e-7)
    assert np.isnan(every.outcome(tmp_path).over_ppca).all()
