"""Images as one data set, from a zip or many files: one row per image, its class from its name."""

import io
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.data.dataset import Dataset, NumberedNames, natural
from appca.data.files import (
    ENDINGS,
    LIMITS,
    LONGEST_NAME,
    File,
    Files,
    Reader,
    ReadLimits,
    content,
    file_stream,
    is_hidden,
    members,
    parts,
)
from appca.data.readers.intake import FileReport, note_quality
from appca.words import InputError, counted, shortened

if TYPE_CHECKING:
    from PIL import Image

CLASS_SOURCES = ("auto", "folder", "name", "none")
# obj1__35, cat_07, tree-3 -> class and number; then cat07 -> class and number
_PATTERNS = (
    r"(?P<class>.*[^\s_.-])[\s_.-]+\(?(?P<number>\d+)\)?",
    r"(?P<class>.*?[^\d\s_.-])[\s_.-]*\(?(?P<number>\d+)\)?",
)
_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")
_ENDING = re.compile(r"\.(\w{1,5}|\*)$")  # of a file, which a template may name
_COUNTS = ("n", "number", "index", "view")
PathParts = tuple[str, ...]


def in_order(paths: list[PathParts]) -> list[int]:
    """Order of the files by folder and name, numbers counted as numbers."""
    return sorted(range(len(paths)), key=lambda i: [natural(part) for part in paths[i]])


def without_root(paths: list[PathParts]) -> list[PathParts]:
    """Take off the folders all files share."""
    shared = 0
    while (
        all(len(path) > shared + 1 for path in paths) and len({path[shared] for path in paths}) == 1
    ):
        shared += 1
    return [path[shared:] for path in paths]


def ids_of(paths: list[PathParts]) -> list[str]:
    """Make unique ids: the file's name without its ending if that suffices, else the path."""
    stems = [_stem(path[-1]) for path in paths]
    inner = ["/".join((*path[:-1], stem)) for path, stem in zip(paths, stems, strict=True)]
    for ids in (stems, inner):
        if len(set(ids)) == len(ids):
            return ids
    whole = ["/".join(path) for path in paths]
    seen: dict[str, int] = {}
    for i, text in enumerate(whole):  # a zip may hold one name twice
        seen[text] = seen.get(text, 0) + 1
        whole[i] = text if seen[text] == 1 else f"{text} ({seen[text]})"
    return whole


def labels_of(paths: list[PathParts], source: str, pattern: str | None) -> dict[str, np.ndarray]:
    """Return label columns from the folders or names of files.

    `paths` have the folders and the name of each file, without the folders all share. The source
    "auto" takes folders when there are two or more, else names when they fit a pattern.

    A `pattern` is for the whole name without its ending. ``{class}__{n}`` is a template: each name
    in braces stands for some text, or for digits if it is n, number, index or view, and becomes a
    column; * stands for anything; with a / the folders count, too. Anything else is a regular
    expression; each named group becomes a column, a single unnamed one the class.
    """
    if source not in CLASS_SOURCES:
        msg = f"classes must be one of {', '.join(CLASS_SOURCES)}; got {source!r}."
        raise InputError(msg)
    if source == "none":
        return {}
    if pattern is not None:
        return _from_pattern(paths, pattern)
    folders = _from_folders(paths)
    if source == "folder" and not folders:
        msg = "All images are in one folder, so folders name no classes; use their names or none."
        raise InputError(msg)
    if folders and source != "name":
        return folders
    return _from_names(paths, source == "name")


def _from_folders(paths: list[PathParts]) -> dict[str, np.ndarray]:
    inner = [path[-2] if len(path) > 1 else "" for path in paths]
    if len(set(inner)) < 2:
        return {}
    labels = {"class": np.array(inner)}
    outer = ["/".join(path[:-2]) for path in paths]
    if len(set(outer)) > 1:
        labels["folder"] = np.array(outer)
    return labels


def _from_names(paths: list[PathParts], required: bool) -> dict[str, np.ndarray]:
    stems = [_stem(path[-1]) for path in paths]
    for pattern in _PATTERNS:
        matches = [match for stem in stems if (match := re.fullmatch(pattern, stem))]
        if len(matches) == len(stems):
            classes = [match["class"] for match in matches]
            if 1 < len(set(classes)) < len(classes):
                return {
                    "class": np.array(classes),
                    "number": np.array([int(match["number"][:15]) for match in matches]),
                }
    if required:
        msg = (
            f"File names such as “{stems[0][:40]}” do not start with a class and a number; "
            "name a pattern, or put each class into a folder of its own."
        )
        raise InputError(msg)
    return {}


