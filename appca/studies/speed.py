"""How much sooner EM arrives than Gibbs sampling: time to equal error and equal likelihood."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from appca.studies.processes import Spec, Tick, work
from appca.studies.study import Claim, Figures, Options, Outcome, Report, Row, Study, checked, span
from appca.words import InputError

MEASURES = {"error": "squared error", "likelihood": "log-likelihood of fresh rows"}
SLACK = 0.01  # of the way from the start: so near the level counts as there
SIGN = {"error": 1.0, "likelihood": -1.0}  # times the measure: lower is better
ORDERS = 100.0  # times faster is orders of magnitude faster
CLOCK = (
    "Processor time of the shortest fit, from the same start, that comes to the level both reach; "
    "a chain's draws are a posterior as well, which EM does not give."
)


class Way(NamedTuple):
    """One way to fit a model for a number of iterations or sweeps."""

    model: str
    title: str
    settings: Options
    is_em: bool


def estimator(way: Way, passes: int, options: Options) -> Any:
    """Start from principal components; EM iterations, or as many sweeps of one chain."""
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis
    from appca.models.adaptive_ppca import AdaptivePPCA

    kind: Any = AdaptivePPCA if way.model == "aPPCA" else AdaptiveFactorAnalysis
    course = {"init": "pca", "max_iter": passes, "tol": 0.0, **way.settings}
    if way.model == "aFA":
        course["annealing"] = 0
    if not way.is_em:
        chain = {"n_chains": 1, "burn_in": passes // 2, "n_draws": passes - passes // 2}
        course |= {"inference": "gibbs", "max_iter": 1, **chain}
        del course["tol"]
    sizes = (options["n_components"], options["n_active"])
    return kind(*sizes, random_state=options["seed"], **course)


WAYS = {
    "appca_em": Way("aPPCA", "aPPCA, EM", {}, True),
    "appca_gibbs": Way("aPPCA", "aPPCA, Gibbs", {}, False),
    "appca_paper": Way(  # W as in appendix C
        *("aPPCA", "aPPCA, the paper's Gibbs (members in turn, W by Pymanopt)"),
        *({"z_update": "swap", "w_update": "pymanopt"}, False),
    ),
    "appca_polar": Way(  # W as in algorithm 3
        *("aPPCA", "aPPCA, the paper's Gibbs, but W maximised in closed form"),
        *({"z_update": "swap", "w_update": "polar"}, False),
    ),
    "afa_em": Way("aFA", "aFA, EM", {}, True),
    "afa_best": Way(
        *("aFA", "aFA, the paper's EM (one set a row)"),
        *({"allocation": "best", "mean": "sample"}, True),
    ),
    "afa_gibbs": Way("aFA", "aFA, Gibbs", {}, False),
}


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Time all ways on a ladder of iterations; alone, as two timings at once disturb each other."""
    if options["n_active"] >= options["n_components"]:
        msg = (
            f"n_active must be below n_components={options['n_components']}, or there is nothing "
            f"to search for; got {options['n_active']}."
        )
        raise InputError(msg)
    specs = [
        {"way": way, "data_set": number, "options": options}
        for number in range(options["seeds"])
        for way in WAYS
    ]
    rows = [row for part in work("appca.studies.speed:ladder", specs, report, 1) for row in part]
    table = [
        _pair(rows, em, gibbs, measure)
        for em in WAYS
        for gibbs in WAYS
        if WAYS[em].is_em and not WAYS[gibbs].is_em and WAYS[em].model == WAYS[gibbs].model
        for measure in MEASURES
    ]
    return Outcome({"speed": table, "ladder": rows}, {}, claims(table), CLOCK)


def claims(table: Sequence[Row]) -> list[Claim]:
    """Judge each model: every mean ratio must be at least `ORDERS`."""
    checked_claims = []
    for model in dict.fromkeys(row["model"] for row in table):
        of_model = [row for row in table if row["model"] == model]
        ratios, ends = [row["ratio"] for row in of_model], [row["to_end"] for row in of_model]
        every = all(row["to_end_reached"] == row["data_sets"] for row in of_model)
        bound = "" if every else " or more, as not every chain arrives"
        magnitude = (
            f"{'one order' if max(ratios) >= 10 else 'less than one order'}, not two, on this "
            "design"
        )
        if max(ratios) >= ORDERS:
            magnitude = "two orders of magnitude or more on this design"
        measured = (
            f"{span(ratios, '.2g')} times, {magnitude}; to where EM itself ends "
            f"{span(ends, '.2g')} times{bound}"
        )
        claim = f"EM of {model} is orders of magnitude faster than Gibbs sampling"
        number = (f"{span(ratios, '.2g').replace(' to ', '–')} ×", f"faster, {model}")
        tests = [ratio >= ORDERS for ratio in ratios]
        checked_claims.append(checked(claim, measured, tests, number=number))
    return checked_claims


