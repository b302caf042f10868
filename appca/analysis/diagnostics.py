"""Diagnose fits and sampled chains, and state the reasons in words.

Of chains only what does not depend on the names, order, signs or rotation of components is judged:
densities, variances, sorted occupancies, numbers of shared components of rows. A fit by EM is
judged by why it ended and by what its last iterations still gained.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appca.words import capital, counted, percent

LEAST_LENGTH = 10


class Goal(NamedTuple):
    """Estimate the q-quantile to within r of its probability, with probability s."""

    q: float = 0.025
    r: float = 0.005
    s: float = 0.95
    burn_in_error: float = 0.001  # largest distance from the stationary probability after burn-in

    def draws(self, variance: float) -> int:
        """Return the draws that reach the goal where the mean of n has variance / n."""
        half_width = NormalDist().inv_cdf((self.s + 1) / 2)  # of the central s of a normal
        return math.ceil(variance * (half_width / self.r) ** 2)


DEFAULT = Goal()


class Requirement(NamedTuple):
    """What a chain needs, in sweeps of that chain."""

    thin: int
    burn_in: int
    total: int  # sweeps to keep after burn-in
    least: int  # independent draws would need
    dependence: float  # (burn_in + total) / least; above 5 is a reason to worry
    enough: bool  # whether the chain was at least `least` long, so that the rest can be trusted


def raftery_lewis(draws: ArrayLike, goal: Goal = DEFAULT) -> Requirement:
    """Judge one chain of a scalar, draws (n,).

    Raises ValueError when the draws are fewer than 10 or never change.
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim != 1 or len(x) < LEAST_LENGTH or x.min() == x.max():
        msg = (
            f"draws must be one chain of at least {LEAST_LENGTH} numbers, not all the same; "
            f"got shape {x.shape}: pass a single quantity of a single chain."
        )
        raise ValueError(msg)
    below = x <= np.quantile(x, goal.q)
    if below.all():  # a discrete quantity may have its smallest value more often than q
        below = x <= x.min()
    thin = thinning(below)
    z = below[::thin]
    # A change that was never seen counts as half a one, or a stuck chain would ask for nothing.
    before, after = z[:-1], z[1:]
    alpha = max((~before & after).sum(), 0.5) / max((~before).sum(), 1)
    beta = max((before & ~after).sum(), 0.5) / max(before.sum(), 1)
    return required(float(alpha), float(beta), len(x), thin, goal)


def thinning(below: NDArray[np.bool_]) -> int:
    """Find the smallest thinning at which the sequence remembers one step rather than two.

    By BIC: the likelihood ratio statistic of the second-order chain against the first-order one
    has 2 degrees of freedom and must fall below 2 log(n - 2).
    """
    thin = 1
    while True:
        z = below[::thin].astype(np.int64)
        if memory_statistic(z) < 2 * math.log(len(z) - 2):
            return thin
        following = below[:: thin + 1]
        if len(following) < LEAST_LENGTH or following.all() or not following.any():
            return thin  # nothing is left to thin
        thin += 1


def memory_statistic(z: NDArray[np.int64]) -> float:
    """Give G2 = 2 sum n_ijk log(n_ijk n_.j. / (n_ij. n_.jk)) over successive triples of states."""
    n = np.bincount(4 * z[:-2] + 2 * z[1:-1] + z[2:], minlength=8).reshape(2, 2, 2).astype(float)
    expected = (
        n.sum(axis=2, keepdims=True) * n.sum(axis=0) / np.maximum(n.sum(axis=(0, 2)), 1)[:, None]
    )
    seen = n > 0
    return float(2 * (n[seen] * np.log(n[seen] / expected[seen])).sum())


def required(
    alpha: float, beta: float, n_draws: int, thin: int = 1, goal: Goal = DEFAULT
) -> Requirement:
    """Turn the rates of leaving the two states of a chain into burn-in and length.

    The distance from stationarity falls like (1 - alpha - beta)^m, and the mean of n steps has
    variance alpha beta (2 - alpha - beta) / ((alpha + beta)^3 n).
    """
    both, memory = alpha + beta, abs(1 - alpha - beta)
    ratio = goal.burn_in_error * both / max(alpha, beta)
    steps = math.log(ratio) / math.log(memory) if 0 < memory < 1 else 0.0
    burn_in = math.ceil(steps) * thin
    total = goal.draws(alpha * beta * (2 - both) / both**3) * thin
    least = goal.draws(goal.q * (1 - goal.q))
    return Requirement(thin, burn_in, total, least, (burn_in + total) / least, n_draws >= least)


