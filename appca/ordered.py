"""Ordered features, such as wavelengths and times: numbers in their names, and curves."""

import re
from collections.abc import Sequence
from itertools import groupby
from math import isnan

import numpy as np

MOST_PLACES = 1000  # maximum number of positions along a curve
GREY = "#8a94a0"  # legible on black and on white
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")


def numbered(names: Sequence[str]) -> tuple[np.ndarray, str] | None:
    """Return the monotonic numbers in names such as “400 nm”, and their unit, if any."""
    matches = [_NUMBER.search(name) for name in names]
    numbers = np.array([float(number[0].replace(",", ".")) for number in matches if number])
    units, steps = {_NUMBER.sub("", name, count=1) for name in names}, np.diff(numbers)
    is_axis = len(units) == 1 and all(matches) and ((steps > 0).all() or (steps < 0).all())
    return (numbers, units.pop().strip()) if is_axis else None


def lines_of_rows(X: np.ndarray, scale: tuple[float, float], shape: tuple[int, int]) -> np.ndarray:
    """Return rows (n, D) of ordered features as lines, (n, h, w) from 0 to 1.

    The lower end of the `scale` is at the bottom, the upper end at the top.
    """
    height, width = shape
    features, (low, high) = np.arange(X.shape[1]), scale
    places = np.linspace(0, features[-1], width)
    values = np.stack([np.interp(places, features, row) for row in X])
    y = np.clip((high - values) / ((high - low) or 1.0), 0.0, 1.0) * height
    before = np.concatenate([y[:, :1], y[:, :-1]], axis=1)
    lines = np.arange(height)[None, :, None]
    above, below = np.minimum(y, before)[:, None], np.maximum(y, before)[:, None]
    off = np.maximum(np.maximum(above - lines, lines - below), 0.0)
    return np.asarray(np.clip(1.5 - off, 0.0, 1.0))


def curves(rows: np.ndarray, colours: Sequence[str]) -> bytes:
    """Return rows (n, D) as curves in a stretchable SVG, with breaks where values are NaN.

    A grey line marks zero, which the scale of a single curve always includes.
    """
    D, height = rows.shape[1], 1000
    step = -(-D // MOST_PLACES)  # features per position, drawn as a line from min to max
    starts, twice = np.arange(0, D, step), 1 + (step > 1)
    ends = [end.reduceat(rows, starts, axis=1) for end in (np.fmin, np.fmax)][:twice]
    values = np.stack(ends, axis=2).reshape(len(rows), -1)
    among = np.append(rows, 0.0) if len(rows) == 1 else rows
    low, high = float(np.nanmin(among)), float(np.nanmax(among))
    x = (starts * 2 * MOST_PLACES / max(D - 1, 1)).repeat(twice).round().astype(int).tolist()
    y = height * (0.95 - 0.9 * (np.vstack([0 * values[:1], values]) - low) / ((high - low) or 1.0))
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * MOST_PLACES} {height}" '
    svg += 'preserveAspectRatio="none" fill="none" stroke-width="1.5">'
    for colour, line in zip((GREY, *colours), y.round().tolist(), strict=True):
        for is_gap, part in groupby(zip(x, line, strict=True), lambda place: isnan(place[1])):
            points = " ".join(f"{a},{b:.0f}" for a, b in part)
            look = f'stroke="{colour}" vector-effect="non-scaling-stroke"'
            svg += f'<polyline points="{points}" {look}/>' * (not is_gap)
    return f"{svg}</svg>".encode()
