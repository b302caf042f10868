"""The tab New rows: rows of another file under the fit on screen."""

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.analysis.association import SIGNIFICANT
from appca.analysis.fitted import DescribedRows, FittedRun
from appca.analysis.groups import nearest
from appca.analysis.new_rows import LEAST, NewRowsVerdict, drifted, new_rows_table, verdict
from appca.analysis.rows import distances
from appca.analysis.rule import called, component_of, dataset_table
from appca.canvas.scene import Scene, scene_shown
from appca.data.columns import Matched, Wanted, read_as, wanted_by
from appca.data.dataset import Dataset
from appca.data.files import ReadLimits
from appca.data.readers import kind_of
from appca.data.readers.process import read_apart, warm
from appca.plots import style
from appca.plots.data import drift_chart
from appca.runs.fit import is_quick, keep_rows, project, stored
from appca.runs.home import home
from appca.runs.numbering import numbered
from appca.storage.identity import digest_of
from appca.ui import arrivals, canvas, fits, kit, services, state
from appca.ui.downloads import table_buttons
from appca.ui.fits import LIVE_SECONDS, Shown
from appca.ui.rows import draw, nearest_classes
from appca.ui.services import by_key
from appca.words import InputError, counted, refuse_if, shortened

if TYPE_CHECKING:
    import pandas as pd

MISSING = {"model": "Fill from the model", "mean": "Mean of the new rows", "drop": "Drop the rows"}
MOST_NAMES = 6
MOST_FILES = 100  # Streamlit drops failed uploads silently: 29 of 1,440 images were lost


def _choose(dataset: Dataset, shown: Shown) -> Dataset | None:
    st.caption("Place new rows on the picture and see which do not fit. The fit does not change.")
    if gone := state.left_out(dataset):
        label = f"Use the {counted(gone['n'] - dataset.n_rows, 'row')} left out of the fit"
        if st.toggle(label, key=f"new-data-gone-{dataset.digest[:8]}"):
            whole = replace(services.dataset(gone["of"]), least_rows=1)
            return whole.take(~np.isin(whole.ids, dataset.ids))
    about = "The columns of the data, in any order, among others; or images of the same size."
    key = f"new-data-{st.session_state.setdefault(state.KEYS.upload, 0)}"
    look: Any = {"accept_multiple_files": True, "key": key, "help": about}
    files = st.file_uploader("A file with new rows, or several images", **look)
    if not files:
        warm()
        return None
    wanted, options = wanted_by(dataset), arrivals.Options()
    if wanted.image_shape is not None and all(kind_of(file.name) == "images" for file in files):
        options = {"colour": "keep"} if len(wanted.image_shape) == 3 else {}
        height, width = wanted.image_shape[:2]
        if st.toggle(f"Resize the images to {height} × {width} pixels", key="new_data_resize"):
            options["size"] = (height, width)
    ids = " ".join([shown.config.dataset, *(file.file_id for file in files)])
    match, refusal, report = _outcome(ids, json.dumps(options), files, wanted, options)
    if report.get("missing"):
        takes_gaps = shown.config.fits_around_gaps and shown.fitted.preprocessing.takes_gaps
        possible = {how: name for how, name in MISSING.items() if how != "model" or takes_gaps}
        chosen = kit.one_of("Missing values", possible, f"new-data-missing-{files[0].file_id}")
        options |= {"missing": chosen}
        match, refusal, _ = _outcome(ids, json.dumps(options), files, wanted, options)
    if match is None:
        st.error(kit.markdown(refusal))
        return None
    parts = [counted(match.dataset.n_rows, "new row")]
    if match.by_name:
        parts.append("columns matched by name" + ", in another order" * match.reordered)
    else:
        parts.append(f"{counted(match.dataset.n_features, 'feature')} in the order of the file")
    if match.ignored:
        names = ", ".join(f"“{shortened(name)}”" for name in match.ignored[:MOST_NAMES])
        more = len(match.ignored) - MOST_NAMES
        parts.append(f"not used: {names}{f' and {more:,} more' if more > 0 else ''}")
    st.caption(kit.markdown(f"{'; '.join(parts)}."))
    looks = {"source": dataset.provenance.get("source", "")}
    looks |= {} if dataset.image_shape is None else {"image_range": list(dataset.image_range)}
    return replace(match.dataset, provenance=match.dataset.provenance | looks)


