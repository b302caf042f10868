"""Speed of EM relative to Gibbs sampling: time to equal error and to equal likelihood."""

import time
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from appca.studies.claims import Claim, checked, span
from appca.studies.fitting import Spec, work
from appca.studies.study import Options, Outcome, Report, Row, Study, sized
from appca.words import refuse_if

MEASURES = {"error": "squared error", "likelihood": "log-likelihood of fresh rows"}
SLACK = 0.01  # relative tolerance of a level
SIGN = {"error": 1.0, "likelihood": -1.0}  # factor that makes lower values of a measure better
ORDERS = 100.0  # minimum ratio for "orders of magnitude faster"
CLOCK = "These are ratios of processor times of the shortest fits, from the same start, that reach "
CLOCK += "a common level. A chain also gives draws from the posterior."


class Way(NamedTuple):
    """A way to fit a model for a number of iterations or sweeps."""

    title: str
    settings: Options
    is_em: bool = False

    @property
    def model(self) -> str:
        """The name of the model, "aPPCA" or "aFA"."""
        return self.title.partition(",")[0]


_PAPER = "aPPCA, the paper's Gibbs"
WAYS = {
    "appca_em": Way("aPPCA, EM", {}, is_em=True),
    "appca_gibbs": Way("aPPCA, Gibbs", {}),
    "appca_paper": Way(  # W by appendix C
        f"{_PAPER} (members in turn, W by Pymanopt)", {"z_update": "swap", "w_update": "pymanopt"}
    ),
    "appca_polar": Way(  # W by algorithm 3
        f"{_PAPER}, but W maximised in closed form", {"z_update": "swap", "w_update": "polar"}
    ),
    "afa_em": Way("aFA, EM", {"annealing": 0}, is_em=True),
    "afa_best": Way(
        "aFA, the paper's EM (one set a row)",
        {"annealing": 0, "allocation": "best", "mean": "sample"},
        is_em=True,
    ),
    "afa_gibbs": Way("aFA, Gibbs", {"annealing": 0}),
}


