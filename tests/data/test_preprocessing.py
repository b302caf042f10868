"""Tests of preprocessing, its inverse and missing cells, and of rows as images or curves."""

import io
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, zoom
from scipy.stats import gmean
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from appca.canvas.sheets import sheets_of
from appca.data import preprocessing
from appca.data.dataset import Dataset, follow_each_other
from appca.data.pixels import PixelShape, likely_shapes, pixel_order
from appca.data.preprocessing import Fitted, Preprocessing, suggest
from appca.data.readers import read
from appca.data.sources import load
from appca.ordered import curves, lines_of_rows
from appca.plots.components import SPARK, picture_shape, row_lines
from appca.preparation import BY_ROW, PREPARATIONS, gaps_of_label, proposed, redundant, told
from appca.words import InputError

TABLE = {"divide": 2.0, "centre": True, "scale": "feature"}


def correlated(seed, n=60, d=12, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.diag(0.7 ** np.arange(d)) @ rng.standard_normal((d, d)))
    return (X + 5 * rng.standard_normal(d)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_a_row_is_reduced_the_same_in_whatever_company_by_steady_products(dtype, seed):
    from appca.models.products import times

    X = np.random.default_rng(seed).integers(0, 256, (90, 37)).astype(dtype)
    fitted = Preprocessing(divide=255.0, centre=True, pca=11).fit(X)
    whole = fitted.transform(X, times)
    near = {"rtol": 1e-4, "atol": 1e-5} if dtype != np.float64 else {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(whole, fitted.transform(X), **near)
    for step in (1, 7):
        parts = [fitted.transform(X[i : i + step], times) for i in range(0, len(X), step)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(fitted.transform(X[::-1], times), whole[::-1])
    for steps in (fitted, Preprocessing(centre=True).fit(X)):
        Y = steps.transform(X)
        assert Y.dtype == steps.inverse_transform(Y).dtype == np.result_type(dtype, np.float32)


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
@pytest.mark.parametrize("exact", [True, False])
def test_pca_agrees_with_scikit_learn_on_every_route(shape, exact, seed, monkeypatch):
    if not exact:
        monkeypatch.setattr(preprocessing, "_EXACT", 1)
    X = correlated(seed, *shape)
    Y = Preprocessing(pca=4).fit(X).transform(X)
    expected = PCA(4, svd_solver="full").fit_transform(X)
    signs = np.sign((Y * expected).sum(axis=0))
    np.testing.assert_allclose(Y, expected * signs, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.995])
def test_a_share_of_variance_takes_the_fewest_axes_that_reach_it(share, exact, seed, monkeypatch):
    if not exact:
        monkeypatch.setattr(preprocessing, "_EXACT", 1)
    flat = np.random.default_rng(seed).standard_normal((300, 200))  # a sketch is first too narrow
    for X in (correlated(seed, 80, 30), flat):
        width = Preprocessing(pca=share).fit(X).basis.shape[1]
        held = np.cumsum(PCA(svd_solver="full").fit(X).explained_variance_ratio_)
        assert held[width - 1] >= share - 1e-9
        assert width == 1 or held[width - 2] < share


def test_blocks_of_rows_give_the_same_as_one_block(seed, monkeypatch):
    X = np.full((200_000, 3), 1000.1, np.float32)  # sums over float32 are made in float64
    X[::2, 1] += 1
    fitted = Preprocessing(centre=True, scale="feature").fit(X)
    assert fitted.offset[0] == pytest.approx(float(np.float32(1000.1)), rel=1e-9)
    assert fitted.scale[1] == pytest.approx(0.5, rel=1e-3)
    np.testing.assert_allclose(fitted.transform(X[:2])[:, ::2], 0, atol=1e-3)  # not scaled
    X = correlated(seed, 500, 12)
    whole = Preprocessing(**TABLE, pca=4).fit(X)
    monkeypatch.setattr("appca.data.preprocessing._BLOCK_VALUES", 100)
    pieces = Preprocessing(**TABLE, pca=4).fit(X)
    np.testing.assert_allclose(pieces.basis, whole.basis, atol=1e-10)
    np.testing.assert_allclose(pieces.transform(X), whole.transform(X), atol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"divide": 0}, "divide must be a positive number; got 0"),
        *(({"divide": divisor}, "positive") for divisor in (-1, float("nan"), "x")),
        ({"scale": "row"}, "none, feature, global; got 'row'"),
        ({"pca": 0}, "positive whole number of dimensions"),
        ({"pca": 1.0}, "between 0 and 1; got 1.0"),
        ({"pca": -0.5}, "between 0 and 1"),
        *(({"pca": share}, "whole number") for share in (True, "3")),
        ({"pca": 6}, "pca must be at most 5 for 5 rows and 12 features; got 6"),
        ({"prepare": "log"}, "prepare must be one of none, log1p, .*; got 'log'"),
        ({"prepare": "sqrt"}, "“Square root” needs nonnegative values, but some are negative"),
        ({}, "12 features the preprocessing was fitted on; got shape"),
    ],
)
def test_options_without_meaning_and_other_data_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Preprocessing(**options).fit(correlated(0, 5)).transform(np.zeros((3, 11)))


