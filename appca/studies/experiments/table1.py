"""Table 1: factor analysis and its sparse and adaptive kin on five designs of Z."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from appca.data.sources.designs import DESIGNS, Synthetic, draw_synthetic
from appca.studies.parts import paper_table
from appca.studies.parts.fitting import passes_told
from appca.studies.parts.methods import METHODS, MethodFit, Task, active_for, fit
from appca.studies.parts.oracle import Law, law_of, oracle, posterior_mean
from appca.studies.parts.recovery import Recovery, errors, recovery
from appca.studies.parts.table1_claims import claims
from appca.studies.processes import Spec, Tick, work
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study
from appca.words.errors import InputError
from appca.words.wording import counted

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
    unknown = [design for design in options["designs"] if design not in DESIGNS]
    if unknown:
        msg = f"designs must be among {', '.join(DESIGNS)}; got “{unknown[0]}”."
        raise InputError(msg)
    specs = [
        {"design": design, "K": K, "seed": seed, "options": options}
        for K in sorted(options["components"], reverse=True)  # the long ones first
        for seed in range(options["seeds"])
        for design in options["designs"]
    ]
    parts = work("appca.studies.experiments.table1:cell", specs, report, processes)
    rows = [row for part in parts for row in part]
    rows.sort(key=_place(options))
    table = summary(rows)
    text = (
        f"Means over {counted(options['seeds'], 'data set')} of {options['n_rows']:,} rows and "
        f"{options['n_features']} features; the paper gives neither the number of features, nor L, "
        "nor the laws of Z."
    )
    return Outcome({"table1": table, "cells": rows}, {}, claims(table, options), text)


def draw(spec: Spec) -> tuple[Synthetic, np.ndarray, Law]:
    """Draw a data set, as many fresh rows of the same W and law of Z, and that law."""
    options, K = spec["options"], spec["K"]
    L = max(1, K // 2)
    rng = np.random.default_rng([spec["seed"], DESIGNS.index(spec["design"]), K])
    both = draw_synthetic(
        rng,
        spec["design"],
        n_rows=2 * options["n_rows"],
        n_features=options["n_features"],
        n_components=K,
        n_active=L,
        noise_sd=options["noise_sd"],
    )
    N = options["n_rows"]
    train = both._replace(Y=both.Y[:N], X=both.X[:N], Z=both.Z[:N])
    return train, both.Y[N:], law_of(spec["design"], both.Z, L)


def cell(spec: Spec, tick: Tick) -> list[Row]:
    """One design, K and seed: a row of measures for every method and reference."""
    tick(_name(spec), 0.0)
    _warm()
    from appca.models.algebra.threads import single_threaded_blas

    with single_threaded_blas():  # the same numbers whatever runs beside
        truth, fresh, law = draw(spec)
        chain = (spec["options"]["burn_in"], spec["options"]["n_draws"], spec["seed"], None)
        most = int(truth.Z.sum(axis=1).max())
        task = Task(truth.Y, fresh, spec["K"], active_for(truth.Z), most, *chain)
        rows = references(spec, truth, fresh, law)
        for place, (key, method) in enumerate(METHODS.items()):
            ends = place / len(METHODS), (place + 1) / len(METHODS)
            callback = passes_told(f"{_name(spec)}: {method.title}", tick, *ends)
            fitted = fit(method, task._replace(callback=callback))
            if fitted is not None:
                rows.append(_row(spec, key, _active(key, task)) | _told(truth, fitted))
    return rows


def _active(key: str, task: Task) -> int | None:
    """Give the L that a method was given, if it takes one."""
    if key == "afa_most":
        return task.most_active
    return task.n_active if key == "fa_l" or key.startswith("afa") else None


def _told(truth: Synthetic, fitted: MethodFit) -> Row:
    judged = recovery(truth.W.T, truth.Z, fitted.components, fitted.Z)
    return _measured(truth.Y, fitted.R, fitted.Z, judged) | {
        "heldout": fitted.log_likelihood,
        "heldout_error": fitted.standard_error,
        "heldout_how": fitted.how,
        "seconds": round(fitted.seconds, 3),
    }


def references(spec: Spec, truth: Synthetic, fresh: np.ndarray, law: Law) -> list[Row]:
    """Measure what there is to reach: the noise, and those who know the truth or most of it."""
    best, told = oracle(truth.Y, truth, law), oracle(fresh, truth, law)
    exact = (1.0, 1.0)
    true_R = posterior_mean(truth.Y, truth.W, truth.Z, truth.noise_sd) @ truth.W.T
    best_R = posterior_mean(truth.Y, truth.W, best.Z, truth.noise_sd) @ truth.W.T
    right = float((best.Z == truth.Z).mean())
    noise = dict(zip(("mae", "mse"), errors(truth.Y, (truth.X * truth.Z) @ truth.W.T), strict=True))
    heldout = {
        "heldout": float(told.log_likelihood.mean()),
        "heldout_error": float(told.error.mean()),
        "heldout_how": told.method,
    }
    return [
        _row(spec, "noise", None) | noise,
        _row(spec, "oracle_z", None) | _measured(truth.Y, true_R, truth.Z, Recovery(*exact, 1.0)),
        _row(spec, "oracle_s", None)
        | _measured(truth.Y, best_R, best.Z, Recovery(*exact, right))
        | heldout,
    ]


def summary(rows: Sequence[Row]) -> list[Row]:
    """Mean and spread over the seeds, with the paper's number beside them."""
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["design"], row["K"], row["method"]), []).append(row)
    return [_summed(group) for group in groups.values()]


