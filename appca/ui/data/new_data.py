"""The tab New rows: what the fit says of new rows, which do not fit, one of them, and files."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.data.new_data import NewRowsVerdict, new_rows_table, verdict
from appca.analysis.explore.outliers import LEVELS, distances
from appca.analysis.fitted import DescribedRows
from appca.data.dataset import Dataset
from appca.runs.fit import project
from appca.runs.home import home
from appca.runs.new_data import is_quick, keep_rows, key_of, stored
from appca.runs.numbering import numbered
from appca.ui.data import drift, new_data_intake, new_data_pictures
from appca.ui.data.new_data_pictures import DescribedData
from appca.ui.parts import progress
from appca.ui.parts.downloads import table_buttons
from appca.ui.parts.widgets import one_of
from appca.ui.rows import row_table
from appca.ui.session import callbacks, watching
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import LIVE_SECONDS, Shown
from appca.words.wording import counted

MANY = 0.5  # share of rows beyond a limit from which something else is wrong than the rows

_live = by_key(8)(project)
_distances = by_key(8)(distances)
GAPS = "Q of a row with missing cells uses the cells it has."


def page(dataset: Dataset) -> None:
    """Draw the tab: new rows, where they lie, which of them do not fit, and files of them."""
    shown = progress.finished()
    new = None if shown is None else new_data_intake.choose(dataset, shown)
    seen = None if shown is None or new is None else described(shown, new)
    if shown is None or seen is None:
        return
    verdicts = verdict_of(shown, seen)
    rows = new_data_pictures.draw(dataset, shown, seen, verdicts)
    drift.draw(dataset, shown, seen.dataset, seen.fitted, seen.key)
    order = verdicts.order if rows is None else verdicts.order[np.isin(verdicts.order, rows)]
    row_table.draw(seen.dataset, seen.fitted, verdicts, order, seen.key)
    made = partial(new_rows_table, seen.dataset, seen.fitted, verdicts)
    table_buttons(made, shown, "new-rows", primary=True)
    st.caption(
        "One line per new row, as on Export, with T², Q, their limits and whether the row fits."
    )


def described(shown: Shown, new: Dataset) -> DescribedData | None:
    """Return what the run says of the new rows; None while a job finds it out."""
    run = shown.run
    if run is None:
        return None
    key = key_of(run.id, new.digest)
    rows: DescribedRows | None
    if is_quick(new.n_rows, new.n_features, run.config, LIVE_SECONDS):
        rows = _live(key, run.config, run.fitted, new.with_gaps())
    else:
        rows = stored(home(), key)
    if rows is None:
        _wait_or_offer(shown, new, key)
        return None
    seen = numbered(run.fitted.with_rows(rows), shown.numbering)
    return DescribedData(new, seen, f"{key}-{shown.numbering.key}")


def verdict_of(shown: Shown, seen: DescribedData) -> NewRowsVerdict:
    """Draw the choice of the level and what it says of all rows together; return the verdict."""
    level = one_of(
        "Limit passed by 1 row in",
        {level: f"{1 / (1 - level):.0f}" for level in LEVELS},
        default=0.99,
        key="new_data_level",
        help_text="Of the rows of the data, one in so many is beyond each limit.",
    )
    verdicts = verdict(
        _distances(seen.key, seen.fitted), _distances(shown.key, shown.fitted), level
    )
    st.markdown(summary(verdicts))
    gaps = "" if seen.dataset.missing is None else f" {GAPS}"
    st.caption(_explanation(shown) + gaps)
    return verdicts


def summary(verdicts: NewRowsVerdict) -> str:
    """Say how many of the new rows do not fit."""
    n_rows = len(verdicts.fits)
    outside = int((~verdicts.fits).sum())
    if not outside:
        return f"**All {counted(n_rows, 'new row')} fit**: none is beyond a limit."
    t2, q = (
        f"{n:,} {'lies' if n == 1 else 'lie'} too far" for n in (verdicts.ratios > 1).sum(axis=0)
    )
    text = (
        f"**{outside:,} of {counted(n_rows, 'new row')} {'does' if outside == 1 else 'do'} not "
        f"fit**: {q} off their subspace (Q), {t2} out within it (T²)."
    )
    if outside > MANY * n_rows:
        text += (
            " That is most of them: are they data of the same kind, in the same units and with the "
            "columns in the same order?"
        )
    return text


def _explanation(shown: Shown) -> str:
    reduced = shown.config.preprocessing.get("pca")
    lost = " What PCA before the fit leaves out of a row is not counted." if reduced else ""
    return (
        "New rows of the same kind pass the limits a little more often than the rows of the data, "
        "and clearly more often where those are few. A row of another kind fits, too, if the "
        f"components happen to rebuild it.{lost}"
    )


def _wait_or_offer(shown: Shown, new: Dataset, key: str) -> None:
    if watching.running(key) is None and not watching.declined(key):
        _start(shown, new, key)
    if not progress.follow(key, cancel="new_data_cancel"):
        st.button(
            f"Describe the {counted(new.n_rows, 'new row')}",
            type="primary",
            key="new_data_start",
            on_click=callbacks.guarded(_start),
            args=[shown, new, key],
        )


def _start(shown: Shown, new: Dataset, key: str) -> None:
    keep_rows(home(), key, np.asarray(new.with_gaps()), shown.config.id)
    # Only now: what could not be kept waits for another press.
    progress.begin("project", key, {"key": key, "run": shown.config.id})