def test_suggestions_follow_the_kind_of_data(seed):
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=(900, 12)) * 0.7 ** np.arange(12)
    rising, mixed = coefficients[:, ::-1], coefficients @ rng.normal(size=(12, 12))
    alleles = rng.integers(0, 3, coefficients.shape)
    for scale, tables in {"global": (coefficients, alleles), "feature": (rising, mixed)}.items():
        assert {suggest(Dataset("c", X, np.arange(900))).scale for X in tables} == {scale}
    table = {"centre": True, "scale": "feature"}
    suggested = {"digits": {"divide": 16.0}, "turntable": {"divide": 255.0}, "wine": table}
    suggested["planes"] = {"centre": True, "scale": "global"}
    for key, options in suggested.items():
        assert suggest(load(key)) == Preprocessing(**options)


LOSSLESS = [{"divide": 16.0}, TABLE, {"centre": True, "scale": "global"}]
LOSSLESS += [{"divide": 3.0, "pca": 12}, {**TABLE, "pca": 12}]


@pytest.mark.parametrize("options", LOSSLESS)
def test_the_inverse_undoes_it_and_arrays_bring_it_back(options, seed, tmp_path):
    X = correlated(seed)
    fitted = Preprocessing(**options).fit(X)
    Y = fitted.transform(X)
    np.testing.assert_allclose(fitted.inverse_transform(Y), X, atol=1e-10)
    W = np.random.default_rng(seed).standard_normal((12, 3))
    steps = fitted.inverse_transform(W.T) - fitted.inverse_transform(np.zeros((1, 12)))
    np.testing.assert_allclose(fitted.directions(W), steps.T, atol=1e-10)
    np.savez(tmp_path / "fitted.npz", **fitted.arrays())
    with np.load(tmp_path / "fitted.npz", allow_pickle=False) as file:
        back = Fitted.from_arrays(dict(file))
    np.testing.assert_array_equal(back.transform(X), Y)
    assert back.divide == fitted.divide
    chosen = Preprocessing(**options)
    assert Preprocessing.from_dict(chosen.to_dict()) == chosen
    if "pca" in options:
        basis = fitted.basis
        np.testing.assert_allclose(basis.T @ basis, np.eye(12), atol=1e-10)
        assert (basis[np.abs(basis).argmax(axis=0), np.arange(12)] > 0).all()