def _summed(group: Sequence[Row]) -> Row:
    first = group[0]
    design, K, key = first["design"], first["K"], first["method"]
    row: Row = {name: first[name] for name in ("design", "K", "method", "title")}
    row["L"] = _average(group, "L")
    row["seeds"] = len(group)
    answers = METHODS[key].paper if key in METHODS else None
    row["paper_mae"] = paper_table.printed(answers, design, K)
    row["paper_mae_read_as"] = paper_table.read(answers, design, K)
    for name in MEASURES:
        values = [cell[name] for cell in group if cell[name] is not None]
        row[name] = float(np.mean(values)) if values else None
        row[f"{name}_sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    row["heldout_error"] = _average(group, "heldout_error")
    row["heldout_how"] = first["heldout_how"]
    row["note"] = METHODS[key].note if key in METHODS else REFERENCES[key][1]
    return row


def _average(group: Sequence[Row], name: str) -> float | None:
    values = [row[name] for row in group if row[name] is not None]
    return float(np.mean(values)) if values else None


def _row(spec: Spec, key: str, n_active: int | None) -> Row:
    named: Row = {"design": spec["design"], "K": spec["K"], "seed": spec["seed"]}
    named |= {"method": key, "title": TITLES[key], "L": n_active}
    return named | dict.fromkeys([*MEASURES, "heldout_error", "heldout_how"])


def _measured(Y: np.ndarray, R: np.ndarray, Z: np.ndarray, told: Recovery) -> Row:
    missed = errors(Y, R)
    return {
        "mae": missed.absolute,
        "mse": missed.squared,
        "cosine": told.cosine_mean,
        "cosine_least": told.cosine_least,
        "z_right": told.z_right,
        "per_row": float(Z.sum(axis=1).mean()),
        "n_used": int(Z.any(axis=0).sum()),
    }


def _name(spec: Spec) -> str:
    return f"{spec['design']}, K = {spec['K']}, data set {spec['seed'] + 1}"


def _place(options: Options) -> Callable[[Row], tuple[int, ...]]:
    designs, methods = list(options["designs"]), list(TITLES)
    return lambda row: (
        designs.index(row["design"]),
        row["K"],
        methods.index(row["method"]),
        row["seed"],
    )


@cache
def _warm() -> None:
    """Load the compiled kernels, so that no method's seconds hold what is done once a process."""
    Y = draw_synthetic(
        np.random.default_rng(0), "balanced", n_rows=60, n_features=8, n_components=4, n_active=2
    ).Y
    for method in METHODS.values():
        fit(method, Task(Y, Y[:5], 4, 2, 3, 2, 2, 0, None))


def figures(outcome: Outcome) -> Figures:
    """Error and recovery of all methods, side by side."""
    from appca.plots.paper import table1

    rows = [row for row in outcome.tables["table1"] if row["method"] != "oracle_z"]
    return {
        "reconstruction": table1.dots(rows, "mse", MEASURES["mse"], log=True),
        "columns": table1.dots(rows, "cosine", MEASURES["cosine"]),
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
