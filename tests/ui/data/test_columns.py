"""What the preview says of columns, with the file at hand and without."""

import numpy as np

from appca.data.dataset import Dataset
from appca.ui.arrivals import Reading
from appca.ui.this_data import columns_of, contents


def test_gaps_are_counted_where_the_file_is_no_longer_at_hand():
    missing = np.zeros((12, 3), bool)
    missing[2, 0] = missing[[4, 5], 2] = True
    X = np.random.default_rng(0).normal(size=(12, 3))
    names = ("a", "b", "c")
    data = Dataset(
        "t", X, np.array([f"r{i}" for i in range(12)]), feature_names=names, missing=missing
    )
    reading = Reading(data, "", {})
    columns = columns_of(reading)
    assert [column.n_missing for column in columns] == [1, 0, 2]
    assert [contents(reading, column).words for column in columns] == [
        "1 missing",
        "none missing",
        "2 missing",
    ]
