"""The selection of the pages."""

import numpy as np

from appca.data.sources.builtin import load
from appca.ui.session import selection


def test_rows_are_selected_by_their_numbers_or_as_a_mask(monkeypatch):
    monkeypatch.setattr(selection.st, "session_state", {})
    wine = load("wine")
    selection.put(wine, np.array([3, 5]))
    assert np.flatnonzero(selection.get(wine)).tolist() == [3, 5]
    selection.put(wine, np.arange(178) > 175)
    assert np.flatnonzero(selection.get(wine)).tolist() == [176, 177]
