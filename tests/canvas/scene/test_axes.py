import numpy as np

from appca.canvas.panels import BEYOND, MARGIN, jitter, tails


def test_a_range_is_robust_and_holds_zero_and_a_margin():
    bulk = np.linspace(1, 2, 1000)
    values = np.concatenate([bulk, [1e9], [-5.0, -4.0], [0.0, 0.0]]).astype(np.float32)
    found = tails(values, np.array([0, 1001, 1001, 1003, 1005]))
    high = BEYOND * np.sort(values[:1001])[995]
    assert np.allclose(found[0], [-MARGIN * high, high * (1 + MARGIN)])
    assert np.allclose(found[1], [-2 * MARGIN, 2 * MARGIN])  # no rows
    assert np.allclose(found[2], [-5 * (1 + MARGIN), 5 * MARGIN])
    assert np.allclose(found[3], [-2 * MARGIN, 2 * MARGIN])  # all at zero


def test_rows_are_spread_as_the_browser_does():
    rows = np.array([0, 1, 2, 1_000_000], np.uint32)
    y = [(row * 0x9E3779B1 % 2**32) / 2**32 * 1.6 - 0.8 for row in rows.tolist()]
    assert np.allclose(jitter(rows, 1), y)
    assert np.abs(jitter(np.arange(1000), 0)).max() <= 0.8
    assert np.std(jitter(np.arange(1000), 0)) > 0.4
