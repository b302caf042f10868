"""Columns that every table of rows begins with."""

import numpy as np

from appca.data.dataset import Dataset


def id_and_label(dataset: Dataset, rows: np.ndarray, **more: np.ndarray) -> dict[str, np.ndarray]:
    """Return the ids of rows, `more` of them, and their first label as columns of a table."""
    columns = {"id": dataset.ids[rows], **more}
    for name, values in list(dataset.labels.items())[:1]:
        columns[name if name not in columns else f"{name} (label)"] = values[rows]
    return columns
