"""Table 1 and figure 4: factor analysis and its sparse and adaptive variants on designs of Z.

A sampled model is taken at its kept draw of largest posterior density. Every reconstruction is the
posterior mean of the scores on the row's most probable set of factors, times the loadings. The
oracle knows W, the noise and the law of Z, so no estimate can beat its held-out likelihood.
"""

import math
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.compare import log_density
from appca.data.sources import DESIGNS, Synthetic, draw_synthetic
from appca.studies.fitting import reporting
from appca.studies.processes import Spec, Tick, work
from appca.studies.study import (
    Claim,
    Figures,
    Options,
    Outcome,
    Report,
    Row,
    Study,
    checked,
    share,
    span,
)
from appca.words import InputError, counted, percent

if TYPE_CHECKING:
    from appca.models.loop import Callback, Progress

# Mean absolute reconstruction errors by the caption of the paper's table 1.
COLUMNS = tuple((design, K) for design in DESIGNS for K in (10, 20))
PRINTED: dict[str, tuple[float, ...]] = {
    "FA": (0.012, 0.014, 0.012, 0.014, 0.012, 0.015, 0.088, 0.099, 0.012, 0.014),
    "fsFA": (0.014, 0.018, 0.015, 0.018, 0.016, 0.018, 0.090, 0.101, 0.014, 0.019),
    "isFA": (0.023, 0.042, 0.021, 0.042, 0.024, 0.046, 0.073, 0.970, 0.045, 0.075),
    "aFA Gibbs": (0.014, 0.019, 0.012, 0.019, 0.013, 0.021, 0.047, 0.056, 0.015, 0.019),
    "aFA EM": (0.011, 0.013, 0.011, 0.013, 0.012, 0.014, 0.034, 0.044, 0.012, 0.014),
}
# Ten times every other error of its column, and as an absolute or a squared error out of all
# proportion to what is measured here (`_squared`): .970 is probably a misprint of .097.
READ_AS = {("isFA", "balanced", 20): 0.097}


def printed(method: str | None, design: str, n_components: int) -> float | None:
    """Return the number that the paper prints; None where it has none."""
    if method is None or (design, n_components) not in COLUMNS:
        return None
    return PRINTED[method][COLUMNS.index((design, n_components))]


def read(method: str | None, design: str, n_components: int) -> float | None:
    """Return the number that the paper probably means."""
    meant = READ_AS.get((method or "", design, n_components))
    return printed(method, design, n_components) if meant is None else meant


class Task(NamedTuple):
    """Data and settings of a fit."""

    Y: np.ndarray  # (N, D) rows to fit
    fresh: np.ndarray  # (M, D) rows of the same model, for the held-out log-likelihood
    n_components: int  # K
    n_active: int  # L
    most_active: int  # factors of the row that uses most
    burn_in: int
    n_draws: int
    seed: int


class MethodFit(NamedTuple):
    """Reconstruction, components and held-out likelihood of a method."""

    R: np.ndarray  # (N, D) reconstruction of the rows it was fitted to
    components: np.ndarray  # (M, D)
    Z: np.ndarray  # (N, M) bool
    log_likelihood: float  # of a fresh row, mean, nats
    standard_error: float  # of one row's log-likelihood, mean; 0 where exact
    how: str  # how the log-likelihood was computed
    seconds: float  # of the fit alone


class ComparedMethod(NamedTuple):
    """A row of the table."""

    title: str
    paper: str | None  # the corresponding row of the paper's table
    note: str  # the settings


