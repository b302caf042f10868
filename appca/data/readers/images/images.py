"""Images as one data set, from a zip or many files: one row per image, its class from its name."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset, NumberedNames
from appca.data.readers.archive import content, is_hidden, members, parts
from appca.data.readers.images import naming
from appca.data.readers.images.picture import NotAnImageError, decode, grey
from appca.data.readers.intake import FileReport, note_quality
from appca.data.readers.reader import ENDINGS, LONGEST_NAME, Reader
from appca.data.readers.source import LIMITS, File, Files, ReadLimits, file_stream
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

_MOST_SIDE = 4096


class ImageOptions(NamedTuple):
    """How to read images."""

    size: tuple[int, int] | None = None  # (h, w) to bring all to; None refuses different sizes
    colour: str = "grey"  # or "keep": three values per pixel when at least one image has colour
    classes: str = "auto"  # or "folder", "name", "none": see `naming.labels_of`
    pattern: str | None = None  # for names, such as {class}__{n}; each part becomes a label column
    broken: str = "refuse"  # or "skip": what to do with files that end like images and are none


class Entry(NamedTuple):
    """One file, not yet read."""

    filename: str
    load: Callable[[], bytes]


def read(name: str, file: File, options: ImageOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read the images (uint8) of a zip, in natural order of their paths.

    ``report["skipped"]`` names the files that were left out.
    """
    with file_stream(name, file, limits) as stream:
        archive, items = members(name, stream, limits)
        entries = [Entry(item.filename, partial(content, name, archive, item)) for item in items]
        return dataset_of(name, entries, options, limits)


