"""What a person can choose about uploaded files before they become data, one form for each kind."""

from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st

from appca.data.readers.images.naming import CLASS_SOURCES
from appca.data.readers.intake import MISSING_CHOICES
from appca.ui.data.role_editor import roles

MISSING = {
    "refuse": "Refuse the file",
    "mean": "Put in the column's mean",
    "drop": "Leave out their rows",
    "model": "Let the model fill them (aPPCA, PPCA)",
}
LEFT_TO_THE_MODEL = (
    "Adaptive PPCA (by exact EM) and PPCA are fitted around the missing cells and say what belongs "
    "there; other models refuse. What is no model (the PCA panel, UMAP, nearest rows, statistics "
    "of columns) reads the column's mean in their place."
)
SEPARATORS = {
    None: "Find out",
    ",": "Comma",
    ";": "Semicolon",
    "\t": "Tabulator",
    "|": "Bar |",
    " ": "Blanks",
}
HEADERS = {None: "Find out", True: "Names of the columns", False: "Numbers"}
CLASSES = {
    "auto": "Find out",
    "folder": "The folder",
    "name": "The file's name",
    "none": "Nothing",
}
MOST_SIDE = 4096


class Finding(NamedTuple):
    """What reading the files brought to light, or the sentence why they cannot be read so."""

    sentence: str
    report: dict[str, Any]


Look = Callable[[dict[str, Any]], Finding]


def form_of(kind: str | None, key: str, look: Look) -> dict[str, Any]:
    """
    Draw the choices that files of a kind call for, and return the reader's options.

    Parameters
    ----------
    kind : str or None
        The reader.
    key : str
        Of the files, for the widgets' keys.
    look : callable
        Reads the files with the options it is given, and tells what it found.
    """
    if kind is None:
        return {}
    return _FORMS[kind](key, look)


def _table(key: str, look: Look) -> dict[str, Any]:
    options = _writing(key)
    return _columns(key, look, options)


def _columns(key: str, look: Look, options: dict[str, Any]) -> dict[str, Any]:
    chosen = roles(key, look(options).report, look(options).sentence)
    options |= {"roles": chosen} if chosen else {}
    return options | _missing(key, look(options).report)


def _parquet(key: str, look: Look) -> dict[str, Any]:
    return _columns(key, look, {})


def _writing(key: str) -> dict[str, Any]:
    """Draw how a text table is written; what is left open is found out."""
    with st.expander("How the table is written"):
        left, middle, right = st.columns(3)
        with left:
            separator = _choice("Between cells", SEPARATORS, f"separator-{key}")
        with middle:
            header = _choice("First line", HEADERS, f"header-{key}")
        with right:
            encoding = st.text_input("Encoding", key=f"encoding-{key}", placeholder="UTF-8")
    options = {"separator": separator, "header": header, "encoding": encoding.strip() or None}
    return {name: value for name, value in options.items() if value is not None}


def _array(key: str, look: Look) -> dict[str, Any]:
    return _with_sides(key, look, {})


def _arrays(key: str, look: Look) -> dict[str, Any]:
    return _with_sides(key, look, _which(key, look))


def _mat(key: str, look: Look) -> dict[str, Any]:
    options = _which(key, look)
    if st.toggle("Each column is one object", key=f"transpose-{key}"):
        options["transpose"] = True
    options = _with_sides(key, look, options)
    if "image_shape" in options and not st.toggle(
        "Pixels run down the image, as in MATLAB", value=True, key=f"by_column-{key}"
    ):
        options["by_column"] = False
    return options


def _which(key: str, look: Look) -> dict[str, Any]:
    """Draw the choice of the array with the rows where there are several."""
    report = look({}).report
    names = report.get("arrays", {})
    if len(names) < 2:
        return {}
    known = list(names)
    chosen = st.selectbox(
        "The array with the rows",
        known,
        index=known.index(report["array"]) if "array" in report else None,
        format_func=lambda name: f"{name} ({names[name]})",
        key=f"array-{key}",
        placeholder="choose one",
    )
    return {} if chosen in (None, report.get("array")) else {"array": chosen}


def _with_sides(key: str, look: Look, options: dict[str, Any]) -> dict[str, Any]:
    """Draw height and width for rows that may be images, and what to do about gaps."""
    report = look(options).report
    if report.get("columns") and not report.get("image_shape"):
        left, right = st.columns(2)
        sides = [
            box.number_input(label, 1, MOST_SIDE, None, key=f"{label}-{key}", placeholder="no")
            for box, label in ((left, "Rows are images of height"), (right, "and width"))
        ]
        h, w = sides
        if h and w:
            colours = (3,) if report["columns"] == 3 * h * w else ()
            options["image_shape"] = (h, w, *colours)
    return options | _missing(key, report)


def _images(key: str, look: Look) -> dict[str, Any]:
    del look
    options = _size(key)
    left, right = st.columns(2)
    with left:
        if st.toggle("Keep colour", key=f"colour-{key}"):
            options["colour"] = "keep"
    with right:
        if st.toggle("Skip files that are no images", key=f"broken-{key}"):
            options["broken"] = "skip"
    left, right = st.columns(2)
    with left:
        known = {source: CLASSES[source] for source in CLASS_SOURCES}
        source = _choice("The class is told by", known, f"classes-{key}")
    with right:
        pattern = st.text_input(
            "Pattern of the names",
            key=f"pattern-{key}",
            placeholder="{class}__{n}.png",
            disabled=source in ("folder", "none"),
            help="Each name in braces becomes a label; {n} stands for digits, * for anything. "
            "With a / the folders count, too: {class}/*",
        )
    if source != "auto":
        options["classes"] = source
    if pattern.strip() and source not in ("folder", "none"):
        options["pattern"] = pattern.strip()
    return options


def _size(key: str) -> dict[str, Any]:
    left, right = st.columns(2)
    sides = [
        box.number_input(label, 2, MOST_SIDE, None, key=f"{label}-{key}", placeholder=hint)
        for box, label, hint in (
            (left, "Bring all to height", "as they are"),
            (right, "and width", "as high"),
        )
    ]
    if not sides[0]:
        return {}
    return {"size": (int(sides[0]), int(sides[1] or sides[0]))}


def _nifti(key: str, look: Look) -> dict[str, Any]:
    del key, look
    st.caption("A mask goes with the recording: upload both, with “mask” in its name.")
    return {}


def _missing(key: str, report: dict[str, Any]) -> dict[str, Any]:
    if not report.get("missing"):
        return {}
    known = {name: MISSING.get(name, name) for name in MISSING_CHOICES}
    chosen = _choice("Missing cells", known, f"missing-{key}")
    if chosen == "model":
        st.caption(LEFT_TO_THE_MODEL)
    return {"missing": chosen} if chosen != "refuse" else {}


def _choice(label: str, names: dict[Any, str], key: str) -> object:
    return st.selectbox(label, list(names), format_func=names.__getitem__, key=key)


_FORMS = {
    "csv": _table,
    "parquet": _parquet,
    "npy": _array,
    "npz": _arrays,
    "mat": _mat,
    "idx": _array,
    "images": _images,
    "nifti": _nifti,
}
