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


def mask_of(mean: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Find the brain in a mean volume (x, y, z) by nilearn's histogram rule.

    Raises InputError when it finds none.
    """
    import warnings

    from nibabel import Nifti1Image
    from nilearn.masking import compute_epi_mask

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty or odd mask is said below
            image = compute_epi_mask(Nifti1Image(mean.astype(np.float32), affine))
        mask = np.asarray(image.dataobj) > 0
    except (ValueError, IndexError, TypeError) as error:
        raise InputError(_no_brain()) from error
    if not mask.any():
        raise InputError(_no_brain())
    return mask


def _no_brain() -> str:
    return "No brain could be separated from the background of this recording; give a mask, too."