Draws = NDArray[np.float64]

# Vehtari et al. (2021): rank-normalised split R-hat below 1.01, and 100 effective draws a chain.
LARGEST_R_HAT = 1.01
SUSPECT_R_HAT = 1.05
LEAST_ESS_PER_CHAIN = 100
LEAST_DRAWS = 4  # below that ArviZ has nothing to say
WORRYING_DEPENDENCE = 5.0  # Raftery & Lewis (1992): a longer chain does not mend that

Level = Literal["good", "doubtful", "bad"]
LEVELS: tuple[Level, ...] = ("good", "doubtful", "bad")
DOUBT = 0.5  # probability below which a row's choice of components is doubtful
MOST_DOUBTFUL = 0.1  # share of such rows that is no cause for care
MOST_AT_FLOOR = 0.05  # share of features at the floor of their noise that is no cause for care
LAST_PASSES = 10  # whose gain EM stops on, `appca.models.loop.WINDOW`

SCALARS = {
    "log_joint": "joint log-density",
    "log_likelihood": "collapsed log-likelihood",
    "noise_variance": "noise variance",
    "loading_variance": "loading variance",
    "alpha": "alpha",
    "n_components": "number of components",
}


class Diagnosis(NamedTuple):
    """One quantity over all chains."""

    name: str
    mean: float
    sd: float
    r_hat: float
    ess_bulk: float
    ess_tail: float
    raftery_lewis: Requirement | None  # of the chain that asks for most, if any can be judged


class Check(NamedTuple):
    """One thing to know before a fit is relied on."""

    level: Level
    label: str  # of a chip
    why: str  # and what to do


def invariants(posterior: Mapping[str, NDArray[Any]]) -> dict[str, Draws]:
    """Pick what chains may be judged by: name -> (chain, draw)."""
    traces = {words: posterior[key] for key, words in SCALARS.items() if key in posterior}
    if "latent_variance" in posterior:
        each, name = np.asarray(posterior["latent_variance"]), "factor variance"
        least, largest = each.min(axis=-1), each.max(axis=-1)
        shared = np.array_equal(least, largest)
        ends = {f"smallest {name}": least, f"largest {name}": largest}
        traces |= {name: least} if shared else ends
    if "occupancy" in posterior:
        for k, rows in enumerate(np.moveaxis(np.asarray(posterior["occupancy"]), -1, 0)):
            traces[f"rows of the {_ordinal(k + 1)}most used component"] = rows
    if "shared" in posterior:
        traces["components shared by pairs of rows"] = posterior["shared"].mean(axis=-1)
    return {name: np.asarray(draws, dtype=np.float64) for name, draws in traces.items()}


def diagnose(posterior: Mapping[str, NDArray[Any]]) -> list[Diagnosis]:
    """Judge every invariant quantity that moves.

    One that is the same in all draws of all chains is left out: nothing can be said about it, or
    it was held fixed.
    """
    from appca.models.chains import load_arviz

    arviz = load_arviz()
    diagnoses = []
    for name, draws in invariants(posterior).items():
        if draws.shape[1] < LEAST_DRAWS or np.ptp(draws) == 0:
            continue
        moving = [chain for chain in draws if len(chain) >= LEAST_LENGTH and np.ptp(chain) > 0]
        asked = [raftery_lewis(chain) for chain in moving]
        diagnoses.append(
            Diagnosis(
                name,
                float(draws.mean()),
                float(draws.std()),
                _r_hat(arviz, draws),
                float(arviz.ess(draws, method="bulk")),
                float(arviz.ess(draws, method="tail")),
                max(asked, key=lambda r: r.burn_in + r.total, default=None),
            )
        )
    return diagnoses