MOST_BEYOND = 10  # factors that isFA may use beyond K; its prior is conditioned on that
CLIMB = 30  # iterations of EM before aFA is sampled, so that the chain begins near a mode
METHODS = {
    "fa_k": ComparedMethod("FA, K factors", "FA", "scikit-learn's FactorAnalysis"),
    "fa_l": ComparedMethod("FA, L factors", None, "as many factors as aFA gives to one row"),
    "fsfa": ComparedMethod("fsFA, Gibbs", "fsFA", "K factors, alpha inferred"),
    "isfa_k": ComparedMethod(
        *("isFA, Gibbs, alpha for K", "isFA"),
        f"alpha = K / H_N, so that K factors are expected; at most K + {MOST_BEYOND}",
    ),
    "isfa": ComparedMethod(
        "isFA, Gibbs, alpha inferred", "isFA", f"at most K + {MOST_BEYOND} factors"
    ),
    "afa_gibbs": ComparedMethod(
        "aFA, Gibbs", "aFA Gibbs", f"begun by {CLIMB} iterations of EM from ICA"
    ),
    "afa_paper": ComparedMethod(
        *("aFA, EM, the paper's start", "aFA EM"),
        "from principal components, one set a row, sample mean",
    ),
    "afa": ComparedMethod("aFA, EM", "aFA EM", "default settings: from independent components"),
    "afa_most": ComparedMethod(
        *("aFA, EM, L of the fullest row", "aFA EM"),
        "only where rows use different numbers of factors",
    ),
}


def estimator(key: str, task: Task, callback: "Callback | None" = None) -> Any:
    """Return the estimator of a method; None where it would repeat another one."""
    from sklearn.decomposition import FactorAnalysis

    from appca.models.adaptive_fa import AdaptiveFactorAnalysis
    from appca.models.conditionals import harmonic
    from appca.models.sampled_models import FiniteSparseFA, InfiniteSparseFA

    K, L = task.n_components, task.n_active
    common: dict[str, Any] = {"random_state": task.seed, "callback": callback}
    chain: dict[str, Any] = {"n_chains": 1, "burn_in": task.burn_in, "n_draws": task.n_draws}

    def sweeps_only(progress: "Progress") -> None:
        """Report iterations of the start as none: the fit can be ended there, but no bar moves."""
        if callback is not None:
            sampling = progress.stage in ("burn-in", "draws")
            callback(progress if sampling else progress._replace(iteration=0))

    if key in {"fa_k", "fa_l"}:
        return FactorAnalysis(K if key == "fa_k" else L, random_state=task.seed)
    if key == "fsfa":
        return FiniteSparseFA(K, **chain, **common)
    if key in {"isfa", "isfa_k"}:
        alpha = "infer" if key == "isfa" else K / harmonic(len(task.Y))
        return InfiniteSparseFA(K + MOST_BEYOND, alpha=alpha, **chain, **common)
    if key == "afa_most" and task.most_active == L:
        return None
    if key == "afa_paper":
        common |= {"init": "pca", "allocation": "best", "mean": "sample"}
    elif key == "afa_gibbs":
        common |= {"inference": "gibbs", "max_iter": CLIMB, **chain}
        common["callback"] = sweeps_only if callback else None
    return AdaptiveFactorAnalysis(K, task.most_active if key == "afa_most" else L, **common)


def fit(key: str, task: Task, callback: "Callback | None" = None) -> MethodFit | None:
    """Fit, reconstruct, and ask for the likelihood of the fresh rows; None if left out."""
    model = estimator(key, task, callback)
    if model is None:
        return None
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where it stops at its last iteration
        model.fit(task.Y)
    seconds = time.perf_counter() - began
    if hasattr(model, "published"):  # one draw has supports and scores to compare
        model = model.published()
    H = model.transform(task.Y)
    if hasattr(model, "estimate_score_samples"):
        Z, estimate = model.allocate(task.Y), model.estimate_score_samples(task.fresh)
        fresh, error, how = estimate.log_likelihood, float(estimate.error.mean()), estimate.method
    else:
        Z, fresh = np.ones(H.shape, dtype=bool), model.score_samples(task.fresh)
        error, how = 0.0, "exact"
    R = H @ model.components_ + model.mean_
    return MethodFit(R, model.components_, Z, float(fresh.mean()), error, how, seconds)


def fits(
    keys: Iterable[str], task: Task, stage: str, tick: Tick
) -> Iterator[tuple[str, MethodFit]]:
    """Yield the fits of methods, each reported in its share of the whole."""
    names = list(keys)
    for place, key in enumerate(names):
        ends = place / len(names), (place + 1) / len(names)
        fitted = fit(key, task, reporting(f"{stage}: {METHODS[key].title}", tick, *ends))
        if fitted is not None:
            yield key, fitted


