"""Images as one data set, from a zip or many files: one row per page, classes from names."""

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data import files as uploads
from appca.data.dataset import Dataset, natural
from appca.data.files import LIMITS, Files, Reader, ReadLimits
from appca.data.readers.arrays import build
from appca.data.readers.intake import Beside, FileReport, Upload
from appca.words import InputError, counted, refuse_if, shortened

if TYPE_CHECKING:
    from PIL import Image

# obj1__35, cat_07, tree-3 -> class and number; then cat07 -> class and number
_CLASS_AND_NUMBER = (
    re.compile(r"(?P<class>.*[^\s_.-])[\s_.-]+\(?(?P<number>\d+)\)?"),
    re.compile(r"(?P<class>.*?[^\d\s_.-])[\s_.-]*\(?(?P<number>\d+)\)?"),
)
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")  # none that runs programs
_PAGED = ("GIF", "TIFF", "WEBP", "PNG")  # formats with several pages or frames
_SUBFILE, _PHOTOMETRIC, _SAMPLES = 254, 262, 339  # TIFF tags
_DEEP = ("I;16", "I;16B", "I;16L", "I", "F")  # modes with more than 256 grey levels
_HIDDEN = 32  # minimum contrast between ink and background, in grey levels
_MOST_SIDE = 4096
_CHOICES = {"colour": ("grey", "keep"), "classes": ("auto", "none"), "broken": ("refuse", "skip")}
PathParts = tuple[str, ...]
Entry = tuple[str, Callable[[], bytes]]


class NotAnImageError(Exception):
    """The bytes are not an image of a known format."""


class ImageOptions(NamedTuple):
    """How to read images."""

    size: tuple[int, int] | None = None  # (h, w) to resize to; None requires equal sizes
    colour: str = "grey"  # or "keep" colours
    classes: str = "auto"  # or "none": see `labels_of`
    broken: str = "refuse"  # or "skip" unreadable files
    missing: str = "refuse"  # or "model", "mean", "drop"


class Page(NamedTuple):
    """An image, (h, w) if grey, else (h, w, 3), with its opacity (h, w)."""

    pixels: np.ndarray
    alpha: np.ndarray | None = None  # uint8; None if all is opaque
    is_deep_colour: bool = False  # reduced from 16-bit colours


