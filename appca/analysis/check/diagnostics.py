"""Whether a fit or sampled chains can be trusted, and in plain words why.

Of chains only what does not depend on the names, order, signs or rotation of components is judged:
densities, variances, sorted occupancies, numbers of shared components of rows. A fit by EM is
judged by why it ended and by what its last passes still gained.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appca.analysis.check.raftery_lewis import LEAST_LENGTH, Requirement, raftery_lewis

Draws = NDArray[np.float64]

# Vehtari et al. (2021): rank-normalised split R-hat below 1.01, and 100 effective draws a chain.
LARGEST_R_HAT = 1.01
SUSPECT_R_HAT = 1.05
LEAST_ESS_PER_CHAIN = 100
LEAST_DRAWS = 4  # below that ArviZ has nothing to say
WORRYING_DEPENDENCE = 5.0  # Raftery & Lewis (1992): a longer chain does not mend that

LEVELS = ("good", "doubtful", "bad")
LAST_PASSES = 10  # whose gain EM stops on, `appca.models.algebra.loop.WINDOW`

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


class ChainVerdict(NamedTuple):
    """Whether to trust the chains."""

    level: str  # one of LEVELS
    words: str


class CurveSummary(NamedTuple):
    """How a fit by EM ended."""

    stop_reason: str  # the estimator's
    passes: int
    gain: float | None  # of the last ten passes, nats per row; None after fewer than eleven
    tol: float | None  # below which the fit stops, nats per row


def invariants(posterior: Mapping[str, NDArray[Any]]) -> dict[str, Draws]:
    """Pick what chains may be judged by: name -> (chain, draw)."""
    found = {words: posterior[key] for key, words in SCALARS.items() if key in posterior}
    if "latent_variance" in posterior:
        found |= _extremes("latent variance", np.asarray(posterior["latent_variance"]))
    if "occupancy" in posterior:
        for k in range(posterior["occupancy"].shape[-1]):
            found[f"rows of the {_ordinal(k + 1)}most used component"] = posterior["occupancy"][
                ..., k
            ]
    if "shared" in posterior:
        found["components shared by pairs of rows"] = posterior["shared"].mean(axis=-1)
    return {name: np.asarray(draws, dtype=np.float64) for name, draws in found.items()}


def diagnose(posterior: Mapping[str, NDArray[Any]]) -> list[Diagnosis]:
    """Judge every invariant quantity that moves.

    One that is the same in all draws of all chains is left out: nothing can be said about it, or
    it was held fixed.
    """
    from appca.models.sampling.chains import load_arviz

    arviz = load_arviz()
    found = []
    for name, draws in invariants(posterior).items():
        if draws.shape[1] < LEAST_DRAWS or np.ptp(draws) == 0:
            continue
        found.append(
            Diagnosis(
                name,
                float(draws.mean()),
                float(draws.std()),
                _r_hat(arviz, draws),
                float(arviz.ess(draws, method="bulk")),
                float(arviz.ess(draws, method="tail")),
                _most_demanding(draws),
            )
        )
    return found


def starts_apart(model: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the chains of a run started far from one another, which makes agreement a finding."""
    if model == "NPPCA" or parameters.get("init") == "random":
        return True
    return bool(parameters.get("chain_starts") == "overdispersed")


def findings(posterior: Mapping[str, NDArray[Any]], most: int) -> list[str]:
    """Say what the draws show beside convergence.

    Parameters
    ----------
    posterior : mapping
        Draws.
    most : int
        Components there may be, where their number is learned.
    """
    from appca.models.sampling.chains import on_highest_peak

    found = []
    numbers = posterior.get("n_components")
    if numbers is not None and bool((np.asarray(numbers) == most).all()):
        found.append(
            f"Every draw uses all {most} components there may be, so their number is what that "
            "bound makes it: allow more and fit again."
        )
    density = posterior.get("log_posterior")
    if density is not None:
        lower = np.flatnonzero(~on_highest_peak(np.asarray(density))) + 1
        if len(lower):
            which = " and ".join(map(str, lower))
            verb = "stays" if len(lower) == 1 else "stay"
            found.append(
                f"Chain{'' if len(lower) == 1 else 's'} {which} {verb} on a lower peak of the "
                "posterior, and averages over the draws leave that out."
            )
    return found


def verdict(
    diagnoses: Sequence[Diagnosis],
    n_chains: int,
    *,
    apart: bool | None = None,
    found: Sequence[str] = (),
) -> ChainVerdict:
    """Say in words whether the chains can be trusted, and what to do if not.

    Parameters
    ----------
    diagnoses : sequence of Diagnosis
    n_chains : int
    apart : bool, optional
        `starts_apart`: whether the chains were asked to agree from different starts.
    found : sequence of str
        `findings`; with one of them a run is doubtful at best.
    """
    judged = _verdict_on_chains(diagnoses, n_chains, apart)
    level = "doubtful" if found and judged.level == "good" else judged.level
    return ChainVerdict(level, " ".join([judged.words, *found]))


