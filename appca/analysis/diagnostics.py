"""Diagnose fits and sampled chains, with the reasons in words.

Chains are judged by quantities that do not depend on the names, order, signs or rotation of
components; EM fits are judged by convergence, rows, and fits to halves of the rows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appca.analysis.campaign import CLEAR
from appca.analysis.choose import BELOW_NOISE, MUCH, RECOVERED, Stability
from appca.analysis.compare import MOST_AT_LIMITS, share_at_limits
from appca.analysis.components import DOUBTFUL, ROUGHLY, farthest, rarely_used
from appca.analysis.fitted import FittedRun
from appca.words import capital, counted, fixed, of_column, percent, shortened

# Raftery & Lewis (1992): estimate a quantile within this error, with this probability.
QUANTILE, WITHIN, SURELY = 0.025, 0.005, 0.95
BURN_IN_ERROR = 0.001  # maximum distance from stationarity after burn-in
_PER_VARIANCE = (NormalDist().inv_cdf((SURELY + 1) / 2) / WITHIN) ** 2  # draws per variance
INDEPENDENT_DRAWS, LEAST_LENGTH = math.ceil(QUANTILE * (1 - QUANTILE) * _PER_VARIANCE), 10


class Requirement(NamedTuple):
    """Number of sweeps that a chain needs; rough for under `INDEPENDENT_DRAWS` draws."""

    burn_in: int
    total: int  # sweeps after burn-in
    dependence: float  # ratio to the number of independent draws needed; above 5 is a problem


def raftery_lewis(draws: ArrayLike) -> Requirement:
    """Judge one chain of a scalar from its draws (n,), at least 10 and not all equal."""
    x = np.asarray(draws, dtype=np.float64)
    below = x <= np.quantile(x, QUANTILE)
    if below.all():  # the smallest value of a discrete quantity may exceed the quantile
        below = x <= x.min()
    thin = thinning(below)
    z = below[::thin]
    # Count a transition that never occurs as half a transition, or a stuck chain would pass.
    before, after = z[:-1], z[1:]
    alpha = max((~before & after).sum(), 0.5) / max((~before).sum(), 1)
    beta = max((before & ~after).sum(), 0.5) / max(before.sum(), 1)
    return required(float(alpha), float(beta), thin)


def thinning(below: NDArray[np.bool_]) -> int:
    """Return the smallest thinning at which BIC prefers a first-order Markov chain.

    The likelihood ratio statistic of the second-order versus the first-order chain,
    G2 = 2 sum n_ijk log(n_ijk n_.j. / (n_ij. n_.jk)) over successive triples of states, has 2
    degrees of freedom and must be below 2 log(n - 2).
    """
    thin = 1
    while True:
        z = below[::thin].astype(np.int64)
        n = np.bincount(4 * z[:-2] + 2 * z[1:-1] + z[2:], minlength=8).reshape(2, 2, 2) * 1.0
        middle = np.maximum(n.sum(axis=(0, 2)), 1)[:, None]
        expected, seen = n.sum(axis=2, keepdims=True) * n.sum(axis=0) / middle, n > 0
        following = below[:: thin + 1]
        if (
            2 * (n[seen] * np.log(n[seen] / expected[seen])).sum() < 2 * math.log(len(z) - 2)
            or len(following) < LEAST_LENGTH  # too short to thin further
            or following.min() == following.max()
        ):
            return thin
        thin += 1


def required(alpha: float, beta: float, thin: int = 1) -> Requirement:
    """Return burn-in and length of a two-state chain, given its rates of leaving each state.

    The distance from stationarity decays as (1 - alpha - beta)^m; the mean of n steps has variance
    alpha beta (2 - alpha - beta) / ((alpha + beta)^3 n).
    """
    both, memory = alpha + beta, abs(1 - alpha - beta)
    ratio = BURN_IN_ERROR * both / max(alpha, beta)
    burn_in = math.ceil(math.log(ratio) / math.log(memory) if 0 < memory < 1 else 0.0) * thin
    total = math.ceil(alpha * beta * (2 - both) / both**3 * _PER_VARIANCE) * thin
    return Requirement(burn_in, total, (burn_in + total) / INDEPENDENT_DRAWS)


# Vehtari et al. (2021): rank-normalized split R-hat below 1.01, and 100 effective draws per chain.
LARGEST_R_HAT, SUSPECT_R_HAT, LEAST_ESS_PER_CHAIN = 1.01, 1.05, 100
LEAST_DRAWS, WORRYING_DEPENDENCE = 4, 5.0  # by ArviZ; Raftery & Lewis: longer chains do not help

Level = Literal["good", "unknown", "doubtful", "bad"]
LEVELS: tuple[Level, ...] = ("good", "unknown", "doubtful", "bad")
MOST_DOUBTFUL, MOST_REPEATED = 1 / 3, 0.01  # maximum shares of doubtful and of repeated rows
MOST_AT_FLOOR, MOST_SPARSE = 0.05, 0.1  # maximum shares of features at their floor; sparse rows
MOST_BEFORE_BAD = 0.5  # maximum share of one row in the squared projections
LEAST_USERS = 20  # of a component or class, to judge it
MUCH_LESS, TIMES = 0.15, 2.0  # explained share below, and squared error above, the other rows'

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
    raftery_lewis: Requirement | None  # of the chain that needs the most sweeps


class Check(NamedTuple):
    """One check of whether a fit is reliable."""

    level: Level
    label: str
    why: str  # reason and remedy


def invariants(posterior: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]]:
    """Return a dict of the quantities that judge chains, (chain, draw) each."""
    traces = {words: posterior[key] for key, words in SCALARS.items() if key in posterior}
    if "latent_variance" in posterior:
        each, name = np.asarray(posterior["latent_variance"]), "factor variance"
        least, largest = each.min(axis=-1), each.max(axis=-1)
        ends = {f"smallest {name}": least, f"largest {name}": largest}
        traces |= {name: least} if np.array_equal(least, largest) else ends
    if "occupancy" in posterior:
        for k, rows in enumerate(np.moveaxis(np.asarray(posterior["occupancy"]), -1, 0)):
            traces[f"number of rows with the component ranked {k + 1} by use"] = rows
    if "shared" in posterior:
        traces["mean number of components that two rows share"] = posterior["shared"].mean(axis=-1)
    return {name: np.asarray(draws, dtype=np.float64) for name, draws in traces.items()}


def diagnose(posterior: Mapping[str, NDArray[Any]]) -> list[Diagnosis]:
    """Diagnose every quantity that varies; where rank-normalized R-hat fails, use split R-hat."""
    from appca.models.chains import load_arviz

    arviz, diagnoses = load_arviz(), []
    for name, draws in invariants(posterior).items():
        if draws.shape[1] < LEAST_DRAWS or np.ptp(draws) == 0:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):  # constant chains give inf
            r_hat = float(arviz.rhat(draws))
            if not np.isfinite(r_hat):
                r_hat = float(arviz.rhat(draws, method="split"))
        bulk, tail = (float(arviz.ess(draws, method=method)) for method in ("bulk", "tail"))
        moving = [chain for chain in draws if len(chain) >= LEAST_LENGTH and np.ptp(chain) > 0]
        asked = max(map(raftery_lewis, moving), key=lambda r: r.burn_in + r.total, default=None)
        moments = float(draws.mean()), float(draws.std())
        diagnoses.append(Diagnosis(name, *moments, r_hat, bulk, tail, asked))
    return diagnoses


def starts_apart(model: str, parameters: Mapping[str, Any]) -> bool:
    """Whether chains started far apart; otherwise their agreement proves little."""
    starts = parameters.get("init"), parameters.get("chain_starts")
    return bool(model == "NPPCA" or starts[0] == "random" or starts[1] == "overdispersed")


def worst(checks: Sequence[Check]) -> Level:
    """Return the worst level of the checks."""
    return max((check.level for check in checks), key=LEVELS.index, default="good")


def of_draws(posterior: Mapping[str, NDArray[Any]], most: int) -> list[Check]:
    """Check properties of draws other than convergence, such as whether K reached `most`."""
    from appca.models.chains import levels
    from appca.models.draws import number_band

    checks = []
    if "n_components" in posterior:
        numbers = numbers_in_use(posterior)
        low, high = number_band(numbers, 0.95)
        between = f", between {low} and {high} in 95% of the draws" * (low < high)
        most_often = f"most often {np.bincount(numbers.ravel()).argmax()}{between}"
        why = f"Components used by at least 5% of rows: {most_often}."
        size = Check("good", "K found", why)
        if (np.asarray(posterior["n_components"]) == most).all():
            why = f"Every draw uses all {most} available components; allow more and fit again."
            size = Check("doubtful", f"All {most} used", why)
        checks.append(size)
    if "log_posterior" in posterior:
        told = levels(np.asarray(posterior["log_posterior"]))
        n, n_counted = len(told.counts), int(told.counts.sum())
        if n_counted < n:
            checks.append(Check("doubtful", f"{n_counted} of {n} chains used", told.why))
        elif n > 1:
            checks.append(Check("good", f"All {n} chains used", told.why))
    return checks


def numbers_in_use(posterior: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Count the components (chain, draw) that at least 5% of rows use."""
    from appca.models.chains import in_use

    return in_use(posterior["occupancy"], posterior["Z_mean"].shape[1])


