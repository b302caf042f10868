"""Images as one data set, from a zip or many files: a row for each page, classes from names."""

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
    note,
    parts,
    temporary_file,
    unpacked,
)
from appca.data.readers.intake import (
    FileReport,
    left_to_the_model,
    note_quality,
    settle_missing,
)
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
_PAGED = ("GIF", "TIFF", "WEBP", "PNG")  # formats of which each page or frame is an image
_SUBFILE, _PHOTOMETRIC, _SAMPLES = 254, 262, 339  # tags of TIFF
_DEEP = ("I;16", "I;16B", "I;16L", "I", "F")  # modes of more than 256 grey levels
_HIDDEN = 32  # grey levels by which ink must differ from the ground under it
_MOST_SIDE = 4096


class ImageOptions(NamedTuple):
    """How to read images."""

    size: tuple[int, int] | None = None  # (h, w) to bring all to; None refuses different sizes
    colour: str = "grey"  # or "keep": three values per pixel when at least one image has colour
    classes: str = "auto"  # or "folder", "name", "none": see `labels_of`
    pattern: str | None = None  # for names, such as {class}__{n}; each part becomes a label column
    broken: str = "refuse"  # or "skip": what to do with files that end like images and are none
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN of float images


class Entry(NamedTuple):
    """One file, not yet read."""

    filename: str
    load: Callable[[], bytes]


class NotAnImageError(Exception):
    """The bytes are no image of a known format."""


class Page(NamedTuple):
    """One image, (h, w) where it has no colour, else (h, w, 3), with its opacity (h, w)."""

    pixels: np.ndarray
    alpha: np.ndarray | None = None  # uint8; None where all is opaque
    is_deep_colour: bool = False  # its colours had 16 bits, of which 8 are left


def decode(
    data: bytes, name: str, size: tuple[int, int] | None, limits: ReadLimits
) -> Iterator[Page]:
    """Yield the pages of an image file, upright as its maker held it, stretched to `size` (h, w).

    Pixels are uint8, or uint16, int32, uint32 or float32 where the file has more than 256 grey
    levels. Raises NotAnImageError when nothing can be decoded, and InputError when the image has
    more pixels than allowed; `name` is for its sentence.
    """
    from PIL import Image, ImageOps

    too_big = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            n_pages = getattr(image, "n_frames", 1) if image.format in _PAGED else 1
            for number in range(n_pages):
                if number:
                    image.seek(number)
                tags = getattr(image, "tag_v2", {})
                if n_pages > 1 and tags.get(_SUBFILE, 0) & 1:  # a smaller copy of another page
                    continue
                _check_pixels(image.size, name, limits)
                is_deep = image.mode == "RGB" and ";16" in str(image.tile)
                page = _page(ImageOps.exif_transpose(image), tags, size)
                yield page._replace(is_deep_colour=is_deep)
    except InputError:
        raise
    except too_big as error:
        most = limits.pixels / 1e6
        msg = f"“{name}” has far more than {most:,.0f} million pixels; make it smaller."
        raise InputError(msg) from error
    except Exception as error:  # decoders fail in as many ways as there are formats
        raise NotAnImageError(name) from error