def read_many(files: Files, options: ImageOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read images that came as files of their own, such as those of a folder, or as one zip.

    The names may hold folders; they are never used as paths.
    """
    if len(files) == 1 and files[0][0].lower().endswith(".zip"):
        name, file = files[0]
        return read(shortened(name, LONGEST_NAME), file, options, limits)
    if len(files) > limits.members:
        msg = f"{len(files):,} files are more than {limits.members:,}; choose fewer."
        raise InputError(msg)
    entries = [Entry(name, partial(_bytes, name, file, limits)) for name, file in files]
    dataset = dataset_of(_title([name for name, _ in files]), entries, options, limits)
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def _bytes(name: str, file: File, limits: ReadLimits) -> bytes:
    with file_stream(name, file, limits) as stream:
        return stream.read()


def _title(names: list[str]) -> str:
    """Return the innermost folder that all files share, else how many they are."""
    folders = [parts(name)[:-1] for name in names]
    shared = [part for part, *others in zip(*folders, strict=False) if set(others) <= {part}]
    return shared[-1] if shared else counted(len(names), "image")


def dataset_of(
    name: str, entries: list[Entry], options: ImageOptions, limits: ReadLimits
) -> Dataset:
    """Make a data set of images, in natural order of their names."""
    _check_options(options)
    report: FileReport = {}
    rows = _Rows(name, sum(map(_is_image, entries)), options, limits)  # held in memory once
    paths = []
    for path, pixels in _images(name, entries, options, report, limits):
        rows.add(pixels)
        paths.append(path)
    X, sides = rows.matrix()
    if len(paths) < limits.least_rows:
        needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
        msg = (
            f"“{name}” holds {counted(len(paths), 'image')}; at least {needed} needed, in files "
            f"that end in {', '.join(ENDINGS)}."
        )
        raise InputError(msg, report)
    report.update(rows=len(X), columns=X.shape[1], image_shape=sides)
    report.update(missing={}, filled=0, dropped=0)
    note_quality(X, NumberedNames("pixel", X.shape[1]), report, limits.least_rows)
    paths = naming.without_root(paths)
    return Dataset(
        name=Path(name).stem or name,
        X=X,
        ids=np.array(naming.ids_of(paths)),
        labels=naming.labels_of(paths, options.classes, options.pattern),
        image_shape=sides,
        provenance={"source": "file", "files": [name], "image_range": [0, 255], "report": report},
        least_rows=limits.least_rows,
    )


def _check_options(options: ImageOptions) -> None:
    size = options.size
    if size is not None and (len(size) != 2 or not all(1 <= side <= _MOST_SIDE for side in size)):
        msg = f"size must be a height and a width from 1 to {_MOST_SIDE}; got {size}."
        raise InputError(msg)
    for key, values in (("colour", ("grey", "keep")), ("broken", ("refuse", "skip"))):
        if getattr(options, key) not in values:
            msg = f"{key} must be {' or '.join(values)}; got {getattr(options, key)!r}."
            raise InputError(msg)


class _Rows:
    """A matrix that is made when the first image is known, and filled by one after the other."""

    def __init__(self, name: str, most: int, options: ImageOptions, limits: ReadLimits) -> None:
        self.name, self.most, self.limits = name, most, limits
        self.keep_colour = options.colour == "keep"
        self.stack, self.n = np.zeros((0, 1, 1), np.uint8), 0

    def add(self, pixels: np.ndarray) -> None:
        """Take an image; grey ones among coloured get three equal channels."""
        pixels = pixels if self.keep_colour else grey(pixels)
        if not self.n:
            self.stack = self._empty(pixels.shape)
        if pixels.ndim > self.stack.ndim - 1:  # the first image with colour
            coloured = self._empty(pixels.shape)
            coloured[: self.n] = self.stack[: self.n, :, :, None]
            self.stack = coloured
        self.stack[self.n] = pixels if pixels.ndim == self.stack.ndim - 1 else pixels[..., None]
        self.n += 1

    def matrix(self) -> tuple[np.ndarray, tuple[int, ...]]:
        """Return the rows (N, D) and the shape of an image."""
        sides = self.stack.shape[1:]
        return self.stack[: self.n].reshape(self.n, math.prod(sides)), sides

    def _empty(self, sides: tuple[int, ...]) -> np.ndarray:
        if self.most * math.prod(sides) > self.limits.n_bytes:
            msg = (
                f"The pixels of “{self.name}” fill more than {self.limits.most}; choose a smaller "
                "size or fewer images."
            )
            raise InputError(msg)
        return np.empty((self.most, *sides), np.uint8)


def _is_image(entry: Entry) -> bool:
    return entry.filename.lower().endswith(ENDINGS)


def _images(
    name: str, entries: list[Entry], options: ImageOptions, report: FileReport, limits: ReadLimits
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Paths and pixels in natural order; the report receives what was skipped and resized."""
    entries = [entry for entry in entries if not is_hidden(entry.filename)]
    candidates = [entry for entry in entries if _is_image(entry)]
    others = [entry.filename for entry in entries if not _is_image(entry)]
    report.update(files=len(entries), skipped=others, colour=0)
    paths = [parts(entry.filename) for entry in candidates]
    first = None
    for i in naming.in_order(paths):
        label = shortened(candidates[i].filename)
        try:
            pixels = decode(candidates[i].load(), label, options.size, limits)
        except NotAnImageError as error:
            if options.broken == "refuse":
                msg = f"“{label}” in “{name}” is not an image; take it out, or skip such files."
                raise InputError(msg, report) from error
            report["skipped"].append(candidates[i].filename)
            continue
        report["colour"] += pixels.ndim == 3
        first = first or (label, pixels.shape)
        _check_same_size(first, (label, pixels.shape), report)
        yield paths[i], pixels


def _check_same_size(
    first: tuple[str, tuple[int, ...]], other: tuple[str, tuple[int, ...]], report: FileReport
) -> None:
    if first[1][:2] != other[1][:2]:
        sizes = " and ".join(f"“{label}” has {w} x {h}" for label, (h, w, *_) in (first, other))
        report["option"] = f"size=[{first[1][0]},{first[1][1]}]"  # that would do
        msg = f"The images differ in size ({sizes}); choose a size to bring all of them to."
        raise InputError(msg, report)


READER = Reader(ImageOptions, read, read_many)
