"""The solids on the turntable.

None looks the same from two angles: what half a turn would bring back onto itself stands a little
beside the axis, as put there by hand.
"""

from typing import NamedTuple

import numpy as np
from shapes import (
    Shape,
    ellipsoid,
    extruded,
    moved,
    planes,
    revolved,
    rod,
    torus,
    turned,
    union,
    without,
)


class Solid(NamedTuple):
    """A shape and how much light its surface gives back."""

    shape: Shape
    albedo: float


def _star(points: int = 5, outer: float = 0.95, inner: float = 0.42) -> np.ndarray:
    angles = np.pi / 2 + np.arange(2 * points) * np.pi / points
    radii = np.where(np.arange(2 * points) % 2 == 0, outer, inner)
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])


def _box(width: float, height: float) -> list[tuple[float, float]]:
    x, z = width / 2, height / 2
    return [(-x, -z), (x, -z), (x, z), (-x, z)]


def _arch() -> Shape:
    block = extruded(_box(1.75, 1.05), 0.6)
    tunnel = turned(revolved([(0, -1), (0.52, -1), (0.52, 1), (0, 1)], 0), 0, 90)
    return without(block, moved(tunnel, z=-0.45))


def _jug() -> Shape:
    body = revolved([(0, -0.7), (0.5, -0.7), (0.56, 0.7), (0.46, 0.7), (0.42, -0.58), (0, -0.58)])
    handle = moved(turned(torus(0.36, 0.09), 0, 90), x=0.6)
    # Without a spout the jug would look the same from all angles that hide its handle.
    spout = moved(turned(ellipsoid((0.34, 0.17, 0.2)), 1, -35), x=-0.5, z=0.58)
    bore = revolved([(0, -0.58), (0.42, -0.58), (0.46, 1), (0, 1)], 0)
    return without(union(body, handle, spout), bore)


def _pyramid() -> Shape:
    sides = [(1, 0, 0.42), (-1, 0, 0.42), (0, 1, 0.75), (0, -1, 0.75), (0, 0, -1)]
    return planes(sides, [0.24, 0.24, 0.372, 0.372, 0.6])


def _dumbbell() -> Shape:
    balls = union(
        moved(ellipsoid((0.48,) * 3), x=-0.5, z=-0.1), moved(ellipsoid((0.3,) * 3), x=0.68, z=0.22)
    )
    return union(balls, rod((-0.5, 0, -0.1), (0.68, 0, 0.22), 0.12))


def _propeller() -> Shape:
    blade = moved(turned(ellipsoid((0.5, 0.22, 0.07)), 0, 35), x=0.55)
    blades = union(*(turned(blade, 2, angle) for angle in (0, 120, 240)))
    return turned(union(blades, ellipsoid((0.2, 0.2, 0.28))), 0, 62)


_L = [(-0.8, -0.7), (0.8, -0.7), (0.8, -0.2), (-0.25, -0.2), (-0.25, 0.8), (-0.8, 0.8)]
_STEPS = [
    *[(-0.8, -0.7), (0.8, -0.7), (0.8, -0.35), (0.27, -0.35)],
    *[(0.27, 0.05), (-0.27, 0.05), (-0.27, 0.45), (-0.8, 0.45)],
]
_CONE = [(0, -0.65), (0.6, -0.65), (0, 0.95)]
_BAR = [(0, -0.9), (0.46, -0.9), (0.46, 0.9), (0, 0.9)]

SOLIDS: dict[str, Solid] = {
    "arch": Solid(moved(_arch(), x=0.07, y=0.05), 0.95),
    "brick": Solid(moved(extruded(_box(1.7, 0.8), 0.75), x=-0.08, y=0.06), 0.8),
    "cone": Solid(turned(revolved(_CONE), 1, 58), 1.0),
    "cylinder": Solid(turned(revolved(_BAR), 1, 80), 0.85),
    "dumbbell": Solid(_dumbbell(), 0.95),
    "egg": Solid(turned(ellipsoid((1.05, 0.46, 0.66)), 1, 25), 0.9),
    "jug": Solid(_jug(), 1.0),
    "l-block": Solid(extruded(_L, 0.6), 0.95),
    "propeller": Solid(_propeller(), 1.0),
    "pyramid": Solid(moved(_pyramid(), x=0.08, y=-0.05), 0.95),
    "ring": Solid(turned(torus(0.66, 0.24), 0, 75), 0.95),
    "stairs": Solid(extruded(_STEPS, 0.95, 0.015), 0.9),
    "star": Solid(moved(extruded(_star(), 0.42), x=0.03, y=0.08), 1.0),
}
