"""Experiments that show pictures: planes, digits, objects, and the recording of a brain."""

import sys
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import bernoulli, gamma, norm

from appca.analysis import brain
from appca.data import brain as recordings
from appca.data import sources
from appca.data.brain import Event, cleaned, upright
from appca.data.sources import load
from appca.studies import coil20, digits, synthetic
from appca.studies.brain import STUDY, separate
from appca.studies.digits import Digits, Networks
from appca.studies.fitting import PanelFit
from appca.words import InputError, MissingExtraError


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


EVENTS = tuple(Event(10.0 + 30.0 * i, 16.0) for i in range(7))
T, STEP = 120, 2.0


def test_the_stimulus_is_the_integral_of_the_response_over_the_events():
    def answered(seconds: np.ndarray) -> np.ndarray:
        """Integral of the response, from the distribution functions of its two gammas."""
        return (gamma.cdf(seconds, 6) - gamma.cdf(seconds, 16) / 6) / (1 - 1 / 6)

    times = STEP * np.arange(T) + 0.1  # the tenth that begins with a volume counts for it
    known = sum(answered(times - one.onset) - answered(times - one.end) for one in EVENTS)
    raw = brain.stimulus(EVENTS, T, STEP)
    np.testing.assert_allclose(raw, known, atol=1e-3)
    later = brain.stimulus(EVENTS, T, STEP, shift=6.0)
    np.testing.assert_allclose(later[3:], raw[:-3], atol=1e-12)


def test_the_t_map_is_that_of_whitened_least_squares_and_finds_what_follows(seed):
    """By the precision matrix of each voxel instead of by differences."""
    rng = np.random.default_rng(seed)
    raw = brain.stimulus(EVENTS, T, STEP)
    series, memory = rng.standard_normal((304, T)), np.zeros(304)
    memory[:4] = 0.0, 0.3, 0.6, -0.4
    for t in range(1, T):
        series[:, t] += memory * series[:, t - 1]
    series[4:34] += 3 * brain.unit(raw) * np.sqrt(T)
    found = brain.reference(series, raw)
    X = np.column_stack([raw, np.vander(np.linspace(-1, 1, T), 4)])
    for y, t in zip(series[:8], found.t, strict=False):
        left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        rho = np.mean(left[1:] * left[:-1]) / np.mean(left**2)
        whitener = np.eye(T) - np.diag(np.full(T - 1, np.trunc(100 * rho) / 100), -1)
        precision = whitener.T @ whitener
        inverse = np.linalg.inv(X.T @ precision @ X)
        weights = inverse @ X.T @ precision @ y
        left = y - X @ weights
        wanted = weights[0] / np.sqrt(inverse[0, 0] * (left @ precision @ left) / (T - 5))
        np.testing.assert_allclose(t, wanted, rtol=1e-4)
    assert found.active[4:34].all()
    assert found.active[34:].mean() < 0.02
    normal = NormalDist().inv_cdf(1 - 0.05 / 304)
    assert normal < found.threshold < normal + 0.2  # 115 degrees of freedom


def test_a_stimulus_that_nothing_follows_is_no_rarer_than_its_shifts(seed):
    rng = np.random.default_rng(seed)
    raw = brain.stimulus([Event(float(at), 4.0) for at in rng.integers(0, 230, 9)], T, STEP)
    own = brain.circular_p(brain.unit(raw)[None], raw)
    assert own <= 3 / T
    turned = brain.unit(np.roll(raw, 41))[None]
    assert brain.circular_p(turned, raw) > own
    assert brain.circular_p(turned, np.roll(raw, 41)) == own


def test_the_place_of_a_map_is_counted_by_hand():
    active = np.array([1, 1, 0, 0, 0, 0], dtype=bool)
    found = brain.place(np.array([3.0, 0.0, 2.0, -4.0, 0.0, 0.0]), active)
    wanted = {"dice": 0.5, "energy_inside": 9 / 29, "on": 0.5, "on_inside": 0.5}
    assert found == pytest.approx(wanted)
    nothing = brain.place(np.zeros(6), np.zeros(6, dtype=bool))
    assert nothing == dict.fromkeys(wanted, 0.0)