@pytest.mark.parametrize("scale", ["none", "feature", "global"])
@pytest.mark.parametrize("gaps", [False, True])
def test_centre_and_scale_are_those_of_the_observed_cells(scale, gaps, seed):
    X = correlated(seed)
    missing = np.random.default_rng(seed).random(X.shape) < (0.2 if gaps else 0)
    holes = np.where(missing, np.nan, X)
    options = Preprocessing(divide=2.0, centre=True, scale=scale)
    wanted = (holes - np.nanmean(holes, axis=0)) / 2.0
    if scale == "feature":
        wanted = wanted / np.nanstd(wanted, axis=0)
    elif scale == "global":
        wanted = wanted / np.sqrt(np.nanvar(wanted, axis=0).mean())
    for filled in (X, np.where(missing, 1e6, X)):  # what fills gaps does not count
        Y = options.fit(filled, missing=missing if gaps else None).transform(holes)
        np.testing.assert_allclose(Y, wanted, rtol=1e-10, atol=1e-12)
    if gaps:
        words = f"PCA needs complete rows, not {missing.sum()} missing cell"
        with pytest.raises(InputError, match=words):
            Preprocessing(pca=3).fit(X, missing=missing)


def counts(seed, d=30):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.4, 4, (1, d)) * rng.gamma(1, 1, (90, d))) + np.eye(1, d)


EXPECTED = {
    "log1p": lambda X: np.log(1 + X),
    "asinh": lambda X: np.arcsinh(X / np.nanquantile(np.where(X, X, np.nan), 0.1, axis=0)),
    "counts": lambda X: np.log(1 + X.T / X.sum(axis=1) * np.median(X.sum(axis=1))).T,
    "sqrt": lambda X: X**0.5,
    "snv": lambda X: ((X.T - X.mean(axis=1)) / X.std(axis=1)).T,
    "derivative": lambda X: np.gradient(X, axis=1),
    "snv_derivative": lambda X: np.gradient(EXPECTED["snv"](X), axis=1),
    "tfidf": lambda X: normalize(X * (1 + np.log((1 + len(X)) / (1 + (X > 0).sum(axis=0))))),
    "ranks": lambda X: X.argsort(axis=0).argsort(axis=0) / (len(X) - 1),
    "clr": lambda X: np.log(X / gmean(X, axis=1, keepdims=True)),
}


