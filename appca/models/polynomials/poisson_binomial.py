"""The E step of rows for many components: O(K) a row whatever L is.

The size of a random subset is Poisson-binomial. With logits a and any exponential tilt t let
p_k = 1 / (1 + exp(-a_k - t)) and B_k ~ Bernoulli(p_k) be independent. Then

    e_L(exp a) = exp(-t L) prod_k (1 + exp(a_k + t)) P(B_1 + ... + B_K = L),                  (1)

and the Poisson-binomial probability is the discrete Fourier transform of its characteristic
function (Hong 2013) at M points,

    P(sum = L) = 1/M sum_m prod_k (1 - p_k + p_k exp(i theta_m)) exp(-i L theta_m),           (2)
    theta_m = 2 pi m / M,

but for the probabilities of L + M, L - M and so on, which M points count as well (aliasing). At the
tilt that makes the mean about L (the saddle point) the sum over m neither overflows nor cancels,
the probabilities M away from the mean fall below rounding for M of some standard deviations, and so
does the product for theta beyond some inverse standard deviations. What is left are 10 to 30 points
a row, where the tables of `subset_rows` take min(L, K - L). Measured at K = 500, L = 200: 17
microseconds a row, where those take 80 and the two matrix products of 989 features 13. Inclusion is
the same sum without the factor k,

    r_k = p_k / P 1/M sum_m prod_{j != k} (...) exp(-i (L - 1) theta_m).                      (3)

Errors are some roundings of 1, of r as of log e_L: a probability of 1e-20 has no right digits,
which no sum over rows notices. Where digits of small ones matter, there is `subsets.inclusion`.
"""

import numpy as np

from appca.models.algebra import aligned
from appca.models.algebra.gaussian import Array

FARTHEST = 115.0  # nats from the L-th largest logit at which inclusion is certain
MOST_STEPS = 60
ROUNDING = 37.0  # exp(-37) is below the rounding of 1
AT_ONCE = 512  # components whose larger probabilities, of at least a half, may be multiplied
LANES, MOST_NUMBERS = 64, 2**15  # rows go through in lanes, as many as have so many logits


def by_points(a: Array, n_active: int) -> tuple[Array, Array]:
    """Return log e_L (n,) and inclusion (n, K) for logits a (n, K), 0 < L < K."""
    (n, K), most = a.shape, max(1, MOST_NUMBERS // (LANES * a.shape[1]))
    width = LANES * min(most, -(-n // LANES))
    log_e, r = np.empty(n), np.empty((n, K))
    room = Room(K, width)
    for start in range(0, n, width):
        part = slice(start, start + width)
        log_e[part], r[part] = room.include(a[part], n_active)
    return log_e, r


class Room:
    """Memory for rows side by side."""

    def __init__(self, n_components: int, width: int) -> None:
        K, even = n_components, n_components + n_components % 2
        self._away, self._up, self._down, self._r = aligned.zeros((4, K, width))
        self._p = aligned.zeros((even, width))

    def include(self, rows: Array, n_active: int) -> tuple[Array, Array]:
        """Return log e_L and inclusion of some rows, at most as many as there is room for."""
        from appca.models.polynomials.poisson_binomial_kernels import characteristic, inclusion

        (n, K), away, p = rows.shape, self._away, self._p
        centre = np.partition(rows, K - n_active, axis=1)[:, K - n_active]
        away[:, n:] = 0.0
        np.subtract(rows.T, centre, out=away[:, :n])
        tilt, variance = self._tilted_to(n_active)
        size, turn, phase = points(variance, K, n_active)
        cosine, sine = np.cos(turn), np.sin(turn)
        re, im = np.where(turn > 0.0, 2.0, 0.0) * (np.cos(phase), -np.sin(phase))
        characteristic(p, cosine - 1.0, sine, re, im)
        total = 1.0 + re.sum(axis=0)
        x, y = (re * cosine - im * sine) / total, (re * sine + im * cosine) / total
        inclusion(p, cosine - 1.0, sine, x, y, np.array([1.0 / total, total]), self._r)
        log_e = self._log_product(tilt, n_active) + np.log(total / size)
        return log_e[:n] + n_active * centre, self._r[:, :n].T

    def _tilted_to(self, n_active: int) -> tuple[Array, Array]:
        """Solve sum p = L for the tilt, roughly; return it and sum p (1 - p), and leave p.

        By Newton steps kept inside a bracket. (1) holds for any tilt: one tenth of a standard
        deviation off costs a hundredth of a digit.
        """
        from appca.models.polynomials.poisson_binomial_kernels import tilted

        np.exp(np.clip(self._away, -FARTHEST, 0.0, out=self._up), out=self._up)
        np.exp(np.clip(-self._away, -FARTHEST, 0.0, out=self._down), out=self._down)
        tilt, mean, variance = np.zeros((3, self._up.shape[1]))
        low, high = tilt - FARTHEST, tilt + FARTHEST
        for _ in range(MOST_STEPS):
            tilted(self._up, self._down, np.exp(-tilt), self._p, mean, variance)
            excess = mean - n_active
            off = np.abs(excess) > 0.05 + 0.1 * np.sqrt(variance)
            if not off.any():
                break
            low = np.where(off & (excess < 0.0), tilt, low)
            high = np.where(off & (excess > 0.0), tilt, high)
            to = tilt - np.clip(excess / np.maximum(variance, 1e-3), -3.0, 3.0)
            to = np.where((low < to) & (to < high), to, 0.5 * (low + high))
            tilt = np.where(off, to, tilt)
        return tilt, variance

    def _log_product(self, tilt: Array, n_active: int) -> Array:
        """Return sum_k log(1 + exp(a_k + t)) - L t for logits about the L-th largest one.

        A summand is -log max(p, 1 - p), and a + t more where that is positive: for about L of them.
        """
        K = len(self._up)
        larger = np.maximum(self._p[:K], 1.0 - self._p[:K], out=self._up)
        product = np.multiply.reduceat(larger, range(0, K, AT_ONCE), axis=0)
        likely = self._away > -tilt
        above = np.multiply(self._away, likely, out=self._down).sum(axis=0)
        above += (np.count_nonzero(likely, axis=0) - n_active) * tilt
        difference: Array = above - np.log(product).sum(axis=0)
        return difference


def points(variance: Array, n_components: int, n_active: int) -> tuple[Array, Array, Array]:
    """Choose the number M of points (w,) of each row, and the angles (m, w) its product needs.

    Bernstein's inequality bounds the probabilities that M points alias with that of L, and
    exp(-V (1 - cos theta)) the product. Beyond K + 1 points there is no aliasing. M is odd, so no
    point comes to -1, where a factor may vanish. Only positive angles, an even number of them: the
    others are conjugate, and of rows that need fewer some are 0. Also L theta but for whole turns.
    """
    V = np.nan_to_num(variance)
    reach = ROUNDING / 3.0 + np.sqrt((ROUNDING / 3.0) ** 2 + 2.0 * ROUNDING * V)
    half = (np.minimum(reach.astype(int) + 2, max(n_active, n_components - n_active) + 1) + 1) // 2
    size = 2 * half + 1
    widest = np.arccos(np.maximum(1.0 - ROUNDING / np.maximum(V, 1.0), -1.0))
    count = np.minimum(half, (widest * size / (2.0 * np.pi)).astype(int))
    most = count.max()
    m = np.arange(1, most + most % 2 + 1)[:, None]
    m = np.where(m <= count, m, 0)
    angle = 2.0 * np.pi / size
    return size, m * angle, (n_active * m) % size * angle