def _verdict_on_chains(
    diagnoses: Sequence[Diagnosis], n_chains: int, apart: bool | None
) -> ChainVerdict:
    if not diagnoses:
        return ChainVerdict("bad", "There are too few draws to judge: raise the number of draws.")
    worst = max(diagnoses, key=lambda d: _or_worst(d.r_hat, np.inf))
    fewest = min(diagnoses, key=lambda d: _or_worst(min(d.ess_bulk, d.ess_tail), 0.0))
    r_hat = _or_worst(worst.r_hat, np.inf)
    asked = "from different starts " if apart and n_chains > 1 else ""
    ess = _or_worst(min(fewest.ess_bulk, fewest.ess_tail), 0.0)
    if r_hat > SUSPECT_R_HAT:
        return ChainVerdict(
            "bad",
            f"Do not trust these chains: {asked}they disagree about the {worst.name} "
            f"({_r_hat_words(r_hat)}). "
            "Look at the traces, and raise the burn-in and the number of draws.",
        )
    wanted = LEAST_ESS_PER_CHAIN * n_chains
    if r_hat > LARGEST_R_HAT or ess < wanted:
        return ChainVerdict(
            "doubtful",
            f"Trust averages roughly, intervals not yet: R-hat is at most {r_hat:.3f} "
            f"({worst.name}) and the {fewest.name} has {ess:.0f} effective draws "
            f"where {wanted} are wanted. Raise the number of draws.",
        )
    alone = " One chain cannot disagree with another: run at least two." if n_chains == 1 else ""
    who = "Chains from different starts agree" if asked else "The chains agree"
    same = ""
    if apart is False and n_chains > 1:
        who = "Chains from one start agree"
        same = (
            " They move well around one peak; that there is no higher one, only chains that start "
            "far from one another can tell."
        )
    return ChainVerdict(
        "doubtful" if alone or same else "good",
        f"{who}: R-hat is at most {r_hat:.3f} and every quantity has at least "
        f"{ess:.0f} effective draws.{alone}{same}",
    )


def failures(diagnosis: Diagnosis, n_chains: int, burn_in: float = np.inf) -> set[str]:
    """Name the fields of a diagnosis that fall short, Raftery and Lewis' as "burn_in" and so on.

    Parameters
    ----------
    diagnosis : Diagnosis
    n_chains : int
    burn_in : float
        Made by the chains, in kept draws; by default enough for anything.
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


def climb_of(
    log_likelihoods: ArrayLike, n_rows: int, stop_reason: str, tol: float | None
) -> CurveSummary:
    """Describe how a fit by EM ended, from its curve (n_iter,) of total nats."""
    values = np.asarray(log_likelihoods, dtype=np.float64)
    gain = None
    if len(values) > LAST_PASSES:
        gain = float(values[-1] - values[-1 - LAST_PASSES]) / n_rows
    return CurveSummary(stop_reason, len(values), gain, tol)


def verdict_on_climb(climb: CurveSummary) -> ChainVerdict:
    """Say in words whether a fit by EM has arrived, and what to do if not."""
    reason = climb.stop_reason
    if reason.startswith("closed form"):
        return ChainVerdict("good", "Solved exactly, without passes: there is nothing to converge.")
    if reason.startswith("converged"):
        return ChainVerdict(
            "good",
            f"The fit converged after {_passes(climb.passes)}: {_last(climb, 'gained')}. "
            "It ends on the nearest peak, which need not be the highest: "
            "compare a few starts or seeds before you rely on details.",
        )
    if reason.startswith("reached max_iter"):
        return ChainVerdict(
            "bad",
            f"The fit ended at the most passes allowed, {climb.passes:,}, before it converged, "
            f"and {_last(climb, 'still gained')}. Raise the most passes and fit again.",
        )
    if reason.startswith("stopped by"):
        return ChainVerdict(
            "doubtful",
            f"Stopped by hand after {_passes(climb.passes)}: {_last(climb, 'still gained')}. "
            "Take it as a sketch, and fit again to the end for numbers to rely on.",
        )
    if "floor" in reason:
        return ChainVerdict(
            "doubtful",
            "The noise variance fell to its floor: the components reproduce the rows all but "
            "exactly, so likelihoods and membership probabilities of this run say little. "
            "Lower K or L, or look for repeated rows.",
        )
    return ChainVerdict(
        "doubtful", f"The fit ended for a reason that is not judged here: {reason}."
    )


def _extremes(name: str, each: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Take the least and the largest of one number a component, or the one that all share."""
    least, largest = each.min(axis=-1), each.max(axis=-1)
    if np.array_equal(least, largest):
        return {name: least}
    return {f"smallest {name}": least, f"largest {name}": largest}


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


def _last(climb: CurveSummary, gained: str) -> str:
    """Say what the last passes brought."""
    if climb.gain is None:
        return "there were too few passes to see what the last ones gained"
    limit = (
        "" if climb.tol is None else f", where less than {_plain(climb.tol)} counts as converged"
    )
    return f"the last {LAST_PASSES} passes {gained} {_plain(climb.gain)} nats per row{limit}"


def _passes(number: int) -> str:
    return f"{number:,} pass{'' if number == 1 else 'es'}"


def _r_hat_words(r_hat: float) -> str:
    if np.isfinite(r_hat):
        return f"R-hat {r_hat:.2f}, should be below {LARGEST_R_HAT}"
    return "a chain never moves, so that R-hat cannot be computed"


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


def _most_demanding(draws: Draws) -> Requirement | None:
    moving = [chain for chain in draws if len(chain) >= LEAST_LENGTH and np.ptp(chain) > 0]
    asked = [raftery_lewis(chain) for chain in moving]
    return max(asked, key=lambda r: r.burn_in + r.total, default=None)