def _check_pixels(size: tuple[int, int], name: str, limits: ReadLimits) -> None:
    width, height = size
    if 4 * width * height > limits.n_bytes or width * height > limits.pixels:  # with opacity
        most = min(limits.pixels, limits.n_bytes // 4) / 1e6
        msg = (
            f"“{name}” has {width:,} x {height:,} pixels, more than {most:,.1f} million; make it "
            "smaller."
        )
        raise InputError(msg)


def _page(image: "Image.Image", tags: Mapping[int, Any], size: tuple[int, int] | None) -> Page:
    """Bring any mode to numbers."""
    from PIL import Image

    if image.mode in _DEEP:
        grey = np.asarray(image)
        if image.mode == "I" and tags.get(_SAMPLES, (2,)) in ((1,), 1):
            grey = grey.view(np.uint32)
        if tags.get(_PHOTOMETRIC) == 0 and grey.dtype.kind == "u":  # white is zero
            grey = np.iinfo(grey.dtype).max - grey
        if size is not None and grey.shape != tuple(size):
            floats = Image.fromarray(grey.astype(np.float32))
            grey = np.asarray(floats.resize((size[1], size[0]), Image.Resampling.LANCZOS))
        return Page(grey.astype(grey.dtype.newbyteorder("="), copy=False))
    alpha = None
    if image.has_transparency_data:
        image = image.convert("RGBA")
        alpha = image.getchannel("A")
    if image.mode not in ("L", "1"):
        image = image.convert("RGB")
        red, green, blue = (np.asarray(image.getchannel(band)) for band in range(3))
        same = np.array_equal(red, green) and np.array_equal(green, blue)
        image = image.getchannel(0) if same else image
    image = image.convert("L") if image.mode == "1" else image
    shapes = [image] if alpha is None else [image, alpha]
    if size is not None and image.size != (size[1], size[0]):
        shapes = [each.resize((size[1], size[0]), Image.Resampling.LANCZOS) for each in shapes]
    pixels, *opacity = (np.asarray(each) for each in shapes)
    opacity = [each for each in opacity if each.min(initial=255) < 255]
    return Page(pixels, opacity[0] if opacity else None)


def grey(pixels: np.ndarray) -> np.ndarray:
    """Return luminance (h, w) of an image; grey stays as it is."""
    from PIL import Image

    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(pixels).convert("L"))


