"""MNIST and COIL-20: download, check and read the published files."""

import gzip
import hashlib
import io
import math
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from appca.data.columns import check_first, choose_rows, in_words, options_of
from appca.data.dataset import Dataset
from appca.storage.identity import sha256_of_file
from appca.words import InputError, refused

Progress = Callable[[int, int], None]  # bytes done, bytes in all (0 when the server does not say)


def fetch(
    urls: Sequence[str],
    path: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    advice: str = "try again later.",
) -> Path:
    """Fetch a file, by pooch, from the first of `urls` that gives it.

    The file appears at `path` only when it is complete and has the checksum `sha256`, if one is
    given. `progress` is told (bytes done, bytes in all); raising from it stops the download.

    Raises InputError when no mirror gave the file, with the last reason and then `advice`.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    downloader = pooch.HTTPDownloader(
        progressbar=_Meter(progress) if progress else False,
        chunk_size=1 << 16,
        headers={"Accept-Encoding": "identity"},  # the bytes of the file, not of a packed copy
        timeout=(10, 30),
    )
    checksum = None if sha256 is None else f"sha256:{sha256}"
    reason = ""
    for url in urls:
        host = urlsplit(url).hostname or url
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except requests.HTTPError as error:
            reason = f"{host} answered {getattr(error.response, 'status_code', 'nothing')}"
        except requests.RequestException as error:
            reason = f"the connection to {host} failed: {type(error).__name__}"
        except OSError as error:
            what = f"{path} could not be written"
            raise refused(what, error, advice.rstrip(".")) from error
        except ValueError:  # pooch's word for a wrong checksum
            reason = f"what {host} sent does not have the published checksum"
        else:
            return path
    msg = f"{path.name} could not be downloaded ({reason}); {advice}"
    raise InputError(msg)


def remedy(title: str, names: Sequence[str], folder: Path) -> str:
    """Say which files to put where when a download does not work."""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    place = f"put {listed} into {folder}, or drop {'it' if len(names) == 1 else 'them'}"
    return f"to open {title} without a network, {place} onto the Data page."


class _Meter:
    """What pooch takes for a progress bar; it counts whole chunks, so at the end too many."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self._done = progress, 0, 0

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        self.progress(min(self._done, self.total or self._done), self.total)

    def reset(self) -> None:
        self._done = 0

    close = reset


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
COIL20_CITATION = (
    "S. A. Nene, S. K. Nayar, H. Murase (1996), Columbia Object Image Library (COIL-20), "
    "technical report CUCS-005-96, Columbia University"
)
_MEMBER = re.compile(r"(?:.*/)?obj(\d+)__(\d+)\.png")
_MEMBER_BYTES = 1 << 20  # the real ones have some 8 kB


