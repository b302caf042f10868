"""COIL-20: 20 objects on a turntable, 72 views each, from Columbia's zip or its 32 x 32 version."""

import hashlib
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources.download import Progress, fetch, remedy
from appca.data.subset import check_first, choose_rows, in_words, options_of
from appca.words.errors import InputError

OBJECTS, VIEWS, SIDE = 20, 72, 128
ZIP, MAT = "coil-20-proc.zip", "COIL20.mat"
URLS = (
    "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
    "https://cave.cs.columbia.edu/old/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
)
# Zips of the same images differ in their bytes, so the decoded pixels are checked: SHA-256 of the
# uint8 images in object, then view order, and of their exact 4 x 4 block means as float32.
DIGESTS = {
    128: "7274cbacb79ea6c57340827c9f9301745a8e9b3173dea4aa828e00b49c42946c",
    32: "a1d60db45b597493ccfcafcdb35fcaab67dcc96300cd0aaff45e0884927c1ce3",
}
CITATION = (
    "S. A. Nene, S. K. Nayar, H. Murase (1996), Columbia Object Image Library (COIL-20), "
    "technical report CUCS-005-96, Columbia University"
)
_MEMBER = re.compile(r"(?:.*/)?obj(\d+)__(\d+)\.png")
_MEMBER_BYTES = 1 << 20  # the real ones have some 8 kB