def estimator(way: Way, passes: int, options: Options) -> Any:
    """Return an estimator with PCA start and `passes` EM iterations, or sweeps of one chain."""
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis
    from appca.models.adaptive_ppca import AdaptivePPCA

    kind: Any = AdaptivePPCA if way.model == "aPPCA" else AdaptiveFactorAnalysis
    course: Options = {"max_iter": passes, "tol": 0.0}
    if not way.is_em:
        chain = {"n_chains": 1, "burn_in": passes // 2, "n_draws": passes - passes // 2}
        course = {"inference": "gibbs", "max_iter": 1, **chain}
    sizes, seed = (options["n_components"], options["n_active"]), options["seed"]
    return kind(*sizes, init="pca", random_state=seed, **course, **way.settings)


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Time all ways on a ladder of iterations, one at a time, so that timings are undisturbed."""
    msg = f"n_active must be below n_components={options['n_components']}, or there is nothing "
    msg += f"to search for; got {options['n_active']}."
    refuse_if(options["n_active"] >= options["n_components"], msg)
    pairs = product(range(options["seeds"]), WAYS)
    specs = [{"way": way, "data_set": number, "options": options} for number, way in pairs]
    rows = work("appca.studies.speed:ladder", specs, report, 1)
    table = [
        _pair(rows, em, gibbs, measure)
        for em, gibbs in product(WAYS, WAYS)
        if WAYS[em].is_em and not WAYS[gibbs].is_em and WAYS[em].model == WAYS[gibbs].model
        for measure in MEASURES
    ]
    return Outcome({"speed": table, "ladder": rows}, {}, claims(table), CLOCK)


def claims(table: Sequence[Row]) -> list[Claim]:
    """Judge each model: every mean ratio must be at least `ORDERS`."""
    made = []
    for model in dict.fromkeys(row["model"] for row in table):
        of_model = [row for row in table if row["model"] == model]
        ratios, ends = [row["ratio"] for row in of_model], [row["to_end"] for row in of_model]
        every = all(row["to_end_reached"] == row["data_sets"] for row in of_model)
        bound = "" if every else " or more, as some chains do not reach it"
        magnitude = "one order, not two," if max(ratios) >= 10 else "less than one order, not two,"
        if max(ratios) >= ORDERS:
            magnitude = "two orders of magnitude or more"
        measured = f"{span(ratios, '.2g')} times, {magnitude} on this design; to the level where "
        measured += f"EM ends, {span(ends, '.2g')} times{bound}"
        claim = f"EM of {model} is orders of magnitude faster than Gibbs sampling"
        number = (f"{span(ratios, '.2g').replace(' to ', '–')} ×", f"faster, {model}")
        made.append(checked(claim, measured, [ratio >= ORDERS for ratio in ratios], number=number))
    return made


def draw(model: str, number: int, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows (N, D) that use L of K directions, and test rows from the same model."""
    rng = np.random.default_rng([number, options["seed"]])
    N, D = 2 * options["n_rows"], options["n_features"]
    K, L = options["n_components"], options["n_active"]
    W = rng.standard_normal((D, K))
    if model == "aPPCA":
        W = 2.0 * np.linalg.qr(W)[0]  # orthonormal directions; scores have variance 4
    X = np.where(rng.random((N, K)).argsort(axis=1) < L, rng.standard_normal((N, K)), 0.0)
    Y = X @ W.T + options["noise_sd"] * rng.standard_normal((N, D))
    return Y[: N // 2], Y[N // 2 :]


def rungs(most: int) -> list[int]:
    """Return numbers of iterations from 1 to `most`, each about 1.4 times the previous."""
    numbers = {round(2 ** (step / 2)) for step in range(2 * most.bit_length())}
    return [*sorted(rung for rung in numbers if rung < most), most]


def ladder(spec: Spec, tick: Report) -> list[Row]:
    """Fit with increasing iterations from one start; return time, error and likelihood."""
    from appca.models.threads import single_threaded_blas

    options, way = spec["options"], WAYS[spec["way"]]
    Y, fresh = draw(way.model, spec["data_set"], options)
    settings = {**options, "seed": options["seed"] + spec["data_set"]}
    steps = rungs(options["passes"] if way.is_em else options["sweeps"])
    stage = f"data set {spec['data_set'] + 1}: {way.title}"
    rows: list[Row] = []
    with single_threaded_blas():
        estimator(way, 2, settings).fit(Y)  # compiles code and fills caches
        for place, passes in enumerate(steps):
            tick(stage, sum(steps[:place]) / sum(steps))
            model = estimator(way, passes, settings)
            began = time.process_time()  # CPU time, independent of other processes
            model.fit(Y)
            seconds, R = time.process_time() - began, model.inverse_transform(model.transform(Y))
            row = {"way": spec["way"], "title": way.title, "model": way.model}
            row |= {"made": int(model.n_iter_), "seconds": seconds}
            row |= {"error": float(np.square(Y - R).mean())}
            row |= {"likelihood": float(model.score_samples(fresh).mean())}
            rows.append(row | {"data_set": spec["data_set"], "passes": passes})
            if row["made"] < passes and way.is_em:
                break  # EM has converged
    for longer, row in zip(rows[:0:-1], rows[-2::-1], strict=True):
        row["seconds"] = min(row["seconds"], longer["seconds"])  # a longer fit includes this one
    return rows


def _pair(rows: Sequence[Row], em: str, gibbs: str, measure: str) -> Row:
    measured = []
    for number in sorted({row["data_set"] for row in rows}):
        ours, other = (
            [row for row in rows if (row["way"], row["data_set"]) == (way, number)]
            for way in (em, gibbs)
        )
        first, second, _ = times(ours, other, measure)
        end, chain, reached = times(ours, other, measure, to_end=True)
        pace_em, pace_gibbs = (way[-1]["seconds"] / way[-1]["made"] for way in (ours, other))
        ratios = second / first, chain / end, pace_gibbs / pace_em
        measured.append((first, second, reached, *ratios))
    seconds_em, seconds_gibbs, arrived, *compared = np.array(measured, dtype=float).T
    ratio, to_end, sweep_per_pass = (float(np.exp(np.log(values).mean())) for values in compared)
    row: Row = {"model": WAYS[em].model, "em": WAYS[em].title, "gibbs": WAYS[gibbs].title}
    row |= {"measure": MEASURES[measure], "data_sets": len(measured)}
    row |= {"seconds_em": float(np.median(seconds_em))}
    row |= {"seconds_gibbs": float(np.median(seconds_gibbs)), "ratio": ratio}
    row |= {"ratio_least": float(compared[0].min()), "ratio_most": float(compared[0].max())}
    row |= {"to_end": to_end, "to_end_reached": int(arrived.sum())}
    return row | {"sweep_per_pass": sweep_per_pass}


def times(
    ours: Sequence[Row], other: Sequence[Row], measure: str, *, to_end: bool = False
) -> tuple[float, float, bool]:
    """Return the seconds that both ways take to reach a level, and whether the second reaches it.

    The level is the worse of the two best values (with `to_end`, the best of the first), relaxed by
    `SLACK` of the distance to the worst start. If a way misses it, its longest fit counts.
    """
    values = [[SIGN[measure] * row[measure] for row in rows] for rows in (ours, other)]
    best, start = [min(each) for each in values], max(each[0] for each in values)
    level = best[0] if to_end else max(best)
    wanted = level + SLACK * max(start - level, 0.0)
    places = [next((n for n, value in enumerate(v) if value <= wanted), -1) for v in values]
    return ours[places[0]]["seconds"], other[places[1]]["seconds"], places[1] >= 0


STUDY = Study(
    "speed",
    "Section 4: EM against Gibbs sampling",
    "The paper states that its EM algorithms for aPPCA and aFA converge orders of magnitude "
    "faster than Gibbs sampling, to a reasonable point estimate. It gives no times.",
    revision=2,
    **sized(
        (12.0, 60.0, 900.0),
        {"n_features": 50, "n_components": 8, "n_active": 4, "noise_sd": 0.3, "seed": 0}
        | {"n_rows": (300, 500, 1000), "seeds": (2, 3, 5)}
        | {"passes": (64, 128, 512), "sweeps": (128, 256, 1024)},
    ),
    run=run,
    draw=lambda plots, outcome: {"courses": plots.speed_courses(outcome.tables["ladder"])},
)