def read_many(files: Files, options: ImageOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read images from separate files, such as a folder, or from one zip."""
    name, file = files[0]
    title = shortened(name, uploads.LONGEST_NAME)
    if len(files) == 1 and name.lower().endswith(".zip"):
        with uploads.file_stream(title, file, limits) as stream:
            archive, items = uploads.members(title, stream, limits)
            load = partial(uploads.content, title, archive)
            packed = [(item.filename, partial(load, item)) for item in items]
            return dataset_of(title, packed, options, limits)
    msg = f"{len(files):,} files are more than the limit of {limits.members:,}; choose fewer."
    refuse_if(len(files) > limits.members, msg)
    if len(files) > 1:
        folders = [uploads.parts(name)[:-1] for name, _ in files]
        shared = [part for part, *others in zip(*folders, strict=False) if set(others) <= {part}]
        title = shared[-1] if shared else counted(len(files), "image")
    entries = [(name, partial(uploads.file_bytes, name, file, limits)) for name, file in files]
    return dataset_of(title, entries, options, limits)


def dataset_of(
    name: str, entries: Sequence[Entry], options: ImageOptions, limits: ReadLimits
) -> Dataset:
    """Build a data set from images, in natural order of their names."""
    size, choices = options.size, {key: getattr(options, key) for key in _CHOICES}
    msg = f"size must be a height and a width from 1 to {_MOST_SIDE}; got {size}."
    fits = size is None or (len(size) == 2 and 1 <= min(size) <= max(size) <= _MOST_SIDE)
    refuse_if(not fits, msg)
    for key, choice in choices.items():
        msg = f"{key} must be one of {', '.join(_CHOICES[key])}; got {choice!r}."
        refuse_if(choice not in _CHOICES[key], msg)
    entries = [entry for entry in entries if not uploads.is_hidden(entry[0])]
    images = [entry for entry in entries if entry[0].lower().endswith(uploads.ENDINGS)]
    skipped = [name for name, _ in entries if not name.lower().endswith(uploads.ENDINGS)]
    upload = Upload(name, limits, {"unused": {}, "files": len(entries), "skipped": skipped})
    paths, pages = _decoded(upload, images, options)
    needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
    msg = f"“{name}” contains {counted(len(paths), 'image')}; at least {needed} needed, in files "
    msg += f"that end in {', '.join(uploads.ENDINGS)}."
    refuse_if(len(paths) < limits.least_rows, msg, upload.report)
    X, sides, levels = _stacked(pages, upload.report)
    while all(len(path) > 1 for path in paths) and len({path[0] for path in paths}) == 1:
        paths = [path[1:] for path in paths]  # without common folders
    stems = [_stem(path[-1]) for path in paths]
    inner = ["/".join((*path[:-1], stem)) for path, stem in zip(paths, stems, strict=True)]
    whole = ["/".join(path) for path in paths]  # a zip may contain a path twice
    ids = next((ids for ids in (stems, inner) if len(set(ids)) == len(ids)), whole)
    named = Beside(np.array(ids), labels_of(paths, stems) if options.classes == "auto" else {})
    dataset = build(upload, X, named, options.missing, sides)
    dataset.provenance["image_range"] = levels
    return dataset


def _decoded(
    upload: Upload, entries: list[Entry], options: ImageOptions
) -> tuple[list[PathParts], list[Page]]:
    """Return paths and pages in natural order; skipped files are reported."""
    limits, report = upload.limits, upload.report
    paths, pages = list[PathParts](), list[Page]()
    n_bytes, n_paged = 0, 0
    named = [(uploads.parts(name), shortened(name), load) for name, load in entries]
    for path, label, load in sorted(named, key=lambda entry: [natural(part) for part in entry[0]]):
        before = len(pages)
        try:
            for page in decode(load(), label, options.size, limits):
                kept = page if options.colour == "keep" else page._replace(pixels=grey(page.pixels))
                if kept.pixels.shape != page.pixels.shape and np.ptp(page.pixels, axis=2).any():
                    uploads.note(report, "Colours", "read as grey levels; Change keeps them")
                pages.append(kept)
                _check_alike("/".join((paths or [path])[0]), pages[0], label, kept, report)
                n_bytes += kept.pixels.nbytes
                msg = f"The pixels of “{upload.name}” fill more than {limits.most}; choose a "
                msg += "smaller size or fewer images."
                refuse_if(n_bytes > limits.n_bytes, msg)
        except NotAnImageError as error:
            if options.broken == "refuse":
                msg = f"“{label}” in “{upload.name}” is not an image; take it out, or skip such "
                raise InputError(msg + "files.", report) from error
            del pages[before:]
            report["skipped"].append("/".join(path))
        n, (*above, last) = len(pages) - before, path
        n_paged += n > 1
        numbered = [f"{_stem(last)}_{i + 1}.{last.rpartition('.')[2]}" for i in range(n)]
        paths += [(*above, text) for text in (numbered if n > 1 else [last] * n)]
    if n_paged:
        said = f"{counted(n_paged, 'file')} with several pages, each read as an image"
        uploads.note(report, "Pages", said)
    return paths, pages


def _stem(name: str) -> str:
    return name.rsplit(".", 1)[0] or name


def labels_of(paths: list[PathParts], stems: list[str]) -> dict[str, np.ndarray]:
    """Return label columns from folders if they differ, else from names like cat_07."""
    folders = [path[-2] if len(path) > 1 else "" for path in paths]
    if len(set(folders)) > 1:
        labels = {"class": folders, "folder": ["/".join(path[:-2]) for path in paths]}
        is_named = len({re.sub(r"\d", "", stem) for stem in stems}) > 1  # not only numbered
        labels |= {"name": stems} if is_named and 2 * len({*stems}) <= len(stems) else {}
        return {key: np.array(labels[key]) for key in labels if len(set(labels[key])) > 1}
    for form in _CLASS_AND_NUMBER:
        matches = [match for stem in stems if (match := form.fullmatch(stem))]
        classes = [match["class"] for match in matches]
        if len(matches) == len(stems) and 1 < len(set(classes)) < len(classes):
            numbers = [int(match["number"][:15]) for match in matches]
            return {"class": np.array(classes), "number": np.array(numbers)}
    return {}


def decode(
    data: bytes, name: str, size: tuple[int, int] | None, limits: ReadLimits
) -> Iterator[Page]:
    """Yield the pages of a file, resized to `size` (h, w) if given; else raise NotAnImageError."""
    from PIL import Image, ImageOps

    most, msg = min(limits.pixels, limits.n_bytes // 4), ""  # 4 bytes per pixel, with opacity
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            n_pages = getattr(image, "n_frames", 1) if image.format in _PAGED else 1
            for number in range(n_pages):
                if number:
                    image.seek(number)
                tags = getattr(image, "tag_v2", {})
                if n_pages > 1 and tags.get(_SUBFILE, 0) & 1:  # a smaller copy of another page
                    continue
                width, height = image.size
                if width * height > most:
                    msg = f"{width:,} x {height:,} pixels, more than {most / 1e6:,.1f} million"
                    break
                is_deep = image.mode == "RGB" and ";16" in str(image.tile)
                page = _page(ImageOps.exif_transpose(image), tags, size)
                yield page._replace(is_deep_colour=is_deep)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        msg = f"far more than {limits.pixels // 10**6:,} million pixels"
    except Exception as error:  # decoders raise many kinds of exceptions
        raise NotAnImageError(name) from error
    refuse_if(msg, f"“{name}” has {msg}; make it smaller.")


def _page(image: "Image.Image", tags: Mapping[int, Any], size: tuple[int, int] | None) -> Page:
    from PIL import Image

    def resized(layer: Image.Image) -> np.ndarray:
        if size is not None and layer.size != (size[1], size[0]):
            layer = layer.resize((size[1], size[0]), Image.Resampling.LANCZOS)
        return np.asarray(layer)

    if image.mode in _DEEP:
        levels = np.asarray(image)
        if image.mode == "I" and tags.get(_SAMPLES, (2,)) in ((1,), 1):
            levels = levels.view(np.uint32)
        if tags.get(_PHOTOMETRIC) == 0 and levels.dtype.kind == "u":  # zero is white
            levels = np.iinfo(levels.dtype).max - levels
        if size is not None and levels.shape != tuple(size):
            levels = resized(Image.fromarray(levels.astype(np.float32)))
        return Page(levels.astype(levels.dtype.newbyteorder("="), copy=False))
    alpha = None
    if image.has_transparency_data:
        opacity = resized((image := image.convert("RGBA")).getchannel("A"))
        alpha = opacity if opacity.min(initial=255) < 255 else None
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode != "L":
        image = image.convert("RGB")
        red, green, blue = (np.asarray(band) for band in image.split())
        same = np.array_equal(red, green) and np.array_equal(green, blue)
        image = image.getchannel(0) if same else image
    return Page(resized(image), alpha)


def grey(pixels: np.ndarray) -> np.ndarray:
    """Return the luminance (h, w) of an image; grey images are unchanged."""
    from PIL import Image

    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(pixels).convert("L"))


def _check_alike(title: str, first: Page, label: str, page: Page, report: FileReport) -> None:
    (h, w), (h2, w2) = first.pixels.shape[:2], page.pixels.shape[:2]
    if (h, w) != (h2, w2):
        report |= {"option": f"size=[{h},{w}]", "first_size": [h, w]}  # an example
        msg = f"The images differ in size (“{title}” has {w} x {h} and “{label}” has {w2} x {h2}); "
        raise InputError(msg + "choose one size to resize them to.", report)
    msg = f"“{title}” has grey levels of type {first.pixels.dtype} and “{label}” of type "
    msg += f"{page.pixels.dtype}, whose scales differ; save all images with one type."
    refuse_if(first.pixels.dtype != page.pixels.dtype, msg, report)


def _stacked(
    pages: list[Page], report: FileReport
) -> tuple[np.ndarray, tuple[int, ...], list[float]]:
    """Return rows (N, D), the shape of an image, and the values drawn as black and white."""
    is_coloured = any(page.pixels.ndim == 3 for page in pages)
    sides: tuple[int, ...] = pages[0].pixels.shape[:2] + ((3,) if is_coloured else ())
    dtype = pages[0].pixels.dtype
    if dtype.kind in "iu" and dtype != np.uint8:
        exact = max(int(np.abs(page.pixels.astype(np.int64)).max()) for page in pages) <= 1 << 24
        dtype = np.dtype(np.float32 if exact else np.float64)
    grounds = _grounds(pages, report)
    if any(page.is_deep_colour for page in pages):
        uploads.note(report, "Colours", "reduced from 16 to 8 bits")
    X = np.empty((len(pages), math.prod(sides)), dtype)
    for row in range(len(pages)):
        page, pages[row] = pages[row], Page(np.empty(0))
        pixels = page.pixels if page.pixels.ndim == len(sides) else page.pixels[..., None]
        if page.alpha is not None:
            opacity = page.alpha.astype(np.float32) / 255
            opacity = opacity[..., None] if is_coloured else opacity
            pixels = np.rint(pixels * opacity + grounds[row] * (1 - opacity))
        X[row] = np.broadcast_to(pixels, sides).ravel()
    low, high = (0.0, 255.0) if dtype == np.uint8 else (float(np.nanmin(X)), float(np.nanmax(X)))
    if not np.isfinite([low, high]).all() or low == high:
        return X, sides, [0, 1]
    if dtype != np.uint8:
        low = min(low, 0.0) if low < 0.5 * high else low
        uploads.note(report, "Grey levels", f"{low:g} is black and {high:g} is white")
    return X, sides, [low, high]


def _grounds(pages: list[Page], report: FileReport) -> dict[int, int]:
    """Choose grey backgrounds of transparent images, by row, that keep all ink visible."""
    sums = {
        row: (float((grey(page.pixels) * (page.alpha / 255)).sum()), float(page.alpha.sum()) / 255)
        for row, page in enumerate(pages)
        if page.alpha is not None
    }
    if not sums:
        return {}
    inks, amounts = np.array([*sums.values()]).T
    ground = 255 if inks.sum() < 127.5 * amounts.sum() else 0
    hidden = np.abs(inks - ground * amounts) < _HIDDEN * amounts  # too little contrast
    words, odd = {0: "black", 255: "white"}, int(hidden.sum())
    told = f"{words[ground]} in {counted(len(inks), 'image')}"
    told += f", but {words[255 - ground]} in {odd:,} whose ink is {words[ground]}" if odd else ""
    uploads.note(report, "Transparent parts", told)
    return dict(zip(sums, np.where(hidden, 255 - ground, ground).tolist(), strict=True))


READER = Reader(ImageOptions, None, read_many)