def load(
    folder: Path,
    *,
    size: int = 32,
    n: int | None = None,
    per_class: int | None = None,
    classes: Sequence[object] | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read the 1,440 images, or some of them, in object, then view order.

    The folder holds ``coil20/coil-20-proc.zip`` or, for 32 x 32, ``coil20/COIL20.mat``; else the
    zip is fetched into it, and `progress` told (bytes done, bytes in all). The size 32 takes the
    mean of 4 x 4 blocks (float32, exact), as the paper has it; 128 the images. `n`, `per_class` and
    `classes` (1 to 20) are as in `appca.data.subset.choose_rows`, without `n` beside `per_class`.

    Values are 0 to 255, ids ``obj1__0`` to ``obj20__71``, label columns object and angle (degrees).
    """
    if size not in DIGESTS:
        msg = f"COIL-20 comes as 32 x 32 or 128 x 128, so size must be 32 or 128; got {size!r}."
        raise InputError(msg)
    if per_class is None:
        check_first(n, OBJECTS * VIEWS, f"COIL-20 has {OBJECTS * VIEWS:,} images")
    whole = _whole(Path(folder) / "coil20", size, progress)
    if n is None and per_class is None and classes is None:
        return whole
    rows = choose_rows(whole.labels["object"], n if per_class is None else None, per_class, classes)
    part = whole.take(rows)
    options = {"size": size, **options_of(n, per_class, classes)}
    which = in_words(part.n_rows, per_class, classes, "views", "objects")
    return replace(
        part, name=f"{whole.name}, {which}", provenance=part.provenance | {"options": options}
    )


def _whole(folder: Path, size: int, progress: Progress | None) -> Dataset:
    X, path = _images(folder, size, progress)
    views = np.arange(OBJECTS * VIEWS)
    number, view = views // VIEWS + 1, views % VIEWS
    return Dataset(
        name=f"COIL-20, {size} x {size}",
        X=X,
        ids=np.array([f"obj{i}__{j}" for i, j in zip(number, view, strict=True)]),
        labels={"object": number.astype(str), "angle": (view * (360 // VIEWS)).astype(np.int16)},
        image_shape=(size, size),
        provenance={
            "source": "coil20",
            "options": {"size": size},
            "files": {path.name: f"pixels sha256:{DIGESTS[size]}"},
            "image_range": [0, 255],
            "citation": CITATION,
        },
    )


def read_zip(path: Path) -> np.ndarray:
    """Decode Columbia's zip: (1440, 128, 128) uint8 in object, then view order."""
    from PIL import Image

    images = np.zeros((OBJECTS, VIEWS, SIDE, SIDE), np.uint8)
    places = set()
    try:
        with zipfile.ZipFile(path) as archive:
            for item in archive.infolist():
                place = _place(item.filename)
                if place is None or item.file_size > _MEMBER_BYTES:
                    continue
                with Image.open(io.BytesIO(archive.read(item)), formats=["PNG"]) as image:
                    if image.size == (SIDE, SIDE):
                        images[place] = np.asarray(image.convert("L"))
                        places.add(place)
    except (zipfile.BadZipFile, OSError, EOFError, SyntaxError) as error:
        msg = f"{path} is damaged ({type(error).__name__}); delete it and download it again."
        raise InputError(msg) from error
    if len(places) < OBJECTS * VIEWS:
        msg = (
            f"{path} must hold the {OBJECTS * VIEWS} images obj1__0.png to obj20__71.png of "
            f"128 x 128 pixels; it holds {len(places)} of them, so delete it and download it again."
        )
        raise InputError(msg)
    return images.reshape(-1, SIDE, SIDE)


def check(path: Path) -> None:
    """Refuse a file that is neither Columbia's zip nor the 32 x 32 version."""
    if zipfile.is_zipfile(path):
        _verified(read_zip(path), SIDE, path)
    else:
        _verified(read_mat(path), 32, path)


def block_means(images: np.ndarray) -> np.ndarray:
    """Return means of 4 x 4 blocks (n, 32, 32), exact: sixteenths below 256 fit into float32."""
    n, h, w = images.shape
    sums = images.reshape(n, h // 4, 4, w // 4, 4).sum(axis=(2, 4), dtype=np.uint16)
    return np.asarray(sums.astype(np.float32) / np.float32(16))


def read_mat(path: Path) -> np.ndarray:
    """Read the 32 x 32 version: (1440, 32, 32) float32 in 0 to 255; its rows are column-major."""
    from scipy.io import loadmat

    try:
        values = np.asarray(loadmat(path, variable_names=["X"])["X"])
        images = values.reshape(OBJECTS * VIEWS, 32, 32).transpose(0, 2, 1).astype(np.float64)
    except Exception as error:  # SciPy fails in as many ways as there are fields
        msg = f"{path} is not COIL-20 as a 1440 x 1024 matrix X; delete it to download the zip."
        raise InputError(msg) from error
    # The file holds block means over 255; back to sixteenths they are whole numbers.
    return (np.rint(images * (255 * 16)) / 16).astype(np.float32)


def _images(folder: Path, size: int, progress: Progress | None) -> tuple[np.ndarray, Path]:
    path = folder / ZIP
    if size == 32 and not path.is_file() and (folder / MAT).is_file():
        return _verified(read_mat(folder / MAT), size, folder / MAT), folder / MAT
    fetched = not path.is_file()
    if fetched:
        fetch(URLS, path, progress=progress, advice=remedy("COIL-20", [ZIP], folder))
    try:
        images = read_zip(path)
        return _verified(images if size == SIDE else block_means(images), size, path), path
    except InputError:
        if fetched:  # there is no published checksum: what does not decode must not stay
            path.unlink(missing_ok=True)
        raise


def _verified(images: np.ndarray, size: int, path: Path) -> np.ndarray:
    flat = np.ascontiguousarray(images.reshape(len(images), -1))
    digest = hashlib.sha256(flat.data).hexdigest()
    if digest != DIGESTS[size]:
        msg = (
            f"The pixels in {path} are not those of COIL-20 (SHA-256 {digest[:8]}, not "
            f"{DIGESTS[size][:8]}); delete it and download it again."
        )
        raise InputError(msg)
    return flat


def _place(name: str) -> tuple[int, int] | None:
    match = _MEMBER.fullmatch(name)
    if match is None:
        return None
    number, view = int(match[1]) - 1, int(match[2])
    return (number, view) if 0 <= number < OBJECTS and view < VIEWS else None
