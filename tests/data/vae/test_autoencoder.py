import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources.builtin import load
from appca.data.vae import training
from appca.data.vae.autoencoder import (
    VAE,
    Autoencoder,
    code_means,
    estimate_seconds,
    logits,
    suggest,
)
from appca.words.errors import InputError

SMALL = VAE(dimensions=4, hidden=64, epochs=25)


@pytest.fixture(scope="module")
def digits():
    return load("digits").take(np.arange(900))


@pytest.fixture(scope="module")
def fitted(digits) -> Fitted:
    return Preprocessing(divide=16.0, vae=SMALL).fit(digits.X)


@pytest.fixture(scope="module")
def curved():
    """Rows on a bent sheet in 6 dimensions, far from zero and in large units."""
    rng = np.random.default_rng(5)
    u = rng.standard_normal((600, 2))
    bent = np.column_stack([u, u**2, u[:, :1] * u[:, 1:], np.sin(u[:, :1])])
    return 5000 + 300 * (bent + 0.05 * rng.standard_normal(bent.shape))


def nets(width: int, options: VAE, bernoulli: bool, seed: int = 0) -> training._Weights:
    rng = np.random.default_rng(seed)
    seen = training._Range(rng.random(width), 0.7, bernoulli)
    start = training._start(rng, seen, options)
    return training._Weights(
        *(value + 0.05 * rng.standard_normal(np.shape(value)) for value in start)
    )


@pytest.mark.thorough
def test_the_loss_falls_and_the_pictures_beat_the_mean_picture(digits, fitted):
    losses = fitted.vae.losses
    assert losses.shape == (25,)
    assert losses[-1] < losses[8] < losses[0]
    again = fitted.inverse_transform(fitted.transform(digits.X))
    error = np.square(again - digits.X).mean()
    assert error < 0.75 * np.square(digits.X - digits.X.mean(axis=0)).mean()
    assert fitted.vae.bernoulli
    assert again.min() >= 0
    assert again.max() <= 16


@pytest.mark.thorough
def test_a_bent_sheet_in_other_units_is_learned_by_a_gaussian_decoder(curved):
    fitted = Preprocessing(vae=VAE(dimensions=2, hidden=64, epochs=120)).fit(curved)
    codes = fitted.transform(curved)
    assert codes.shape == (600, 2)
    assert codes.dtype == np.float64
    left = np.square(fitted.inverse_transform(codes) - curved).mean()
    centred = curved - curved.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)
    assert not fitted.vae.bernoulli
    assert left < values[:-2].sum() / curved.size, "better than the two best straight axes"


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_bits_and_another_does_not(digits, fitted):
    again = Preprocessing(divide=16.0, vae=SMALL).fit(digits.X)
    for name, value in fitted.vae._asdict().items():
        assert getattr(again.vae, name).tobytes() == value.tobytes(), name
    short = replace(SMALL, epochs=2)
    one, two = (
        Preprocessing(divide=16.0, vae=replace(short, seed=seed)).fit(digits.X).vae.code
        for seed in (0, 1)
    )
    assert not np.allclose(one, two)


def test_the_encoder_in_numpy_is_that_of_jax(digits, fitted):
    import jax

    X = (digits.X / 16).astype(np.float32)
    codes = np.asarray(code_means(jax.numpy, fitted.vae, X))
    np.testing.assert_allclose(fitted.transform(digits.X), codes, atol=1e-5)
    there = jax.nn.sigmoid(logits(jax.numpy, fitted.vae, codes))
    np.testing.assert_allclose(fitted.vae.decode(codes), np.asarray(there), atol=1e-5)


