"""Held-out log-likelihood of aPPCA, its extensions and its rivals, under one protocol.

    APPCA_DATA=... python -m benchmarks.densities [--data wine,digits]

Every method sees the same at most 2,500 rows in three folds: it is fitted to two and judged on the
third, so that each row is held out once. All methods see the same features: those of at least 5% of
the mean variance of the training rows, and in a second run every feature but those that vary in
hardly more than one training row. All noise variances have the same floor, that of
`noise="feature"` (1% of the mean variance where one noise is shared), and all methods that climb
have three starts. A standard error is that of the mean over rows of the difference of two methods
on the same row.

Data that are not on this computer are left out by name.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from appca import PPCA, AdaptivePPCA
from appca.models.orthonormal import em
from appca.models.variants.em import LEAST_ROWS, PSI_FLOOR, floor_shares, varying_rows
from appca.rivals.clusterwise import MixtureOfFactorAnalysers
from benchmarks import results
from benchmarks.rivals import MOST_ROWS, SETS, raw_rows

FOLDS, STARTS = 3, 3
LEAST_VARIANCE = {"5%": 0.05, "varying": 1e-9}  # of the mean over features
FULL_COVARIANCE = 150  # features up to which a Gaussian mixture has full covariances
PASSES = 20  # of factor analysis between two floors
TOL = 1e-4  # nats per row
REFERENCES = ("aPPCA", "A + B", "A + B + C", "V + A + B", "V + A + B + C")
LETTERS = {
    "V": {"latent_variance": "component"},
    "A": {"noise": "feature"},
    "B": {"row_scale": "learned"},
    "C": {"n_active": "learned"},
}
EXTENSIONS = ("", "A", "B", "C", "AB", "AC", "BC", "ABC")
VARIANTS = tuple(first + letters for first in ("", "V") for letters in EXTENSIONS)


class Method(NamedTuple):
    """A method by its name, made anew for each fold."""

    name: str
    make: Callable[[], Any]


def least_noise(squares: Any) -> Any:
    """Floor (D,) of noise variances, from squared deviations (N, D)."""
    shares = floor_shares(squares.sum(axis=0), np.square(squares).sum(axis=0), len(squares))
    return shares * squares.mean(axis=0)


def kept(X: Any, least: float) -> Any:
    """Whether (D,) features vary: by `least` of the mean variance, and in more than one row."""
    squares = np.square(X - X.mean(axis=0))
    variance = squares.mean(axis=0)
    rows = varying_rows(squares.sum(axis=0), np.square(squares).sum(axis=0))
    return (variance >= least * variance.mean()) & (rows > LEAST_ROWS)


class FlooredMixture(MixtureOfFactorAnalysers):
    """The mixture with the floor that all methods have here."""

    def _floored(self, noise: Any, rows: Any) -> Any:
        if self.noise == "isotropic":
            least = PSI_FLOOR * (rows.w @ rows.squares).mean() / rows.w.sum()
            return np.maximum(np.full_like(noise, noise.mean()), least)
        return np.maximum(noise, least_noise(rows.squares))


class FlooredFactorAnalysis:
    """scikit-learn's FactorAnalysis, its noise variances raised to the floor as it climbs."""

    def __init__(self, n_components: int) -> None:
        self.n_components = n_components

    def fit(self, X: Any) -> Any:
        """Climb until 20 iterations gain less than 20 TOL nats a row, at most 1,000."""
        least = least_noise(np.square(X - X.mean(axis=0)))
        noise, before = None, -np.inf
        for _ in range(1_000 // PASSES):
            self.model = self._climbed(X, noise, PASSES)
            noise = np.maximum(self.model.noise_variance_, least)
            if self.model.loglike_[-1] - before < PASSES * TOL * len(X):
                break
            before = self.model.loglike_[-1]
        self.model = self._climbed(X, noise, 1)  # loadings for these noise variances
        self.model.noise_variance_ = noise
        return self

    def _climbed(self, X: Any, noise: Any, passes: int) -> Any:
        make = partial(FactorAnalysis, self.n_components, tol=0.0, svd_method="lapack")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # at the end of each part
            return make(max_iter=passes, noise_variance_init=noise).fit(X)

    def score_samples(self, X: Any) -> Any:
        """Log-likelihood of every row, nats."""
        return self.model.score_samples(X)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        K, D = self.model.components_.shape
        return int(D * K - K * (K - 1) // 2 + 2 * D)


class FlooredGaussianMixture(GaussianMixture):  # type: ignore[misc]
    """scikit-learn's GaussianMixture; the floor is added to its variances."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit with a floor that suits the rows."""
        self.reg_covar = PSI_FLOOR * float(X.var(axis=0).mean())
        return super().fit(X, y)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        return int(self._n_parameters())


def methods(K: int, L: int, D: int) -> Iterator[Method]:
    """Yield the methods for rows of D features."""
    for letters in VARIANTS:
        words: dict[str, Any] = {"n_active": L}
        for letter in letters:
            words |= LETTERS[letter]
        name = " + ".join(letters) or "aPPCA"
        make = partial(AdaptivePPCA, K, init="quartimax", n_init=STARTS, random_state=0, **words)
        yield Method(name, make)
    yield Method("PPCA, K", partial(PPCA, K))
    yield Method("factor analysis, K", partial(FlooredFactorAnalysis, K))
    mixture = partial(FlooredMixture, n_init=STARTS, tol=TOL, random_state=0)
    few = max(2, round(K / L))
    yield Method("mixture of PPCA, K of L", partial(mixture, K, L))
    if few != K:
        yield Method("mixture of PPCA, K/L of L", partial(mixture, few, L))
    diagonal = partial(mixture, noise="diagonal")
    yield Method("mixture of PPCA, K of L, noise by feature", partial(diagonal, K, L))
    common = partial(mixture, K, K, loadings="common")
    yield Method("common loadings, K", common)
    yield Method("common loadings, K, noise by feature", partial(common, noise="diagonal"))
    gaussian = partial(FlooredGaussianMixture, K, n_init=STARTS, tol=TOL, max_iter=300)
    for kind in ("full", "diag"):
        if kind == "diag" or D <= FULL_COVARIANCE:
            make = partial(gaussian, covariance_type=kind, random_state=0)
            yield Method(f"Gaussian mixture, K, {kind}", make)


class Judged(NamedTuple):
    """What a method made of all folds."""

    nats: Any  # (N,) of each row where it is held out
    fold: Any  # (N,) int
    parameters: int
    seconds: list[float]
    certainty: float | None  # mean over rows and components of max(r, 1 - r)
    used: float | None  # components a row, mean


def judged(name: str, number: int, X: np.ndarray, how: Any, least: float) -> Judged:
    """Fit method `number` of a data set to two folds and judge it on the third, three times."""
    _, K, L = SETS[name]
    N = len(X)
    nats, fold, seconds, parameters = np.empty(N), np.arange(N) % FOLDS, [], 0
    certainty, used = [], []
    for f in range(FOLDS):
        train, test = (how.fit(X[fold != f]).transform(X[part]) for part in (fold != f, fold == f))
        train, test = train.astype(np.float64), test.astype(np.float64)
        chosen = kept(train, least)
        train, test = train[:, chosen], test[:, chosen]
        method = list(methods(K, L, train.shape[1]))[number]
        model, began = method.make(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(train)
        seconds.append(time.process_time() - began)
        nats[fold == f] = model.score_samples(test)
        parameters = model.n_parameters_
        if isinstance(model, AdaptivePPCA):
            r = model.inclusion_probabilities(test)
            certainty.append(float(np.maximum(r, 1.0 - r).mean()))
            used.append(float(r.sum(axis=1).mean()))
    mean = [float(np.mean(part)) if part else None for part in (certainty, used)]
    return Judged(nats, fold, parameters, seconds, *mean)


def rows_of(name: str, features: str) -> list[results.Row]:
    """Measure a data set: a row a method."""
    keywords, K, L = SETS[name]
    X, how, _ = raw_rows(name, keywords)
    X = X[np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]]
    least = LEAST_VARIANCE[features]
    D = int(kept(how.fit(X).transform(X).astype(np.float64), least).sum())
    names = [method.name for method in methods(K, L, D)]
    found: dict[str, Judged] = {}
    for number, method in enumerate(names):
        found[method] = one = judged(name, number, X, how, least)
        took = f"{np.mean(one.seconds):.2f} s"
        print(f"{name} {features}: {method}: {one.nats.mean():.3f}, {took}", flush=True)
    case = {"data": name, "features": features, "rows": len(X), "D": D, "K": K, "L": L}
    return [case | line(method, found) for method in names]


def line(method: str, found: dict[str, Judged]) -> results.Row:
    """Return the numbers of a method, and how far it is beyond the references on the same rows."""
    one = found[method]
    beyond = {}
    for name in REFERENCES:
        away = one.nats - found[name].nats
        folds = [float(away[one.fold == f].mean()) for f in range(FOLDS)]
        error = float(away.std(ddof=1) / np.sqrt(len(away)))
        beyond[name] = {"mean": float(away.mean()), "error": error, "folds": folds}
    return {
        "method": method,
        "parameters": one.parameters,
        "nats": float(one.nats.mean()),
        "certainty": one.certainty,
        "used": one.used,
        "beyond": beyond,
        "fit_s": float(np.mean(one.seconds)),
    }


def merged(before: Sequence[results.Row], after: list[results.Row]) -> list[results.Row]:
    """Put new rows in place of those of the same data and features, in the order of the sets."""
    new = {(row["data"], row["features"]) for row in after}
    kept = [row for row in before if (row["data"], row["features"]) not in new]
    key = lambda row: (row["features"] != "5%", list(SETS).index(row["data"]))  # noqa: E731
    return sorted(kept + after, key=key)


def main() -> None:
    """Measure, print as it goes, and write the rows after every data set."""
    parser = results.arguments(__doc__)
    parser.add_argument("--data", default=",".join(SETS), help="names of data sets")
    parser.add_argument("--features", default=",".join(LEAST_VARIANCE), help="5%%, varying")
    options = parser.parse_args()
    # The floor of a noise that all features share, as large a part of the mean variance.
    em.NOISE_FLOOR = PSI_FLOOR
    for features in options.features.split(","):
        for name in options.data.split(","):
            before = results.read(options.out, "densities")
            with threadpool_limits(1):
                try:
                    rows = rows_of(name, features)
                except OSError as error:
                    print(f"{name} is left out: {error}", flush=True)
                    continue
            results.write(options.out, "densities", merged(before.rows if before else [], rows))


if __name__ == "__main__":
    main()
