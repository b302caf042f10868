"""Files with new rows, and how they fit the run's columns."""

import json
from typing import NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.data.columns import Matched, Wanted, read_as, wanted_by
from appca.data.dataset import Dataset
from appca.data.readers import kind_of
from appca.data.readers.process import read_apart, warm
from appca.data.readers.source import ReadLimits
from appca.runs.fit import fits_around_gaps
from appca.ui.arrivals.chips import Options, Report
from appca.ui.arrivals.dropping import scratch
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

MISSING = {
    "model": "Fill from the model",
    "mean": "Mean of the new rows",
    "drop": "Drop the rows",
}
MOST_NAMES = 6
MOST_FILES = 100  # that are sent one by one; far below the first failure


class Arrival(NamedTuple):
    """New rows in the columns of the run, or the sentence why not, and what was found."""

    matched: Matched | None
    sentence: str
    report: Report


def choose(dataset: Dataset, shown: Shown) -> Dataset | None:
    """Draw the choice of new rows and what was found in them; None while there are none."""
    st.caption(
        "Place new rows on the picture and see which of them do not fit. The fit stays as it is."
    )
    files = st.file_uploader(
        "A file with new rows, or several images",
        accept_multiple_files=True,
        key=f"new-data-{st.session_state.setdefault(KEYS.upload, 0)}",
        help="A table needs the columns of the data, in any order; others are left out. "
        "Images must have the size of the data's.",
    )
    if not files:
        warm()
        return None
    wanted = wanted_by(dataset)
    options = _options(files, wanted)
    outcome = _read(files, shown, wanted, options)
    if outcome.report.get("missing"):
        # whether the run can describe rows of which some cells are missing
        takes_gaps = fits_around_gaps(shown.config) and not shown.fitted.preprocessing.reduces
        possible = {how: name for how, name in MISSING.items() if how != "model" or takes_gaps}
        chosen = one_of("Missing values", possible, f"new-data-missing-{files[0].file_id}")
        outcome = _read(files, shown, wanted, options | {"missing": chosen})
    if outcome.matched is None:
        st.error(markdown(outcome.sentence))
        return None
    st.caption(markdown(in_words(outcome.matched)))
    return outcome.matched.dataset


def in_words(match: Matched) -> str:
    """Say how the new rows were brought into the columns of the run."""
    parts = [counted(match.dataset.n_rows, "new row")]
    if match.by_name:
        order = ", in another order" if match.reordered else ""
        parts.append(f"columns found by their names{order}")
    else:
        parts.append(f"{counted(match.dataset.n_features, 'feature')} in the order of the file")
    if match.ignored:
        names = ", ".join(f"“{shortened(name)}”" for name in match.ignored[:MOST_NAMES])
        more = len(match.ignored) - MOST_NAMES
        parts.append(f"not used: {names}{f' and {more:,} more' if more > 0 else ''}")
    return f"{'; '.join(parts)}."


def _options(files: list[UploadedFile], wanted: Wanted) -> Options:
    """Draw the choices that images call for."""
    images = all(kind_of(file.name) == "images" for file in files)
    if not images or wanted.image_shape is None:
        return {}
    options: Options = {"colour": "keep"} if len(wanted.image_shape) == 3 else {}
    height, width = wanted.image_shape[:2]
    if st.toggle(f"Bring the images to {height} × {width} pixels", key="new_data_resize"):
        options["size"] = (height, width)
    return options


def _read(files: list[UploadedFile], shown: Shown, wanted: Wanted, options: Options) -> Arrival:
    ids = " ".join(file.file_id for file in files)
    key = json.dumps([shown.config.dataset, options], sort_keys=True)
    return _outcome(ids, key, files, wanted, options)


@st.cache_resource(show_spinner="Reading the file", max_entries=4)
def _outcome(
    ids: str, key: str, _files: list[UploadedFile], _wanted: Wanted, _options: Options
) -> Arrival:
    del ids, key
    named = [(file.name, file) for file in _files]
    limits = ReadLimits(scratch=scratch(), least_rows=1)

    def opened(roles: dict[str, str]) -> Dataset:
        chosen = _options | ({"roles": roles} if roles else {})
        return read_apart(named, limits=limits, **chosen)

    try:
        _check(_files)
        opened_as = read_as(opened, _wanted)
    except InputError as error:
        return Arrival(None, str(error), error.report or {})
    return Arrival(opened_as, "", opened_as.dataset.provenance.get("report", {}))


def _check(files: list[UploadedFile]) -> None:
    """Refuse so many files that some may be missing.

    Streamlit sends each by a request of its own, all at once, and leaves out those that failed: of
    1,440 images, 29 did not arrive.
    """
    if len(files) > MOST_FILES:
        msg = (
            f"{len(files):,} files came one by one, and a browser may lose some of more than "
            f"{MOST_FILES}; take them out and give one zip of them."
        )
        raise InputError(msg)
