"""Solids as signed distances: negative inside, zero on the surface, never above the true distance.

A shape is a function from points (n, 3) to distances (n,). Two ways to make one from a plane
polygon, extrusion and revolution, are enough for most; the z axis points up.
"""

from collections.abc import Callable, Sequence

import numpy as np

Shape = Callable[[np.ndarray], np.ndarray]


def polygon(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Signed distances (n,) of plane points (n, 2) to a polygon with corners (m, 2).

    An edge on the line x = 0 closes the polygon but is no surface: a revolved shape goes on there.
    """
    nearest = np.full(len(points), np.inf)
    inside = np.zeros(len(points), bool)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        edge, offset = end - start, points - start
        if start[0] or end[0]:
            along = np.clip(offset @ edge / (edge @ edge), 0, 1)
            gap = offset - along[:, None] * edge
            np.minimum(nearest, np.einsum("ij,ij->i", gap, gap), out=nearest)
        # A ray to the right of the point crosses this edge: an odd number of crossings is inside.
        crosses = (start[1] > points[:, 1]) != (end[1] > points[:, 1])
        if edge[1] != 0:
            reach = start[0] + (points[:, 1] - start[1]) * edge[0] / edge[1]
            inside ^= crosses & (points[:, 0] < reach)
    return np.sqrt(nearest) * np.where(inside, -1.0, 1.0)


def extruded(corners: Sequence, depth: float, rounding: float = 0.03) -> Shape:
    """Drag a polygon in the (x, z) plane through `depth` along y, its edges rounded."""
    outline = np.array(corners, float)

    def distance(p: np.ndarray) -> np.ndarray:
        flat = polygon(p[:, [0, 2]], outline) + rounding
        thick = np.abs(p[:, 1]) - depth / 2 + rounding
        outer = np.hypot(np.maximum(flat, 0), np.maximum(thick, 0))
        return outer + np.minimum(np.maximum(flat, thick), 0) - rounding

    return distance


def revolved(corners: Sequence, rounding: float = 0.02) -> Shape:
    """Turn a polygon in the (radius, z) half plane about the z axis."""
    outline = np.array(corners, float)

    def distance(p: np.ndarray) -> np.ndarray:
        flat = np.column_stack([np.hypot(p[:, 0], p[:, 1]), p[:, 2]])
        return polygon(flat, outline) - rounding

    return distance


def torus(ring: float, tube: float) -> Shape:
    """Ring about the z axis."""

    def distance(p: np.ndarray) -> np.ndarray:
        return np.hypot(np.hypot(p[:, 0], p[:, 1]) - ring, p[:, 2]) - tube

    return distance


def ellipsoid(axes: Sequence[float]) -> Shape:
    """Ellipsoid with half axes (a, b, c); a lower bound of the distance."""
    half = np.array(axes, float)

    def distance(p: np.ndarray) -> np.ndarray:
        return (np.linalg.norm(p / half, axis=1) - 1) * half.min()

    return distance


def planes(normals: Sequence, offsets: Sequence[float]) -> Shape:
    """Convex solid of the points p with normal @ p <= offset for every plane."""
    unit = np.array(normals, float)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)

    def distance(p: np.ndarray) -> np.ndarray:
        return (p @ unit.T - np.array(offsets, float)).max(axis=1)

    return distance


def rod(start: Sequence[float], end: Sequence[float], radius: float) -> Shape:
    """Round rod between two points."""
    first, axis = np.array(start, float), np.subtract(end, start).astype(float)

    def distance(p: np.ndarray) -> np.ndarray:
        along = np.clip((p - first) @ axis / (axis @ axis), 0, 1)
        return np.linalg.norm(p - first - along[:, None] * axis, axis=1) - radius

    return distance


def union(*shapes: Shape) -> Shape:
    """All that is in one of the shapes."""
    return lambda p: np.min([shape(p) for shape in shapes], axis=0)


def without(shape: Shape, hole: Shape) -> Shape:
    """Return the shape with a hole cut out of it."""
    return lambda p: np.maximum(shape(p), -hole(p))


def moved(shape: Shape, x: float = 0, y: float = 0, z: float = 0) -> Shape:
    """Shift a shape."""
    return lambda p: shape(p - np.array([x, y, z], float))


def turned(shape: Shape, axis: int, degrees: float) -> Shape:
    """Turn a shape about a coordinate axis (0, 1, 2 for x, y, z)."""
    matrix = rotation(axis, degrees)
    return lambda p: shape(p @ matrix)  # the points turn back


def rotation(axis: int, degrees: float) -> np.ndarray:
    """Matrix (3, 3) that turns column vectors about a coordinate axis."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix
