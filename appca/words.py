"""Texts for users: formatted numbers and error messages."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from math import ceil, inf, isfinite, log10
from pathlib import Path
from typing import Any

import numpy as np

UNKNOWN = "–"  # shown if there is no number


def percent(share: float, digits: int = 0) -> str:
    """Format a share as a percentage: "28%", or "28.5%" with one digit.

    Only exact values give "0%" and "100%"; values near them give, for example, "under 0.1%".
    """
    if not isfinite(share):
        return UNKNOWN
    if share in (0, 1):
        return "100%" if share else "0%"
    text, step = f"{100 * share:,.{digits}f}", 10.0**-digits
    if share > 0 and float(text.replace(",", "")) == 0:
        return f"under {step:.{digits}f}%"
    if share < 1 and text == f"{100:.{digits}f}":
        return f"over {100 - step:.{digits}f}%"
    return f"{minus(text)}%"


def fixed(value: float, digits: int = 2) -> str:
    """Format a number with `digits` digits after the point: "−1,234.57"."""
    return minus(f"{value:,.{digits}f}") if isfinite(value) else UNKNOWN


def nats(value: float) -> str:
    """Format a log-likelihood: "−1,234.57 nats"."""
    return f"{fixed(value)} nats"


def number(value: float, digits: int = 3) -> str:
    """Format a number: "0.123", "11,280"; whole ones below 10,000, such as years, as "1977"."""
    form = ".0f" if abs(value) < 1e4 else ",.0f"
    return minus(f"{value:{form if 1000 <= abs(value) < 1e7 else f'.{digits}g'}}")


def apart(a: float, b: float, least: int = 3) -> tuple[str, str]:
    """Format numbers with `least` digits, or as many as show two digits of their difference."""
    size, gap = max(abs(a), abs(b)), abs(a - b)
    digits = ceil(log10(size / gap)) + 2 if 0 < gap < size < inf else least
    return number(a, min(max(least, digits), 6)), number(b, min(max(least, digits), 6))


def signed(value: float) -> str:
    """Format a number such as a score with three digits and its sign: "+0.12", "−3.4"."""
    return minus(f"{value:+.3g}")


def minus(text: str) -> str:
    """Replace a hyphen by a minus sign; a rounded −0 loses its sign."""
    if text.startswith("-") and not text.strip("-0.,"):
        text = text[1:]
    return text.replace("-", "−")


def duration(seconds: float) -> str:
    """Format an approximate time: "8 s", "3 min", "2 h"."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def about(seconds: float) -> str:
    """Format an estimated time: "under 1 s", "about 8 s"."""
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def size(n_bytes: float) -> str:
    """Format a number of bytes: "3.1 MB"."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    power = 1 + (n_bytes >= 1e6) + (n_bytes >= 1e9)
    return f"{n_bytes / 1000**power:.1f} {'kMG'[power - 1]}B"


_JOINER = "\u200d"  # joins parts of an emoji; the only invisible character allowed


def shortened(text: object, limit: int = 40) -> str:
    """Shorten a text from a file to fit on a line, in its middle: similar names differ at the end.

    Invisible characters and characters that change the text direction are shown as "�".
    """
    flat, end = " ".join(str(text).split()), (limit - 1) // 3
    short = f"{flat[: limit - 1 - end]}…{flat[len(flat) - end :]}"
    return printable(flat if len(flat) <= limit else short)


def of_column(title: object, name: object) -> str:
    """Name a class with its column, "sex female", unless it begins with the column: "class 1"."""
    begins = str(name).casefold().startswith(str(title).casefold())
    return f"{shortened(title, 20)} " * (not begins) + shortened(name, 24)


def printable(text: str) -> str:
    """Show invisible characters, such as terminal controls, as "�"."""
    return "".join(sign if sign.isprintable() or sign == _JOINER else "\ufffd" for sign in text)


def counted(n: int, noun: str) -> str:
    """Format a count: "1 row", "2,000 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def capital(name: str) -> str:
    """Capitalize a name unless it has capitals already, such as "pH"."""
    return name[:1].upper() + name[1:] if name == name.lower() else name


def is_text(column: np.ndarray) -> bool:
    """Whether all characters of an array's texts are valid and can be encoded as UTF-8."""
    if column.dtype.kind != "U" or not column.size * column.dtype.itemsize:
        return True
    codes = np.ascontiguousarray(column, column.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
    if codes.max() < 0xD800:
        return True
    return not bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any())