@st.cache_resource(show_spinner="Reading the file", max_entries=4)
def _outcome(
    ids: str, key: str, _files: list[UploadedFile], _wanted: Wanted, _options: arrivals.Options
) -> tuple[Matched | None, str, arrivals.Report]:
    """Return new rows with the run's columns, or an error sentence, and the report."""
    del ids, key
    named = [(file.name, file) for file in _files]
    limits = ReadLimits(scratch=arrivals.scratch(), least_rows=1)

    def opened(roles: dict[str, str]) -> Dataset:
        return read_apart(named, limits=limits, **_options | ({"roles": roles} if roles else {}))

    try:
        msg = f"A browser may lose some of more than {MOST_FILES} files; use one ZIP file."
        refuse_if(len(_files) > MOST_FILES, msg)
        matched = read_as(opened, _wanted)
    except InputError as error:
        return None, str(error), error.report or {}
    return matched, "", matched.dataset.provenance.get("report", {})


MOST_OLD, MOST_NEW, PLACEMENT_SEED = 3000, 5000, 11
KINDS = ("new, fits", "new, does not fit", "the data")
OLD = 2  # the last of `KINDS`
COLOURING, HEIGHT = "new", 720


class DescribedData(NamedTuple):
    """New rows, described by a run."""

    dataset: Dataset
    fitted: FittedRun  # the run, with the new rows in place of its own
    key: str  # cache key of these numbers


class OldAndNewRows(NamedTuple):
    """Rows of the data, followed by new rows, as one data set."""

    dataset: Dataset
    fitted: FittedRun
    n_old: int


def _draw_new_rows(
    dataset: Dataset, shown: Shown, seen: DescribedData, judged: NewRowsVerdict
) -> np.ndarray | None:
    drawn = np.sort(judged.order[:MOST_NEW])
    key = f"{shown.key}-{seen.key}-{judged.fits[drawn].tobytes().hex()[:4000]}-{drawn.tolist()}"
    both = _together(key, dataset, shown.fitted, seen.dataset, seen.fitted, drawn)
    codes = np.full(both.dataset.n_rows, OLD)
    codes[both.n_old :] = ~judged.fits[drawn]
    memory: dict[str, np.ndarray] = st.session_state.setdefault(state.KEYS.marked, {})

    def take(mask: np.ndarray) -> None:
        memory.clear()
        if mask[both.n_old :].any():
            memory[seen.key] = drawn[mask[both.n_old :]]

    selected = np.zeros(both.dataset.n_rows, dtype=bool)
    selected[both.n_old :] = np.isin(drawn, memory.get(seen.key, []))
    scene = canvas.PageScene(_scene(key, both, codes), f"new {key}")
    look: Any = {"height": HEIGHT, "options": {"scrolls": True}, "selected": selected}
    first = scene.meta["first"]
    canvas.draw(both.dataset, scene, first, COLOURING, key="canvas-new", on_select=take, **look)
    text, n_new = "Grey: the data", seen.dataset.n_rows
    if both.n_old < dataset.n_rows:
        text += f", {both.n_old:,} of {dataset.n_rows:,} rows drawn at random"
    if len(drawn) < n_new:
        text += f"; of {counted(n_new, 'new row')} the {len(drawn):,} that fit least"
    st.caption(f"{text}. A lasso lists only the new rows in it below.")
    return memory.get(seen.key)


