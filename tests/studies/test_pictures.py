"""The experiments that show pictures: on planted data, and on the paper's files."""

import sys

import numpy as np
import pytest
from scipy.stats import bernoulli, norm

from appca.data.sources import load
from appca.studies import coil20, digits, synthetic
from appca.studies.digits import Digits, Networks
from appca.studies.fitting import PanelFit
from appca.words import MissingExtraError


def silent(_stage: str, _share: float) -> None:
    pass


def test_the_three_planes_are_recovered_and_pca_loses_more():
    study = synthetic.PLANES
    outcome = study.run(study.options(), silent)
    rows = outcome.tables["planes"]
    assert sorted(row["plane"] for row in rows) == ["1 and 2", "1 and 3", "2 and 3"]
    assert all(row["angle"] < 2 for row in rows)
    assert sum(row["of_the_plane"] for row in rows) > 0.85 * 900
    assert [claim.holds for claim in outcome.claims] == ["yes", "yes"]
    figures = study.figures(outcome)
    assert len(figures["projections"].layout.annotations) == 4
    assert len(figures["space"].data) == 6  # points and planes


def test_projections_lose_nothing_of_rows_in_their_subspaces():
    Y = np.array([[2.0, 0, 0], [-2.0, 0, 0], [0, 3.0, 0], [0, -3.0, 0]])
    active = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    for order, lost in ((active, 0), (active[::-1], 1)):
        fitted = PanelFit(Y[:, :2], order, np.eye(3)[:2])
        assert synthetic.residual(Y, fitted) == pytest.approx(lost)


def test_width_is_compared_over_images_and_over_objects(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(6), 20)
    score = codes + 0.1 * rng.standard_normal(120)
    fitted = PanelFit(np.stack([score, -score], 1), np.stack([codes < 6, codes < 2], 1), np.eye(2))
    first, second = coil20.widths(fitted, 0.1 * codes + 0.3, codes)
    assert first["correlation_of_objects"] > 0.99
    assert (first["rows"], first["objects"]) == (120, 6)
    assert second["correlation"] < -0.9
    assert second["correlation_of_objects"] is None  # two objects are too few
    assert first["width_low_half"] < first["width_high_half"]