@pytest.mark.parametrize("bernoulli", [True, False])
def test_the_loss_is_the_evidence_lower_bound_and_jax_knows_its_slope(bernoulli):
    import jax

    rng = np.random.default_rng(3)
    weights = nets(5, VAE(dimensions=2, hidden=7), bernoulli)
    X, noise = rng.random((4, 5)), rng.standard_normal((4, 2))
    value = training.loss_of(np, weights, X, noise, bernoulli=bernoulli)
    assert value == pytest.approx(bound(weights, X, noise, bernoulli), rel=1e-9)

    flat, shape = jax.flatten_util.ravel_pytree(weights)
    flat = np.asarray(flat, np.float64)

    def loss(theta: np.ndarray) -> float:
        own = training._Weights(*_parts(theta, weights))
        return float(training.loss_of(np, own, X, noise, bernoulli=bernoulli))

    @jax.jit
    def slope_of(own: tuple) -> tuple:
        return jax.grad(lambda w: training.loss_of(jax.numpy, w, X, noise, bernoulli=bernoulli))(
            own
        )

    def slope(theta: np.ndarray) -> np.ndarray:
        own = shape(theta.astype(np.float32))
        found = slope_of(own)
        return np.asarray(jax.flatten_util.ravel_pytree(found)[0], np.float64)

    assert check_grad(loss, slope, flat) < 1e-3 * np.linalg.norm(slope(flat))


def _parts(theta: np.ndarray, like: tuple) -> list[np.ndarray]:
    sizes = np.cumsum([np.size(part) for part in like])[:-1]
    pieces = np.split(theta, sizes)
    return [piece.reshape(np.shape(part)) for piece, part in zip(pieces, like, strict=True)]


def bound(weights, X, noise, bernoulli) -> float:
    """Minus log p(x | c) - log p(c) + log q(c | x), integrated over q where that is exact."""
    from scipy.stats import bernoulli as coin
    from scipy.stats import norm

    hidden = np.maximum(
        (X - weights.shift) / weights.unit @ weights.inward + weights.inward_bias, 0
    )
    mean, spread = hidden @ weights.code + weights.code_bias, hidden @ weights.spread
    sd = np.exp((spread + weights.spread_bias) / 2)
    c = mean + sd * noise
    out = np.maximum(c @ weights.outward + weights.outward_bias, 0) @ weights.picture
    out = out + weights.picture_bias
    if bernoulli:
        p = 1 / (1 + np.exp(-out))
        fit = X * coin.logpmf(1, p) + (1 - X) * coin.logpmf(0, p)
    else:
        fit = norm.logpdf(
            X, weights.shift + weights.unit * out, weights.unit * np.exp(weights.log_noise / 2)
        )
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)  # E over q of log q - log p(c)
    draws = mean[..., None] + sd[..., None] * nodes
    gap = norm.logpdf(draws, mean[..., None], sd[..., None]) - norm.logpdf(draws)
    divergence = gap @ masses / masses.sum()
    return float((divergence.sum(axis=1) - fit.sum(axis=1)).mean())


def test_arrays_bring_the_same_object_back(digits, fitted, tmp_path):
    np.savez(tmp_path / "fitted.npz", **fitted.arrays())
    with np.load(tmp_path / "fitted.npz", allow_pickle=False) as file:
        back = Fitted.from_arrays({key: file[key] for key in file.files})
    np.testing.assert_array_equal(back.transform(digits.X), fitted.transform(digits.X))
    codes = fitted.transform(digits.X[:5])
    np.testing.assert_array_equal(back.inverse_transform(codes), fitted.inverse_transform(codes))
    assert back.n_features == 4
    assert all(
        name.startswith("vae_") for name in set(fitted.arrays()) - {"divide", "offset", "scale"}
    )


def test_components_in_data_space_are_decoded_differences_about_the_mean_code(digits, fitted):
    W = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 2)))[0]
    centre = fitted.transform(digits.X).mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(fitted.vae.centre, centre, atol=1e-5)
    steps = fitted.inverse_transform(centre + W.T) - fitted.inverse_transform(centre[None])
    found = fitted.directions(W)
    assert found.shape == (64, 2)
    np.testing.assert_allclose(found, steps.T, atol=1e-3)
    assert np.abs(fitted.directions(2 * W) - 2 * found).max() > 1e-2, "the decoder bends"


def test_a_report_can_end_the_training(digits):
    told = []

    def report(stage: str, share: float) -> None:
        told.append(share)
        if share > 0.4:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        Preprocessing(divide=16.0, vae=SMALL).fit(digits.X, report)
    assert told == sorted(told)
    assert max(told) < 0.6


