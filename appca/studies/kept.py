"""Numbers of results in one file, so that a page can be written again without computing anything.

Claims and main tables are kept, arrays and with them all pictures of data are not.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from appca.storage import atomic
from appca.storage.errors import InputError
from appca.storage.files import keep_newer, read_json
from appca.storage.formats import KEY, TooNew
from appca.storage.refusal import OTHER, reason, refusing
from appca.studies.catalogue import STUDIES
from appca.studies.claims import CheckedClaim
from appca.studies.store import Stored
from appca.studies.study import Options, Row, Study

SIZES = ("full", "default", "quick")  # the most telling first
_FORMAT = 1  # without a digest: version control may turn its line ends, and people mend conflicts
OTHER_OPTIONS = "other options"
TIMED = "seconds"  # how columns begin that say as much about the machine as about the model


class KeptResult(NamedTuple):
    """What is kept of a result."""

    study: str
    id: str
    options: Options
    created: float  # seconds since 1970
    versions: dict[str, str]
    claims: list[CheckedClaim]
    text: str
    rows: list[Row]  # of the first table, the columns that a terminal shows


def kept(stored: Stored) -> KeptResult:
    """Return what is kept of a stored result."""
    study, outcome = STUDIES[stored.study], stored.outcome
    columns = [name for name in study.columns if not name.startswith(TIMED)]
    table = next(iter(outcome.tables.values()), [])
    rows = [{name: row[name] for name in columns} for row in table]
    claims = list(outcome.claims)
    known = (stored.study, stored.id, stored.options, stored.created, stored.versions)
    return KeptResult(*known, claims, outcome.text, rows)


def size_of(study: Study, options: Options) -> str:
    """Return "default" where options are those of several sizes, `OTHER_OPTIONS` where of none."""
    names = [name for name in study.sizes if study.options(name) == options]
    if "default" in names or not names:
        return "default" if names else OTHER_OPTIONS
    return names[0]


def is_current(result: KeptResult | Stored) -> bool:
    """Whether the experiment has not changed since."""
    return STUDIES[result.study].id(result.options) == result.id


def is_usual(stored: Stored) -> bool:
    """Whether a stored result holds and has the options of one of the sizes."""
    study = STUDIES.get(stored.study)
    return (
        study is not None and is_current(stored) and size_of(study, stored.options) != OTHER_OPTIONS
    )


def chosen(results: Iterable[KeptResult]) -> dict[str, KeptResult]:
    """Return the best result of each experiment: one that holds, the largest, the newest."""
    found: dict[str, KeptResult] = {}
    for result in results:
        if result.study in STUDIES:
            best = found.get(result.study)
            found[result.study] = result if best is None else max(best, result, key=_rank)
    return found


def _rank(result: KeptResult) -> tuple[bool, int, float]:
    size = size_of(STUDIES[result.study], result.options)
    place = -SIZES.index(size) if size in SIZES else -len(SIZES)
    return is_current(result), place, result.created


def read_kept(file: Path) -> list[KeptResult]:
    """Return the results in a file, none where there is no file.

    Raises
    ------
    InputError
        When it cannot be read, or a later version wrote it.
    """
    if not file.exists():
        return []
    try:
        return [_from(row) for row in read_json(file, file.name)["results"]]
    except TooNew:
        raise
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        msg = f"{file} could not be read: {reason(error)}; remove or restore it."
        raise InputError(msg) from error


def write_kept(file: Path, results: Sequence[KeptResult]) -> None:
    """Put results into a file.

    Raises
    ------
    InputError
        When the disk refuses.
    """
    rows = [
        {**result._asdict(), "claims": [claim._asdict() for claim in result.claims]}
        for result in results
    ]
    with refusing(f"{file} could not be written", OTHER):
        keep_newer(file, file.name)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({KEY: _FORMAT, "results": rows}, indent=1, ensure_ascii=False)
        atomic.write(file, text, private=False)


def _from(row: Row) -> KeptResult:
    return KeptResult(**{**row, "claims": [CheckedClaim(**claim) for claim in row["claims"]]})
