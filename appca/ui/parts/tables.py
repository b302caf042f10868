"""Rows as a table; pandas is imported only where one is on screen."""

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset

MOST_COLUMNS = 30


def preview_table(dataset: Dataset, rows: np.ndarray) -> None:
    """Draw a few rows: id, labels and the first features; missing cells are left empty."""
    import pandas as pd

    names = dataset.feature_names or tuple(f"feature {j + 1}" for j in range(dataset.n_features))
    columns = {"id": dataset.ids[rows]}
    columns |= {name: values[rows] for name, values in dataset.labels.items()}
    X = dataset.with_gaps(rows)
    for j, name in enumerate(names[:MOST_COLUMNS]):
        columns[name if name not in columns else f"{name} (feature)"] = X[:, j]
    st.dataframe(pd.DataFrame(columns), hide_index=True, width="stretch")
    if dataset.n_features > MOST_COLUMNS:
        st.caption(f"The first {MOST_COLUMNS} of {dataset.n_features:,} features.")


def id_and_label(dataset: Dataset, rows: np.ndarray, **more: np.ndarray) -> dict[str, np.ndarray]:
    """Return the ids of rows, `more` of them, and their first label as columns of a table."""
    columns = {"id": dataset.ids[rows], **more}
    for name, values in list(dataset.labels.items())[:1]:
        columns[name if name not in columns else f"{name} (label)"] = values[rows]
    return columns
