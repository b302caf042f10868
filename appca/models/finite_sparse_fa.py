"""Finite sparse factor analysis: a fixed number of factors, each used by some of the rows."""

from dataclasses import dataclass

from appca.models.sparse_fa_model import SparseFA


@dataclass(eq=False, repr=False)
class FiniteSparseFA(SparseFA):
    """Finite sparse factor analysis (fsFA), by Gibbs sampling.

    y_n = W (x_n * z_n) + mu + e_n with w_dk ~ N(0, sigma2_W), x_nk ~ N(0, 1), e_n ~ N(0, sigma2 I),
    z_nk ~ Bernoulli(pi_k) and pi_k ~ Beta(alpha / K, 1), with K = `max_components`. All x of a row
    are integrated out of every draw of z, and so is pi.

    Parameters
    ----------
    max_components : int
        Number K of factors of the model; those that no row uses are not published.
    alpha : "infer" or float
        Mass parameter; "infer" learns it.
    init : {"ica", "pca", "random"}
        Where chains start: independent components, principal components, or a random rotation of
        those. Only "ica" leads to the true columns when there is little noise.
    mean : {"learned", "sample", "zero"}
        The mean drawn with the rest, fixed at the sample mean, or at zero.
    n_paths : int
        Importance paths a row for `score_samples` and `inclusion_probabilities` with more than 16
        factors; the error falls with its root.
    n_chains, burn_in, n_draws, thin : int
        Chains, sweeps discarded, draws kept per chain, sweeps per draw.
    chain_starts : {"overdispersed", "init"}
        Where chains after the first start: each from its own random rotation of the principal
        components, so that chains that agree have found the same posterior from different places;
        or as `init` says, like the first (each with its own run of "ica").
    noise_shape, noise_scale : float
        The prior sigma2 ~ InvGamma(noise_shape, noise_scale v), with v the mean variance of the
        features and density proportional to s^(-shape - 1) exp(-scale v / s).
    loading_shape, loading_scale : float
        The same for sigma2_W.
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
    components_ : (K, D) columns of W used in the draw of largest posterior density, by explained
        variance, largest entry positive; they have lengths, and angles between them.
    n_components_ : int.
    n_components_in_use_ : int, components that at least 5% of rows use, in most draws.
    weights_ : (K,) probability that a new row uses a factor.
    mean_ : (D,).
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) ones: W carries the scale.
    alpha_ : float.
    explained_variance_ : (K,) mean over rows of |w_k|^2 (x z)^2.
    scale_ : (K,) root mean square of the training scores when active.
    posterior_ : dict of arrays (chain, draw, ...); running means of Z and X are (chain, N, K).
    log_likelihoods_ : (n_iter_,) log p(Y | Z) after each sweep, X integrated out, mean over chains.
    n_iter_ : int, sweeps.
    stop_reason_ : str.

    References
    ----------
    A. Farooq, Y. P. Raykov, P. Raykov, M. A. Little, arXiv 2006.12369, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import FiniteSparseFA
    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> model = FiniteSparseFA(3, n_chains=1, burn_in=20, n_draws=20, random_state=0).fit(X)
    >>> model.posterior_["components"].shape
    (1, 20, 3, 5)
    """

    _infinite = False
    _model = "fsFA"

    max_components: int = 10
