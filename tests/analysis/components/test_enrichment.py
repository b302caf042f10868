"""Planted sets come first by component and sign, and correlated features alone are no finding."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import kstest, ttest_ind

from appca import AdaptivePPCA, enrichment
from appca.data.readers.process import read_sets, read_sets_apart
from appca.words import InputError

D = 120
NAMES = [f"gene {d}" for d in range(D)]


class Weights:
    """A model with weights (K, D) whose rows are nothing but what they leave over."""

    def __init__(self, components):
        self.components_, self.mean_ = components, np.zeros(components.shape[1])

    def describe(self, X):
        return type("Rows", (), {"scores": np.zeros((len(X), len(self.components_)))})


def blocks_of_features(rng, n):
    """Return rows whose features vary together in twelve blocks of ten."""
    shared = np.repeat(rng.normal(size=(n, 12)), 10, axis=1)
    return shared + 0.5 * rng.normal(size=(n, D))


@pytest.mark.default_cases(5)
@pytest.mark.parametrize("number", range(20))
def test_planted_sets_come_first(number):
    rng = np.random.default_rng(number)
    W = np.zeros((2, D))
    W[0, :12], W[1, 40:52] = 1.0, -1.0
    Z = np.eye(2)[rng.integers(0, 2, 300)]
    X = 3 * (Z * rng.normal(1, 1, size=(300, 2))) @ W + blocks_of_features(rng, 300)
    model = AdaptivePPCA(2, 1, random_state=0).fit(X)
    sets = {f"set {s}": rng.choice(NAMES, 12, replace=False) for s in range(40)}
    sets |= {"first": NAMES[:12], "second": NAMES[40:52]}
    tests = enrichment(model, X, sets, NAMES, random_state=number)
    assert set(tests["set"][:2]) == {"first", "second"}
    for _, test in tests[:2].iterrows():
        planted = slice(0, 12) if test["set"] == "first" else slice(40, 52)
        weight = model.components_[test["component"] - 1, planted].mean()
        assert (test["sign"] == "+") == (weight > 0)
        assert test["q"] < 0.2


def test_p_is_uniform_where_features_vary_together_and_naive_tests_are_not():
    rng = np.random.default_rng(3)
    X = blocks_of_features(rng, 400)
    model = Weights(rng.normal(size=(60, 400)) @ X)
    sets = {f"block {b}": NAMES[10 * b : 10 * b + 10] for b in range(12)}
    tests = enrichment(model, X, sets, NAMES, random_state=1)
    for sign in "+-":
        one = tests[(tests["sign"] == sign) & (tests["set"] == "block 3")]
        assert len(one) == 60
        assert kstest(one["p"], "uniform").pvalue > 0.01
    inside = np.isin(NAMES, sets["block 3"])
    naive = [ttest_ind(w[inside], w[~inside]).pvalue for w in model.components_]
    assert kstest(naive, "uniform").pvalue < 1e-6


def test_regions_of_an_atlas_are_sets_of_voxels(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    atlas = np.zeros((4, 5, 6), np.int16)
    atlas[:2], atlas[3, 1, 2] = 7, 2
    nibabel.save(nibabel.Nifti1Image(atlas, np.eye(4)), tmp_path / "atlas.nii.gz")
    sets = read_sets("atlas.nii.gz", tmp_path / "atlas.nii.gz")
    assert sets["region 2"] == ["voxel-3-1-2"]
    assert len(sets["region 7"]) == 60
    names = ["voxel-{}-{}-{}".format(*place) for place in np.ndindex(4, 5, 6)]
    W = np.zeros((1, D))
    W[0, :60] = 1.0
    tests = enrichment(Weights(W), np.eye(D), tmp_path / "atlas.nii.gz", names)
    assert (tests.loc[0, "set"], tests.loc[0, "sign"]) == ("region 7", "+")
    assert tests.loc[0, "p"] < 1e-3
    space = {"grid": [4, 5, 6], "affine": np.eye(4).tolist(), "repetition": 2.0}

    def apart(other):
        return read_sets_apart("atlas.nii.gz", tmp_path / "atlas.nii.gz", tmp_path, space | other)

    assert apart({}) == apart({"affine": (np.eye(4) + 1e-5).tolist()}) == sets
    with pytest.raises(InputError, match="is 4 x 5 x 6, the recording 4 x 5 x 7; both must agree"):
        apart({"grid": [4, 5, 7]})
    with pytest.raises(InputError, match="differs from the recording's by up to 2; both"):
        apart({"affine": np.diag([-1.0, 1, 1, 1]).tolist()})
    nibabel.save(nibabel.Nifti1Image(atlas[0], np.eye(4)), tmp_path / "flat.nii")
    with pytest.raises(InputError, match="is 5 x 6, the recording 5 x 6 x 1"):
        read_sets("flat.nii", tmp_path / "flat.nii")


def test_files_of_sets_and_refusals(tmp_path):
    gmt, table = tmp_path / "a.gmt", tmp_path / "b.csv"
    gmt.write_text("one\thttp\tx\ty\r\ntwo\t\tz\n", encoding="utf-8")
    table.write_text('feature,set\nx,one\n"y",one\nz,two\n', encoding="utf-8")
    ways = (read_sets, partial(read_sets_apart, scratch=tmp_path, space={}))
    assert [read(path.name, path) for path in (gmt, table) for read in ways] == [
        {"one": ["x", "y"], "two": ["z"]}
    ] * 4
    for text in ("x,one,more\n", "x," + "y" * 200_000):
        table.write_text(text, encoding="utf-8")
        for read in ways:
            with pytest.raises(InputError, match="a feature and its set in each line"):
                read("b.csv", table)
    for sets, names, words in (
        ({"a": ["x"]}, ["x"], "120 features; got 1 names"),
        ({"a": NAMES[:4]}, NAMES, "No set has 5 or more of the 120 features"),
    ):
        with pytest.raises(InputError, match=words):
            enrichment(Weights(np.ones((1, D))), np.ones((9, D)), sets, names)