@by_key(2)
def _scene(both: OldAndNewRows, codes: np.ndarray) -> Scene:
    colours = *style.CATEGORICAL[:2], style.MISSING
    extra = {COLOURING: style.Colour("category", "New rows", codes, KINDS, colours)}
    return scene_shown(both.dataset, both.fitted, outside=codes != OLD, colourings=extra)


def together(
    dataset: Dataset, fitted: FittedRun, new: Dataset, projected: DescribedRows, drawn: np.ndarray
) -> OldAndNewRows:
    """Return a sample of the data, then the rows `drawn` of `new` rows, `projected` by the fit."""
    old = np.sort(np.random.default_rng(PLACEMENT_SEED).permutation(dataset.n_rows)[:MOST_OLD])
    ids = np.concatenate([dataset.ids[old], [f"new: {text}" for text in new.ids[drawn]]])
    if len(set(ids.tolist())) < len(ids):
        ids = np.array([f"{text} ({'data' if i < len(old) else i})" for i, text in enumerate(ids)])

    def label(name: str) -> np.ndarray:
        sides = ((dataset, old), (new, drawn))
        texts = [
            side.labels[name][rows].astype(str) if name in side.labels else np.full(len(rows), "")
            for side, rows in sides
        ]
        return np.concatenate(texts)

    both = Dataset(
        name=new.name,
        X=np.concatenate([dataset.X[old], new.X[drawn]]),
        ids=ids,
        labels={name: label(name) for name in dict.fromkeys([*dataset.labels, *new.labels])},
        image_shape=dataset.image_shape,
        feature_names=dataset.feature_names,
        provenance=new.provenance,
    )
    rows = fitted.take(old).followed_by(projected.take(drawn))
    return OldAndNewRows(both, fitted.with_rows(rows), len(old))


_together = by_key(4)(together)


MOST_ROWS = 2_000


def _draw_drift(dataset: Dataset, shown: Shown, new: Dataset, seen: FittedRun, key: str) -> None:
    def compared() -> "pd.DataFrame":
        tables = []
        for side, rows in ((dataset, shown.fitted), (new, seen)):
            taken = np.random.default_rng(0).permutation(side.n_rows)[:MOST_ROWS]
            tables.append(dataset_table(side.take(taken), rows.take(taken)))
        both = [name for name in tables[0] if name in tables[1]]
        old, later = ({name: table[name] for name in both} for table in tables)
        return drifted(old, later, random_state=0)

    if (tests := kit.tried(f"drift-{key}", compared)) is None:
        return
    names = shown.fitted.names
    st.markdown(sentence(tests, names))
    drawn = tests.assign(column=[called(name, names) for name in tests["column"]])
    kit.chart(drift_chart(drawn), "drift_chart")
    st.caption(
        "Bar: level (Cliff's delta). Ring: spread around the median. Red: higher in the new rows. "
        "Blue: lower. Pale: q, corrected for all tests, is above 5%. Small shifts that only "
        "components have can be due to overfitting."
    )


def sentence(tests: "pd.DataFrame", names: tuple[str, ...]) -> str:
    """Return as Markdown the numbers of shifted columns and components, and the largest shift."""
    shifted = tests[tests["q"] < SIGNIFICANT]
    if not len(shifted):
        if tests.attrs.get("least_q", 0.0) >= SIGNIFICANT:
            few = f"with so few rows for {counted(len(tests), 'test')}"
            return f"**Nothing can be concluded: {few}, no shift could be significant.**"
        return f"**No shift was found in {counted(len(tests), 'test')}.** Small shifts may exist."
    some, every = _subjects(shifted), _subjects(tests)
    told = [f"{some[noun]:,} of {counted(n, noun)}" for noun, n in sorted(every.items())]
    most = shifted.sort_values("effect", key=np.abs).iloc[-1]
    name = kit.markdown(shortened(called(most["column"], names)))
    way = f"{most['part']} of {name} is {most['direction']} in the new rows"
    return f"**{' and '.join(told)} have shifted.** Most: the {way}."