def active_for(Z: np.ndarray) -> int:
    """Choose L for aFA: the mean number of factors of a row, rounded, at least 1."""
    return max(1, math.floor(float(Z.sum(axis=1).mean()) + 0.5))


class Oracle(NamedTuple):
    """Answers for rows from W, the noise and the law of Z: a bound for every estimate."""

    Z: np.ndarray  # (n, K) bool, most probable set of each row
    log_likelihood: np.ndarray  # (n,) nats
    error: np.ndarray  # (n,) standard error; 0 where exact
    method: str


def posterior_mean(Y: np.ndarray, W: np.ndarray, Z: np.ndarray, noise_sd: float) -> np.ndarray:
    """E[x * z | y, W, Z], (n, K): inv(I + W_S'W_S / sigma2) W_S'y / sigma2 on a row's set S."""
    gram, projected = W.T @ W, Y @ W
    H = np.zeros(Z.shape)
    for pattern in np.unique(Z, axis=0):
        rows = np.flatnonzero((pattern == Z).all(axis=1))
        S = np.flatnonzero(pattern)
        inner = gram[np.ix_(S, S)] + noise_sd**2 * np.eye(len(S))
        H[np.ix_(rows, S)] = np.linalg.solve(inner, projected[np.ix_(rows, S)].T).T
    return H


def oracle(Y: np.ndarray, truth: Synthetic, design: str, Z_of_law: np.ndarray) -> Oracle:
    """Ask the oracle, which knows W, the noise and the law of Z, about rows Y (n, D).

    The law is that of the design, with the shares of `Z_of_law` (m, K), a large draw of it.
    """
    from scipy.special import logsumexp

    from appca.models import fixed_size_supports, free_supports, numerics, supports

    (D, K), noise = truth.W.shape, truth.noise_sd**2
    if design in {"subspace", "single"}:  # few sets: a mixture of normal densities
        patterns, count = np.unique(Z_of_law, axis=0, return_counts=True)
        densities = [
            log_density(Y, np.zeros(D), truth.W[:, pattern].T, np.full(D, noise))
            for pattern in patterns
        ]
        joint = np.stack(densities) + np.log(count / len(Z_of_law))[:, None]
        method = f"exact, over {len(patterns)} sets"
        best = patterns[joint.argmax(axis=0)]
        return Oracle(best, logsumexp(joint, axis=0), np.zeros(len(Y)), method)
    c, G = Y @ truth.W / noise, truth.W.T @ truth.W / noise
    empty = numerics.background(np.square(Y).sum(axis=1), noise, D)
    if design == "balanced":  # any L of K factors, all sets alike
        model, seeds = supports.CollapsedModel(G, 1.0), fixed_size_supports.row_seeds(Y)
        L = int(Z_of_law[0].sum())
        members = fixed_size_supports.best(c, model, L, seeds)[0]
        sums = fixed_size_supports.summed(c, model, L, seeds, 16)
        Z = np.zeros((len(Y), K), dtype=bool)
        np.put_along_axis(Z, members, values=True, axis=1)
        base = empty - numerics.log_binomial(K, L)
        return Oracle(Z, base + sums.log_sum, sums.error, sums.method)
    weights = np.clip(Z_of_law.mean(axis=0), 1e-6, 1 - 1e-6)  # every factor independently
    question = free_supports.Question(c, G, 1.0, weights)
    free = free_supports.summed(question, 16)
    return Oracle(free_supports.best(question).Z, empty + free.log_sum, free.error, free.method)


LEAST_SHARE = 0.01  # of the rows must use a true factor before its direction is judged


def errors(Y: np.ndarray, R: np.ndarray) -> Row:
    """Mean absolute and mean squared difference of two matrices, per entry."""
    difference = Y - R
    return {"mae": float(np.abs(difference).mean()), "mse": float(np.square(difference).mean())}


