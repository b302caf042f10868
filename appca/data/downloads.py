"""MNIST and COIL-20: download, check and read the published files."""

import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from appca.data.dataset import Dataset
from appca.storage.identity import sha256_of_file
from appca.words import InputError, refuse_if, refused

Progress = Callable[[int, int], None]  # bytes done, bytes in all (0 when the server does not say)
_SHA256 = {  # of the published files, in the order of their rows
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST = {f"{stem}-ubyte.gz": digest for stem, digest in _SHA256.items()}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
ZIP = "coil-20-proc.zip"
URLS = (
    "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
    "https://cave.cs.columbia.edu/old/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
)
# Zips of the same images differ in their bytes, so the checksum is of the pixels: the uint8 images
# in object, then view order.
_PIXELS = "7274cbacb79ea6c57340827c9f9301745a8e9b3173dea4aa828e00b49c42946c"
_OBJECTS, _VIEWS, _SIDE = 20, 72, 128
_MEMBER_BYTES = 1 << 20  # the published images have some 8 kB


def fetch(
    urls: Sequence[str],
    path: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    advice: str = "try again later.",
) -> None:
    """Fetch a file, by pooch, from the first of `urls` that gives it.

    The file appears at `path` only when it is complete and has the checksum `sha256`, if one is
    given. `progress` is called with (bytes done, bytes in all); raising from it stops the download.

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
    reason = ""
    for url in urls:
        host = urlsplit(url).hostname or url
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            checksum = sha256 and f"sha256:{sha256}"
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except requests.RequestException as error:
            status = getattr(error.response, "status_code", None)
            failed = f"the connection to {host} failed: {type(error).__name__}"
            reason = f"{host} answered {status}" if status else failed
        except OSError as error:
            what = f"{path} could not be written"
            raise refused(what, error, advice.rstrip(".")) from error
        except ValueError:  # pooch's word for a wrong checksum
            reason = f"the file from {host} does not have the published checksum"
        else:
            return
    msg = f"{path.name} could not be downloaded ({reason}); {advice}"
    raise InputError(msg)


class _Meter:
    """A progress bar for pooch, which counts whole chunks, so at the end too many."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self._done = progress, 0, 0

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        self.progress(min(self._done, self.total or self._done), self.total)

    def reset(self) -> None:
        self._done = 0

    close = reset


def check(path: Path, name: str) -> None:
    """Refuse a file that is not the published file of a name."""
    if name == ZIP:
        _coil20_pixels(path)
        return
    digest = sha256_of_file(path)
    refuse_if(
        digest != MNIST[name],
        f"{path} is not the published {name} (its SHA-256 starts with {digest[:8]}, not "
        f"{MNIST[name][:8]}); delete it, and the right one will be downloaded.",
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

    The folder holds ``mnist/*.gz``, or receives them by download; see `fetch` for `progress`. Of
    `classes`, or all, the first `per_class` digits each are read, or the first `n` in all.

    The images are uint8, the ids ``train-0`` to ``test-9999``, the label columns digit and part.
    """
    folder = folder / "mnist"
    advice = _advice("MNIST", list(MNIST), folder)
    for name, sha256 in MNIST.items():
        if (folder / name).is_file():
            check(folder / name, name)
        else:
            urls = [mirror + name for mirror in MIRRORS]
            fetch(urls, folder / name, sha256=sha256, progress=progress, advice=advice)
    images, labels = (folder / name for name in MNIST if name.startswith("train"))
    more_images, more_labels = (folder / name for name in MNIST if name.startswith("t10k"))
    train, test = _idx(labels), _idx(more_labels)
    digit, split = np.concatenate([train, test]).ravel().astype(str), len(train)
    rows, name, options = _chosen(digit, n, per_class, classes, ("digits", "digits"))
    X = np.empty((len(rows), 784), np.uint8)
    for path, inside, first in ((images, rows < split, 0), (more_images, rows >= split, split)):
        if inside.any():
            places = rows[inside] - first
            X[inside] = _idx(path, int(places[-1]) + 1)[places]
    return Dataset(
        name=f"MNIST, {name}",
        X=X,
        ids=np.array([f"train-{row}" if row < split else f"test-{row - split}" for row in rows]),
        labels={"digit": digit[rows], "part": np.where(rows < split, "train", "test")},
        image_shape=(28, 28),
        provenance={
            "source": "mnist",
            "options": options,
            "files": MNIST,
            "image_range": [0, 255],
            "citation": "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998), Gradient-based learning"
            " applied to document recognition, Proceedings of the IEEE 86(11), 2278-2324",
        },
    )


def _idx(path: Path, first: int = 60_000) -> np.ndarray:
    """Read the first items (n, D) of a published IDX file; no more of it is unpacked."""
    size, head = (784, 16) if "images" in path.name else (1, 8)
    with gzip.open(path) as stream:
        stream.seek(head)
        return np.frombuffer(stream.read(first * size), np.uint8).reshape(-1, size)


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

    The folder holds ``coil20/coil-20-proc.zip``, or receives it by download; see `fetch` for
    `progress`. The size 32 takes the mean of 4 x 4 blocks (float32, exact), as the paper has it;
    128 the images. `n`, `per_class` and `classes` (1 to 20) are as in `load_mnist`.

    Values are 0 to 255, ids ``obj1__0`` to ``obj20__71``, label columns object and angle (degrees).
    """
    path = folder / "coil20" / ZIP
    is_new = not path.is_file()
    if is_new:
        fetch(URLS, path, progress=progress, advice=_advice("COIL-20", [ZIP], path.parent))
    try:
        X = _coil20_pixels(path)
    except InputError:
        if is_new:  # there is no published checksum of the zip
            path.unlink(missing_ok=True)
        raise
    if size != _SIDE:  # means of blocks are exact: sixteenths below 256 fit into float32
        sums = X.reshape(-1, 32, 4, 32, 4).sum(axis=(2, 4), dtype=np.uint16)
        X = (sums.astype(np.float32) / np.float32(16)).reshape(len(X), -1)
    views = np.arange(_OBJECTS * _VIEWS)
    number, angle = (views // _VIEWS + 1).astype(str), views % _VIEWS * (360 // _VIEWS)
    rows, name, options = _chosen(number, n, per_class, classes, ("views", "objects"))
    return Dataset(
        name=f"COIL-20, {size} x {size}" + (f", {name}" if len(rows) < len(X) else ""),
        X=X[rows],
        ids=_COIL20_IDS[rows],
        labels={"object": number[rows], "angle": angle[rows].astype(np.int16)},
        image_shape=(size, size),
        provenance={
            "source": "coil20",
            "options": {"size": size, **options},
            "files": {ZIP: f"pixels sha256:{_PIXELS}"},
            "image_range": [0, 255],
            "citation": "S. A. Nene, S. K. Nayar, H. Murase (1996), Columbia Object Image Library"
            " (COIL-20), technical report CUCS-005-96, Columbia University",
        },
    )


_COIL20_IDS = np.array([f"obj{i + 1}__{j}" for i, j in np.ndindex(_OBJECTS, _VIEWS)])


def _coil20_pixels(path: Path) -> np.ndarray:
    """Decode Columbia's zip: (1440, 16384) uint8 in object, then view order."""
    from PIL import Image

    images = []
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.rpartition("/")[2]: name for name in archive.namelist()}
            for name in _COIL20_IDS.tolist():
                with archive.open(members[f"{name}.png"]) as member:
                    data = io.BytesIO(member.read(_MEMBER_BYTES))
                with Image.open(data, formats=["PNG"]) as image:
                    if image.size != (_SIDE, _SIDE):
                        raise ValueError(name)
                    images.append(np.asarray(image.convert("L")).reshape(-1))
    except Exception as error:  # the decoders fail in as many ways as there are fields
        msg = f"{path} is damaged ({type(error).__name__}); delete it and download it again."
        raise InputError(msg) from error
    X = np.stack(images)
    digest = hashlib.sha256(X.data).hexdigest()
    refuse_if(
        digest != _PIXELS,
        f"The pixels in {path} are not those of COIL-20 (SHA-256 {digest[:8]}, not "
        f"{_PIXELS[:8]}); delete it and download it again.",
    )
    return X


def _chosen(
    column: np.ndarray,
    n: int | None,
    per_class: int | None,
    classes: Sequence[object] | None,
    words: tuple[str, str],
) -> tuple[np.ndarray, str, dict[str, object]]:
    """Return rising row numbers by their class (N,), their name, and the options as recorded."""
    wanted = list(dict.fromkeys(map(str, np.unique(column) if classes is None else classes)))
    rows = np.flatnonzero(np.isin(column, wanted))
    groups = words[1] if classes is None else f"{words[1]} {', '.join(wanted)}"
    if per_class is None:
        rows = rows[:n]
        name = f"{len(rows):,} {words[0]}" if classes is None else f"{len(rows):,} of {groups}"
    else:
        rows = np.sort(np.concatenate([rows[column[rows] == each][:per_class] for each in wanted]))
        name = f"{groups}, {per_class:,} each"
    chosen = None if classes is None else wanted
    return rows, name, {"n": n, "per_class": per_class, "classes": chosen}


def _advice(title: str, names: Sequence[str], folder: Path) -> str:
    """Say which files to put where when a download does not work."""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    place = f"put {listed} into {folder}, or drop {'it' if len(names) == 1 else 'them'}"
    return f"to open {title} without a network, {place} onto the Data page."
