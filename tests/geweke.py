"""Geweke's joint distribution test (2004), and deliberately wrong kernels to show that it can fail.

The joint p(parameters, data) is drawn in two ways: directly from the prior, and by a chain that
alternates a Gibbs sweep with new data given the state. If the sweep leaves the posterior invariant,
both have the same averages. Statistics are recorded *after the sweep and before new data*: once the
data are redrawn, the pair is consistent by construction, and a sweep with a stale residual passes.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

# draws of a correct sweep, as many as detect most wrong ones; in `pytest -m slow`, subtle ones
DRAWS = pytest.mark.parametrize(
    "n_draws", [2500, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)


def batch_error(draws, n_batches=50):
    """Return the standard error of the mean of correlated draws, by batch means."""
    kept = draws[: len(draws) // n_batches * n_batches]
    batches = kept.reshape(n_batches, -1, *draws.shape[1:])
    return batches.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(n_batches)


def geweke_z(model, rng, n_draws):
    """Compare a chain with independent draws of the joint.

    `model` has draw_prior(rng) -> state, draw_data(rng, state) -> Y, sweep(rng, state, Y) -> state
    and statistics(state, Y) -> dict of numbers. Returns {statistic: z}.
    """
    forward, chain = [], []
    for _ in range(n_draws):
        state = model.draw_prior(rng)
        forward.append(model.statistics(state, model.draw_data(rng, state)))
    state = model.draw_prior(rng)
    for _ in range(n_draws):
        Y = model.draw_data(rng, state)
        state = model.sweep(rng, state, Y)
        chain.append(model.statistics(state, Y))
    names = list(forward[0])
    first = np.array([[row[name] for name in names] for row in forward], dtype=float)
    second = np.array([[row[name] for name in names] for row in chain], dtype=float)
    error = np.hypot(first.std(axis=0, ddof=1) / np.sqrt(n_draws), batch_error(second))
    difference = second.mean(axis=0) - first.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(difference == 0, 0.0, difference / error)
    return dict(zip(names, z, strict=True))


def agreement_z(model, other, rng, n_draws):
    """Compare the posterior expectations of two sweeps on the same data; return {statistic: z}.

    The data are drawn given the initial state of both chains, which is therefore a draw from the
    posterior, so no burn-in is needed.
    """
    start = model.draw_prior(rng)
    Y, chains = model.draw_data(rng, start), []
    for one in (model, other):
        state, kept = start, []
        for _ in range(n_draws):
            state = one.sweep(rng, state, Y)
            kept.append(model.statistics(state, Y))
        chains.append(kept)
    names = list(chains[0][0])
    first, second = (
        np.array([[row[name] for name in names] for row in chain], dtype=float) for chain in chains
    )
    difference = second.mean(axis=0) - first.mean(axis=0)
    error = np.hypot(batch_error(first, 25), batch_error(second, 25))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(difference == 0, 0.0, difference / error)
    return dict(zip(names, z, strict=True))


def is_caught(model, rng, n_draws=(1000, 4000, 16_000)):
    """Whether a wrong sweep is detected: gross faults by few draws, subtle ones by many.

    With three tests in sequence, the limit is higher than the 5 of a single test.
    """
    with np.errstate(divide="ignore"):  # log 0 in a wrong kernel that is not compiled
        return any(worst(geweke_z(model, rng, n))[0] > 6 for n in n_draws)


def worst(z):
    """Return the largest absolute z and its name, for an assertion's message."""
    name = max(z, key=lambda key: abs(z[key]))
    return abs(z[name]), name


def broken(module_name, old, new, folder: Path, stem: str):
    """Import a copy of a module with a replaced piece of source, as a negative control."""
    source = Path(importlib.util.find_spec(module_name).origin).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {module_name}"
    path, text = folder / f"{stem}.py", source.replace(old, new)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")  # numba then compiles it again
    spec = importlib.util.spec_from_file_location(stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def broken_kernels(module_name, old, new, folder: Path, stem: str):
    """Import a wrong copy with uncompiled kernels, which are faster for a few rows than compiling.

    A logarithm of zero then warns, unlike in compiled code.
    """
    uncompiled = broken(
        module_name,
        "appca.models.numeric_kernels",
        "tests.uncompiled",
        folder,
        f"{stem}_uncompiled",
    )
    return broken(uncompiled.__name__, old, new, folder, stem)