def recovery(truth: np.ndarray, Z: np.ndarray, W: np.ndarray, Z_estimated: np.ndarray) -> Row:
    """Compare estimated components (M, D) and indicators (N, M) with the true ones.

    Those are (K, D) and (N, K). Returns the mean and the least |cos| over the factors that at least
    `LEAST_SHARE` of the rows use, and the share of all indicators that are right. A true factor
    that no row uses cannot be recovered and is left out of the matching; one that has no partner
    counts with |cos| 0 and as unused by every row. Estimated factors without a partner count as
    mistakes wherever a row uses them.
    """
    from appca.models.draws import match

    used = np.flatnonzero(Z.any(axis=0))
    left, right, _, paired = match(truth[used], W)
    cosine = np.zeros(Z.shape[1])
    cosine[used[left]] = paired
    judged = cosine[Z.mean(axis=0) >= LEAST_SHARE]
    width = max(Z.shape[1], Z_estimated.shape[1])
    wrong = np.logical_xor(Z[:, used[left]], Z_estimated[:, right]).sum()
    wrong += np.delete(Z, used[left], axis=1).sum() + np.delete(Z_estimated, right, axis=1).sum()
    return {
        "cosine": float(judged.mean()) if len(judged) else float("nan"),
        "cosine_least": float(judged.min()) if len(judged) else float("nan"),
        "z_right": 1.0 - float(wrong) / (len(Z) * width),
    }