def read_many(files: Files, options: ImageOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read images that came as files of their own, such as those of a folder, or as one zip.

    The names may hold folders; they are never used as paths. Rows are in natural order of the
    names; each page of a TIFF file and each frame of a GIF is one.
    """
    name, file = files[0]
    if len(files) == 1 and name.lower().endswith(".zip"):
        title = shortened(name, LONGEST_NAME)
        with file_stream(title, file, limits) as stream:
            archive, items = members(title, stream, limits)
            packed = [
                Entry(item.filename, partial(content, title, archive, item)) for item in items
            ]
            return dataset_of(title, packed, options, limits)
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
    if len(names) == 1:
        return shortened(names[0], LONGEST_NAME)
    folders = [parts(name)[:-1] for name in names]
    shared = [part for part, *others in zip(*folders, strict=False) if set(others) <= {part}]
    return shared[-1] if shared else counted(len(names), "image")


def dataset_of(
    name: str, entries: list[Entry], options: ImageOptions, limits: ReadLimits
) -> Dataset:
    """Make a data set of images, in natural order of their names.

    ``report["skipped"]`` names the files that were left out.
    """
    size = options.size
    if size is not None and (len(size) != 2 or not all(1 <= side <= _MOST_SIDE for side in size)):
        msg = f"size must be a height and a width from 1 to {_MOST_SIDE}; got {size}."
        raise InputError(msg)
    for key, values in (("colour", ("grey", "keep")), ("broken", ("refuse", "skip"))):
        if getattr(options, key) not in values:
            msg = f"{key} must be {' or '.join(values)}; got {getattr(options, key)!r}."
            raise InputError(msg)
    report: FileReport = {}
    paths, pages = _decoded(name, entries, options, report, limits)
    if len(paths) < limits.least_rows:
        needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
        msg = (
            f"“{name}” holds {counted(len(paths), 'image')}; at least {needed} needed, in files "
            f"that end in {', '.join(ENDINGS)}."
        )
        raise InputError(msg, report)
    X, sides, levels = _stacked(name, paths, pages, report)
    report.update(rows=len(X), columns=X.shape[1], image_shape=sides)
    names = NumberedNames("pixel", X.shape[1])
    gaps = left_to_the_model(X, options.missing)
    X, rows = settle_missing(X, names, options.missing, report, limits.least_rows)
    note_quality(X, names, report, limits.least_rows)
    paths = without_root([paths[row] for row in rows.tolist()])
    return Dataset(
        name=Path(name).stem or name,
        X=X,
        ids=np.array(ids_of(paths)),
        labels=labels_of(paths, options.classes, options.pattern),
        image_shape=sides,
        provenance={"source": "file", "files": [name], "image_range": levels, "report": report},
        missing=gaps,
        least_rows=limits.least_rows,
    )


def _decoded(
    name: str, entries: list[Entry], options: ImageOptions, report: FileReport, limits: ReadLimits
) -> tuple[list[PathParts], list[Page]]:
    """Return paths and pages in natural order; the report receives what was skipped."""
    entries = [entry for entry in entries if not is_hidden(entry.filename)]
    candidates: list[tuple[PathParts, Entry]] = []
    others: list[str] = []
    for entry in entries:
        if entry.filename.lower().endswith(ENDINGS):
            candidates.append((parts(entry.filename), entry))
        else:
            others.append(entry.filename)
    report.update(files=len(entries), skipped=others, colour=0)
    candidates.sort(key=lambda named: [natural(part) for part in named[0]])
    paths: list[PathParts] = []
    pages: list[Page] = []
    n_bytes, n_paged = 0, 0
    for path, entry in candidates:
        label, before = shortened(entry.filename), len(pages)
        try:
            for page in decode(entry.load(), label, options.size, limits):
                report["colour"] += page.pixels.ndim == 3
                kept = page if options.colour == "keep" else page._replace(pixels=grey(page.pixels))
                _check_alike(label, kept, paths[:1], pages[:1], report)
                pages.append(kept)
                n_bytes += kept.pixels.nbytes
                if n_bytes > limits.n_bytes:
                    msg = (
                        f"The pixels of “{name}” fill more than {limits.most}; choose a smaller "
                        "size or fewer images."
                    )
                    raise InputError(msg)
        except NotAnImageError as error:
            if options.broken == "refuse":
                msg = f"“{label}” in “{name}” is not an image; take it out, or skip such files."
                raise InputError(msg, report) from error
            del pages[before:]
            report["skipped"].append(entry.filename)
        n = len(pages) - before
        n_paged += n > 1
        *above, last = path
        numbered = [f"{_stem(last)}_{i + 1}.{last.rpartition('.')[2]}" for i in range(n)]
        paths += [(*above, text) for text in (numbered if n > 1 else [last] * n)]
    if n_paged:
        note(report, "Pages", f"{counted(n_paged, 'file')} of several; each page is an image")
    return paths, pages


def _check_alike(
    label: str, page: Page, path: list[PathParts], first: list[Page], report: FileReport
) -> None:
    """Refuse another size or depth than that of the first image."""
    if not first:
        return
    (of,), title = first, "/".join(path[0]) if path else label
    if of.pixels.shape[:2] != page.pixels.shape[:2]:
        (h, w), (h2, w2) = of.pixels.shape[:2], page.pixels.shape[:2]
        report["option"] = f"size=[{h},{w}]"  # that would do
        msg = (
            f"The images differ in size (“{title}” has {w} x {h} and “{label}” has {w2} x {h2}); "
            "choose a size to bring all of them to."
        )
        raise InputError(msg, report)
    if of.pixels.dtype != page.pixels.dtype:
        msg = (
            f"“{title}” has grey levels of type {of.pixels.dtype} and “{label}” of type "
            f"{page.pixels.dtype}, which have no scale in common; save all of them alike."
        )
        raise InputError(msg, report)


def _stacked(
    name: str, paths: list[PathParts], pages: list[Page], report: FileReport
) -> tuple[np.ndarray, tuple[int, ...], list[float]]:
    """Return the rows (N, D), the shape of an image, and the values drawn as black and white.

    Grey levels beyond 256 stay as they are, on one scale. The ground under transparent parts is
    white where ink is dark, else black. Empties `pages`.
    """
    is_coloured = any(page.pixels.ndim == 3 for page in pages)
    sides: tuple[int, ...] = pages[0].pixels.shape[:2] + ((3,) if is_coloured else ())
    dtype = pages[0].pixels.dtype
    if dtype.kind in "iu" and dtype != np.uint8:
        exact = max(int(np.abs(page.pixels.astype(np.int64)).max()) for page in pages) <= 1 << 24
        dtype = np.dtype(np.float32 if exact else np.float64)
    grounds = _grounds(pages, report)
    if any(page.is_deep_colour for page in pages):
        note(report, "Colours", "of 16 bits are read with 8")
    X = np.empty((len(pages), math.prod(sides)), dtype)
    for row in range(len(pages)):
        page, pages[row] = pages[row], Page(np.empty(0))
        pixels = page.pixels
        if page.alpha is not None:
            opacity = page.alpha.astype(np.float32)[..., None][..., : pixels.ndim] / 255
            opacity = opacity if pixels.ndim == 3 else opacity[..., 0]
            pixels = np.rint(pixels * opacity + grounds[row] * (1 - opacity))
        wide = is_coloured and pixels.ndim == 2
        X[row] = (np.repeat(pixels[..., None], 3, axis=2) if wide else pixels).ravel()
    if dtype == np.uint8:
        return X, sides, [0, 255]
    low, high = float(np.nanmin(X)), float(np.nanmax(X))
    if np.isfinite([low, high]).all() and low < high:
        low = min(low, 0.0) if low < 0.5 * high else low
        note(report, "Grey levels", f"{low:g} is drawn black and {high:g} white")
        return X, sides, [low, high]
    return X, sides, [0, 1]


def _grounds(pages: list[Page], report: FileReport) -> dict[int, int]:
    """Choose the grey value that lies under transparent parts, by row, so that all ink is seen."""
    ink = {}
    for row, page in enumerate(pages):
        if page.alpha is not None:
            weights = page.alpha.astype(np.float64)
            ink[row] = (float((grey(page.pixels) * weights).sum()), float(weights.sum()))
    total, weight = (sum(each) for each in zip(*ink.values(), strict=True)) if ink else (0, 0)
    ground = 255 if total < 127.5 * weight else 0
    grounds = {}
    for row, (value, amount) in ink.items():
        is_hidden_there = amount and abs(value / amount - ground) < _HIDDEN
        grounds[row] = 255 - ground if is_hidden_there else ground
    if ink:
        words = {0: "black", 255: "white"}
        odd = sum(value != ground for value in grounds.values())
        but = f", but {words[255 - ground]} in {odd:,} whose ink is {words[ground]}" if odd else ""
        note(report, "Transparent parts", f"{words[ground]} in {counted(len(ink), 'image')}{but}")
    return grounds


def opened_zip(
    files: Files, limits: ReadLimits, kind_of: Callable[[str], str | None]
) -> tuple[Files, list[str]]:
    """Return what a zip without images holds as files of their own, and the names of the others.

    Other files are returned as they are.
    """
    name, file = files[0]
    lower = name.lower()
    if len(files) > 1 or not lower.endswith(".zip") or lower.endswith(".zarr.zip"):
        return files, []
    with file_stream(name, file, limits) as stream:
        archive, items = members(name, stream, limits, may_be_inside=(".gz", ".npz"))
        if any(item.filename.lower().endswith(ENDINGS) for item in items):
            return files, []
        ends = {path.rpartition("/")[2] for path in archive.namelist()}
        if ends & {".zgroup", ".zarray", "zarr.json"}:
            return ((f"{name[:-4]}.zarr.zip", file),), []
        wanted = [item for item in items if kind_of(item.filename) is not None]
        if not wanted:
            return files, []
        inside = [
            (
                "/".join(parts(item.filename)),
                temporary_file(name, unpacked(name, archive, item), limits),
            )
            for item in wanted
        ]
        left_out = {item.filename for item in items} - {item.filename for item in wanted}
        return inside, sorted(left_out)


READER = Reader(ImageOptions, None, read_many)