def _subjects(tests: "pd.DataFrame") -> Counter[str]:
    """Count columns and components, each of which may have several tests."""
    subjects = {
        ("component", name.split()[-1]) if component_of(name)[1] else ("column", name)
        for name in tests["column"]
    }
    return Counter(noun for noun, _ in subjects)


LEVEL, MANY = 0.99, 0.5  # share of the data's rows in a limit; of misfits, for a wrong file

_live = by_key(8)(project)
_distances, _nearest = by_key(8)(distances), by_key(8)(nearest)
GAPS = "For a row with missing cells, Q uses the other cells."


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    shown = kit.shown(fits.finished)
    new = None if shown is None else _choose(dataset, shown)
    seen = None if shown is None or new is None else _described(shown, new)
    if shown is None or seen is None:
        return
    of_data, theirs = _distances(shown.key, shown.fitted), _distances(seen.key, seen.fitted)
    judged = verdict(theirs, of_data, LEVEL)
    st.markdown(_summary(judged))
    text = "One in 100 rows of the data is beyond each limit, and new rows of the same kind a "
    text += "little more often. A row of another kind can also fit."
    if shown.config.preprocessing.get("pca"):
        text += " The part of a row that PCA removes before the fit is not counted."
    st.caption(text if seen.dataset.missing is None else f"{text} {GAPS}")
    rows = _draw_new_rows(dataset, shown, seen, judged)
    if seen.dataset.n_rows >= LEAST:
        _draw_drift(dataset, shown, seen.dataset, seen.fitted, seen.key)
    order = judged.order if rows is None else judged.order[np.isin(judged.order, rows)]
    key = f"{shown.key}-{seen.key}"
    alike = nearest_classes(dataset, _nearest(key, dataset, shown.fitted, seen.dataset.X))
    draw(seen.dataset, seen.fitted, judged, order, seen.key, alike)
    made = partial(new_rows_table, seen.dataset, seen.fitted, judged, **alike)
    table_buttons(made, shown, "new-rows", primary=True)
    st.caption("One line per new row, as on Export, with T², Q, limits and whether the row fits.")


def _described(shown: Shown, new: Dataset) -> DescribedData | None:
    run = shown.run
    if run is None:
        return None
    key = digest_of([run.id, new.digest])

    def start() -> None:
        keep_rows(home(), key, np.asarray(new.with_gaps()), run.id)
        kit.begin("project", key, {"key": key, "run": run.id})

    rows: DescribedRows | None
    if is_quick(new.n_rows, new.n_features, run.config, LIVE_SECONDS):
        rows = _live(key, run.config, run.fitted, new.with_gaps())
    else:
        rows = stored(home(), key)
    if rows is None:
        if fits.running(key) is None and key not in fits.declined():
            start()
        if not kit.follow(key, cancel="new_data_cancel"):
            label = f"Describe the {counted(new.n_rows, 'new row')}"
            kit.press(label, "new_data_start", start, type="primary")
        return None
    seen = numbered(run.fitted.with_rows(rows), shown.numbering)
    return DescribedData(new, seen, f"{key}-{shown.numbering.key}")


def _summary(judged: NewRowsVerdict) -> str:
    n_rows, outside = len(judged.fits), int((~judged.fits).sum())
    if not outside:
        return f"**No misfit in {counted(n_rows, 'new row')}**: none is beyond a limit."
    t2, q = (f"{n:,} {'is' if n == 1 else 'are'} too far" for n in (judged.ratios > 1).sum(axis=0))
    text = f"**{outside:,} of {counted(n_rows, 'new row')} {'does' if outside == 1 else 'do'} not "
    text += f"fit**: {q} from their subspace (Q), {t2} out within it (T²)."
    if outside > MANY * n_rows:
        text += " Most rows do not fit: check the kind, units and order of the columns."
    return text
