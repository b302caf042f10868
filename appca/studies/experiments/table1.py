"""Table 1: factor analysis and its sparse and adaptive kin on five designs of Z."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np

from appca.data.numbers import percent
from appca.data.sources.designs import DESIGNS, Synthetic, draw_synthetic
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.studies.claims import CheckedClaim, checked, span
from appca.studies.parts import paper_table
from appca.studies.parts.fitting import passes_told
from appca.studies.parts.methods import METHODS, MOST_BEYOND, MethodFit, Task, active_for, fit
from appca.studies.parts.oracle import Law, law_of, oracle, posterior_mean
from appca.studies.parts.recovery import Recovery, errors, recovery
from appca.studies.processes import Spec, Tick, work
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study

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
SAME_SIZE = ("fa_k", "fsfa", "isfa_k", "afa_gibbs", "afa")  # one for each row of the paper's table
BY_EM = ("afa", "afa_most", "afa_paper")
NEAR = 1.2  # times the oracle's squared error still counts as reaching it
MORE = 1.05  # times the factors of the data are more than there are
Cells = dict[tuple[str, int], dict[str, Row]]  # by design and K, the rows by method


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
            found = fit(method, task._replace(callback=callback))
            if found is not None:
                rows.append(_row(spec, key, _active(key, task)) | _told(truth, found))
    return rows


def _active(key: str, task: Task) -> int | None:
    """Give the L that a method was given, if it takes one."""
    if key == "afa_most":
        return task.most_active
    return task.n_active if key == "fa_l" or key.startswith("afa") else None


def _told(truth: Synthetic, found: MethodFit) -> Row:
    judged = recovery(truth.W.T, truth.Z, found.components, found.Z)
    return _measured(truth.Y, found.R, found.Z, judged) | {
        "heldout": found.log_likelihood,
        "heldout_error": found.standard_error,
        "heldout_how": found.how,
        "seconds": round(found.seconds, 3),
    }


def references(spec: Spec, truth: Synthetic, fresh: np.ndarray, law: Law) -> list[Row]:
    """Measure what there is to reach: the noise, and those who know the truth or most of it."""
    known, told = oracle(truth.Y, truth, law), oracle(fresh, truth, law)
    own = (1.0, 1.0)
    true_R = posterior_mean(truth.Y, truth.W, truth.Z, truth.noise_sd) @ truth.W.T
    best_R = posterior_mean(truth.Y, truth.W, known.Z, truth.noise_sd) @ truth.W.T
    right = float((known.Z == truth.Z).mean())
    noise = dict(zip(("mae", "mse"), errors(truth.Y, (truth.X * truth.Z) @ truth.W.T), strict=True))
    heldout = {
        "heldout": float(told.log_likelihood.mean()),
        "heldout_error": float(told.error.mean()),
        "heldout_how": told.method,
    }
    return [
        _row(spec, "noise", None) | noise,
        _row(spec, "oracle_z", None) | _measured(truth.Y, true_R, truth.Z, Recovery(*own, 1.0)),
        _row(spec, "oracle_s", None)
        | _measured(truth.Y, best_R, known.Z, Recovery(*own, right))
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
        values = [one[name] for one in group if one[name] is not None]
        row[name] = float(np.mean(values)) if values else None
        row[f"{name}_sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    row["heldout_error"] = _average(group, "heldout_error")
    row["heldout_how"] = first["heldout_how"]
    row["note"] = METHODS[key].note if key in METHODS else REFERENCES[key][1]
    return row


def _average(group: Sequence[Row], name: str) -> float | None:
    values = [one[name] for one in group if one[name] is not None]
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


def claims(table: Sequence[Row], options: Options) -> list[CheckedClaim]:
    """Judge all claims, each by the columns (design and K) that have the methods it is about."""
    cells: Cells = {}
    for row in table:
        cells.setdefault((row["design"], row["K"]), {})[row["method"]] = row
    return [
        _lowest(cells),
        _fresh(cells),
        _everywhere(cells),
        _optima(cells),
        _gibbs(cells),
        _surplus(cells),
        _printed(table, options),
    ]


def _lowest(cells: Cells) -> CheckedClaim:
    """Among the five methods of the paper, as often as in the paper; level errors count there."""
    known = [place for place in cells if place in paper_table.COLUMNS]
    claim = "aFA by EM has the lowest error of the five methods"
    if not known:
        return checked(claim, "the paper has no numbers for these K", [])
    paper = 0
    for place in known:
        printed = {name: paper_table.read(name, *place) or math.inf for name in paper_table.PRINTED}
        paper += printed["aFA EM"] == min(printed.values())
    here = Counter(
        str(METHODS[_best(cells[place], "mae", SAME_SIZE, least=True)].paper) for place in known
    )
    own = here["aFA EM"]
    measured = f"in {own} of {len(known)}; {_counted(here)}. FA may use all K factors for any row"
    tests, number = [own >= paper, own > 0], (f"{own} of {len(known)}", "least error")
    return checked(claim, measured, tests, f"{paper} of {len(known)} columns", number)


def _fresh(cells: Cells) -> CheckedClaim:
    """By the likelihood of rows not fitted to, which many factors do not flatter."""
    best = [_best(cell, "heldout", METHODS) for cell in cells.values()]
    won = [method in BY_EM for method in best]
    told = _counted(Counter(METHODS[method].title for method in best))
    measured = f"in {sum(won)} of {len(won)} columns; {told}"
    number = (f"{sum(won)} of {len(won)}", "best on new rows")
    return checked("It describes new rows best, too", measured, won, number=number)


def _everywhere(cells: Cells) -> CheckedClaim:
    own, full = (_ratios(cells, method, "oracle_s") for method in ("afa", "afa_most"))
    most = f", {span(full)} with the number of the fullest row" if full else ""
    measured = f"{span(own)} times the squared error of an oracle that knows W{most}"
    return checked("aFA performs well across all settings", measured, [r <= NEAR for r in own])


def _optima(cells: Cells) -> CheckedClaim:
    """On balanced data, of which aFA is the true model: from our start and from the paper's."""
    balanced = {place: cell for place, cell in cells.items() if place[0] == "balanced"}
    own, start = (_ratios(balanced, method, "oracle_s") for method in ("afa", "afa_paper"))
    claim = "EM converges to good local optima (balanced data)"
    if not own:
        return checked(claim, "no balanced data", [])
    worst, right = (
        min(cell["afa"][name] for cell in balanced.values()) for name in ("cosine_least", "z_right")
    )
    measured = (
        f"{span(own)} times the squared error of an oracle that knows W, from the paper's start "
        f"{span(start)} times; worst |cos| of a column {worst:.3f}, Z right {percent(right, 1)}"
    )
    return checked(claim, measured, [ratio <= NEAR for ratio in own + start])


