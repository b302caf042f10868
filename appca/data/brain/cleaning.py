"""What every recording goes through: the brain is found, slow drift is taken out."""

import math

import numpy as np

from appca.words.errors import InputError

DRIFT = 3  # order of the polynomial in time that is taken out of every voxel
MEAN_SIGNAL = "mean signal"  # label of the rows: what slices are drawn in grey from


def cleaned(series: np.ndarray) -> np.ndarray:
    """Take the drift out of voxels (V, T) and divide all by one number, their standard deviation.

    What is returned, float32, is orthogonal to all polynomials in time up to the third order.
    Raises InputError when nothing varies, or there are too few volumes.
    """
    T = series.shape[1]
    if T < 4 * (DRIFT + 1):
        msg = (
            f"A recording needs at least {4 * (DRIFT + 1)} volumes, as its slow drift is taken "
            f"out first; this one has {T}."
        )
        raise InputError(msg)
    trend = drift(T).astype(np.float32)
    left = np.array(series, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        left -= left.mean(axis=1, keepdims=True)  # first, so that float32 loses nothing below
        left -= (left @ trend) @ trend.T
        scale = math.sqrt(float(np.square(left, dtype=np.float32).mean(dtype=np.float64)))
    if not math.isfinite(scale):
        msg = "The recording holds numbers beyond 1e19; give its values in a smaller unit."
        raise InputError(msg)
    if not scale > 0:
        msg = "No voxel of the recording varies over time; check mask and file."
        raise InputError(msg)
    left /= np.float32(scale)
    return left


def drift(n_volumes: int) -> np.ndarray:
    """Return an orthonormal basis (T, 4) of the polynomials up to the third order."""
    powers = np.polynomial.legendre.legvander(np.linspace(-1, 1, n_volumes), DRIFT)
    return np.linalg.qr(powers)[0]


def mask_of(mean: np.ndarray) -> np.ndarray:
    """Find the brain in a mean volume (x, y, z), as nilearn's `compute_epi_mask` does.

    The threshold is the middle of the largest step between sorted values, from the 20th to the 85th
    per cent of them. What is left of the mask after erosion is its largest connected part, dilated
    again. Raises InputError when there is none.
    """
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(mean.astype(np.float32), 1 / math.sqrt(8 * math.log(2)))
    values = np.sort(smooth, axis=None)
    part = values[int(0.2 * len(values)) : int(0.85 * len(values)) + 1]
    if len(part) > 1:
        with np.errstate(invalid="ignore"):  # of infinite values no step is largest
            step = int(np.diff(part).argmax())
        threshold = 0.5 * (part[step] + part[step + 1])
        places, n_parts = ndimage.label(ndimage.binary_erosion(smooth >= threshold, iterations=2))
        if n_parts:
            largest = places == np.bincount(places[places > 0]).argmax()
            wide = ndimage.binary_dilation(largest, iterations=4)
            mask: np.ndarray = ndimage.binary_erosion(wide, iterations=2)
            if mask.any():
                return mask
    msg = "No brain could be separated from the background of this recording; give a mask, too."
    raise InputError(msg)
