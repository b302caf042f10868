"""Where data came from, and what people noted of them."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from appca.storage.schema import Finite, Misfit, Text, fitted
from appca.words.errors import InputError

_Plain = bool | int | Finite | str | None  # in a script, too
_Side = Annotated[int, Meta(ge=1, le=512)]  # voxels


class _Report(Struct):
    roles: dict[str, Text] = {}  # names of columns, as long as the file has them


class _Event(Struct):
    onset: Finite
    duration: Finite
    trial_type: Text = ""


class Provenance(Struct):
    """What pages and files read of where data came from; there may be more."""

    source: Text = ""
    options: dict[str, _Plain | list[_Plain] | dict[str, _Plain]] = {}
    files: list[str] | dict[str, str] = []  # with their digests, if known
    report: _Report = msgspec.field(default_factory=_Report)
    image_range: tuple[Finite, Finite] = (0.0, 1.0)
    citation: str = ""
    sample: dict[str, int] = {}  # "of" how many rows these were drawn
    class_names: dict[str, dict[str, str]] = {}  # label to class to its name: `class_names.renamed`
    class_order: dict[str, list[str]] = {}  # label to names of classes, as `renamed` leaves them
    ordered: bool | None = None  # features follow each other, as times do; None lets it be detected
    grid: tuple[_Side, _Side, _Side] = (1, 1, 1)  # of a brain recording, as all that follows
    affine: list[list[Finite]] = []
    repetition: Finite = 1.0
    events: list[_Event] = []


def check_provenance(provenance: dict[str, Any]) -> None:
    """Raise InputError where a part is not what its readers expect."""
    try:
        fitted(Provenance, provenance)
    except Misfit as error:
        msg = f"The provenance is not valid: {error}; load the data again."
        raise InputError(msg) from error