def _gibbs(cells: Cells) -> CheckedClaim:
    ratios = _ratios(cells, "afa_gibbs", "afa")
    worse = [ratio > 1 for ratio in ratios]
    measured = f"by Gibbs {span(ratios)} times the squared error, more in {_share(worse)} columns"
    claim, number = "aFA by EM has a lower error than by Gibbs", (_share(worse), "below Gibbs")
    return checked(claim, measured, worse, "all columns", number)


def _surplus(cells: Cells) -> CheckedClaim:
    ratios = _ratios(cells, "isfa_k", "oracle_z", "n_used")
    more = [ratio > MORE for ratio in ratios]
    measured = f"in {_share(more)} columns, {span(ratios)} times as many, at most K + {MOST_BEYOND}"
    return checked("isFA uses more factors than there are", measured, more)


def _printed(table: Sequence[Row], options: Options) -> CheckedClaim:
    """Mean absolute errors cannot lie below the noise, unless rows are fitted by many factors."""
    floor = options["noise_sd"] * math.sqrt(2 / math.pi)
    printed = [value for row in paper_table.PRINTED.values() for value in row]
    least = min(row["mae"] for row in table if row["method"] in METHODS)
    measured = (
        f"{sum(value < floor for value in printed)} of {len(printed)} numbers lie below "
        f"{floor:.3f}, the noise alone; the least here is {least:.3f}"
    )
    tests = [min(printed) >= min(floor, least)]
    return checked("The errors are mean absolute errors", measured, tests, span(printed, ".3f"))


def _best(
    cell: dict[str, Row], measure: str, methods: Iterable[str], *, least: bool = False
) -> str:
    found = {method: cell[method][measure] for method in methods if method in cell}
    return (min if least else max)(found, key=lambda method: found[method])


def _ratios(cells: Cells, own: str, other: str, measure: str = "mse") -> list[float]:
    return [
        cell[own][measure] / cell[other][measure]
        for cell in cells.values()
        if own in cell and other in cell
    ]


def _counted(times: Counter[str]) -> str:
    return "; ".join(f"{name} in {n}" for name, n in times.most_common())


def _share(tests: Sequence[bool]) -> str:
    return f"{sum(tests)} of {len(tests)}"