@pytest.mark.parametrize("name", PREPARATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_preparation_is_that_of_its_field_and_new_rows_go_through_the_same(name, dtype, seed):
    X = counts(seed) + (0.01 * np.arange(90)[:, None] if name == "ranks" else 0)  # no ties
    X += name == "clr"  # no zeros
    if "derivative" in name:  # of lines, which a smoothing window keeps
        X = X[:, :1] + (1 + X[:, 1:2]) * np.arange(12.0)
    fitted = Preprocessing(prepare=name).fit(X)
    Y = fitted.transform(X.astype(dtype))
    for same in (EXPECTED[name](X), fitted.transform(fitted.inverse_transform(Y))):
        np.testing.assert_allclose(Y, same, atol=1e-10 if dtype == np.float64 else 2e-4)
    np.testing.assert_array_equal(fitted.transform(X[3:4].astype(dtype)), Y[3:4])
    sized = fitted.prepare.sized(fitted.inverse_transform(Y[3:4]), X[3])
    np.testing.assert_allclose(sized, X[3:4], rtol=1e-2 if dtype == np.float32 else 1e-7, atol=1e-2)
    assert Fitted.from_arrays(fitted.arrays()).prepare.suits(X.shape[1])
    refused, gaps = pytest.raises(InputError, match="needs complete rows"), X.max() == X
    with refused if name in BY_ROW else nullcontext():  # what fills gaps does not count
        Preprocessing(prepare=name).fit(np.where(gaps, -1, X), missing=gaps)


def spectra(first=400, scatter=1.0):
    x, a, b, c = np.linspace(0, 3, 30), *np.random.default_rng(0).normal(size=(3, 80, 1))
    X = (np.sin(x) + 0.1 * a * np.cos(5 * x)) * (1 + 0.2 * scatter * b) + scatter * c
    return X, [str(first + i) for i in range(30)]


@pytest.mark.parametrize("name", ["derivative", "snv_derivative"])
@pytest.mark.parametrize("d", [3, 4, 8, 11, 60])
def test_the_ends_of_a_derivative_are_as_quiet_as_its_middle(name, d, seed):
    X = np.linspace(0, 9, d) + 0.1 * np.random.default_rng(seed).normal(size=(4000, d))
    slopes = Preprocessing(prepare=name).fit(X).transform(X)
    spread = slopes.std(axis=0)
    assert spread[[0, -1]].max() < 1.2 * np.median(spread)
    steps = np.diff(EXPECTED["snv"](X) if name == "snv_derivative" else X)
    assert slopes.mean() == pytest.approx(steps.mean(), rel=0.1)
    with pytest.raises(InputError, match="at least 3 features"):
        Preprocessing(prepare=name).fit(X[:, :2]).transform(X[:, :2])


WORDS = [a + b + c for a in "bcdf" for b in "aeiou" for c in "lmn"]
PROPOSALS = {  # a preparation; rows with names of their features
    "counts": (counts(0), None),
    "tfidf": (counts(0, 60) * (counts(1, 60) > 8), WORDS),
    "snv": spectra(),
    "clr": (np.random.default_rng(0).dirichlet([9, 5, 3, 0.3], 200), None),
    "log1p": (np.random.default_rng(0).lognormal(1, 1.5, (200, 5)), None),
    "asinh": (np.random.default_rng(0).standard_t(1.2, (200, 5)), None),
    "asinh of small values": (np.random.default_rng(0).lognormal(-7, 1.5, (200, 5)), None),
    "ranks": (np.exp(np.clip(3 * np.random.default_rng(0).standard_t(1, (200, 5)), -99, 99)), None),
    " of grades and an age": (np.c_[counts(0) > 0, np.arange(len(counts(0))) % 40 + 20], None),
    " of years": spectra(1990),
    " of spectra without scatter": spectra(scatter=0.0),
    " of wine": (load("wine").X, None),
}


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_preparation_is_proposed_where_the_data_look_like_it(name):
    X, names = PROPOSALS[name]
    dataset = Dataset("table", X, np.arange(len(X)), feature_names=names)
    assert proposed(dataset)[0] == name.partition(" ")[0]


ODD = [  # name of a feature; values by row; what is said about them
    ("grad_rate", {3: 118, 7: 103}, "118 in row 3; grad_rate is 103 in row 7"),
    ("age", {5: 999}, "999 in row 5"),
    ("height", {2: -3}, "−3 in row 2"),
    ("score", {9: -9}, "−9 in row 9"),
    ("score", {3: 118, 8: -3}, ""),
    ("pct_change", {3: 118}, ""),
    ("grad_rate", dict(enumerate(range(101, 105))), ""),
]


@pytest.mark.parametrize(("name", "odd", "cells"), ODD)
def test_gaps_that_follow_a_label_and_values_out_of_range_are_told(name, odd, cells):
    X, ids = np.random.default_rng(0).integers(20, 40, (100, 4)).astype(float), np.arange(100)
    X[[*odd], 0], gaps = [*odd.values()], np.zeros(X.shape, dtype=bool)
    gaps[:50, 1:3] = gaps[60:80, 3] = True
    labels = {"row": ids, "pair": ids // 5, "school": np.array([*"ABCD"])[ids // 25]}
    data = Dataset("table", X, ids, labels, feature_names=(name, *"abc"), missing=gaps)
    said = f" To check: {name} is {cells}." if cells else ""
    assert told(replace(data, missing=None)) == said
    where = "empty wherever school = A or B"
    assert gaps_of_label(data) == dict.fromkeys("ab", where)
    assert told(data) == f" 2 columns are {where}: ignore columns or leave out rows.{said}"


@pytest.mark.parametrize(("n", "is_told"), [(9, False), (10, True), (20, True), (21, False)])
def test_a_value_that_few_rows_share_is_told_where_others_differ(n, is_told):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    X[:n, 1], X[:n, 2] = 0, np.rint(X[:n, 2])
    X[:, 2] = np.rint(9 * X[:, 2])  # whole numbers are shared by chance
    data = Dataset("table", X, np.arange(1000), feature_names=("a", "width", "c"))
    assert told(data) == f" To check: width is 0 in {n} rows." * is_told


def test_ranks_that_go_with_other_features_are_no_running_numbers(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 4))
    X[:, 0] += X[:, 1]
    table = np.column_stack([X, X.argsort(axis=0).argsort(axis=0)[:, 0], rng.permutation(90)])
    data = Dataset("table", table, np.arange(90), feature_names=(*"abcd", "rank", "code"))
    assert redundant(data)["code"] == "a running number"
    assert redundant(data)["rank"] == "a repeat of “a”, correlation of ranks 1.0000"
    for name in ("XC", "y_coord", "Longitude", "xylem"):
        placed = redundant(replace(data, feature_names=(*"abc", name, "rank", "code")))
        assert (placed.get(name) == "a place, not a measurement") == (name != "xylem")
    X[:, 1:3] = np.column_stack([np.exp(X[:, 0]), X[:, 0] ** 2])  # a square is no repeat
    assert [*redundant(replace(data, X=np.column_stack([X, table[:, 4:]])))] == [
        "b",
        "rank",
        "code",
    ]


def test_a_zero_share_counts_as_half_of_the_least_of_its_feature():
    X = np.array([[0.0, 1, 3], [2, 1, 1]])
    shares = Preprocessing(prepare="clr").fit(X)
    expected = np.log([[1, 1, 3], [2, 1, 1]]) - np.log([[3], [2]]) / 3
    np.testing.assert_allclose(shares.transform(X), expected)
    np.testing.assert_allclose(shares.inverse_transform(expected).sum(axis=1), 4)


def digits() -> np.ndarray:
    return np.stack([zoom(image, 2, order=1) for image in load_digits().images[:200]]) / 16


def blobs(n: int, h: int, w: int) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=(n, h, w))
    return np.stack([gaussian_filter(image, 1.5) for image in noise])


