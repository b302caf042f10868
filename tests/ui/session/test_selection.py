"""The selection of the pages."""

import numpy as np

from appca.data.sources import load
from appca.ui import state


def test_rows_are_selected_by_their_numbers_or_as_a_mask(monkeypatch):
    monkeypatch.setattr(state.st, "session_state", {})
    wine = load("wine")
    state.put(wine, np.array([3, 5]))
    assert np.flatnonzero(state.get(wine)).tolist() == [3, 5]
    state.put(wine, np.arange(178) > 175)
    assert np.flatnonzero(state.get(wine)).tolist() == [176, 177]