def of_chains(
    diagnoses: Sequence[Diagnosis], n_chains: int, *, apart: bool | None = None
) -> list[Check]:
    """Check the starts of chains, their agreement, and the number of draws."""
    if not diagnoses:
        return [Check("bad", "Too few draws", "Raise the number of draws.")]
    most = max(diagnoses, key=lambda d: d.r_hat if np.isfinite(d.r_hat) else np.inf)
    fewest = min(diagnoses, key=lambda d: np.nan_to_num(min(d.ess_bulk, d.ess_tail)))
    ess, wanted = np.nan_to_num(min(fewest[4:6])), LEAST_ESS_PER_CHAIN * n_chains
    told = f"R-hat {most.r_hat:.2f}, should be below {LARGEST_R_HAT}"
    if not np.isfinite(most.r_hat):
        told = "a chain never moves, so R-hat cannot be computed"
    why = f"The chains disagree about the {most.name} ({told}): raise the burn-in and the"
    checks = [Check("bad", "Chains disagree", f"{why} number of draws.")]
    if most.r_hat <= LARGEST_R_HAT:
        checks = [Check("good", "Chains agree", f"R-hat is at most {most.r_hat:.3f}.")]
    elif most.r_hat <= SUSPECT_R_HAT:
        why = f"R-hat of the {most.name} is {most.r_hat:.3f}, above {LARGEST_R_HAT}: draw more."
        checks = [Check("doubtful", "Chains nearly agree", why)]
    why = f"The {fewest.name} has only {ess:.0f} effective draws, but needs {wanted}: draw more."
    enough = f"Every quantity has at least {ess:.0f} effective draws."
    few = Check("doubtful", "Few draws", why)
    checks.append(Check("good", "Enough draws", enough) if ess >= wanted else few)
    if n_chains == 1:
        checks.append(Check("doubtful", "One chain", "Sample a second one to compare them."))
    elif apart:
        checks.append(Check("good", "Started apart", "The chains started far from one another."))
    elif apart is False:
        checks.append(Check("doubtful", "One start", "All chains share it: start them apart."))
    return checks