@pytest.mark.parametrize("images", [digits(), blobs(60, 12, 20), blobs(60, 24, 10)])
def test_the_shape_of_pictures_is_the_first_that_is_proposed(images):
    n, h, w = images.shape
    best = likely_shapes(images.reshape(n, -1))[0]
    assert best.is_likely
    assert best.shape == PixelShape(h, w)
    turned = likely_shapes(images.transpose(0, 2, 1).reshape(n, -1), prefer_columns=True)[0]
    assert turned.shape == PixelShape(h, w, by_column=True)


def test_rows_that_are_no_pictures_are_not_taken_for_some():
    rng = np.random.default_rng(0)
    noise, series = rng.normal(size=(80, 256)), np.cumsum(rng.normal(size=(80, 256)), axis=1)
    shuffled = digits().reshape(200, -1)[:, rng.permutation(256)]
    for X in (noise, series, shuffled, rng.normal(size=(80, 3)) @ rng.normal(size=(3, 240))):
        assert not any(each.is_likely for each in likely_shapes(X))
    assert likely_shapes(rng.normal(size=(9, 251))) == []  # a prime


def test_colours_and_columns_come_into_row_major_order():
    images = np.arange(2 * 3 * 3).reshape(2, 3, 3)
    down = images.transpose(2, 1, 0).ravel()
    order = pixel_order(PixelShape(2, 3, 3, by_column=True))
    np.testing.assert_array_equal(down[order].reshape(2, 3, 3), images)
    gaps = blobs(9, 4, 6)
    gaps[2, 1, 3] = np.nan
    np.savez(file := io.BytesIO(), X=gaps.transpose(0, 2, 1).reshape(9, -1))
    data = read("x.npz", file, missing="model", image_shape=(4, 6), by_column=True)
    np.testing.assert_allclose(data.with_gaps().reshape(9, 4, 6), gaps)
    assert data.provenance["options"]["by_column"] is True