def test_stored_networks_need_no_jax(fitted, tmp_path):
    np.savez(tmp_path / "fitted.npz", **fitted.arrays())
    script = (
        "import sys, numpy as np\n"
        "from appca.data.preprocessing import Fitted\n"
        f"fitted = Fitted.from_arrays(dict(np.load({str(tmp_path / 'fitted.npz')!r})))\n"
        "fitted.inverse_transform(fitted.transform(np.zeros((2, 64), np.uint8)))\n"
        "print('jax' in sys.modules, 'optax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_without_jax_one_sentence_says_what_to_install(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    monkeypatch.setattr(training, "_compiled", training._compiled.__wrapped__)
    with pytest.raises(
        InputError, match=r"needs the package (jax|optax).*pip install .appca\[vae\]"
    ):
        Preprocessing(divide=16.0, vae=SMALL).fit(digits.X)


def test_data_it_cannot_learn_are_refused():
    with pytest.raises(InputError, match=r"at most as many dimensions as the data .*, 3; got 4"):
        Preprocessing(vae=SMALL).fit(np.random.default_rng(0).random((20, 3)))
    with pytest.raises(InputError, match="all rows are the same"):
        Preprocessing(vae=SMALL).fit(np.full((20, 6), 0.3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"dimensions": 0},
            "dimensions of the autoencoder must be a whole number from 1 on; got 0",
        ),
        ({"epochs": 2.5}, "epochs of the autoencoder .*; got 2.5"),
        ({"seed": -1}, "from 0 on; got -1"),
        ({"hidden": True}, "hidden .* got True"),
    ],
)
def test_meaningless_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        VAE(**options)


def test_options_survive_a_dict_and_are_named_only_where_there_is_an_autoencoder():
    chosen = Preprocessing(divide=255.0, vae=VAE(dimensions=3, seed=9))
    assert Preprocessing.from_dict(chosen.to_dict()) == chosen
    assert chosen.to_dict()["vae"] == {"dimensions": 3, "hidden": 400, "epochs": 30, "seed": 9}
    assert "vae" not in Preprocessing().to_dict()
    assert Preprocessing.from_dict({"vae": None}) == Preprocessing()
    with pytest.raises(InputError, match=r"has the options dimensions, .*; got layers"):
        Preprocessing(vae={"layers": 3})
    with pytest.raises(InputError, match="by pca or by vae, not both"):
        Preprocessing(pca=3, vae=VAE())


def test_the_features_that_will_be_left_are_known_before_the_fit():
    assert Preprocessing().most_features(64) == 64
    assert Preprocessing(pca=10).most_features(64) == 10
    assert Preprocessing(pca=0.9).most_features(64) == 64
    assert Preprocessing(vae=SMALL).most_features(64) == 4


def test_small_data_get_more_epochs():
    assert suggest(10_000, 784) == VAE(dimensions=10, epochs=30)
    assert suggest(178, 13).epochs > 100
    assert [suggest(178, d).dimensions for d in (2, 4, 13)] == [1, 1, 3]
    assert estimate_seconds(10_000, 784, VAE()) < estimate_seconds(70_000, 784, VAE())


def test_the_networks_take_the_dtype_of_the_rows(fitted):
    assert isinstance(fitted.vae, Autoencoder)
    for dtype in (np.float32, np.float64):
        X = np.full((2, 64), 0.5, dtype)
        assert fitted.vae.encode(X).dtype == dtype
        assert fitted.vae.decode(fitted.vae.encode(X)).dtype == dtype


def test_a_row_is_encoded_the_same_in_whatever_company_by_steady_products(digits, fitted):
    from appca.models.rows.steady_products import times

    X = digits.X[:40]
    whole = fitted.transform(X, times)
    np.testing.assert_allclose(whole, fitted.transform(X), rtol=1e-3, atol=1e-4)
    for step in (1, 2, 7):
        parts = [fitted.transform(X[i : i + step], times) for i in range(0, len(X), step)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
