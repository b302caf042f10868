"""How files are read, as chips: each says what was detected or chosen, and offers the rest."""

from collections.abc import Callable
from typing import Any, NamedTuple

from appca.words.wording import counted

Options = dict[str, Any]  # of a reader
Report = dict[str, Any]  # of files, as the readers make it
AUTO = "auto"  # leaves an option to its reader
MISSING = {"model": "Fill from the model", "mean": "Column mean", "drop": "Drop the rows"}
ENCODINGS = {
    "utf-8": "UTF-8",
    "cp1252": "Western European (cp1252)",
    "latin-1": "Latin-1",
    "utf-16": "UTF-16",
}
SEPARATORS = {",": "Comma", ";": "Semicolon", "\t": "Tabulator", "|": "Bar |", " ": "Blanks"}
DECIMALS = {".": "Decimal point", ",": "Decimal comma"}
HEADERS = {True: "First line is a header", False: "No header"}
SAMPLES = {False: "Rows are samples", True: "Columns are samples"}
CLASSES = {
    AUTO: "Classes detected",
    "folder": "Classes from folders",
    "name": "Classes from file names",
    "none": "No classes",
}
COLOURS = {"grey": "Grey", "keep": "Colour"}
BROKEN = {"refuse": "Every file is an image", "skip": "Skip files that are no images"}
SIZES: dict[Any, str] = {AUTO: "Sizes as they are"} | {
    (n, n): f"{n} × {n}" for n in (16, 28, 32, 64, 128, 256)
}
_OF_THE_ROWS = ("array", "transpose")  # with other rows, an image's shape is another


class Chip(NamedTuple):
    """One option of a reader."""

    name: str
    label: str  # for those who hear the page
    choices: dict[Any, str]  # value to words
    now: Any  # None, where it is no choice, asks for one


def chips(kind: str | None, report: Report, options: Options) -> list[Chip]:
    """Return what can be changed about how files of a kind are read.

    `report` is of files read with `options`.
    """
    listed = _KINDS[kind](report, options) if kind in _KINDS else []
    if report.get("missing"):
        gaps = counted(report["n_missing"], "cell")
        choices = {how: f"{gaps} missing: {words.lower()}" for how, words in MISSING.items()}
        listed.append(Chip("missing", "Missing values", choices, options.get("missing")))
    return listed


def changed(options: Options, name: str, value: object) -> Options:
    """Return options of which one is changed; AUTO takes it away."""
    dropped = {name, "image_shape", "by_column"} if name in _OF_THE_ROWS else {name}
    kept = {key: kept for key, kept in options.items() if key not in dropped}
    return kept if value == AUTO else kept | {name: value}


def _table(report: Report, options: Options) -> list[Chip]:
    def chip(name: str, label: str, choices: dict[Any, str]) -> Chip:
        now = options.get(name, report.get(name))
        said = "UTF-8" if now == "utf-8-sig" else str(now).upper()
        return Chip(name, label, {now: said} | choices if now else choices, now)

    return [
        chip("encoding", "Encoding", ENCODINGS),
        chip("separator", "Between cells", SEPARATORS),
        chip("decimal", "Decimal sign", DECIMALS),
        chip("header", "First line", HEADERS),
    ]


def _arrays(report: Report, options: Options) -> list[Chip]:
    arrays = report.get("arrays", {})
    if len(arrays) < 2:
        return []
    choices = {path: f"{_part(path)} ({size})" for path, size in arrays.items()}
    now = options.get("array", report.get("array"))
    return [Chip("array", "The array with the rows", choices, now)]


def _part(path: str) -> str:
    """Name a part of annotated data, such as layers/counts; other paths stay as they are."""
    place, _, name = path.partition("/")
    return f"{name}, of {place}" if place in ("layers", "obsm") else path


def _mat(report: Report, options: Options) -> list[Chip]:
    samples = Chip("transpose", "Samples", SAMPLES, bool(options.get("transpose")))
    return [*_arrays(report, options), samples]


def _annotated(report: Report, options: Options) -> list[Chip]:
    listed = _arrays(report, options)
    marked = report.get("marked")
    if marked or "mask_var" in options:
        only = f"Only variables marked {marked['column']}" if marked else "Only marked variables"
        choices = {AUTO: only, None: "All variables"}
        listed.append(Chip("mask_var", "Variables", choices, options.get("mask_var", AUTO)))
    return listed


def _images(report: Report, options: Options) -> list[Chip]:
    del report
    size = options.get("size", AUTO)
    return [
        Chip("size", "Size", SIZES, size if size == AUTO else tuple(size)),
        Chip("colour", "Colour", COLOURS, options.get("colour", "grey")),
        Chip("classes", "Classes", CLASSES, options.get("classes", AUTO)),
        Chip("broken", "Other files", BROKEN, options.get("broken", "refuse")),
    ]


_KINDS: dict[str, Callable[[Report, Options], list[Chip]]] = {
    "csv": _table,
    "npz": _arrays,
    "mat": _mat,
    "hdf5": _arrays,
    "h5ad": _annotated,
    "zarr": _annotated,
    "images": _images,
}