def curve_data(names=None, n: int = 60) -> Dataset:
    rng, at = np.random.default_rng(0), np.linspace(400, 700, 61)
    peaks = np.stack([np.exp(-(((at - middle) / 30) ** 2)) for middle in (450, 560, 640)])
    X = np.abs(rng.normal(size=(n, 3))) @ peaks + 0.01 * rng.normal(size=(n, 61))
    names = tuple(f"{x:g} nm" for x in at) if names is None else names
    return Dataset("curves", X, np.arange(n).astype(str), feature_names=names)


@pytest.mark.parametrize(
    ("name", "is_ordered"),
    [
        (lambda j: f"t{j * j}", True),
        (lambda j: f"{9.5 - j / 2} s", True),
        (lambda j: f"{400 + 11.5 * j}".replace(".", ","), True),
        (lambda j: f"{'ab'[j % 2]}{j}", False),
        (lambda j: f"x{j ^ 1}", False),
        (lambda j: f"gene {chr(65 + j % 26)}{j // 26}", False),
        (lambda j: f"time {'x' * j}", False),
    ],
)
def test_numbers_in_names_tell_the_order_and_else_smoothness(name, is_ordered):
    assert curve_data(tuple(map(name, range(61)))).is_ordered is is_ordered
    assert curve_data().is_ordered
    assert picture_shape(curve_data()) == (61,)
    rng = np.random.default_rng(0)
    rough = rng.normal(size=(80, 64))
    assert not follow_each_other(rough, None)
    assert follow_each_other(rough, [f"{428 + 1.5 * j}" for j in range(64)]), "wavenumbers"
    for names in (range(64), range(1, 65), [j**3 + 2 for j in range(64)]):  # counts and ids
        assert not follow_each_other(rough, list(map(str, names)))
    assert not follow_each_other(digits().reshape(200, -1), None)
    curves = np.cumsum(rng.normal(size=(80, 64)), axis=1)
    assert follow_each_other(curves, None)
    assert not follow_each_other(curves[:, :9], None), "too few"


def test_rows_become_sparklines_of_one_scale_where_an_order_is_found_or_stated():
    data, rows = curve_data(), np.array([3, 5])
    sheets = sheets_of(data, np.arange(60))
    assert sheets.header["tile"] == [*SPARK, 1]
    np.testing.assert_array_equal(sheets.images(rows), row_lines(data, rows))
    sizes = 10.0 ** np.arange(data.n_rows)[:, None] % 1e7 + 1  # rows of many sizes: a scale each
    unlike = replace(data, X=sizes * (data.X - data.X.min() + 1))
    assert (row_lines(unlike, rows).reshape(len(rows), -1).std(axis=1) > 20).all()
    svg = curves(np.array([[1, np.nan, 2.0, 3], [4, 5, 6, 7]]), ["red", "blue"]).decode()
    assert (svg.count('"red"'), svg.count('"blue"'), "nan" in svg) == (2, 1, False)
    for stated in (True, False):
        data = replace(curve_data(), provenance={"ordered": stated})
        assert data.is_ordered is stated
        assert suggest(data).scale == ("global" if stated else "feature")
        assert (sheets_of(data, np.arange(60)) is not None) is stated
    rows = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    drawn = lines_of_rows(rows, (0.0, 1.0), (21, 41))
    assert drawn[0, 0].argmax() in (19, 20, 21)  # the peak, at the top in the middle
    assert drawn[0, -1, [0, -1]].min() > 0.4
    assert drawn[1, :2].min(axis=1).max() == 1.0
    assert drawn[1, 4:].max() == 0.0
