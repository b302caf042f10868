"""What a person can choose about uploaded files before they become data, one form for each kind."""

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from appca.ui.arrivals.role_editor import Report, offer_labels, roles
from appca.ui.parts.widgets import one_of

MISSING = {"model": "Fill from the model", "mean": "Column mean", "drop": "Drop the rows"}
LEFT_TO_THE_MODEL = (
    "Adaptive PPCA and PPCA are fitted around the gaps; UMAP, PCA and other models read the "
    "column's mean there."
)
ENCODINGS = {
    None: "Find out",
    "utf-8": "UTF-8",
    "cp1252": "Western European (cp1252)",
    "latin-1": "Latin-1",
    "utf-16": "UTF-16",
}
DECIMALS = {None: "Find out", ".": "Point", ",": "Comma"}
SEPARATORS = {
    None: "Find out",
    ",": "Comma",
    ";": "Semicolon",
    "\t": "Tabulator",
    "|": "Bar |",
    " ": "Blanks",
}
HEADERS = {None: "Find out", True: "Names of the columns", False: "Numbers"}
CLASSES = {"auto": "Find out", "folder": "The folder", "name": "The file's name", "none": "Nothing"}
MOST_SIDE = 4096
Options = dict[str, Any]  # of a reader
KEPT: Any = {"persist_state": "session"}  # the form shows what is in force on every visit
_Choice = TypeVar("_Choice")
Look = Callable[[Options], Report]  # reads the files with these options, and says what is there


def form_of(kind: str | None, key: str, look: Look, begun: Options) -> Options:
    """Draw the choices that files of a kind call for, and return the reader's options.

    `kind` is the reader, `key` part of the widgets' keys, `begun` the options at first.
    """
    if kind is None:
        return {}
    st.session_state.setdefault(f"begun-{key}", begun.get("roles", {}))
    return _FORMS[kind](key, look)


def _table(key: str, look: Look) -> Options:
    return _columns(key, look, **_writing(key))


def _columns(key: str, look: Look, **options: Any) -> Options:
    begun = st.session_state[f"begun-{key}"]
    options["missing"] = st.session_state.get(f"missing-{key}", "model")
    chosen = roles(key, look(options | ({"roles": begun} if begun else {})), begun)
    options |= {"roles": chosen} if chosen else {}
    offer_labels(key, look(options))
    return options | _missing(key, look(options))


def _writing(key: str) -> Options:
    """Draw how a text table is written; what is left open is found out."""
    boxes: dict[str, tuple[str, dict[Any, str]]] = {
        "encoding": ("Encoding", ENCODINGS),
        "separator": ("Between cells", SEPARATORS),
        "decimal": ("Decimal sign", DECIMALS),
        "header": ("First line", HEADERS),
    }
    options: Options = {}
    for place, (name, (label, names)) in zip(st.columns(4), boxes.items(), strict=True):
        with place:
            options[name] = _choice(label, names, f"{name}-{key}")
    return {name: value for name, value in options.items() if value is not None}


def _arrays(key: str, look: Look) -> Options:
    return _with_sides(key, look, **_which(key, look))


def _mat(key: str, look: Look) -> Options:
    options = _which(key, look)
    if st.toggle("Each column is one object", key=f"transpose-{key}", **KEPT):
        options["transpose"] = True
    options = _with_sides(key, look, **options)
    if "image_shape" in options and not st.toggle(
        "Pixels go down the image first, as in MATLAB", value=True, key=f"by_column-{key}", **KEPT
    ):
        options["by_column"] = False
    return options


def _annotated(key: str, look: Look) -> Options:
    """Draw which values of annotated data are fitted, and which columns of obs are labels."""
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        options = _which(key, look, "Values", _part_of_annotated)
    report = look(options | {"missing": "model"})
    if report.get("marked"):
        label = f"Only the {report['columns']:,} variables marked in {report['marked']['column']}"
        if not right.toggle(label, value=True, key=f"marked-{key}", **KEPT):
            options["mask_var"] = None
    columns = report.get("obs", [])
    if columns:
        labels = st.multiselect(
            "Labels, from obs",
            columns,
            default=columns,
            key=f"labels-{key}",
            help="The picture begins with the colours of the first. To move a label to the end, "
            "remove it and add it again.",
            **KEPT,
        )
        options |= {} if labels == columns else {"labels": labels}
    return _gaps(key, look, options)