# measure -> title; the order is that of the columns
MEASURES = {
    "mae": "Mean absolute error",
    "mse": "Mean squared error",
    "heldout": "Held-out log-likelihood, nats per row",
    "cosine": "Matched |cos|, mean",
    "cosine_least": "Matched |cos|, least",
    "z_right": "Z right",
    "per_row": "Factors a row",
    "n_used": "Factors used",
    "seconds": "Seconds",
}
REFERENCES = {
    "oracle_z": ("True W and Z", "posterior mean of the scores"),
    "oracle_s": ("True W, best sets", "knows W, the noise and the law of Z, not Z"),
    "noise": ("The noise itself", "what is left when the truth is taken off"),
}
TITLES = {key: method.title for key, method in METHODS.items()} | {
    key: title for key, (title, _) in REFERENCES.items()
}


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit everything, on `processes` processes, and sum up."""
    designs, methods = list(options["designs"]), list(TITLES)
    unknown = [design for design in designs if design not in DESIGNS]
    if unknown:
        msg = f"designs must be among {', '.join(DESIGNS)}; got “{unknown[0]}”."
        raise InputError(msg)
    specs = [
        {"design": design, "K": K, "seed": seed, "options": options}
        for K in sorted(options["components"], reverse=True)  # the long ones first
        for seed in range(options["seeds"])
        for design in designs
    ]
    parts = work("appca.studies.table1:cell", specs, report, processes)

    def place(row: Row) -> tuple[int, ...]:
        in_order = designs.index(row["design"]), row["K"], methods.index(row["method"])
        return (*in_order, row["seed"])

    rows = sorted((row for part in parts for row in part), key=place)
    table = summary(rows)
    text = (
        f"Means over {counted(options['seeds'], 'data set')} of {options['n_rows']:,} rows and "
        f"{options['n_features']} features; the paper gives neither the number of features, nor L, "
        "nor the laws of Z."
    )
    return Outcome({"table1": table, "cells": rows}, {}, claims(table, options), text)


def draw(spec: Spec) -> tuple[Synthetic, np.ndarray, np.ndarray, Task]:
    """Draw a data set; return it, as many fresh rows of the same law, all their Z, and the task."""
    options, K, N = spec["options"], spec["K"], spec["options"]["n_rows"]
    rng = np.random.default_rng([spec["seed"], DESIGNS.index(spec["design"]), K])
    both = draw_synthetic(
        rng,
        spec["design"],
        n_rows=2 * N,
        n_features=options["n_features"],
        n_components=K,
        n_active=max(1, K // 2),
        noise_sd=options["noise_sd"],
    )
    train, fresh = both._replace(Y=both.Y[:N], X=both.X[:N], Z=both.Z[:N]), both.Y[N:]
    sizes = K, active_for(train.Z), int(train.Z.sum(axis=1).max())
    chain = options["burn_in"], options["n_draws"], spec["seed"]
    return train, fresh, both.Z, Task(train.Y, fresh, *sizes, *chain)


def cell(spec: Spec, tick: Tick) -> list[Row]:
    """One design, K and seed: a row of measures for every method and reference."""
    from appca.models.threads import single_threaded_blas

    stage = f"{spec['design']}, K = {spec['K']}, data set {spec['seed'] + 1}"
    tick(stage, 0.0)
    _warm()
    with single_threaded_blas():  # the same numbers whatever runs beside
        truth, fresh, Z, task = draw(spec)
        rows = references(spec, truth, fresh, Z)
        for key, fitted in fits(METHODS, task, stage, tick):
            takes_l = key == "fa_l" or key.startswith("afa")
            L = task.most_active if key == "afa_most" else task.n_active if takes_l else None
            row = _row(spec, key, L) | _measured(truth.Y, fitted.R, fitted.Z)
            row |= recovery(truth.W.T, truth.Z, fitted.components, fitted.Z)
            row |= {"heldout": fitted.log_likelihood, "heldout_error": fitted.standard_error}
            row |= {"heldout_how": fitted.how, "seconds": round(fitted.seconds, 3)}
            rows.append(row)
    return rows


def references(spec: Spec, truth: Synthetic, fresh: np.ndarray, Z_of_law: np.ndarray) -> list[Row]:
    """Measure the attainable: the noise, and oracles that know the truth or most of it."""
    best, on_fresh = (oracle(Y, truth, spec["design"], Z_of_law) for Y in (truth.Y, fresh))
    rows = [_row(spec, "noise", None) | errors(truth.Y, (truth.X * truth.Z) @ truth.W.T)]
    for key, Z in (("oracle_z", truth.Z), ("oracle_s", best.Z)):
        R = posterior_mean(truth.Y, truth.W, Z, truth.noise_sd) @ truth.W.T
        right = {"cosine": 1.0, "cosine_least": 1.0, "z_right": float((Z == truth.Z).mean())}
        rows.append(_row(spec, key, None) | _measured(truth.Y, R, Z) | right)
    rows[-1] |= {
        "heldout": float(on_fresh.log_likelihood.mean()),
        "heldout_error": float(on_fresh.error.mean()),
        "heldout_how": on_fresh.method,
    }
    return rows


def summary(rows: Sequence[Row]) -> list[Row]:
    """Mean and spread over the seeds, with the paper's number beside them."""
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["design"], row["K"], row["method"]), []).append(row)
    table = []
    for (design, K, key), group in groups.items():
        values = {name: [r[name] for r in group if r[name] is not None] for name in group[0]}
        mean = {
            name: float(np.mean(values[name])) if values[name] else None
            for name in ("L", *MEASURES, "heldout_error")
        }
        paper, note = (
            (METHODS[key].paper, METHODS[key].note)
            if key in METHODS
            else (None, REFERENCES[key][1])
        )
        row = {"design": design, "K": K, "method": key, "title": TITLES[key], "L": mean["L"]}
        row |= {"seeds": len(group), "paper_mae": printed(paper, design, K)}
        row["paper_mae_read_as"] = read(paper, design, K)
        for name in MEASURES:
            spread = float(np.std(values[name], ddof=1)) if len(values[name]) > 1 else None
            row |= {name: mean[name], f"{name}_sd": spread}
        row |= {"heldout_error": mean["heldout_error"], "heldout_how": group[0]["heldout_how"]}
        table.append(row | {"note": note})
    return table


def _row(spec: Spec, key: str, n_active: int | None) -> Row:
    named: Row = {name: spec[name] for name in ("design", "K", "seed")}
    named |= {"method": key, "title": TITLES[key], "L": n_active}
    return named | dict.fromkeys([*MEASURES, "heldout_error", "heldout_how"])


def _measured(Y: np.ndarray, R: np.ndarray, Z: np.ndarray) -> Row:
    used = {"per_row": float(Z.sum(axis=1).mean()), "n_used": int(Z.any(axis=0).sum())}
    return errors(Y, R) | used


@cache
def _warm() -> None:
    """Load the compiled kernels, which would count in the seconds of the first fit."""
    Y = draw_synthetic(
        np.random.default_rng(0), "balanced", n_rows=60, n_features=8, n_components=4, n_active=2
    ).Y
    for key in METHODS:
        fit(key, Task(Y, Y[:5], 4, 2, 3, 2, 2, 0))


