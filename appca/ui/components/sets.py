"""Sets of features on the tab Meaning: GMT, CSV, or the regions of an atlas."""

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.check.choose import sample_of
from appca.analysis.components.association import SIGNIFICANT
from appca.analysis.components.components import name_of
from appca.analysis.components.enrichment import MOST_ROWS, enrichment
from appca.analysis.export.projections import csv_bytes
from appca.data.dataset import Dataset
from appca.data.readers.feature_sets import read_sets_apart
from appca.ui.arrivals.dropping import scratch
from appca.ui.parts.downloads import save_button
from appca.ui.parts.text import markdown
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd


class Sets(NamedTuple):
    """Names of features by the name of their set, and the id of the file they came in."""

    features: dict[str, list[str]]
    file: str


def choose(dataset: Dataset) -> Sets:
    """Draw where a file of sets is given; return them, kept while the window is open."""
    key = f"feature_sets-{dataset.digest[:12]}"
    kinds = ["nii", "gz"] if dataset.is_recording else ["gmt", "csv", "nii", "gz"]
    file = st.file_uploader(
        "Regions of an atlas, NIfTI" if dataset.is_recording else "Sets of features, GMT or CSV",
        type=kinds,
        key=f"{key}-file",
        help="GMT, a CSV file with a feature and its set in each line, or a NIfTI atlas on the "
        "grid of the data.",
    )
    if file is not None:
        try:
            read = partial(read_sets_apart, file.name, file, scratch(), dataset.provenance)
            features = kept(f"sets-{file.file_id}", read)
            st.session_state[key] = Sets(features, file.file_id)
        except InputError as error:
            st.error(markdown(str(error)))
    return stored(dataset)


def stored(dataset: Dataset) -> Sets:
    """Return the sets that were given in this window."""
    sets: Sets | None = st.session_state.get(f"feature_sets-{dataset.digest[:12]}")
    return sets or Sets({}, "")


def regions(dataset: Dataset, sets: Sets) -> dict[str, np.ndarray]:
    """Return the region of each voxel of a recording as a column of classes; else nothing."""
    if not dataset.is_recording or not sets.features:
        return {}
    of = {voxel: region for region, voxels in sets.features.items() for voxel in voxels}
    return {"region": np.array([of.get(voxel, "") for voxel in dataset.ids.tolist()])}


def blocks(dataset: Dataset) -> dict[str, list[int]] | None:
    """Return the columns of sets that do not overlap; None without such sets."""
    place = {name: d for d, name in enumerate(dataset.column_names)}
    parts = {
        name: [place[f] for f in sorted({*of} & {*place})]
        for name, of in stored(dataset).features.items()
    }
    parts = {name: columns for name, columns in parts.items() if columns}
    columns = [column for of in parts.values() for column in of]
    return parts if parts and len(columns) == len(set(columns)) else None


def rows_of_fit(dataset: Dataset, shown: Shown, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return a model that answers like a fitted estimator on some rows, and these rows (n, D')."""
    fitted = shown.fitted
    described = SimpleNamespace(scores=fitted.scores[rows])
    model = SimpleNamespace(
        components_=fitted.components, mean_=fitted.mean, describe=lambda _X: described
    )
    return model, fitted.preprocessing.transform(dataset.with_gaps(rows))


def draw(dataset: Dataset, shown: Shown, sets: Sets) -> None:
    """Draw which sets have large weights on which component, and all tests on demand."""
    if not sets.features or dataset.is_recording:
        return
    if shown.fitted.preprocessing.reduces:
        st.caption("Sets need a fit of the features themselves, without PCA.")
        return

    def tested() -> "pd.DataFrame":
        model, X = rows_of_fit(dataset, shown, sample_of(dataset.n_rows, MOST_ROWS, 0))
        return enrichment(model, X, sets.features, dataset.column_names)

    try:
        tests = kept(f"enriched-{shown.key}-{sets.file}", tested)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    best = tests.iloc[0]
    way = "positive" if best["sign"] == "+" else "negative"
    text = f"{shortened(best['set'])} has {way} weights on "
    text += name_of(shown.fitted, best["component"] - 1)
    verdict = "" if best["q"] < SIGNIFICANT else " Chance explains that."
    st.markdown(f"**{markdown(text)}**: effect {best['effect']:.1f}, q {best['q']:.2g}.{verdict}")
    st.dataframe(tests, hide_index=True, width="stretch", key="sets_table")
    st.caption(
        f"{counted(tests['set'].nunique(), 'set')}, by component and sign. Effects are in standard "
        "deviations of random directions whose features vary together as the residuals do."
    )
    made = partial(csv_bytes, tests)
    save_button("Save CSV", made, f"sets-{shown.config.id}.csv", key="sets-csv")