@pytest.fixture
def planted() -> tuple[Digits, PanelFit]:
    """Forty thick strokes in one subspace, forty thin and leaning ones in the other."""
    images = np.zeros((80, 20, 20), np.uint8)
    for row in range(80):
        for y in range(4, 16):
            x = 9 + row % 2 + (0 if row < 40 else round((10 - y) * 0.6))
            images[row, y, x : x + (5 if row < 40 else 2)] = 255
    active = np.zeros((80, 3), bool)
    active[:40, :2] = active[40:, 1:] = True
    scores = np.random.default_rng(0).normal(size=(80, 3)) * active
    drawn = Digits(images, ["0", "1"], np.arange(80) // 2 % 2, scores)
    return drawn, PanelFit(scores, active, np.eye(3))


def test_ink_and_slant_are_measured_in_the_subspaces_they_were_put_in(planted):
    rows = {(row["measure"], row["subspace"]): row for row in digits.effects(*planted)}
    thick, thin = rows["ink, pixels", "{1,2}"], rows["ink, pixels", "{2,3}"]
    assert (thick["mean"], thin["mean"], thick["rows"]) == (60, 24, 40)
    assert thick["effect"] == -thin["effect"] > 5
    assert thick["above_median"] == 1
    leaning = rows["slant, degrees", "{2,3}"]
    assert leaning["mean"] == pytest.approx(np.degrees(np.arctan(0.6)), abs=2)
    assert leaning["effect_within_classes"] > 5


def test_both_experiments_share_one_autoencoder_and_draw_their_results(planted, monkeypatch):
    drawn, fitted = planted
    trained = []

    def train(X, dimensions, epochs, seed, _report):
        assert (X.max(), dimensions, epochs, seed) == (1, 10, 30, 0)
        trained.append(1)

    class Opened:
        n_rows, X, labels = 80, drawn.images.reshape(80, -1), {"digit": drawn.codes}

        def images(self, rows):
            return drawn.images[rows]

    changes = {"_LAST": {}, "fit": lambda *_arguments: fitted, "train": train}
    changes |= {"encode": lambda _networks, _X: drawn.Y, "load": lambda *_names, **_more: Opened()}
    changes["images_of"] = lambda _name, rows: drawn.images[rows]
    for name, value in changes.items():
        monkeypatch.setattr(digits, name, value)
    options = digits.STUDY.options("quick")
    first, second = (study.run(options, silent) for study in (digits.STUDY, digits.STROKES))
    assert len(trained) == 1
    assert len(digits.STUDY.figures(first)["digits"].layout.annotations) == 3
    figures = digits.STROKES.figures(second)
    assert len(figures["members"].layout.images) == 2
    assert len(figures["spread"].data) == 6
    assert [claim.holds for claim in second.claims] == ["yes", "yes"]


def test_digits_that_share_differ_from_chance(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(5), 60)
    active = np.zeros((300, 20), bool)
    for row, code in enumerate(codes):
        kin = 3 if code == 0 else code  # 1 and 7 use the same factors
        active[row, [4 * kin, 4 * kin + 1]] = True
        active[row, rng.choice(20, 3, replace=False)] = True
    outcome = digits.shared_factors(active, codes, digits.ODD)
    rows = {(row["digit"], row["other"]): row for row in outcome.tables["sharing"]}
    assert rows["1", "7"]["deviation"] > 10
    assert rows["5", "9"]["deviation"] < 3
    assert [claim.holds for claim in outcome.claims[1:]] == ["yes", "no"]
    assert "number 1 of 10 pairs" in outcome.claims[1].measured
    shares = [row["share"] for row in outcome.tables["popularity"]]
    assert shares == sorted(shares, reverse=True)
    assert set(digits.SHARING.figures(outcome)) == {"grid", "popularity"}


@pytest.fixture(scope="module")
def small_digits() -> np.ndarray:
    return (load("digits").X[:900] / 16).astype(np.float32)


def test_the_loss_is_the_evidence_lower_bound(monkeypatch):
    from jax.tree_util import tree_map

    monkeypatch.setattr(digits, "HIDDEN", 7)
    rng = np.random.default_rng(3)
    X, noise = rng.random((4, 5)), rng.standard_normal((4, 2))
    start = digits.start(rng, X, 2)
    nets = tree_map(lambda v: v + 0.05 * rng.standard_normal(v.shape), start)
    value = digits.negative_bound(np, nets, X, noise)
    assert value == pytest.approx(bound(nets, X, noise), rel=1e-9)


def bound(nets: Networks, X: np.ndarray, noise: np.ndarray) -> float:
    """Minus log p(x | c) - log p(c) + log q(c | x), integrated over q where that is exact."""
    (A, a), (C, c), (S, s), (B, b), (P, p0) = nets[1:]
    hidden = np.maximum((X - nets.shift) @ A + a, 0)
    mean, sd = hidden @ C + c, np.exp((hidden @ S + s) / 2)
    hidden = np.maximum((mean + sd * noise) @ B + b, 0)
    p = 1 / (1 + np.exp(-(hidden @ P + p0)))
    fit = X * bernoulli.logpmf(1, p) + (1 - X) * bernoulli.logpmf(0, p)
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)  # E over q of log q - log p(c)
    draws = mean[..., None] + sd[..., None] * nodes
    gap = norm.logpdf(draws, mean[..., None], sd[..., None]) - norm.logpdf(draws)
    divergence = gap @ masses / masses.sum()
    return float((divergence.sum(axis=1) - fit.sum(axis=1)).mean())


def test_without_jax_one_sentence_says_what_to_install(small_digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    words = r"needs the package (jax|optax).*pip install .appca\[vae\]"
    with pytest.raises(MissingExtraError, match=words):
        digits.train(small_digits, 4, 1, 0, silent)