@pytest.mark.parametrize("n_volumes", [60, 61])
def test_random_phases_keep_spectra_and_lose_what_is_shared(n_volumes):
    rng = np.random.default_rng(3)
    shared = np.sin(np.arange(n_volumes) * 2 * np.pi * 6 / n_volumes)
    series = cleaned(shared + 0.5 * rng.standard_normal((400, n_volumes)))
    turned = brain.phase_randomised(rng, series)
    power = [np.square(np.abs(np.fft.rfft(one, axis=1))).mean(axis=0) for one in (series, turned)]
    peak = np.argmax(power[0])
    assert np.argmax(power[1]) == peak == 6
    assert power[1][peak] == pytest.approx(power[0][peak], rel=0.1)
    largest = [np.linalg.eigvalsh(one.T @ one / 400)[-1] for one in (series, turned)]
    assert largest[1] < 0.7 * largest[0]
    assert turned.std() == pytest.approx(1.0, abs=1e-3)


@pytest.fixture(scope="module")
def outcome():
    return STUDY.run(STUDY.options("quick"), silent, 1)


@pytest.fixture(scope="module")
def small() -> recordings.Recording:
    """Every tenth voxel of the made-up brain."""
    whole = recordings.load("made-up")
    places = np.argwhere(whole.mask)[::10]
    mask = np.zeros_like(whole.mask)
    mask[tuple(places.T)] = True
    return whole._replace(series=whole.series[::10], signal=whole.signal[::10], mask=mask)


def tiny(**changes) -> dict:
    return STUDY.options("quick", components=[4], active=[2], **changes)


def test_the_component_follows_the_stimulus_and_its_map_is_where_that_was_put(outcome):
    table, values = outcome.tables["fmri"], outcome.arrays["map_appca"]
    assert [row["data"] for row in table] == ["recording"] * 3 + ["phases randomised"] * 3
    appca, small, large = table[:3]
    assert appca["r"] > 0.7
    assert appca["p"] < 0.05 < table[3]["p"]
    for row in (appca, small, large):
        assert abs(row["r_shifted"]) < row["r"] / 2, "not one six seconds later"
    region = sources.brain().labels["region"]
    driven = np.isin(region, ["visual cortex", "face area", "place area"])
    strongest = np.argsort(-values)[:60]
    assert driven[strongest].mean() > 0.9
    assert driven[outcome.arrays["map_t"] > outcome.arrays["threshold"]].mean() > 0.9
    assert (appca["on"] < 0.7, appca["on_inside"] > 0.9, small["on"]) == (True, True, 1.0)
    for own, other in ((appca, small), (table[3], table[4])):
        assert own["rmse"] < other["rmse"], "forced down by choice"


def test_without_events_nothing_is_said_of_a_stimulus(small):
    other = separate(small, tiny(events="10+16 70+16"), silent)  # instead of the recording's
    assert other.tables["recording"][0]["events"] == 2
    found = separate(small._replace(events=()), tiny(), silent)
    assert [claim.holds for claim in found.claims[2:]] == ["not tested"] * 2
    assert found.tables["fmri"][0]["r"] is None
    assert "map_t" not in found.arrays
    assert len(STUDY.figures(found)) == 3


def test_settings_that_do_not_suit_are_one_sentence(small):
    for changes, words in (
        ({"components": [3], "active": [3]}, "L from 1 to K"),
        ({"components": [400], "active": [3]}, "K must be at most 116"),
        ({"components": [4, 5], "active": [2]}, "lists of equal length"),
        ({"events": "10+16 240+16"}, "1 of 2 events lie outside"),
        ({"events": "ten"}, "written as onset"),
    ):
        with pytest.raises(InputError, match=words):
            separate(small, tiny() | changes, silent)


def test_volumes_are_turned_upright_as_nibabel_does():
    from nibabel import Nifti1Image, as_closest_canonical

    volume = np.random.default_rng(0).random((3, 4, 5))
    for affine in (
        np.diag([-2.0, 3.0, 4.0, 1.0]),
        np.array([[0, 0.2, -3, 0], [2, 0, 0.1, 0], [0, -2, 0.3, 0], [0, 0, 0, 1.0]]),
    ):
        expected = as_closest_canonical(Nifti1Image(volume, affine)).get_fdata()
        np.testing.assert_allclose(upright(volume, affine), expected)
