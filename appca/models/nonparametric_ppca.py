"""Nonparametric PPCA: orthonormal components, any number of them in a row, their number learned."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from appca.models.free_model import Draw, FreeModel
from appca.models.orthonormal.nonparametric_gibbs import PRIORS, first_state, sampler
from appca.models.orthonormal.subspace_gibbs import CachedSubspaceState, SubspacePrior, look
from appca.models.rows.observations import Rows
from appca.models.rows.precise_products import data_of
from appca.models.sampling.chains import Sampler
from appca.models.sampling.conditionals import InverseGamma
from appca.models.supports import independent_supports


@dataclass(eq=False, repr=False)
class NonparametricPPCA(FreeModel):
    """Nonparametric probabilistic PCA, by Gibbs sampling.

    y_n = W (x_n * z_n) + mu + e_n with orthonormal columns, x_nk ~ N(0, tau2), e_n ~ N(0, sigma2 I)
    and Z from the Indian buffet process conditioned on at most `max_components` columns. X is
    integrated out of every draw of Z, and the whole row is drawn at once.

    Parameters
    ----------
    max_components : int
        Most components; never more than D or N - 1 of them.
    alpha : "infer" or float
        Mass parameter of the prior of Z: alpha H_N columns are expected. "infer" learns it.
    prior : {"ibp", "beta-bernoulli"}
        The Indian buffet process, or pi_k ~ Beta(alpha / max_components, 1) for each column.
    latent_variance : "shared" or float
        tau2 of all components: learned, or fixed in the data's unit squared.
    mean : {"learned", "sample", "zero"}
        The mean drawn with the rest, fixed at the sample mean, or at zero.
    n_chains, burn_in, n_draws, thin : int
        Chains, sweeps discarded, draws kept per chain, sweeps per draw. Chains start far from one
        another: the first from the principal directions, each other one from its own random
        rotation of them.
    noise_shape, noise_scale : float
        The prior sigma2 ~ InvGamma(noise_shape, noise_scale v), with v the mean variance of the
        features and density proportional to s^(-shape - 1) exp(-scale v / s).
    latent_shape, latent_scale : float
        The same for tau2, where it is not fixed by `latent_variance`.
    alpha_shape, alpha_rate : float
        The prior alpha ~ Gamma(alpha_shape, alpha_rate), with mean alpha_shape / alpha_rate, where
        `alpha` is "infer".
    random_state : int, Generator, RandomState or None
        For starts, draws and `sample`.
    verbose : bool or int
        Print a line an iteration.
    callback : callable or None
        Called with a `Progress` once a sweep of all chains. Raising StopIteration ends the fit and
        keeps what it has; any other exception propagates and leaves the estimator unfitted.
    whiten : bool
        Divide scores by their root mean square when active.

    Attributes
    ----------
    components_ : (K, D) orthonormal rows used in the draw of largest posterior density, by
        explained variance, largest entry positive.
    n_components_ : int, K.
    n_components_in_use_ : int, components that at least 5% of rows use, in most draws.
    weights_ : (K,) probability that a new row uses a component.
    mean_ : (D,).
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) tau2, all equal.
    alpha_ : float.
    explained_variance_ : (K,) mean over rows of (x z)^2.
    scale_ : (K,) root mean square of the training scores when active.
    posterior_ : dict of arrays (chain, draw, ...), components in the dtype of the data; running
        means of Z and X are (chain, N, K_max).
    log_likelihoods_ : (n_iter_,) log p(Y | Z) after each sweep, X integrated out, mean over chains.
    n_iter_ : int, sweeps.
    stop_reason_ : str.

    References
    ----------
    A. Farooq, Y. P. Raykov, P. Raykov, M. A. Little, arXiv 2006.12369: section 4.1.1 names the
    model; its algorithm 2 does not sample from it. The sampler used here is in
    `appca.models.orthonormal.nonparametric_gibbs` and `appca.models.orthonormal.ibp_kernels`.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import NonparametricPPCA
    >>> X = np.random.default_rng(0).standard_normal((60, 5)) * [5, 4, 1, 1, 1]
    >>> model = NonparametricPPCA(4, n_chains=1, burn_in=20, n_draws=20, random_state=0).fit(X)
    >>> model.posterior_["n_components"].shape
    (1, 20)
    """

    _model: ClassVar[str] = "NPPCA"
    _sums_over_supports: ClassVar[Any] = independent_supports

    max_components: int = 10
    _: KW_ONLY
    prior: str = "ibp"
    latent_variance: Any = "shared"
    latent_shape: float = 1.0
    latent_scale: float = 0.01

    def _problem(
        self, rngs: list[np.random.Generator], rows: Rows
    ) -> tuple[list[CachedSubspaceState], Sampler[CachedSubspaceState]]:
        K = min(self.max_components, rows.n - 1, rows.n_features)
        data = data_of(rows)
        variance = data.squares / data.size
        latent = InverseGamma(self.latent_shape, self.latent_scale).in_units_of(variance)
        prior = SubspacePrior(
            noise=self._noise_prior(variance),
            latent=latent if isinstance(self.latent_variance, str) else None,
            each=False,
            mean_variance=self._mean_variance(),
            alpha=self._alpha_prior(),
        )
        tau2 = None if prior.latent else float(self.latent_variance)
        alpha = self._first_alpha()
        first = [
            first_state(rng, rows, K, tau2, rotated=chain > 0)._replace(alpha=alpha)
            for chain, rng in enumerate(rngs)
        ]
        return [look(data, state) for state in first], sampler(data, prior, PRIORS[self.prior])

    def _drawn(self, seen: CachedSubspaceState) -> Draw:
        state = seen.state
        weights = PRIORS[self.prior].expected(state.Z, state.alpha)
        power = np.square(state.X).sum(axis=0)
        return Draw(state.W, state.mu, state.sigma2, state.tau2, weights, power, state.alpha)