def load_coil20(
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
    `classes` (1 to 20) are as in `appca.data.columns.choose_rows`, without `n` beside `per_class`.

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
            "citation": COIL20_CITATION,
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


def check_coil20(path: Path) -> None:
    """Refuse a file that is neither Columbia's zip nor the 32 x 32 version."""
    is_zip = zipfile.is_zipfile(path)
    _verified(read_zip(path) if is_zip else read_mat(path), SIDE if is_zip else 32, path)


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
        if size != SIDE:  # means of blocks are exact: sixteenths below 256 fit into float32
            sums = images.reshape(-1, 32, 4, 32, 4).sum(axis=(2, 4), dtype=np.uint16)
            images = sums.astype(np.float32) / np.float32(16)
        return _verified(images, size, path), path
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


class Published(NamedTuple):
    """One published file."""

    name: str
    n_bytes: int
    sha256: str


IMAGES, LABELS = 0, 1
FILES = {
    "train": (
        Published(
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        Published(
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        Published(
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        Published(
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
COUNTS = {"train": 60_000, "test": 10_000}
MNIST_CITATION = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998), Gradient-based learning applied to "
    "document recognition, Proceedings of the IEEE 86(11), 2278-2324"
)


def load_mnist(
    folder: Path,
    *,
    n: int | None = 10_000,
    per_class: int | None = None,
    classes: Sequence[object] | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read digits in file order, the 60,000 of the training file before the 10,000 for tests.

    The folder holds ``mnist/*.gz``, or receives them by download; `progress` is told (bytes done,
    bytes in all). `n`, `per_class` and `classes` are as in `columns.choose_rows`, without
    `n` beside `per_class`.

    The images are uint8, the ids ``train-0`` to ``test-9999``, the label columns digit and part.
    """
    total, split = sum(COUNTS.values()), COUNTS["train"]
    if per_class is None:
        check_first(n, total, f"MNIST has {total:,} digits")
    paths = _files(Path(folder) / "mnist", progress)
    digit = np.concatenate([_published(paths[part][LABELS]) for part in COUNTS])
    rows = choose_rows(digit, n if per_class is None else None, per_class, classes)
    return Dataset(
        name=f"MNIST, {in_words(len(rows), per_class, classes, 'digits', 'digits')}",
        X=_pixels(paths, rows),
        ids=np.array([f"train-{row}" if row < split else f"test-{row - split}" for row in rows]),
        labels={
            "digit": digit[rows].astype(str),
            "part": np.where(rows < split, "train", "test"),
        },
        image_shape=(28, 28),
        provenance={
            "source": "mnist",
            "options": options_of(n, per_class, classes),
            "files": {item.name: item.sha256 for pair in FILES.values() for item in pair},
            "image_range": [0, 255],
            "citation": MNIST_CITATION,
        },
    )


def _files(folder: Path, progress: Progress | None) -> dict[str, list[Path]]:
    """Paths of the four files, each fetched when missing and checked against its checksum."""
    published = [item for pair in FILES.values() for item in pair]
    missing = [item for item in published if not (folder / item.name).is_file()]
    total, done = sum(item.n_bytes for item in missing), 0
    advice = remedy("MNIST", [item.name for item in published], folder)
    for item in missing:
        report = None if progress is None else lambda got, _, base=done: progress(base + got, total)
        urls = [mirror + item.name for mirror in MIRRORS]
        fetch(urls, folder / item.name, sha256=item.sha256, progress=report, advice=advice)
        done += item.n_bytes
    for item in published:
        if item not in missing:
            check_mnist(folder / item.name, item)
    return {part: [folder / item.name for item in pair] for part, pair in FILES.items()}


def check_mnist(path: Path, item: Published) -> None:
    """Refuse a file that is not the published one."""
    digest = sha256_of_file(path)
    if digest != item.sha256:
        msg = (
            f"{path} is not the published {item.name} (its SHA-256 starts with {digest[:8]}, not "
            f"{item.sha256[:8]}); delete it, and the right one will be downloaded."
        )
        raise InputError(msg)


def _pixels(paths: dict[str, list[Path]], rows: np.ndarray) -> np.ndarray:
    """Pixels of rising row numbers; no more of a file is unpacked than they need."""
    split = COUNTS["train"]
    parts = []
    for part, wanted in (("train", rows[rows < split]), ("test", rows[rows >= split] - split)):
        if len(wanted):
            images = _published(paths[part][IMAGES], int(wanted[-1]) + 1)
            whole = len(wanted) == len(images)
            parts.append((images if whole else images[wanted]).reshape(len(wanted), -1))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _published(path: Path, first: int | None = None) -> np.ndarray:
    """Bytes of the first items of a published file, whose checksum was found to be right."""
    with gzip.open(path) as stream:
        n_sides = stream.read(4)[3]
        n, *sides = struct.unpack(f">{n_sides}I", stream.read(4 * n_sides))
        n = n if first is None else min(first, n)
        return np.frombuffer(stream.read(n * math.prod(sides)), np.uint8).reshape(n, *sides)