def starts_apart(model: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the chains of a run started far from one another, which makes agreement a finding."""
    if model == "NPPCA" or parameters.get("init") == "random":
        return True
    return bool(parameters.get("chain_starts") == "overdispersed")


def worst(checks: Sequence[Check]) -> Level:
    """Return the level of the least good check."""
    return max((check.level for check in checks), key=LEVELS.index, default="good")


def of_draws(posterior: Mapping[str, NDArray[Any]], most: int) -> list[Check]:
    """Check what the draws show beside convergence; K, where learned, may be `most`."""
    from appca.models.chains import levels

    checks = []
    numbers = posterior.get("n_components")
    if numbers is not None:
        used = most_frequent(numbers_in_use(posterior))
        full = bool((np.asarray(numbers) == most).all())
        why = f"Every draw uses all {most} components there may be; allow more and fit again."
        room = f"{used} components are used by at least 5% of rows, in most draws."
        checks.append(
            Check("doubtful", f"All {most} used", why) if full else Check("good", "K found", room)
        )
    density = posterior.get("log_posterior")
    if density is not None:
        told = levels(np.asarray(density))
        n, counted = len(told.counts), int(told.counts.sum())
        if counted < n:
            checks.append(Check("doubtful", f"{counted} of {n} chains count", told.why))
        elif n > 1:
            checks.append(Check("good", f"All {n} chains count", told.why))
    return checks


def numbers_in_use(posterior: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Count the components (chain, draw) that at least 5% of rows use."""
    from appca.models.chains import in_use

    return in_use(posterior["occupancy"], posterior["Z_mean"].shape[1])


def most_frequent(numbers: NDArray[np.integer[Any]]) -> int:
    """Return the number that occurs most often."""
    return int(np.bincount(numbers.ravel()).argmax())


def of_chains(
    diagnoses: Sequence[Diagnosis], n_chains: int, *, apart: bool | None = None
) -> list[Check]:
    """Check whether the chains agree, from which starts, and whether there are enough draws.

    `apart` is what `starts_apart` says: whether they were asked to agree from different starts.
    """
    if not diagnoses:
        return [Check("bad", "Too few draws", "Raise the number of draws.")]
    most = max(diagnoses, key=lambda d: _or_worst(d.r_hat, np.inf))
    fewest = min(diagnoses, key=lambda d: _or_worst(min(d.ess_bulk, d.ess_tail), 0.0))
    r_hat = _or_worst(most.r_hat, np.inf)
    ess = _or_worst(min(fewest.ess_bulk, fewest.ess_tail), 0.0)
    if r_hat > SUSPECT_R_HAT:
        told = "a chain never moves, so that R-hat cannot be computed"
        if np.isfinite(r_hat):
            told = f"R-hat {r_hat:.2f}, should be below {LARGEST_R_HAT}"
        why = f"The chains disagree about the {most.name} ({told}): raise the burn-in and the"
        checks = [Check("bad", "Chains disagree", f"{why} number of draws.")]
    elif r_hat > LARGEST_R_HAT:
        why = f"R-hat of the {most.name} is {r_hat:.3f}, above {LARGEST_R_HAT}: draw more."
        checks = [Check("doubtful", "Chains nearly agree", why)]
    else:
        checks = [Check("good", "Chains agree", f"R-hat is at most {r_hat:.3f}.")]
    wanted = LEAST_ESS_PER_CHAIN * n_chains
    if ess >= wanted:
        why = f"Every quantity has at least {ess:.0f} effective draws."
        checks.append(Check("good", "Enough draws", why))
    else:
        why = (
            f"The {fewest.name} has {ess:.0f} effective draws where {wanted} are wanted: trust "
            "averages, not intervals yet, and raise the number of draws."
        )
        checks.append(Check("doubtful", "Few draws", why))
    if n_chains == 1:
        alone = "One chain cannot disagree with another: sample at least two."
        checks.append(Check("doubtful", "One chain", alone))
    elif apart:
        checks.append(Check("good", "Started apart", "The chains began far from one another."))
    elif apart is False:
        same = "The chains share a start, so a higher peak may be missed; start them apart."
        checks.append(Check("doubtful", "One start", same))
    return checks


def of_rows(membership: NDArray[Any], repeated: int) -> list[Check]:
    """Check how sure the rows' choices of components are, and whether rows repeat earlier ones."""
    doubtful = float(np.mean(np.asarray(membership) < DOUBT))
    why = f"{percent(doubtful)} of rows use components that are under {percent(DOUBT)} likely."
    level: Level = "good" if doubtful <= MOST_DOUBTFUL else "doubtful"
    checks = [Check(level, "Choices clear" if level == "good" else "Choices unsure", why)]
    if repeated:
        why = f"{repeated:,} rows repeat an earlier one, which makes the fit look surer than it is."
        checks.append(Check("doubtful", f"{repeated:,} repeated", why))
    else:
        checks.append(Check("good", "No repeated rows", "Every row is different."))
    return checks


def failures(diagnosis: Diagnosis, n_chains: int, burn_in: float = np.inf) -> set[str]:
    """Name the fields of a diagnosis that fall short, Raftery and Lewis' as "burn_in" and so on.

    `burn_in` is what the chains made, in kept draws; by default it is enough for anything.
    """
    wanted = LEAST_ESS_PER_CHAIN * n_chains
    asked = diagnosis.raftery_lewis
    short = {
        "r_hat": not _or_worst(diagnosis.r_hat, np.inf) <= LARGEST_R_HAT,
        "ess_bulk": _or_worst(diagnosis.ess_bulk, 0.0) < wanted,
        "ess_tail": _or_worst(diagnosis.ess_tail, 0.0) < wanted,
        "burn_in": asked is not None and asked.burn_in > burn_in,
        "dependence": asked is not None and asked.dependence > WORRYING_DEPENDENCE,
    }
    return {name for name, fails in short.items() if fails}


def of_climb(
    log_likelihoods: ArrayLike,
    n_rows: int,
    reason: str,
    tol: float | None,
    at_floor: float = 0.0,
) -> list[Check]:
    """Check whether a fit by EM has converged, and its noise variances stayed off the floor.

    `log_likelihoods` (n_iter,) are total nats, `reason` is the estimator's stop reason, `tol` the
    gain in nats per row below which it stops, and `at_floor` the share of features whose noise
    variance is at its floor.
    """
    curve = np.asarray(log_likelihoods, dtype=np.float64) / n_rows
    passes = counted(len(curve), "iteration")
    last, still = (_last(curve, tol, verb) for verb in ("gained", "still gained"))
    if "floor" in reason:
        why = (
            "The components reproduce the rows almost exactly, so likelihoods mean little: lower K "
            "or L, or look for repeated rows."
        )
        return [Check("doubtful", "Noise at its floor", why)]
    if reason.startswith("closed form"):
        check = Check("good", "Solved exactly", "There is nothing to converge.")
    elif reason.startswith("converged"):
        why = f"{capital(last)}. A few other starts tell whether it is the best."
        check = Check("good", f"Converged in {passes}", why)
    elif reason.startswith("reached max_iter"):
        why = f"It stopped at the {passes} allowed; {still}. Allow more."
        check = Check("bad", "Not converged", why)
    elif reason.startswith("stopped by"):
        why = f"Stopped by hand after {passes}; {still}."
        check = Check("doubtful", "Stopped early", why)
    else:
        check = Check("doubtful", "Ended", f"The fit ended for another reason: {reason}.")
    free = Check("good", "Noise above its floor", "The noise variance is a free estimate.")
    if at_floor > MOST_AT_FLOOR:
        why = (
            f"The noise variance of {percent(at_floor)} of the features is at its floor, because "
            "the components reproduce them almost exactly: without noise per feature, or with "
            "fewer components, it would be an estimate."
        )
        free = Check("doubtful", f"Noise of {percent(at_floor)} at its floor", why)
    return [check, free]


def _ordinal(rank: int) -> str:
    """Write 1 as nothing, 2 as "2nd ", as in "the 2nd most used"."""
    if rank == 1:
        return ""
    teen = rank % 100 in (11, 12, 13)
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending} "


def _plain(value: float) -> str:
    """Write a number with two digits that count, never as a power of ten."""
    return np.format_float_positional(value, precision=2, fractional=False, trim="-")


def _last(curve: Draws, tol: float | None, gained: str) -> str:
    """Say what the last iterations of a curve, in nats per row, brought."""
    if len(curve) <= LAST_PASSES:
        return "there were too few to see what the last ones gained"
    limit = "" if tol is None else f", where less than {_plain(tol)} counts as converged"
    gain = _plain(curve[-1] - curve[-1 - LAST_PASSES])
    return f"the last {LAST_PASSES} {gained} {gain} nats per row{limit}"


def _r_hat(arviz: Any, draws: Draws) -> float:
    """Rank-normalised R-hat; the plain split one for a quantity that only takes two values.

    Folding two values about their median may leave one, of which nothing can be said.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never move give inf
        ranked = float(arviz.rhat(draws))
        return ranked if np.isfinite(ranked) else float(arviz.rhat(draws, method="split"))


def _or_worst(value: float, worst: float) -> float:
    """Count what cannot be computed as the worst: a chain that never moves, say."""
    return value if np.isfinite(value) else worst
