"""The E step of one block of rows for many components, compiled: O(K) a row whatever L is.

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
a row, where the tables of `subset_rows` take min(L, K - L). Measured at K = 500, L = 200: 20
microseconds a row, where those take 80 and the two matrix products of 989 features 13. Inclusion is
the same sum without the factor k,

    r_k = p_k / P 1/M sum_m prod_{j != k} (...) exp(-i (L - 1) theta_m).                      (3)

Errors are some roundings of 1, of r as of log e_L: a probability of 1e-20 has no right digits,
which no sum over rows notices. Where digits of small ones matter, there is `subsets.inclusion`.
"""

import math
from typing import Any

from appca.models.algebra.compiled import bare_kernel
from appca.models.algebra.exponential_kernels import LANES, exponentials

FARTHEST = 115.0  # nats from the L-th largest logit at which inclusion is certain
NEAR = 4.0  # nats within which the L-th largest logit is bracketed by counting, before Newton
MOST_HALVINGS, MOST_STEPS = 80, 60
ROUNDING = 37.0  # exp(-37) is below the rounding of 1
MOST_POINTS = 40  # more than `points` ever asks for
AT_ONCE = 512  # columns whose larger probabilities, of at least a half, may be multiplied


@bare_kernel
def bracket(a: Any, n_active: int, low: Any, high: Any, x: Any, centre: Any) -> None:
    """Find numbers that about L of the columns a (K, LANES) exceed, by halving the span."""
    for _ in range(MOST_HALVINGS):
        widest = 0.0
        for i in range(LANES):
            centre[i] = 0.5 * low[i] + 0.5 * high[i]
            widest = high[i] - low[i] if high[i] - low[i] > widest else widest
            x[i] = -float(n_active)
        if not widest > NEAR:
            return
        for k in range(len(a)):
            for i in range(LANES):
                x[i] += 1.0 if a[k, i] > centre[i] else 0.0
        for i in range(LANES):
            wide = high[i] - low[i] > NEAR  # else the row has what it needs, whatever others do
            low[i] = centre[i] if wide and x[i] >= 0.0 else low[i]
            high[i] = centre[i] if wide and x[i] <= 0.0 else high[i]


@bare_kernel
def odds_of(a: Any, centre: Any, odds: Any, room: Any) -> None:
    """Write the odds up / down = exp(a - centre) of all columns as two numbers of at most 1."""
    up, down, (x, power, bits) = odds[0], odds[1], room
    for k in range(len(a)):
        for i in range(LANES):
            x[i] = max(-abs(a[k, i] - centre[i]), -FARTHEST)
        exponentials(x, power, bits)
        for i in range(LANES):
            above = a[k, i] > centre[i]
            up[k, i] = (1.0 if above else x[i]) + 0.0 * a[k, i]  # what is no number stays none
            down[k, i] = x[i] if above else 1.0


@bare_kernel
def tilted_probabilities(odds: Any, tilt: Any, out: Any, probability: Any) -> None:
    """Probabilities p and q = 1 - p of B_k; write sum p and sum p q to out (3, LANES)."""
    up, down, p, q = odds[0], odds[1], probability[0], probability[1]
    for i in range(LANES):
        out[0, i] = 0.0
        out[1, i] = 0.0
        out[2, i] = math.exp(-tilt[i])
    for k in range(len(up)):
        for i in range(LANES):
            against = down[k, i] * out[2, i]
            share = 1.0 / (up[k, i] + against)
            p[k, i] = up[k, i] * share
            q[k, i] = against * share
            out[0, i] += p[k, i]
            out[1, i] += p[k, i] * q[k, i]


@bare_kernel
def tilt_to_mean(
    odds: Any, n_active: int, tilt: Any, ends: Any, sums: Any, probability: Any
) -> None:
    """Solve sum p = L for the tilt, roughly: Newton steps kept inside a bracket.

    (1) holds for any tilt: one tenth of a standard deviation off costs a hundredth of a digit.
    """
    for i in range(LANES):
        tilt[i], ends[0, i], ends[1, i] = 0.0, -FARTHEST, FARTHEST
    for _ in range(MOST_STEPS):
        tilted_probabilities(odds, tilt, sums, probability)
        worst = 0.0
        for i in range(LANES):
            excess = sums[0, i] - n_active
            off = abs(excess) - 0.05 - 0.1 * math.sqrt(sums[1, i])
            worst = max(worst, off)
            if off > 0.0:
                at = tilt[i]
                ends[0, i] = at if excess < 0.0 else ends[0, i]
                ends[1, i] = at if excess > 0.0 else ends[1, i]
                step = max(-3.0, min(3.0, excess / max(sums[1, i], 1e-3)))
                inside = ends[0, i] < at - step < ends[1, i]
                tilt[i] = at - step if inside else 0.5 * (ends[0, i] + ends[1, i])
        if not worst > 0.0:
            return