# message for a MemoryError
TOO_MUCH = "There is not enough memory; use fewer rows or fewer features."
_NEAR = 3  # number of names that a refusal suggests
_APP = ("brotli", "h5py", "nibabel", "plotly", "pooch", "pymanopt", "streamlit", "umap")
EXTRAS = {  # imported package -> extra of `pip install` that contains it
    **dict.fromkeys(_APP, "app"),
    **dict.fromkeys(("pandas", "pyarrow", "python_calamine", "charset_normalizer"), "tables"),
    **dict.fromkeys(("jax", "optax"), "vae"),
    "arviz": "mcmc",
    "anndata": "anndata",
    **dict.fromkeys(("anywidget", "matplotlib", "PIL", "traitlets"), "notebook"),
    **dict.fromkeys(("dask", "distributed", "zarr"), "dask"),
}


class InputError(ValueError):
    """A refusal in one sentence: the input, the rule, and a remedy.

    `report` contains the findings of `appca.data.readers.read` before it refused the file.
    """

    def __init__(self, message: str, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


def refuse_if(is_broken: object, sentence: str, report: dict[str, Any] | None = None) -> None:
    """Raise an InputError with this one-sentence message if a rule is broken."""
    if is_broken:
        raise InputError(sentence, report)


class UnknownNameError(InputError):
    """An unknown name; `kind` is the expected kind, such as “column”."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def unknown(
    kind: str, wanted: object, choices: Iterable[object], place: str = "", choice: str | None = None
) -> UnknownNameError:
    """Return “There is no column “hight”; the nearest is “height”, and there are ….”.

    `kind` is, for example, "column", `place` " in “file.npz”"; `choice` replaces the list of names.
    """
    names, text = list(map(str, choices)), str(wanted).casefold()
    by_text = {name.casefold(): name for name in reversed(names[:10_000])}
    close = [by_text[match] for match in get_close_matches(text, by_text, _NEAR)]
    parts = [f"the nearest {'are' if len(close) > 1 else 'is'} {listed(close)}"] if close else []
    if choice is not None:
        parts.append(choice)
    elif len(names) > len(close) or not close:
        parts.append(f"there are {listed(names)}" if names else "there are none to choose from")
    return UnknownNameError(
        kind, f"There is no {kind} “{shortened(wanted)}”{place}; {', and '.join(parts)}."
    )


def refuse_unknown(kind: str, wanted: object, choices: Collection[Any], place: str = "") -> None:
    """Raise the error of `unknown` if a name is not among the choices."""
    if wanted not in choices:
        raise unknown(kind, wanted, choices, place)


def listed(names: list[str], most: int = 6) -> str:
    """List the first names in quotation marks, and count the others."""
    shown, more = ", ".join(f"“{shortened(name, 60)}”" for name in names[:most]), len(names) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


class MissingExtraError(InputError, ImportError):
    """A required package is missing; the message says which extra to install."""


@contextmanager
def naming_extra() -> Iterator[None]:
    """Raise MissingExtraError, naming the extra, if a package is missing; also a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        msg = f"This needs the package {package}, which is not installed; run "
        msg += f"`pip install 'appca[{EXTRAS[package]}]'`."
        raise MissingExtraError(msg) from error


OTHER = "free some space, or choose another folder"
ROOM = "free some space, or set APPCA_HOME to another folder"


def reason(error: Exception) -> str:
    """Return a short reason for failing to read something."""
    if isinstance(error, FileNotFoundError):
        return f"{Path(error.filename or '').name or 'a file'} is missing"
    if isinstance(error, KeyError):
        return f"“{shortened(error.args[0])}” is missing"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "there is too little memory"
    why = error.strerror if isinstance(error, OSError) else None
    first = str(error).partition(". ")[0]  # the rest of a parser's message is technical
    return shortened(why or first or "it cannot be read", 120).strip(".")


def refused(what: str, error: OSError, remedy: str = ROOM) -> InputError:
    """Return an error such as “The run could not be deleted: Read-only file system; …”."""
    why = error.strerror or reason(error)  # without the name of the draft
    return InputError(f"{what}: {why}; {remedy}.")


@contextmanager
def refusing(what: str, remedy: str = ROOM) -> Iterator[None]:
    """Convert an OSError to an InputError of one sentence, see `refused`."""
    try:
        yield
    except OSError as error:
        raise refused(what, error, remedy) from error


def storing(what: str, place: Path, remedy: str = ROOM) -> AbstractContextManager[None]:
    """Return `refusing` for an item, such as “The run”, stored at a place."""
    return refusing(f"{what} could not be stored in {place}", remedy)