SAME_SIZE = ("fa_k", "fsfa", "isfa_k", "afa_gibbs", "afa")  # one for each row of the paper's table
BY_EM = ("afa", "afa_most", "afa_paper")
NEAR = 1.2  # times the oracle's squared error still counts as reaching it
ALIKE = 2.0  # times the printed error, or a part of it, is the same measure
MORE = 1.05  # times the factors of the data are more than there are

Cells = dict[tuple[str, int], dict[str, Row]]  # by design and K, the rows by method


def claims(table: Sequence[Row], options: Options) -> list[Claim]:
    """Judge all claims, each by the columns (design and K) that have the methods it is about."""
    cells: Cells = {}
    for row in table:
        cells.setdefault((row["design"], row["K"]), {})[row["method"]] = row

    def ratios(method: str, other: str, measure: str = "mse", design: str = "") -> list[float]:
        return [
            cell[method][measure] / cell[other][measure]
            for place, cell in cells.items()
            if method in cell and other in cell and design in {"", place[0]}
        ]

    best = [_best(cell, "heldout", METHODS) for cell in cells.values()]  # of rows not fitted to
    won = [method in BY_EM for method in best]
    to_oracle, full = (ratios(method, "oracle_s") for method in ("afa", "afa_most"))
    most = f", {span(full)} with the number of the fullest row" if full else ""
    worse = [ratio > 1 for ratio in ratios("afa_gibbs", "afa")]
    surplus = ratios("isfa_k", "oracle_z", "n_used")
    more = [ratio > MORE for ratio in surplus]
    # balanced data, of which aFA is the true model
    balanced = [cell["afa"] for (design, _), cell in cells.items() if design == "balanced"]
    ours, start = (ratios(way, "oracle_s", design="balanced") for way in ("afa", "afa_paper"))
    optima = "no balanced data"
    if ours:
        worst, right = (min(row[name] for row in balanced) for name in ("cosine_least", "z_right"))
        optima = (
            f"{span(ours)} times the squared error of an oracle that knows W, from the paper's "
            f"start {span(start)} times; worst |cos| of a column {worst:.3f}, Z right "
            f"{percent(right, 1)}"
        )
    return [
        _lowest(cells),
        checked(
            "It describes new rows best, too",
            f"in {share(won)} columns; {_counted(METHODS[method].title for method in best)}",
            won,
            number=(share(won), "best on new rows"),
        ),
        checked(
            "aFA performs well across all settings",
            f"{span(to_oracle)} times the squared error of an oracle that knows W{most}",
            [ratio <= NEAR for ratio in to_oracle],
        ),
        checked(
            "EM converges to good local optima (balanced data)",
            optima,
            [ratio <= NEAR for ratio in ours + start],
        ),
        checked(
            "aFA by EM has a lower error than by Gibbs",
            f"by Gibbs {span(ratios('afa_gibbs', 'afa'))} times the squared error, more in "
            f"{share(worse)} columns",
            worse,
            "all columns",
            (share(worse), "below Gibbs"),
        ),
        checked(
            "isFA uses more factors than there are",
            f"in {share(more)} columns, {span(surplus)} times as many, at most K + {MOST_BEYOND}",
            more,
        ),
        _absolute(table, options),
        _squared(cells),
    ]


def _lowest(cells: Cells) -> Claim:
    """Among the five methods of the paper, as often as in the paper; level errors count there."""
    columns = [place for place in cells if place in COLUMNS]
    claim = "aFA by EM has the lowest error of the five methods"
    if not columns:
        return checked(claim, "the paper has no numbers for these K", [])
    paper = 0
    for place in columns:
        errors_there = {name: read(name, *place) or math.inf for name in PRINTED}
        paper += errors_there["aFA EM"] == min(errors_there.values())
    best = [
        str(METHODS[_best(cells[place], "mae", SAME_SIZE, least=True)].paper) for place in columns
    ]
    wins, n = best.count("aFA EM"), len(columns)
    measured = f"in {wins} of {n}; {_counted(best)}. FA may use all K factors for any row"
    tests, number = [wins >= paper, wins > 0], (f"{wins} of {n}", "least error")
    return checked(claim, measured, tests, f"{paper} of {n} columns", number)


