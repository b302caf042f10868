"""Fitted preprocessing, kept on disk where it takes long: the same autoencoder is trained once.

All runs, maps and grids on the same data with the same options share it, so that the sliders of K
and L stay live behind an autoencoder.
"""

import contextlib
import json
from pathlib import Path

from appca.data.dataset import Dataset
from appca.data.preprocessing import VAE_ARRAYS, Fitted, Preprocessing
from appca.data.vae.autoencoder import Report
from appca.storage import cache
from appca.storage.identity import ID_DIGITS, sha256

MOST_BYTES = 500_000_000  # of all autoencoders; one of 784 pixels takes 5 MB
FOLDER = "autoencoders"


def prepared(
    dataset: Dataset,
    options: Preprocessing,
    home: Path,
    report: Report = lambda _stage, _share: None,
) -> Fitted:
    """Return the fitted preprocessing of a data set: from the disk, else learned and kept.

    With an autoencoder that is not on the disk this takes long: call it in a worker. `report` is
    told (stage, fraction) while it trains; an exception from it ends the work.
    """
    fitted = at_hand(dataset, options, home)
    if fitted is None:
        fitted = options.fit(dataset.X, report, dataset.missing)
        _keep(dataset.digest, options, home, fitted)
    return fitted


def at_hand(dataset: Dataset, options: Preprocessing, home: Path) -> Fitted | None:
    """Return the fitted preprocessing if that is quick; None if an autoencoder must be trained."""
    if options.vae is None:
        return options.fit(dataset.X, missing=dataset.missing)
    file = _file(dataset.digest, options, home)
    arrays = cache.read(file)
    if arrays is not None and VAE_ARRAYS + "code" in arrays:
        return Fitted.from_arrays(arrays)
    with contextlib.suppress(OSError):
        file.unlink()  # nobody shall take a damaged file for one that is at hand
    return None


def is_at_hand(digest: str, options: Preprocessing, home: Path) -> bool:
    """Whether `at_hand` will find it."""
    return options.vae is None or _file(digest, options, home).is_file()


def _keep(digest: str, options: Preprocessing, home: Path, fitted: Fitted) -> None:
    file = _file(digest, options, home)
    try:
        cache.write(file, digest, **fitted.arrays())
        cache.prune(file.parent, "*.npz", MOST_BYTES, keep=file)
    except OSError:
        return  # a full disk costs another training, not this run


def _file(digest: str, options: Preprocessing, home: Path) -> Path:
    text = json.dumps([digest, options.to_dict()], sort_keys=True)
    return Path(home) / FOLDER / f"{sha256(text, ID_DIGITS)}.npz"