@bare_kernel
def points(variance: Any, n_columns: int, n_active: int, turn: Any, size: Any) -> int:
    """Choose the angles of each row: cos, sin, weight of each in turn (3, MOST_POINTS, LANES).

    Bernstein's inequality bounds the probabilities that M points alias with that of L, and
    exp(-V (1 - cos theta)) the product. Beyond K + 1 points there is no aliasing. M is odd, so no
    point comes to -1, where a factor may vanish. Only positive angles: the others are conjugate.
    Their number M goes to size, and the most that any row keeps is returned, made even.
    """
    most = 0
    for i in range(LANES):
        reach = ROUNDING / 3.0 + math.sqrt((ROUNDING / 3.0) ** 2 + 2.0 * ROUNDING * variance[i])
        half = (min(int(reach) + 2, max(n_active, n_columns - n_active) + 1) + 1) // 2
        size[i] = 2.0 * half + 1.0
        angle = 2.0 * math.pi / size[i]
        count = 0
        while count < min(half, MOST_POINTS):
            cosine = math.cos((count + 1) * angle)
            if variance[i] * (1.0 - cosine) > ROUNDING:
                break
            turn[0, count, i] = cosine
            turn[1, count, i] = math.sin((count + 1) * angle)
            turn[2, count, i] = 1.0
            count += 1
        for m in range(count, MOST_POINTS):
            turn[0, m, i], turn[1, m, i], turn[2, m, i] = 1.0, 0.0, 0.0
        most = max(most, count)
    return most + most % 2


@bare_kernel
def characteristic(probability: Any, turn: Any, n_points: int, re: Any, im: Any) -> None:
    """Write the characteristic function prod_k (q + p exp(i theta)) at each point to re and im."""
    p, q = probability[0], probability[1]
    for m in range(n_points):
        for i in range(LANES):
            re[m, i], im[m, i] = 1.0, 0.0
    for m in range(0, n_points, 2):
        for k in range(len(p)):
            for i in range(LANES):
                u = q[k, i] + p[k, i] * turn[0, m, i]
                v = p[k, i] * turn[1, m, i]
                x = re[m, i] * u - im[m, i] * v
                im[m, i] = re[m, i] * v + im[m, i] * u
                re[m, i] = x
                u = q[k, i] + p[k, i] * turn[0, m + 1, i]
                v = p[k, i] * turn[1, m + 1, i]
                x = re[m + 1, i] * u - im[m + 1, i] * v
                im[m + 1, i] = re[m + 1, i] * v + im[m + 1, i] * u
                re[m + 1, i] = x


@bare_kernel
def transform(product: Any, turn: Any, n_points: int, n_active: int, total: Any) -> None:
    """Write M P(sum = L) into total by (2), and leave the summands over it, times exp(i theta).

    These are what (3) wants of each point.
    """
    re, im = product[0], product[1]
    for i in range(LANES):
        total[i] = 1.0
        for m in range(n_points):
            angle = math.atan2(turn[1, m, i], turn[0, m, i])
            weight = 2.0 * turn[2, m, i]
            c, s = weight * math.cos(n_active * angle), -weight * math.sin(n_active * angle)
            x, y = re[m, i] * c - im[m, i] * s, re[m, i] * s + im[m, i] * c
            total[i] += x
            re[m, i] = x * turn[0, m, i] - y * turn[1, m, i]
            im[m, i] = x * turn[1, m, i] + y * turn[0, m, i]
        for m in range(n_points):
            re[m, i] /= total[i]
            im[m, i] /= total[i]


@bare_kernel
def inclusion(
    probability: Any, turn: Any, n_points: int, product: Any, total: Any, r: Any, x: Any
) -> None:
    """Write the inclusion probabilities (3) into r (K, LANES).

    Divisions are what takes the time: two points share one. `total` is that of `transform`.
    """
    p, q, re, im = probability[0], probability[1], product[0], product[1]
    for k in range(len(p)):
        for i in range(LANES):
            x[i] = 1.0 / total[i]
        for m in range(0, n_points, 2):
            for i in range(LANES):
                u = q[k, i] + p[k, i] * turn[0, m, i]
                v = p[k, i] * turn[1, m, i]
                one, size = re[m, i] * u + im[m, i] * v, u * u + v * v
                u = q[k, i] + p[k, i] * turn[0, m + 1, i]
                v = p[k, i] * turn[1, m + 1, i]
                other, length = re[m + 1, i] * u + im[m + 1, i] * v, u * u + v * v
                x[i] += (one * length + other * size) / (size * length)
        for i in range(LANES):
            r[k, i] = max(0.0, min(1.0, p[k, i] * x[i]))


@bare_kernel
def logarithm(a: Any, n_active: int, at: Any, probability: Any, right: Any, out: Any) -> None:
    """Write log e_L to out, by (1), where `right` (2, LANES) is P(sum = L) times M, and M.

    log(1 + exp(a + t)) is -log max(p, q), and a + t more where that is positive. `at` (2, LANES)
    is what was subtracted from the logits, and the tilt of the differences.
    """
    centre, tilt, p, q = at[0], at[1], probability[0], probability[1]
    for i in range(LANES):
        found, larger, likely = n_active * centre[i], right[0, i] / right[1, i], -n_active
        for k in range(len(a)):
            if p[k, i] > q[k, i]:
                found += a[k, i] - centre[i]
                likely += 1
            larger *= 1.0 / (p[k, i] if p[k, i] > q[k, i] else q[k, i])
            if k % AT_ONCE == AT_ONCE - 1:
                found += math.log(larger)
                larger = 1.0
        out[i] = found + math.log(larger) + likely * tilt[i]