def _part_of_annotated(path: str) -> str:
    place, _, name = path.partition("/")
    return f"{name}, of {place}" if name else path


def _which(
    key: str,
    look: Look,
    label: str = "The array with the rows",
    title: Callable[[str], str] = str,
) -> Options:
    """Draw the choice of the array with the rows where there are several."""
    report = look({"missing": "model"})
    names = report.get("arrays", {})
    if len(names) < 2:
        return {}
    chosen = st.selectbox(
        label,
        names,
        index=list(names).index(report["array"]) if "array" in report else None,
        format_func=lambda name: f"{title(name)} ({names[name]})",
        key=f"array-{key}",
        placeholder="choose one",
        **KEPT,
    )
    return {} if chosen in (None, report.get("array")) else {"array": chosen}


def _with_sides(key: str, look: Look, **options: Any) -> Options:
    """Draw height and width for rows that may be images, and what to do about gaps."""
    options["missing"] = st.session_state.get(f"missing-{key}", "model")
    report = look(options)
    if report.get("columns") and not report.get("image_shape"):
        h, w = _sides(key, 1, {"Rows are images of height": "no", "and width": "no"})
        if h and w:
            colours = (3,) if report["columns"] == 3 * h * w else ()
            options["image_shape"] = (h, w, *colours)
    return options | _missing(key, report)


def _images(key: str, look: Look) -> Options:
    del look
    h, w = _sides(key, 2, {"Bring all to height": "as they are", "and width": "as high"})
    options: Options = {"size": (h, w or h)} if h else {}
    left, right = st.columns(2)
    if left.toggle("Keep colour", key=f"colour-{key}", **KEPT):
        options["colour"] = "keep"
    if right.toggle("Skip files that are no images", key=f"broken-{key}", **KEPT):
        options["broken"] = "skip"
    left, right = st.columns(2)
    with left:
        source = _choice("The class is told by", CLASSES, f"classes-{key}")
    unnamed = source in ("folder", "none")
    pattern = right.text_input(
        "Pattern of the names",
        key=f"pattern-{key}",
        placeholder="{class}__{n}.png",
        disabled=unnamed,
        **KEPT,
        help="Each name in braces becomes a label; {n} stands for digits, * for anything. "
        "With a / the folders count, too: {class}/*",
    )
    if source != "auto":
        options["classes"] = source
    if pattern.strip() and not unnamed:
        options["pattern"] = pattern.strip()
    return options


def _sides(key: str, least: int, boxes: dict[str, str]) -> list[int | None]:
    """Draw a box for height and one for width: label to what an empty one stands for."""
    return [
        place.number_input(
            label, least, MOST_SIDE, None, key=f"{label}-{key}", placeholder=hint, **KEPT
        )
        for place, (label, hint) in zip(st.columns(2), boxes.items(), strict=True)
    ]


def _nifti(key: str, look: Look) -> Options:
    del key, look
    st.caption("A mask goes with the recording: upload both, with “mask” in its name.")
    return {}


def _missing(key: str, report: Report) -> Options:
    if not report.get("missing"):
        return {}
    chosen = one_of("Missing values", MISSING, f"missing-{key}", help_text=LEFT_TO_THE_MODEL)
    return {"missing": chosen}


def _gaps(key: str, look: Look, options: Options) -> Options:
    missing = st.session_state.get(f"missing-{key}", "model")
    return options | _missing(key, look(options | {"missing": missing}))


def _choice(label: str, names: dict[_Choice, str], key: str) -> _Choice:
    chosen: _Choice = st.selectbox(label, names, format_func=names.__getitem__, key=key, **KEPT)
    return chosen


_FORMS = {
    "csv": _table,
    "parquet": _columns,
    "npy": _with_sides,
    "npz": _arrays,
    "mat": _mat,
    "hdf5": _arrays,
    "h5ad": _annotated,
    "zarr": _annotated,
    "mtx": lambda key, look: _gaps(key, look, {}),
    "idx": _with_sides,
    "images": _images,
    "nifti": _nifti,
}