def draw(model: str, number: int, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows (N, D), and fresh rows of the same model, that use L of K directions.

    Every subset is equally frequent in the mean. aPPCA's directions are orthonormal with scores of
    variance 4; aFA's are Gaussian.
    """
    rng = np.random.default_rng([number, options["seed"]])
    N, D = 2 * options["n_rows"], options["n_features"]
    K, L = options["n_components"], options["n_active"]
    W = rng.standard_normal((D, K))
    if model == "aPPCA":
        W = 2.0 * np.linalg.qr(W)[0]
    Z = rng.random((N, K)).argsort(axis=1) < L
    X = np.where(Z, rng.standard_normal((N, K)), 0.0)
    noise = options["noise_sd"] * rng.standard_normal((N, D))
    Y = X @ W.T + noise
    return Y[: N // 2], Y[N // 2 :]


def rungs(most: int) -> list[int]:
    """Numbers of iterations from 1 to `most`, about a factor of 1.4 apart."""
    numbers = {round(2 ** (step / 2)) for step in range(2 * most.bit_length())}
    return [*sorted(rung for rung in numbers if rung < most), most]


def ladder(spec: Spec, tick: Tick) -> list[Row]:
    """Fit with more and more iterations from the same start; time, error and likelihood of each."""
    from appca.models.threads import single_threaded_blas

    options, way = spec["options"], WAYS[spec["way"]]
    Y, fresh = draw(way.model, spec["data_set"], options)
    settings = {**options, "seed": options["seed"] + spec["data_set"]}
    steps = rungs(options["passes"] if way.is_em else options["sweeps"])
    stage = f"data set {spec['data_set'] + 1}: {way.title}"
    rows: list[Row] = []
    with single_threaded_blas():
        estimator(way, 2, settings).fit(Y)  # compiles what is compiled, fills caches
        for place, passes in enumerate(steps):
            tick(stage, sum(steps[:place]) / sum(steps))
            model = estimator(way, passes, settings)
            began = time.process_time()  # whatever else runs on the machine
            model.fit(Y)
            seconds = time.process_time() - began
            R = model.inverse_transform(model.transform(Y))
            row = {"way": spec["way"], "title": way.title, "model": way.model}
            row |= {"made": int(model.n_iter_), "seconds": seconds}
            row |= {"error": float(np.square(Y - R).mean())}
            row |= {"likelihood": float(model.score_samples(fresh).mean())}
            rows.append(row | {"data_set": spec["data_set"], "passes": passes})
            if row["made"] < passes and way.is_em:
                break  # EM has ended by itself
    for longer, row in zip(rows[:0:-1], rows[-2::-1], strict=True):
        row["seconds"] = min(row["seconds"], longer["seconds"])  # it passes through this one
    return rows


def _pair(rows: Sequence[Row], em: str, gibbs: str, measure: str) -> Row:
    """Compare an EM with a Gibbs sampler of the same model: ratios over the data sets."""
    numbers = sorted({row["data_set"] for row in rows})
    measured = []
    for number in numbers:
        ours, other = (
            [row for row in rows if (row["way"], row["data_set"]) == (way, number)]
            for way in (em, gibbs)
        )
        paces = [float(way[-1]["seconds"] / way[-1]["made"]) for way in (other, ours)]
        compared = *times(ours, other, measure), *chase(ours, other, measure)
        measured.append((*compared, paces[0] / paces[1]))
    seconds_em, seconds_gibbs, chased, reached, paced = np.array(measured, dtype=float).T
    ratios = seconds_gibbs / seconds_em
    return {
        "model": WAYS[em].model,
        "em": WAYS[em].title,
        "gibbs": WAYS[gibbs].title,
        "measure": MEASURES[measure],
        "data_sets": len(numbers),
        "seconds_em": float(np.median(seconds_em)),
        "seconds_gibbs": float(np.median(seconds_gibbs)),
        "ratio": float(np.exp(np.log(ratios).mean())),
        "ratio_least": float(ratios.min()),
        "ratio_most": float(ratios.max()),
        "to_end": float(np.exp(np.log(chased).mean())),
        "to_end_reached": int(reached.sum()),
        "sweep_per_pass": float(np.exp(np.log(paced).mean())),
    }


def times(ours: Sequence[Row], other: Sequence[Row], measure: str) -> tuple[float, float]:
    """Return the seconds of both to the level that both reach: the worse of the two best values.

    `SLACK` of the way from the worst start is allowed, as a chain wanders about its level.
    """
    worse = max(min(SIGN[measure] * row[measure] for row in rows) for rows in (ours, other))
    first, second = _arrivals(ours, other, measure, worse)
    return first, second


def chase(ours: Sequence[Row], other: Sequence[Row], measure: str) -> tuple[float, bool]:
    """Return how many times longer the second takes to the first's best level, and if it arrives.

    Where it does not, the number is that of its longest fit: a lower bound.
    """
    best = min(SIGN[measure] * row[measure] for row in ours)
    first, second = _arrivals(ours, other, measure, best)
    return (other[-1]["seconds"] if second is None else second) / first, second is not None


def _arrivals(ours: Sequence[Row], other: Sequence[Row], measure: str, level: float) -> list[Any]:
    """Seconds of the shortest fits that come to a level, with its slack; None for never."""
    start = max(SIGN[measure] * rows[0][measure] for rows in (ours, other))
    wanted = level + SLACK * max(start - level, 0.0)
    return [
        next((row["seconds"] for row in rows if SIGN[measure] * row[measure] <= wanted), None)
        for rows in (ours, other)
    ]


def figures(outcome: Outcome) -> Figures:
    """Draw error and likelihood against time."""
    from appca.plots.studies import speed_courses

    return {"courses": speed_courses(outcome.tables["ladder"])}


_SIZES = {"n_features": 50, "n_components": 8, "n_active": 4, "noise_sd": 0.3, "seed": 0}

STUDY = Study(
    name="speed",
    title="EM against Gibbs sampling",
    paper=(
        "The paper states that its EM algorithms for aPPCA and aFA converge orders of magnitude "
        "faster than Gibbs sampling, to a reasonable point estimate. It gives no times."
    ),
    revision=2,
    sizes={
        "quick": {**_SIZES, "n_rows": 300, "seeds": 2, "passes": 64, "sweeps": 128},
        "default": {**_SIZES, "n_rows": 500, "seeds": 3, "passes": 128, "sweeps": 256},
        "full": {**_SIZES, "n_rows": 1000, "seeds": 5, "passes": 512, "sweeps": 1024},
    },
    takes={"quick": 12.0, "default": 60.0, "full": 900.0},
    run=run,
    figures=figures,
)