def _absolute(table: Sequence[Row], options: Options) -> Claim:
    """Mean absolute errors cannot be below the noise, unless rows are fitted by many factors."""
    floor = options["noise_sd"] * math.sqrt(2 / math.pi)
    numbers = [value for row in PRINTED.values() for value in row]
    least = min(row["mae"] for row in table if row["method"] in METHODS)
    measured = (
        f"{sum(value < floor for value in numbers)} of {len(numbers)} numbers lie below "
        f"{floor:.3f}, the noise alone; the least here is {least:.3f}"
    )
    tests = [min(numbers) >= min(floor, least)]
    return checked("The errors are mean absolute errors", measured, tests, span(numbers, ".3f"))


def _squared(cells: Cells) -> Claim:
    """Try the other reading: squared errors, to which noise of variance 0.01 adds 0.01."""
    tests, parts = [], []
    for name, is_balanced in (("on balanced data", True), ("on the other designs", False)):
        near: dict[str, list[bool]] = {"mse": [], "mae": []}
        for place, cell in cells.items():
            for method in SAME_SIZE if (place[0] == "balanced") == is_balanced else ():
                number = read(METHODS[method].paper, *place)
                for measure, alike in near.items():
                    if number:
                        alike.append(1 / ALIKE < cell[method][measure] / number < ALIKE)
        if near["mse"]:
            squared, absolute = sum(near["mse"]), sum(near["mae"])
            tests.append(squared > absolute)
            parts.append(
                f"{name} {squared} of {len(near['mse'])} are within a factor of {ALIKE:g} of the "
                f"squared errors here, {absolute} of the absolute ones"
            )
    measured = "; ".join(parts) or "the paper has no numbers for these K"
    return checked("Or they are mean squared errors", measured, tests)


def _best(
    cell: dict[str, Row], measure: str, methods: Iterable[str], *, least: bool = False
) -> str:
    values = {method: cell[method][measure] for method in methods if method in cell}
    return (min if least else max)(values, key=lambda method: values[method])


def _counted(names: Iterable[str]) -> str:
    return "; ".join(f"{name} in {n}" for name, n in Counter(names).most_common())


def figures(outcome: Outcome) -> Figures:
    """Error and recovery of all methods, side by side."""
    from appca.plots.studies import dots

    rows = [row for row in outcome.tables["table1"] if row["method"] != "oracle_z"]
    return {
        "reconstruction": dots(rows, "mse", MEASURES["mse"], log=True),
        "columns": dots(rows, "cosine", MEASURES["cosine"]),
    }


_SIZES = {"designs": list(DESIGNS), "components": [10, 20], "n_features": 50, "noise_sd": 0.1}

STUDY = Study(
    name="table1",
    title="Table 1: factor analyses on five designs of Z",
    paper=(
        "The paper compares FA, finite and infinite sparse FA, and adaptive FA by Gibbs and by EM "
        "by their mean absolute reconstruction error, and finds adaptive FA by EM best."
    ),
    revision=1,
    sizes={
        "quick": {**_SIZES, "seeds": 2, "n_rows": 300, "burn_in": 30, "n_draws": 30},
        "default": {**_SIZES, "seeds": 5, "n_rows": 1000, "burn_in": 75, "n_draws": 75},
        "full": {**_SIZES, "seeds": 10, "n_rows": 1000, "burn_in": 500, "n_draws": 500},
    },
    takes={"quick": 60.0, "default": 720.0, "full": 7200.0},
    run=run,
    columns=("design", "K", "title", "L", "paper_mae", *MEASURES),
    figures=figures,
)


SPARSE_AND_DENSE = ("sparse", "dense")
LINES = ("isfa_k", "isfa", "afa", "afa_most")
TRUTH = "truth"
NOTE = "With exactly L factors a row the shares of aFA add up to L, whatever the truth does."