def of_components(fitted: FittedRun, ids: NDArray[Any]) -> list[Check]:
    """Check that rows use every component, and that no single row dominates the fit."""
    rare, (row, share, dominates) = rarely_used(fitted), farthest(fitted)
    checks = [Check("good", "Components used", "Each component is used by at least 1% of rows.")]
    if rare:
        why = f"Under 1% of rows use component {', '.join(map(str, rare))}: lower K or start again."
        checks = [Check("doubtful", "Component unused", why)]
    name, part = shortened(ids[row]), f"{percent(share)} of the variance in the components"
    if dominates:
        why = f"{part} comes from “{name}”: remove it if it is an error, or use ranks."
        level: Level = "bad" if share > MOST_BEFORE_BAD else "doubtful"
        return [*checks, Check(level, "One row dominates", why)]
    squares = np.square(fitted.scores, dtype=np.float64)
    of = squares.max(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    of[fitted.active.sum(axis=0) < LEAST_USERS] = 0
    if of[k := int(of.argmax())] > MOST_BEFORE_BAD:
        name = shortened(ids[squares[:, k].argmax()])
        why = f"{percent(of[k])} of component {k + 1} comes from “{name}”: is it an error?"
        return [*checks, Check("doubtful", "One row is a component", why)]
    return [*checks, Check("good", "No row dominates", f"“{name}” contributes most: {part}.")]


def of_halves(halves: Stability | None, numbered: bool = True) -> list[Check]:
    """Check that fits to halves recover the components, and that K and L suit the other half."""
    if halves is None:
        why = "Fit halves of the rows to see whether they have the same components."
        return [Check("unknown", "Halves not fitted yet", why)]
    (gain, error), (more, its_error, added) = (x.mean(axis=0) for x in halves[1:])
    cosines = np.median(halves.cosines, axis=0)
    recovered, K, lowest = cosines >= RECOVERED, len(cosines), math.floor(100 * cosines.min()) / 100
    kept = int(recovered.sum())
    why = f"Fits to half the rows gain {fixed(gain)} ± {fixed(error)} nats per row over PCA with L"
    unclear = Check("doubtful", "Gain over PCA not clear", f"{why}: PCA may do as well.")
    checks = [] if np.isnan(gain) else [unclear]  # NaN if L = K
    if gain < -CLEAR * error:
        checks = [Check("bad", "Worse than PCA", f"{why}: try another K and L, or PCA.")]
    elif gain > CLEAR * error:
        checks = [Check("good", "Better than PCA with L", f"{why}.")]
    why = f"Fits to halves of the rows find these components: median |cos| at least {lowest:.2f}."
    level: Level = "good"
    if not recovered.all():
        level = "doubtful" if cosines.min() >= ROUGHLY or 2 * kept > K else "bad"
        numbers = ", ".join(map(str, np.flatnonzero(recovered) + 1))
        which = f"only component{'s' * (kept > 1)} {numbers}" if numbered else f"only {kept}"
        remedy = "the others roughly" if cosines.min() >= ROUGHLY else "ignore the rest"
        instead = f"read {'only these' if kept else 'no component'}, or try another K and L"
        remedy = remedy if level == "doubtful" else instead
        which = f"{which if kept else 'none'} of {K}"
        why = f"Halves recover {which} (lowest |cos| {lowest:.2f}): {remedy}."
    checks.append(Check(level, f"{kept} of {counted(K, 'component')} recovered", why))
    if halves.larger[:, 2].min() <= BELOW_NOISE:
        why = "Halves describe other rows worse than noise alone: use row scales, or leave out "
        checks.append(Check("bad", "Worse than noise", f"{why}rows far from the others."))
    if more > CLEAR * its_error and added > MUCH:
        by = f"{fixed(more)} ± {fixed(its_error)} nats per row, {percent(added)} of the whole gain"
        why = f"One more component per row improves held-out rows by {by}: raise L."
        checks.append(Check("doubtful", "L could be higher", why))
    return checks


def of_rows(fitted: FittedRun, repeated: int, few: float = 0.0, usual: bool = False) -> list[Check]:
    """Check supports, and the shares of rows with `few` values and of repeated ones, if unusual."""
    doubtful = float(np.mean(fitted.membership < DOUBTFUL))
    why = f"In {percent(doubtful)} of rows, no set of components is {percent(DOUBTFUL)} likely."
    why = why if doubtful else "In every row, one set of components is over 50% likely."
    clear = Check("good", f"{percent(1 - doubtful)} of rows over half certain", why)
    if doubtful > MOST_DOUBTFUL:
        why = f"{why[:-1]}: do not count rows per panel."
        clear = Check("doubtful", f"{percent(doubtful)} of rows between panels", why)
    why = f"Rows equal to an earlier one: {repeated:,}."
    checks = [clear] * (fitted.active.shape[1] > 2 and not fitted.active.all())  # of two, one is
    if few > MOST_SPARSE:
        of = f"{percent(few)} of rows"
        said = f"In {of}, over half of the values are missing: do not rely on their scores."
        checks.append(Check("doubtful", f"{of} mostly missing", said))
    if usual or repeated <= MOST_REPEATED * len(fitted.active):
        label = f"{repeated:,} repeated" if repeated else "No repeated rows"
        why += " Where features have few values, that is usual." * usual
        return [*checks, Check("good", label, why)]
    why += " Copies make the fit look more certain: remove those that are copies."
    return [*checks, Check("doubtful", f"{repeated:,} repeated", why)]


def of_classes(fitted: FittedRun, classes: Iterable[tuple[str, Any, Any]]) -> list[Check]:
    """Check that classes, each label's title, names and codes (N,), are described like others."""
    m, W = (np.asarray(x, np.float64) for x in (fitted.scores, fitted.components))
    tau2 = np.maximum(fitted.latent_variance, np.finfo(float).tiny)
    shrunk = 2 * np.diag(np.mean(fitted.noise_variance) / tau2)  # fit times error
    squares = np.stack([(m @ (W @ W.T + shrunk) * m).sum(axis=1), fitted.error * len(W.T)])
    worse: list[tuple[float, float, float, str]] = []
    for title, names, codes in classes:
        of = codes >= 0
        sums = [np.bincount(codes[of], x, len(names)) for x in (None, *squares[:, of])]
        (n, described, left), others = sums, [x.sum() - x for x in sums]
        with np.errstate(divide="ignore", invalid="ignore"):
            share, rest = described / (described + left), others[1] / (others[1] + others[2])
            times = left / n * others[0] / others[2]
        at = np.flatnonzero((share < rest - MUCH_LESS) & (times > TIMES) & (n >= LEAST_USERS))
        worse += [(share[c], rest[c], times[c], of_column(title, names[c])) for c in at]
    if not worse:
        return []
    part, whole, times, name = min(worse)
    why = f"Errors of {name} are {times:.1f} times as large (mean squares) as of other rows: "
    why += f"of its squares around the centre, {percent(part)} are explained, of others "
    why += f"{percent(whole)}. Fit these rows alone, or compare larger K and L."
    return [Check("doubtful", f"{capital(name)} described worse", why)]


def of_scales(fitted: FittedRun) -> list[Check]:
    """Check that few learned row scales are at the limits of their values."""
    share = share_at_limits(fitted.row_scales, fitted.row_scale_values)
    why = f"{percent(share)} of row scales are at the ends of their range: errors of rows differ "
    why += "more than the model allows. Fit without row scales, or leave these rows out."
    return [Check("doubtful", "Scales at their limits", why)] * (share > MOST_AT_LIMITS)


def failures(diagnosis: Diagnosis, n_chains: int, burn_in: float = np.inf) -> set[str]:
    """Return the fields of a diagnosis that fail; `burn_in` is counted in kept draws."""
    wanted, asked = LEAST_ESS_PER_CHAIN * n_chains, diagnosis.raftery_lewis
    enough = {  # comparisons with NaN are False
        "r_hat": diagnosis.r_hat <= LARGEST_R_HAT,
        "ess_bulk": diagnosis.ess_bulk >= wanted,
        "ess_tail": diagnosis.ess_tail >= wanted,
        "burn_in": asked is None or asked.burn_in <= burn_in,
        "dependence": asked is None or asked.dependence <= WORRYING_DEPENDENCE,
    }
    return {name for name, is_enough in enough.items() if not is_enough}


def of_climb(log_likelihoods: Sized, reason: str, at_floor: float = 0.0) -> list[Check]:
    """Check that EM converged, and that the share of features at their noise floor is small."""
    if "floor" in reason:
        why = "Components reproduce rows almost exactly: lower K or L, or look for repeated rows."
        return [Check("doubtful", "Noise at its floor", why)]
    passes = counted(len(log_likelihoods), "iteration")
    endings: dict[str, tuple[Level, str, str]] = {
        "closed form": ("good", "Solved exactly", "No iterations are needed."),
        "converged": ("good", f"Converged in {passes}", "Other starts may do better."),
        "reached": ("bad", "Not converged", f"It reached the limit of {passes}: raise the limit."),
        "stopped by": ("doubtful", "Stopped early", f"It was stopped after {passes}: fit again."),
        "": ("doubtful", "Ended", f"The fit ended for another reason: {reason}."),
    }
    ended = next(Check(*told) for begin, told in endings.items() if reason.startswith(begin))
    free = Check("good", "Noise above its floor", "The floor hardly affects the noise variance.")
    if at_floor > MOST_AT_FLOOR:
        why = "Use one noise variance for all features, or fewer components."
        label = f"Noise of {percent(at_floor)} of the features is at its floor"
        free = Check("doubtful", label, why)
    return [ended, free]
