"""The distribution of y = W x + mu + e with x integrated out, and of x given y.

    x ~ N(0, diag(tau2)),  e ~ N(0, sigma2 I_D);  W is any (D, L) matrix, also with L = 0

See docs/mathematics.md 3, where W are the columns of one support.
"""

import numpy as np


def log_density(Y, W, mu, sigma2, tau2=1.0):
    """Log p(y_n | W) of rows (N, D) or of one row (D,): y ~ N(mu, sigma2 I + W diag(tau2) W')."""
    C, R = sigma2 * np.eye(len(W)) + (W * tau2) @ W.T, Y - mu
    log_det, squares = np.linalg.slogdet(C).logabsdet, np.vecdot(R, np.linalg.solve(C, R.T).T)
    return -0.5 * (len(W) * np.log(2 * np.pi) + log_det + squares)


def scores(Y, W, mu, sigma2, tau2=1.0):
    """Means (N, L) or (L,) and common covariance (L, L) of the normal x_n given y_n.

    V = (diag(1 / tau2) + W'W / sigma2)^-1,  m_n = V W'(y_n - mu) / sigma2
    """
    V = np.linalg.inv(np.eye(W.shape[1]) / tau2 + W.T @ W / sigma2)
    return (Y - mu) @ W @ V / sigma2, V