def run_popularity(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit the models to one data set of each design, and count."""
    common = {"K": options["n_components"], "seed": options["seed"], "options": options}
    specs = [{"design": design, **common} for design in SPARSE_AND_DENSE]
    curves = work("appca.studies.table1:curves_of", specs, report, processes)
    rows, apart = [], []
    for design, of_design in zip(SPARSE_AND_DENSE, curves, strict=True):
        for name, curve in of_design.items():
            line = {"design": design, "method": name, "title": title_of(name)}
            rows += [line | {"rank": n, "share": share} for n, share in enumerate(curve, start=1)]
        apart += [distance(design, name, of_design) for name in of_design if name != TRUTH]
    return Outcome({"distance": apart, "popularity": rows}, {}, popularity_claims(apart), NOTE)


def curves_of(spec: Spec, tick: Tick) -> dict[str, list[float]]:
    """Sorted shares of the rows that use each factor: the true ones and those of each method."""
    from appca.models.threads import single_threaded_blas

    with single_threaded_blas():
        truth, fresh, _, task = draw(spec)
        fitted = fits(LINES, task._replace(fresh=fresh[:1]), spec["design"], tick)
        return {TRUTH: ordered(truth.Z)} | {name: ordered(line.Z) for name, line in fitted}


def ordered(Z: np.ndarray) -> list[float]:
    """Shares of the rows that use each factor, largest first; unused factors are left out."""
    share = np.sort(Z.mean(axis=0))[::-1]
    return [float(value) for value in share if value > 0]


def distance(design: str, method: str, curves: dict[str, list[float]]) -> Row:
    """Mean absolute difference of two sorted curves; a factor that one lacks has share 0 there."""
    truth, approximate = curves[TRUTH], curves[method]
    width = max(len(truth), len(approximate))
    padded = [np.pad(curve, (0, width - len(curve))) for curve in (truth, approximate)]
    return {
        "design": design,
        "method": method,
        "title": title_of(method),
        "factors": len(approximate),
        "true_factors": len(truth),
        "distance": float(np.abs(padded[0] - padded[1]).mean()),
    }


def title_of(name: str) -> str:
    """Name a line."""
    return "Truth" if name == TRUTH else METHODS[name].title


def popularity_claims(apart: list[Row]) -> list[Claim]:
    """Judge each design by whose curve is nearest to the true one."""
    checked_claims = []
    for design in SPARSE_AND_DENSE:
        near = {row["method"]: row["distance"] for row in apart if row["design"] == design}
        order = sorted(near, key=lambda method: near[method])
        listed = ", ".join(f"{title_of(method)} {near[method]:.3f}" for method in order)
        claim = f"aFA estimates the popularity of factors best on {design} data"
        tests = [order[0].startswith("afa")]
        nearest = min(near[method] for method in near if method.startswith("afa"))
        number = (f"{nearest:.3f}", f"off the truth, {design}")
        measured = f"mean distance from the truth: {listed}"
        checked_claims.append(checked(claim, measured, tests, number=number))
    return checked_claims


def popularity_figures(outcome: Outcome) -> Figures:
    """Draw the paper's figure: truth in red."""
    from appca.plots.studies import popularity

    return {"popularity": popularity(outcome.tables["popularity"])}


_POPULARITY_SIZES = {"n_features": 50, "n_components": 20, "noise_sd": 0.1, "seed": 0}

POPULARITY = Study(
    name="popularity",
    title="Popularity of the factors",
    paper=(
        "The paper shows the share of the points that use each factor, sorted, for sparse and "
        "dense data: the truth in red, the estimates of isFA and aFA beside it."
    ),
    revision=1,
    sizes={
        "quick": {**_POPULARITY_SIZES, "n_rows": 300, "burn_in": 30, "n_draws": 30},
        "default": {**_POPULARITY_SIZES, "n_rows": 1000, "burn_in": 150, "n_draws": 150},
        "full": {**_POPULARITY_SIZES, "n_rows": 1000, "burn_in": 1000, "n_draws": 1000},
    },
    takes={"quick": 10.0, "default": 30.0, "full": 400.0},
    run=run_popularity,
    columns=("design", "title", "factors", "true_factors", "distance"),
    figures=popularity_figures,
)
