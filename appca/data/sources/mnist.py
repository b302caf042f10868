"""MNIST: 70,000 handwritten digits of 28 x 28 pixels, from the four published IDX files."""

import gzip
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources.download import Progress, fetch, remedy
from appca.data.subset import check_first, choose_rows, in_words, options_of
from appca.storage.identity import sha256_of_file
from appca.words.errors import InputError


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
CITATION = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998), Gradient-based learning applied to "
    "document recognition, Proceedings of the IEEE 86(11), 2278-2324"
)


def load(
    folder: Path,
    *,
    n: int | None = 10_000,
    per_class: int | None = None,
    classes: Sequence[object] | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read digits in file order, the 60,000 of the training file before the 10,000 for tests.

    The folder holds ``mnist/*.gz``, or receives them by download; `progress` is told (bytes done,
    bytes in all). `n`, `per_class` and `classes` are as in `appca.data.subset.choose_rows`, without
    `n` beside `per_class`.

    The images are uint8, the ids ``train-0`` to ``test-9999``, the label columns digit and part.
    """
    total = sum(COUNTS.values())
    if per_class is None:
        check_first(n, total, f"MNIST has {total:,} digits")
    paths = _files(Path(folder) / "mnist", progress)
    digit = np.concatenate([_published(paths[part][LABELS]) for part in COUNTS])
    rows = choose_rows(digit, n if per_class is None else None, per_class, classes)
    return Dataset(
        name=f"MNIST, {in_words(len(rows), per_class, classes, 'digits', 'digits')}",
        X=_pixels(paths, rows),
        ids=_ids(rows),
        labels={
            "digit": digit[rows].astype(str),
            "part": np.where(rows < COUNTS["train"], "train", "test"),
        },
        image_shape=(28, 28),
        provenance={
            "source": "mnist",
            "options": options_of(n, per_class, classes),
            "files": {item.name: item.sha256 for pair in FILES.values() for item in pair},
            "image_range": [0, 255],
            "citation": CITATION,
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
            check(folder / item.name, item)
    return {part: [folder / item.name for item in pair] for part, pair in FILES.items()}


def check(path: Path, item: Published) -> None:
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


def _ids(rows: np.ndarray) -> np.ndarray:
    split = COUNTS["train"]
    return np.array(
        [f"train-{row}" if row < split else f"test-{row - split}" for row in rows.tolist()]
    )
