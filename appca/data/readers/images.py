"""A zip of images as one data set: a row for each image, its class from folder or name."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.errors import InputError
from appca.data.readers import naming
from appca.data.readers.archive import content, members, parts
from appca.data.readers.intake import note_quality
from appca.data.readers.picture import NotAnImageError, decode, grey
from appca.data.readers.source import LIMITS, Limits, file_stream
from appca.data.wording import counted, shortened

ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff"),
    *(".webp", ".pgm", ".ppm", ".pnm"),
)
_MOST_SIDE = 4096


class Options(NamedTuple):
    """How to read a zip of images."""

    size: tuple[int, int] | None = None  # (h, w) to bring all to; None refuses different sizes
    colour: str = "grey"  # or "keep": three values a pixel when at least one image has colour
    classes: str = "auto"  # or "folder", "name", "none": see `naming.labels_of`
    pattern: str | None = None  # for names; each named group becomes a label column
    broken: str = "refuse"  # or "skip": what to do with files that end like images and are none


def read(
    name: str, file: Path | str | BinaryIO, options: Options, limits: Limits = LIMITS
) -> Dataset:
    """
    Read the images of a zip, in natural order of their paths.

    Returns
    -------
    Dataset
        uint8; ``report["skipped"]`` names the files that were left out.
    """
    _check_options(options)
    report: dict = {}
    with file_stream(name, file, limits) as stream:
        found = list(_images(name, stream, options, report, limits))
    if len(found) < 2:
        msg = (
            f"“{name}” holds {counted(len(found), 'image')}; at least 2 are needed, in files that "
            f"end in {', '.join(ENDINGS)}."
        )
        raise InputError(msg, report)
    X, sides = _matrix([pixels for _, pixels in found], options.colour)
    report.update(rows=len(X), columns=X.shape[1], image_shape=sides)
    report.update(missing={}, filled=0, dropped=0)
    note_quality(X, [f"pixel {j + 1}" for j in range(X.shape[1])], report)
    paths = naming.without_root([path for path, _ in found])
    return Dataset(
        name=Path(name).stem or name,
        X=X,
        ids=np.array(naming.ids_of(paths)),
        labels=naming.labels_of(paths, options.classes, options.pattern),
        image_shape=sides,
        provenance={
            "source": "file",
            "files": [name],
            "image_range": [0, 255],
            "report": report,
        },
    )


def _check_options(options: Options) -> None:
    size = options.size
    if size is not None and (len(size) != 2 or not all(1 <= side <= _MOST_SIDE for side in size)):
        msg = f"size must be a height and a width from 1 to {_MOST_SIDE}; got {size}."
        raise InputError(msg)
    for key, known in (("colour", ("grey", "keep")), ("broken", ("refuse", "skip"))):
        if getattr(options, key) not in known:
            msg = f"{key} must be {' or '.join(known)}; got {getattr(options, key)!r}."
            raise InputError(msg)


def _images(
    name: str, stream: BinaryIO, options: Options, report: dict, limits: Limits
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Paths and pixels in natural order; the report receives what was skipped and resized."""
    archive, items = members(name, stream, limits)
    candidates = [item for item in items if item.filename.lower().endswith(ENDINGS)]
    others = [item.filename for item in items if not item.filename.lower().endswith(ENDINGS)]
    report.update(files=len(items), skipped=others, colour=0)
    paths = [parts(item.filename) for item in candidates]
    first, n_bytes = None, 0
    for i in naming.in_order(paths):
        label = shortened(candidates[i].filename)
        try:
            pixels = decode(content(name, archive, candidates[i]), label, options.size, limits)
        except NotAnImageError as error:
            if options.broken == "refuse":
                msg = f"“{label}” in “{name}” is not an image; take it out, or skip such files."
                raise InputError(msg, report) from error
            report["skipped"].append(candidates[i].filename)
            continue
        report["colour"] += pixels.ndim == 3
        first = first or (label, pixels.shape)
        _check_same_size(first, (label, pixels.shape), report)
        pixels = grey(pixels) if options.colour == "grey" else pixels
        n_bytes += pixels.nbytes
        _check_total(name, n_bytes, limits, report)
        yield paths[i], pixels


def _check_same_size(first: tuple[str, tuple], other: tuple[str, tuple], report: dict) -> None:
    if first[1][:2] != other[1][:2]:
        sizes = " and ".join(f"“{label}” has {w} x {h}" for label, (h, w, *_) in (first, other))
        msg = f"The images differ in size ({sizes}); choose a size to bring all of them to."
        raise InputError(msg, report)


def _check_total(name: str, n_bytes: int, limits: Limits, report: dict) -> None:
    if n_bytes > limits.n_bytes:
        msg = (
            f"The pixels of “{name}” fill more than {limits.n_bytes / 1e6:,.0f} MB; choose a "
            "smaller size or fewer images."
        )
        raise InputError(msg, report)


def _matrix(images: list[np.ndarray], colour: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return rows of pixels and an image's shape; grey ones among coloured get three channels."""
    if colour == "keep" and any(pixels.ndim == 3 for pixels in images):
        images = [
            pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)
            for pixels in images
        ]
    stack = np.stack(images)
    return stack.reshape(len(stack), -1), stack.shape[1:]