def _from_pattern(paths: list[PathParts], pattern: str) -> dict[str, np.ndarray]:
    compiled = _compiled(pattern)
    names = list(compiled.groupindex) or ["class"] * bool(compiled.groups)
    if not names:
        msg = f"The pattern {pattern!r} has no group or {{name}}; write {{class}}__{{n}} or (.+)_.*"
        raise InputError(msg)
    deep = "/" in pattern
    texts = ["/".join((*path[:-1], _stem(path[-1]))) if deep else _stem(path[-1]) for path in paths]
    matches = [match for text in texts if (match := compiled.fullmatch(text))]
    if len(matches) < len(texts):
        odd = next(text for text in texts if not compiled.fullmatch(text))
        msg = f"The pattern {pattern!r} does not fit the file name “{odd[:40]}”; widen it."
        raise InputError(msg)
    if not compiled.groupindex:
        return {"class": _column([match[1] for match in matches])}
    return {name: _column([match[name] for match in matches]) for name in names}


def _compiled(pattern: str) -> re.Pattern[str]:
    expression = _template(pattern) if _FIELD.search(pattern) else pattern
    try:
        return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"The pattern {pattern!r} is not a regular expression ({error}); correct it."
        raise InputError(msg) from error


def _template(pattern: str) -> str:
    """Turn {class}__{n} into a regular expression."""
    plain = _ENDING.sub("", pattern)
    pieces, last = [], 0
    for field in _FIELD.finditer(plain):
        body = r"\d+" if field[1] in _COUNTS else "[^/]+"
        pieces += [_literal(plain[last : field.start()]), f"(?P<{field[1]}>{body})"]
        last = field.end()
    return "".join([*pieces, _literal(plain[last:])])


def _literal(text: str) -> str:
    return "[^/]*".join(re.escape(part) for part in text.split("*"))


def _column(values: list[str | None]) -> np.ndarray:
    texts = [value or "" for value in values]
    whole = all(re.fullmatch(r"\d{1,15}", text) for text in texts)
    return np.array([int(text) for text in texts]) if whole else np.array(texts)


def _stem(name: str) -> str:
    return name.rsplit(".", 1)[0] or name


_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")  # no format that runs programs


class NotAnImageError(Exception):
    """The bytes are no image of a known format."""


def decode(data: bytes, name: str, size: tuple[int, int] | None, limits: ReadLimits) -> np.ndarray:
    """Decode an image; upright as its maker held it, transparent parts black, first frame only.

    It is uint8, (h, w) when the image has no colour, else (h, w, 3), stretched to `size` (h, w) if
    one is given; `name` is for sentences. Raises NotAnImageError when nothing can be decoded, and
    InputError when the image has more pixels than allowed.
    """
    from PIL import Image, ImageOps

    too_big = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            _check_pixels(image.size, name, limits)
            plain = _plain(ImageOps.exif_transpose(image))
    except InputError:
        raise
    except too_big as error:
        most = limits.pixels / 1e6
        msg = f"“{name}” has far more than {most:,.0f} million pixels; make it smaller."
        raise InputError(msg) from error
    except Exception as error:  # decoders fail in as many ways as there are formats
        raise NotAnImageError(name) from error
    if size is not None and plain.size != (size[1], size[0]):
        plain = plain.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    return np.asarray(plain)


def grey(pixels: np.ndarray) -> np.ndarray:
    """Return luminance (h, w) of an image; grey stays as it is."""
    from PIL import Image

    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(pixels).convert("L"))


def _check_pixels(size: tuple[int, int], name: str, limits: ReadLimits) -> None:
    width, height = size
    if 4 * width * height > limits.n_bytes:  # colours and opacity, as it is unpacked
        msg = (
            f"“{name}” unpacks to {width:,} x {height:,} pixels in {4e-6 * width * height:,.0f} "
            f"MB, more than {limits.most}; make it smaller."
        )
        raise InputError(msg)
    if width * height > limits.pixels:
        msg = (
            f"“{name}” has {width:,} x {height:,} pixels, more than "
            f"{limits.pixels / 1e6:,.0f} million; make it smaller."
        )
        raise InputError(msg)


def _plain(image: "Image.Image") -> "Image.Image":
    """Bring any mode to L or, where there is colour, RGB."""
    from PIL import Image

    if image.mode in ("L", "1"):
        return image.convert("L")
    if image.mode.startswith("I;16") or image.mode == "I":  # 16-bit grey: keep the upper byte
        return Image.fromarray((np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "P"):
        opaque = image.convert("RGBA")
        image = Image.new("RGBA", image.size, (0, 0, 0, 255))
        image.alpha_composite(opaque)  # in place: a large picture is held as seldom as can be
        del opaque
    image = image.convert("RGB")
    red, green, blue = (np.asarray(image.getchannel(band)) for band in range(3))
    coloured = not (np.array_equal(red, green) and np.array_equal(green, blue))
    return image if coloured else image.convert("L")


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
    paths = without_root(paths)
    return Dataset(
        name=Path(name).stem or name,
        X=X,
        ids=np.array(ids_of(paths)),
        labels=labels_of(paths, options.classes, options.pattern),
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
    for i in in_order(paths):
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
