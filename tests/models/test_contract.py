"""Tests of the contract of every model: all modes of fitting times all requirements."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.special import logsumexp

from appca import load_model
from appca.models import rows as rows_module
from tests.models.fits import (
    BY_EM,
    FITS,
    SAMPLED,
    WITH_GAPS,
    D,
    enumerated,
    fit_of,
    placed,
    published_draw,
    raw_draws,
    rows_for,
    unfitted,
)

pytestmark = pytest.mark.filterwarnings("ignore:max_components=", "ignore:EM ended at max_iter")
EVERY = pytest.mark.parametrize("name", FITS)
PAPER = ["EM", "own variances", "hard"]  # which take batches, blocks, sparse rows, weights
VARIANTS = ["noise", "sizes", "all"]
QUERIES = ("transform", "allocate", "inclusion_probabilities", "allocation_probability")
QUERIES += ("score_samples",)


def answers(model, X):
    names = QUERIES + (("row_scales",) if hasattr(model, "row_scales") else ())
    names += ("size_probabilities",) if hasattr(model, "size_probabilities_") else ()
    return {name: getattr(model, name)(X) for name in names}


def alike(found, wanted, **how):
    for name, value in wanted.items():
        close(found[name], value, err_msg=name, **how)


@EVERY
def test_answers_are_those_of_enumeration(name):
    """Over all supports and scales of the published draw, each a dense normal density."""
    model, X = fit_of(name), rows_for(name)[1][:20]
    model = model.published() if name in SAMPLED else model
    draw = published_draw(model)
    told = enumerated(draw, X)
    close(model.score_samples(X), told.log_likelihood, atol=1e-8)
    close(model.inclusion_probabilities(X), told.inclusion, atol=1e-8)
    at = np.arange(len(X)), told.p.max(axis=2).argmax(axis=1)  # likeliest pair of set and scale
    close(model.allocation_probability(X), told.p.sum(axis=2)[at], atol=1e-8)
    some = ~np.isnan(X).all(axis=1)  # the supports of a row of nothing are equally likely
    equal(model.allocate(X)[some], draw.sets[at[1]][some])
    close(model.transform(X), told.means[at], atol=1e-7)
    close(model.transform(X, "all"), told.scores, atol=1e-7)
    if hasattr(model, "row_scales"):
        close(model.row_scales(X), told.p.sum(axis=1) @ draw.grid, atol=1e-8)
    if hasattr(model, "size_probabilities_"):
        sizes = np.eye(len(draw.W) + 1)[draw.sets.sum(axis=1)]
        close(model.size_probabilities(X), told.p.sum(axis=2) @ sizes, atol=1e-8)
    if name in WITH_GAPS:
        full = model.mean_ + told.scores @ model.components_
        close(model.impute(X), np.where(np.isnan(X), full, X), atol=1e-7)


@pytest.mark.parametrize("name", SAMPLED)
def test_after_sampling_answers_are_averages_over_draws(name):
    """Of what enumeration says at each draw as it was kept, its components matched anew."""
    model, X = fit_of(name), rows_for(name)[1][:5]
    K, every = len(model.components_), list(raw_draws(model))
    density, inclusion, scores = [], np.zeros((5, K)), np.zeros((5, K))
    W, mu, scale, sizes = np.zeros((K, D)), np.zeros(D), 0.0, 0.0
    for draw in every:
        told = enumerated(draw, X)
        density.append(told.log_likelihood)
        mu += draw.mu / len(every)
        scale = scale + told.p.sum(axis=1) @ draw.grid / len(every)
        sizes = sizes + told.p.sum(axis=2) @ np.eye(6)[draw.sets.sum(axis=1)] / len(every)
        for i, j, sign in placed(draw.W, model.components_):
            inclusion[:, j] += told.inclusion[:, i] / len(every)
            scores[:, j] += sign * told.scores[:, i] / len(every)
            W[j] += sign * draw.W[i] / len(every)
    close(model.score_samples(X), logsumexp(density, axis=0) - np.log(len(every)), atol=1e-8)
    close(model.inclusion_probabilities(X), inclusion, atol=1e-8)
    close(model.transform(X), scores, atol=1e-7)
    close(model.inverse_transform(scores), scores @ W + mu, atol=1e-7)
    if hasattr(model, "row_scales"):
        close(model.row_scales(X), scale, atol=1e-8)
    r, active = model.inclusion_probabilities(X), model.allocate(X)
    if hasattr(model, "size_probabilities_"):
        close(model.size_probabilities(X), sizes[:, : K + 1], atol=1e-8)
    if isinstance(getattr(model, "n_active", ""), str):
        equal(active, r > 0.5)
    else:
        equal(active, r >= np.sort(r, axis=1)[:, [-model.n_active]])
    assert (model.allocation_probability(X) <= r.min(axis=1, where=active, initial=1) + 1e-9).all()


@EVERY
@pytest.mark.parametrize("whiten", [False, True])
def test_a_description_says_what_the_queries_say(name, whiten):
    model, X = fit_of(name).set_params(whiten=whiten), rows_for(name)[1]
    told, one = model.describe(X), model.published() if name in SAMPLED else model
    scores = one.transform(X)
    close(told.scores, scores * (model.scale_ if whiten else 1.0), atol=1e-12)
    equal(told.active, one.allocate(X))
    equal(scores != 0, told.active & ~np.isnan(X).all(axis=1)[:, None])
    close(told.membership, one.allocation_probability(X), atol=1e-12)
    close(told.inclusion, model.inclusion_probabilities(X), atol=1e-12)
    close(told.log_likelihood, model.score_samples(X), atol=1e-9)
    left, some = np.square(X - one.inverse_transform(scores)), ~np.isnan(X).all(axis=1)
    close(told.error[some], np.nanmean(left[some], axis=1), atol=1e-10)
    assert not told.standard_error.any()
    assert told.method.startswith("exact")
    assert ("average over" in told.method) == (name in SAMPLED)
    assert model.score(X) == pytest.approx(told.log_likelihood.mean())
    if whiten:
        active = one.allocate(rows_for(name)[0])
        squares = np.square(one.transform(rows_for(name)[0])).sum(axis=0)
        used = squares > 0
        close(squares[used] / active.sum(axis=0)[used], 1.0, rtol=1e-6)


@EVERY
def test_neither_the_size_of_blocks_nor_other_rows_change_an_answer(name, monkeypatch):
    model, X = fit_of(name), rows_for(name)[1]
    wanted = answers(model, X)
    alike(answers(model, X[7:9]), {key: value[7:9] for key, value in wanted.items()}, atol=1e-10)
    monkeypatch.setattr(rows_module, "MIN_BLOCK_ROWS", 7)
    monkeypatch.setattr(rows_module, "MAX_BLOCK_ROWS", 7)
    alike(answers(model, X), wanted, rtol=1e-10, atol=1e-10)


@EVERY
def test_attributes_are_moments_of_the_training_rows_in_their_order(name):
    model, X = fit_of(name), rows_for(name)[0]
    K = len(model.components_)
    for attribute in ("latent_variance_", "explained_variance_", "scale_"):
        assert getattr(model, attribute).shape == (K,)
    assert (model.components_.shape, model.mean_.shape) == ((K, D), (D,))
    noise = model.noise_variance_ if np.ndim(model.noise_variance_) else np.ones(D)
    V = model.components_ / np.sqrt(noise)
    assert (V[np.arange(K), np.abs(V).argmax(axis=1)] > 0).all()
    if "FA" not in name:
        close(V @ V.T, np.eye(K), atol=1e-9)
    lengths = np.square(model.components_).sum(axis=1)
    by = model.explained_variance_ / (lengths if np.ndim(model.noise_variance_) else 1.0)
    assert (np.diff(by) <= 1e-12).all()
    assert len(model.log_likelihoods_) == model.n_iter_
    one = model.published() if name in SAMPLED else model
    rms = np.sqrt(np.square(one.transform(X)).sum(axis=0) / one.allocate(X).sum(axis=0).clip(1))
    close(model.scale_[rms > 0], rms[rms > 0], rtol=1e-6)
    if name in BY_EM:
        total = model.score_samples(X)
        if name in ("hard", "aFA, best"):  # of rows with their supports
            total = total + np.log(model.allocation_probability(X))
        rel = 1e-3 if name == "aFA, best" else 1e-8  # sets that are searched for anew may be better
        assert model.log_likelihoods_[-1] == pytest.approx(total.sum(), rel=rel)
        assert np.diff(model.log_likelihoods_, prepend=-np.inf).min() > -1e-7
    else:
        assert model.stop_reason_ == "made all 22 sweeps of every chain"
        draws = model.posterior_
        assert draws["components"].shape[:2] == draws["noise_variance"].shape == (2, 10)
        assert draws["Z_mean"].shape == draws["X_mean"].shape == (2, 120, draws["Z_mean"].shape[2])


@pytest.mark.parametrize("name", SAMPLED)
def test_the_published_draw_is_the_densest_of_the_usual_number_of_components(name):
    model, X = fit_of(name), rows_for(name)[0]
    good, draws = model.chain_levels_.counts, model.posterior_
    density = draws["log_posterior"][good]
    if "n_components" in draws:
        numbers = draws["n_components"][good]
        often = np.bincount(numbers.ravel())
        assert model.n_components_ == often.argmax()
        density = np.where(numbers == often.argmax(), density, -np.inf)
    at = np.unravel_index(density.argmax(), density.shape)
    for one in ("noise_variance", "row_scale_probabilities", "size_probabilities"):
        if one in draws:
            close(getattr(model, f"{one}_"), draws[one][good][at], rtol=1e-9)
    if "n_components" not in draws:  # else log p(Y | Z)
        total = model.published().score_samples(X).sum()
        assert total == pytest.approx(draws["log_likelihood"][good][at], rel=1e-8)
    data = model.to_arviz()
    assert data.posterior["noise_variance"].dims == ("chain", "draw")
    assert {"lp", "lp_collapsed"} & set(data.sample_stats)
    assert ("size_probabilities" in data.posterior) == hasattr(model, "size_probabilities_")


@EVERY
def test_a_fit_comes_back_from_its_arrays_and_from_a_file(name, tmp_path):
    model, X = fit_of(name), rows_for(name)[1]
    model.save(tmp_path / "model.npz")
    wanted, saved = answers(model, X), load_model(tmp_path / "model.npz")
    assert type(saved) is type(model)
    equal(saved.log_likelihoods_, model.log_likelihoods_)
    for what in (lambda one: one.get_params(), lambda one: one.describe(X).method):
        assert what(saved) == what(model)
    assert (saved.n_iter_, saved.stop_reason_) == (model.n_iter_, model.stop_reason_)
    for again in (saved, unfitted(name).restore(model.fitted_arrays())):
        alike(answers(again, X), wanted, rtol=0)
        equal(again.sample(20, 1), model.sample(20, 1))
        assert not hasattr(again, "posterior_")
        if hasattr(model, "n_parameters_"):
            assert again.n_parameters_ == model.n_parameters_
        if name in SAMPLED:
            equal(again.component_bands(), model.component_bands())
    arrays = model.fitted_arrays()
    del arrays["mean"]
    with pytest.raises(ValueError, match="mean is missing: fit the model again"):
        unfitted(name).restore(arrays)


@EVERY
def test_components_in_another_order_are_the_same_model(name):
    model, X = fit_of(name), rows_for(name)[1]
    before, draws = model.fitted_arrays(), dict(getattr(model, "posterior_", {}))
    before = {key: np.array(value) for key, value in before.items()}
    told, K = model.describe(X), len(model.components_)
    order, signs = np.roll(np.arange(K), 1), np.where(np.arange(K) % 2, 1, -1)
    assert model.reorder(order, signs) is model
    now = model.describe(X)
    equal(model.components_, before["components"][order] * signs[:, None])
    for key in ("latent_variance", "explained_variance", "scale"):
        equal(getattr(model, f"{key}_"), before[key][order])
    close(now.scores, told.scores[:, order] * signs, atol=1e-10)
    close(now.inclusion, told.inclusion[:, order], atol=1e-10)
    close(now.log_likelihood, told.log_likelihood, rtol=1e-10, atol=1e-12)
    for key, values in draws.items():
        seen, moved = model.posterior_[key], values
        if key in ("components", "Z_mean", "X_mean", "weights", "latent_variance"):
            moved = np.take(values, [*order, *range(K, values.shape[2])], axis=2)
            turned = np.append(signs, np.ones(values.shape[2] - K))
            moved = moved * (
                turned[:, None] if key == "components" else turned if key == "X_mean" else 1
            )
        equal(seen, moved, err_msg=key)
    back = np.argsort(order)
    model.reorder(back, signs[back])
    for key, value in model.fitted_arrays().items():
        equal(value, before[key])
    for wrong in (order[1:], [*order[1:], order[1]]):
        with pytest.raises(ValueError, match=f"each of 0 to {K - 1} once, and signs"):
            model.reorder(wrong)


@EVERY
def test_samples_are_those_of_the_model_and_settled_by_the_seed(name):
    model = fit_of(name)
    model = model.published() if name in SAMPLED else model
    X, Z = model.sample(100_000, 0, return_supports=True)
    draw = published_draw(model)
    share = np.exp(draw.log_prior) @ draw.sets
    C = draw.W.T * (share * draw.tau2) @ draw.W + np.diag(draw.psi)
    C *= draw.omega @ draw.grid
    close(np.cov(X.T), C, atol=0.04 * np.abs(C).max())
    close(X.mean(axis=0), model.mean_, atol=0.02 * np.sqrt(C.max()))
    close(Z.mean(axis=0), share, atol=0.01)
    sizes = np.eye(Z.shape[1] + 1)[draw.sets.sum(axis=1)]
    close(
        np.bincount(Z.sum(axis=1), minlength=Z.shape[1] + 1) / len(Z),
        np.exp(draw.log_prior) @ sizes,
        atol=0.01,
    )
    equal(model.sample(5), model.sample(5))
    assert not np.array_equal(model.sample(5), model.sample(5, random_state=1))
    if hasattr(model, "get_covariance"):
        close(model.get_covariance(), C, rtol=1e-8, atol=1e-8)
        close(model.explained_variance_ratio_, model.explained_variance_ / np.trace(C), rtol=1e-9)
        X = rows_for(name)[0]
        if name not in WITH_GAPS:
            p, total = model.n_parameters_, model.score_samples(X).sum()
            assert model.bic(X) == pytest.approx(p * np.log(len(X)) - 2 * total)
            assert model.aic(X) == pytest.approx(2 * p - 2 * total)


@pytest.mark.parametrize("name", SAMPLED)
def test_bands_hold_the_middle_of_the_draws(name):
    model, X = fit_of(name), rows_for(name)[1]
    low, high = model.component_bands(0.8)
    wide = model.component_bands(0.98)
    assert ((wide[0] <= low) & (low <= high) & (high <= wide[1])).all()
    low, high = model.score_bands(X, 0.98)
    scores, r = model.transform(X), model.inclusion_probabilities(X)
    assert ((low - 0.5 <= scores) & (scores <= high + 0.5)).mean() > 0.97
    equal(low[r < 1e-4], 0.0)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1; got 90"):
        model.component_bands(90)


@EVERY
def test_the_same_seed_gives_the_same_bits_and_leaves_what_was_given(name):
    X, model = rows_for(name)[0], fit_of(name)
    kept = X.copy()
    X.flags.writeable = False
    again = unfitted(name)
    before = {key: id(value) for key, value in again.get_params().items()}
    assert again.fit(X) is again
    equal(X, kept)
    assert {key: id(value) for key, value in again.get_params().items()} == before
    for key, value in model.fitted_arrays().items():
        equal(again.fitted_arrays()[key], value)
    for key, draws in getattr(model, "posterior_", {}).items():
        equal(again.posterior_[key], draws)
    if name in SAMPLED:
        noise = model.posterior_["noise_variance"]
        assert not np.array_equal(noise[0], noise[1])
        other = unfitted(name, random_state=1).fit(X).posterior_["noise_variance"]
        assert not np.array_equal(noise, other)


@EVERY
def test_verbose_prints_what_a_callback_hears_and_a_stop_keeps_what_there_is(name, capsys):
    X, heard = rows_for(name)[0], []
    unfitted(name, verbose=True, callback=heard.append).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(heard)
    last = heard[-1]
    assert lines[-1].startswith(f"{last.stage}, {last.iteration} of at most {last.max_iter}")
    assert float(lines[-1].split()[-4]) == pytest.approx(last.log_likelihood / 120, rel=1e-4)
    if name == "PPCA":  # in closed form: there is nothing to stop
        return
    if name in SAMPLED:
        assert [p.stage for p in heard[-22:]] == ["burn-in"] * 12 + ["draws"] * 10
    for stage in dict.fromkeys(p.stage for p in heard):
        until_then = []

        def stop(progress, stage=stage, until_then=until_then):
            until_then.append(progress.stage)
            if progress.stage == stage:
                raise StopIteration

        model = unfitted(name, callback=stop).fit(X)
        assert until_then.index(stage) == len(until_then) - 1
        assert model.stop_reason_ == "stopped by the callback"
        assert np.isfinite(model.score(X))
        assert len(model.log_likelihoods_) == model.n_iter_
        if name in SAMPLED:
            first, second = model.posterior_["noise_variance"]
            assert len(first) == len(second) == 1
            assert first != second, "drawn apart, also from one start"
        elif stage == "fit" and name not in ("hard", "aFA, best"):
            total = model.score_samples(X).sum()
            assert model.log_likelihoods_[-1] == pytest.approx(total, rel=1e-6)


def interrupt(_progress):
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore")
@EVERY
def test_a_fit_that_fails_leaves_the_one_before_whole_or_none(name):
    X, model = rows_for(name)[0], unfitted(name)
    names = pd.DataFrame(X, columns=list("abcdefg"), copy=False)  # by rows, as all others are:
    others = X[:, :5] + 1.0  # the sampler of isFA is compiled for each order of memory
    zero = FITS[name].get_params().get("mean") == "zero"
    bad = {"constant": np.full((120, 5), 0.0 if zero else 1.0), "inf": others.copy()}
    bad["interrupted"] = others
    bad["inf"][1, 1] = np.inf
    if name == "PPCA":  # which iterates around gaps alone
        others[0, 0] = np.nan

    def fail():
        for failure, rows in bad.items():
            kind = KeyboardInterrupt if failure == "interrupted" else ValueError
            model.set_params(callback=interrupt if failure == "interrupted" else None)
            with pytest.raises(kind):
                model.fit(pd.DataFrame(rows, columns=list("uvwxy"), copy=False))

    fail()
    assert not any(key.endswith("_") and not key.startswith("_") for key in model.__dict__)
    before = model.set_params(callback=None).fit(names).__dict__.copy()
    columns = [f"{type(model).__name__.lower()}{k}" for k in range(len(model.components_))]
    assert list(model.set_output(transform="pandas").transform(names).columns) == columns
    fail()
    assert all(model.__dict__[key] is value for key, value in before.items() if key != "callback")


@EVERY
def test_cells_that_are_infinite_and_gaps_are_refused_in_one_sentence(name):
    model, X = fit_of(name), rows_for(name)[0].copy()
    takes_gaps = name in ("PPCA", "EM", "own variances", *WITH_GAPS)
    X[5, 2] = np.nan
    for ask in (model.transform, model.score_samples, model.describe, unfitted(name).fit):
        if takes_gaps:
            assert ask(X) is not None
        else:
            with pytest.raises(ValueError, match=r"missing entries .* need|contains? NaN or inf"):
                ask(X)
    X = rows_for("EM")[0].copy()
    X[[3, 5], 2] = np.inf
    for ask in (model.transform, model.score_samples, unfitted(name).fit):
        with pytest.raises(
            ValueError, match=r"2 of its 120 rows contain (NaN or )?inf: (correct|fill)"
        ):
            ask(X)


@EVERY
def test_the_unit_of_the_data_changes_the_unit_of_the_answer_alone(name):
    # exact for chains, which then make the same draws
    unit = 2.0**-10 if name in SAMPLED else 1e120 if "PPCA" in name else 1e-120
    X, fresh = rows_for(name)
    plain, other = fit_of(name), unfitted(name).fit(unit * X)
    observed = (~np.isnan(fresh)).sum(axis=1)
    shifted = plain.score_samples(fresh) - observed * np.log(unit)
    if name == "aFA, best":  # which searches for sets at random
        assert other.score(unit * fresh) == pytest.approx(shifted.mean(), rel=1e-3)
        return
    close(other.score_samples(unit * fresh), shifted, rtol=1e-5, atol=1e-5)
    close(other.noise_variance_ / unit / unit, plain.noise_variance_, rtol=1e-4)
    for key in ("log_posterior", "log_joint") if name in SAMPLED else ():
        # another unit adds the same number to every density, however many components there are
        draws, known = other.posterior_[key], plain.posterior_[key]
        close(draws - draws[0, 0], known - known[0, 0], atol=1e-5)


@EVERY
def test_single_precision_stays_single_and_agrees(name):
    X, fresh = (rows.astype(np.float32) for rows in rows_for(name))
    single, double = unfitted(name).fit(X), fit_of(name)
    assert single.components_.dtype == single.mean_.dtype == np.float32
    assert single.transform(fresh).dtype == single.sample(2).dtype == np.float32
    assert single.inverse_transform(single.transform(fresh)).dtype == np.float32
    some = 0.5 if name in SAMPLED else 0.1 if name == "aFA, best" else 0.02
    assert single.score(fresh) == pytest.approx(double.score(fresh), abs=some)


@pytest.mark.parametrize("name", [name for name in FITS if name not in ("PPCA", "PPCA, gaps")])
def test_the_order_of_rows_does_not_matter_and_a_weight_is_a_repetition(name):
    X, fresh = rows_for(name)
    if name in SAMPLED:
        with pytest.raises((ValueError, TypeError), match="sample_weight"):
            unfitted(name).fit(X, sample_weight=np.ones(120))
        return
    rng, tight = np.random.default_rng(0), {"tol": 1e-9, "max_iter": 3000}
    tight, weights = {} if name == "aFA, best" else tight, rng.integers(0, 4, len(X))
    again = X[rng.permutation(np.repeat(np.arange(len(X)), weights))]
    other = unfitted(name, **tight).fit(again)
    if name == "gaps":
        with pytest.raises(ValueError, match="sample_weight cannot be used"):
            unfitted(name).fit(X, sample_weight=weights)
        one = unfitted(name, **tight).fit(again[::-1])
    else:
        one = unfitted(name, **tight).fit(X, sample_weight=weights)
        assert one.score(X, sample_weight=weights) == pytest.approx(other.score(again), abs=1e-6)
        for factor in (1e-300, 0.0023, 1e99):
            scaled = unfitted(name, **tight).fit(X, sample_weight=factor * weights)
            close(scaled.score_samples(fresh), one.score_samples(fresh), atol=1e-4)
        with pytest.raises(ValueError, match=r"at most 1e\+100"):
            unfitted(name).fit(X, sample_weight=1e200 * weights)
    assert one.log_likelihoods_[-1] == pytest.approx(other.log_likelihoods_[-1], rel=1e-7)
    close(one.score_samples(fresh), other.score_samples(fresh), atol=1e-3)
    close(np.abs(one.components_), np.abs(other.components_), atol=1e-3)


@pytest.mark.parametrize("name", [name for name in FITS if "warm_start" in FITS[name].get_params()])
def test_a_warm_start_goes_on_from_the_components_there_are(name):
    X, model = rows_for(name)[0], fit_of(name)
    last, before = model.log_likelihoods_[-1], model.components_.copy()
    model.components_ = -model.components_[::-1]  # as nothing but a warm start would leave them
    for attribute in ("latent_variance_", "explained_variance_", "scale_"):
        setattr(model, attribute, getattr(model, attribute)[::-1].copy())
    seen = []
    model.set_params(warm_start=True, callback=seen.append).fit(X)
    assert {p.stage for p in seen} <= {"fit", "fit, annealing", "burn-in", "draws"}
    if name in BY_EM:
        assert model.log_likelihoods_[-1] >= last - 1e-6 * abs(last)
        if name != "aFA, best":
            assert model.log_likelihoods_[0] >= last - 0.02 * abs(last)
            unit = [
                V / np.linalg.norm(V, axis=1)[:, None] for V in (model.components_, -before[::-1])
            ]
            assert (np.einsum("kd,kd->k", *unit) > 0.9).all()
    for k in (3, 5):
        again = model.set_params(n_components=k, callback=None).fit(X)
        assert again.components_.shape == (k, D)
        assert np.isfinite(again.score(X))


MEANS = [name for name in FITS if "mean" in FITS[name].get_params() and name != "gaps"]


@pytest.mark.parametrize("name", [*MEANS, "gaps"])
def test_a_fixed_mean_stays_where_it_is(name):
    X = rows_for(name)[0]
    for mean, wanted in (("zero", np.zeros(D)), ("sample", np.nanmean(X, axis=0))):
        close(unfitted(name, mean=mean).fit(X).mean_, wanted, atol=1e-12)
    if name in SAMPLED:
        assert np.ptp(fit_of(name).posterior_["mean"][..., 0]) > 0


@pytest.mark.parametrize("name", ["PPCA", *PAPER, *VARIANTS])
def test_sparse_rows_give_the_fit_of_dense_ones(name):
    X, fresh = (np.where(np.abs(rows) < 1.0, 0.0, rows) for rows in rows_for(name))
    a, b = unfitted(name).fit(X), unfitted(name).fit(scipy.sparse.csr_array(X))
    assert a.n_iter_ == b.n_iter_
    S = scipy.sparse.csc_matrix(fresh)
    close(b.components_, a.components_, atol=1e-6)
    alike(answers(b, S), answers(a, fresh), atol=1e-5)
    close(b.describe(S).error, a.describe(fresh).error, atol=1e-6)
    assert b.score(S) == pytest.approx(a.score(fresh), abs=1e-6)
    scores = b.transform(S)
    close(
        b.inverse_transform(scipy.sparse.csr_array(scores)), b.inverse_transform(scores), atol=1e-9
    )


@pytest.mark.parametrize("name", ["PPCA", *PAPER, *VARIANTS])
def test_blocks_and_dask_arrays_give_the_fit_of_rows_in_memory(name):
    da = pytest.importorskip("dask.array")
    tight = {} if name == "PPCA" else {"tol": 1e-8, "max_iter": 3000}
    X, fresh = rows_for(name)
    pieces, whole = np.split(X, [1, 70, 70]), unfitted(name, **tight).fit(X)
    wanted, lazy = answers(whole, fresh), da.from_array(fresh, chunks=(25, (3, 4)))
    fits = [unfitted(name, **tight).fit(da.from_array(X, chunks=(50, (3, 4))))]
    if name != "PPCA":
        fits += [unfitted(name, **tight).fit(iter(pieces))]
        fits += [unfitted(name, **tight).fit_blocks(lambda: iter(pieces))]
    for ours in fits:
        assert ours.score(fresh) == pytest.approx(whole.score(fresh), abs=1e-3)
        assert ours.n_features_in_ == D
        close(ours.components_, whole.components_, atol=1e-2)
    for key in wanted:
        told = getattr(whole, key)(lazy)
        assert told.dtype == wanted[key].dtype
        close(np.asarray(told), wanted[key], atol=1e-10)
    assert whole.score(lazy) == pytest.approx(whole.score(fresh), rel=1e-12)
    assert whole.score_blocks(iter([fresh])) == pytest.approx(whole.score(fresh), rel=1e-12)
    parts = list(whole.transform_blocks(iter(np.split(fresh, [9]))))
    close(np.concatenate(parts), wanted["transform"], atol=1e-10)
    with pytest.raises(ValueError, match="compute it first"):
        whole.describe(lazy)
