"""The one error for what a person gave us and we cannot take, and sentences that many need."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from appca.words.wording import shortened

# for a MemoryError, wherever a person reads of it
TOO_MUCH = "There is not enough memory; use fewer rows or fewer features."
_NEAR, _LISTED = 3, 6  # names that a refusal offers
_APP = ("brotli", "h5py", "nibabel", "plotly", "pooch", "pymanopt", "streamlit", "umap")
EXTRAS = {  # package, as it is imported, to the extra of `pip install` that brings it
    **dict.fromkeys(_APP, "app"),
    **dict.fromkeys(("pandas", "pyarrow"), "tables"),
    **dict.fromkeys(("jax", "optax"), "vae"),
    "arviz": "mcmc",
    "anndata": "anndata",
    **dict.fromkeys(("anywidget", "matplotlib", "PIL", "traitlets"), "notebook"),
    **dict.fromkeys(("dask", "distributed", "zarr"), "dask"),
}


class InputError(ValueError):
    """A refusal in one sentence: the input, the rule, and what to do instead.

    `report` is what was read of a file before it was refused (see `appca.data.readers.read`), so
    that a page can show it beside the sentence.
    """

    def __init__(self, message: str, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


class UnknownNameError(InputError):
    """A refusal of a name; `kind` is what it should have named, such as “column”."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def unknown(
    kind: str,
    wanted: object,
    choices: Iterable[object],
    place: str = "",
    choice: str | None = None,
) -> UnknownNameError:
    """Return “There is no column “hight”; the nearest is “height”, and there are ….”.

    `kind` is what the name should be of, "column" or "array". `place` is where it should be, such
    as " in “file.npz”", and `choice` stands instead of a list of the known names.
    """
    names = list(map(str, choices))
    text = str(wanted).casefold()
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


def listed(names: list[str]) -> str:
    """Return the first names in quotation marks, and how many more there are."""
    shown = ", ".join(f"“{shortened(name)}”" for name in names[:_LISTED])
    more = len(names) - _LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown


class MissingExtraError(InputError, ImportError):
    """A package is needed that an extra brings; the message says how to install it."""


@contextmanager
def naming_extra() -> Iterator[None]:
    """Say by a MissingExtraError which extra brings a package; also a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        msg = (
            f"This needs the package {package}, which is not installed; run "
            f"`pip install 'appca[{EXTRAS[package]}]'`."
        )
        raise MissingExtraError(msg) from error
