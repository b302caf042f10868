"""Components as files: features by name, the same numbers in CSV and NPZ."""

import io

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.analysis.tables import (
    Columns,
    Patterns,
    component_npz,
    component_table,
    csv_bytes,
)
from appca.data.dataset import Dataset
from tests.exact import table_of
from tests.fitted_runs import fitted_run

D, K = 6, 2


def dataset(**changes: object) -> Dataset:
    X = np.random.default_rng(2).normal(size=(5, D))
    return Dataset(**({"name": "made up", "X": X, "ids": np.arange(5).astype(str)} | changes))


def run_of(seed: int) -> FittedRun:
    rng = np.random.default_rng(seed)
    return fitted_run(
        np.ones((5, K), dtype=bool),
        scores=rng.normal(size=(5, K)),
        components=rng.normal(size=(K, 4)),
        mean=rng.normal(size=4),
        explained_variance=rng.random(K),
        names=("feature", "width"),
    )


def test_csv_and_npz_hold_the_same_components(seed):
    rng = np.random.default_rng(seed)
    patterns = Patterns(rng.normal(size=(K, D)), rng.normal(size=D))
    data, run, columns = dataset(), run_of(seed), Columns(named=True)
    table = table_of(csv_bytes(component_table(data, run, patterns, columns)))
    assert list(table.columns) == ["feature", "average", "feature (component)", "width"]
    assert table["average"].tolist() == patterns.mean.tolist()
    assert table.iloc[:, 2:].to_numpy().T.tolist() == patterns.components.tolist()
    with np.load(io.BytesIO(component_npz(data, run, patterns, columns))) as found:
        assert found["components"].tolist() == patterns.components.tolist()
        assert found["mean"].tolist() == patterns.mean.tolist()
        assert found["features"].tolist() == table["feature"].tolist()
        assert found["names"].tolist() == ["feature", "width"]
        assert found["components_of_fit"].tolist() == run.components.tolist()
    for changes, last in (
        ({"feature_names": ("a", "b", "c", "d", "e", "=f")}, "=f"),
        ({}, "feature 6"),
        ({"image_shape": (2, 3)}, "1,2"),
        ({"image_shape": (1, 2, 3)}, "0,1,2"),
    ):
        names = component_table(dataset(**changes), run, patterns, columns)["feature"]
        assert (len(names), names.iloc[-1]) == (D, last), "by the data or by their place"
