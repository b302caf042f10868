"""A small ray marcher: shapes given as distances, seen by a tilted camera, shaded after Lambert."""

import numpy as np
from shapes import Shape, rotation

SIDE, SUPERSAMPLE = 32, 4  # pixels along an image, rays along a pixel
TILT = 28.0  # degrees the camera looks down
DISTANCE, FIELD = 5.0, 1.28  # of the camera; half width of the picture in the plane of the axis
KEY, FILL = np.array([-0.6, -0.42, 0.68]), np.array([0.85, -0.4, 0.1])
AMBIENT, KEY_SHARE, FILL_SHARE = 0.12, 0.86, 0.18
_STEPS, _NEAR, _FAR, _TOUCH = 72, 3.0, 7.0, 2e-3


def view(shape: Shape, degrees: float, albedo: float = 1.0) -> np.ndarray:
    """Picture of a shape on a turntable.

    Parameters
    ----------
    shape : callable
        Points (n, 3) to signed distances (n,).
    degrees : float
        How far the table has turned, anticlockwise seen from above; light and camera stay.
    albedo : float
        Share of the light the surface gives back.

    Returns
    -------
    ndarray of shape (32, 32), uint8
        Black background; each pixel is the mean of 4 x 4 rays.
    """
    table = rotation(2, degrees)

    def standing(p: np.ndarray) -> np.ndarray:
        return shape(p @ table)

    origins, directions = _rays(SIDE * SUPERSAMPLE)
    hit, points = _march(standing, origins, directions)
    light = np.zeros(len(directions))
    light[hit] = albedo * _lambert(_normals(standing, points[hit]))
    blocks = light.reshape(SIDE, SUPERSAMPLE, SIDE, SUPERSAMPLE)
    return np.rint(255 * blocks.mean(axis=(1, 3)).clip(0, 1)).astype(np.uint8)


def _rays(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Origins and unit directions (side * side, 3), row by row from the upper left."""
    tilt = np.radians(TILT)
    forward = np.array([0, np.cos(tilt), -np.sin(tilt)])
    up = np.array([0, np.sin(tilt), np.cos(tilt)])
    grid = (np.arange(side) + 0.5) / side * 2 - 1
    across, down = np.meshgrid(grid, grid)
    aim = FIELD * (across[..., None] * np.array([1.0, 0, 0]) - down[..., None] * up)
    directions = (aim + DISTANCE * forward).reshape(-1, 3)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.broadcast_to(-DISTANCE * forward, directions.shape), directions


def _march(
    shape: Shape, origins: np.ndarray, directions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Walk along each ray by the distance to the shape until it touches or has passed by."""
    travelled = np.full(len(directions), _NEAR)
    hit = np.zeros(len(directions), bool)
    walking = np.arange(len(directions))
    for _ in range(_STEPS):
        gap = shape(origins[walking] + travelled[walking, None] * directions[walking])
        travelled[walking] += gap
        hit[walking[gap < _TOUCH]] = True
        walking = walking[(gap >= _TOUCH) & (travelled[walking] < _FAR)]
        if not len(walking):
            break
    return hit, origins + travelled[:, None] * directions


def _normals(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Return unit gradients of the distance by central differences."""
    step = 1e-3 * np.eye(3)
    slope = np.column_stack([shape(points + e) - shape(points - e) for e in step])
    return slope / np.linalg.norm(slope, axis=1, keepdims=True)


def _lambert(normals: np.ndarray) -> np.ndarray:
    key, fill = (normals @ (lamp / np.linalg.norm(lamp)) for lamp in (KEY, FILL))
    sky = AMBIENT * (1 + normals[:, 2]) / 2 + 0.04  # a little more light from above than below
    return sky + KEY_SHARE * np.maximum(key, 0) + FILL_SHARE * np.maximum(fill, 0)
