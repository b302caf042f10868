"""The benchmark of many visitors, on few rows: its windows move the sliders of the page."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks import visitors


@pytest.mark.thorough
def test_visitors_move_the_sliders_and_see_their_pictures(monkeypatch, tmp_path):
    monkeypatch.delenv("APPCA_DATA", raising=False)
    monkeypatch.setattr(visitors, "ROWS", 400)
    monkeypatch.setattr(visitors, "LOOKS_S", 0.1)
    monkeypatch.setattr(
        "sys.argv", ["visitors", "--visitors", "2", "--moves", "3", "--out", str(tmp_path)]
    )
    with ThreadPoolExecutor(1) as pool:  # a browser test before may have left an event loop here
        pool.submit(visitors.main).result()
    rows = json.loads((tmp_path / "visitors.json").read_text())["rows"]
    assert [(row["visitors"], row["moves"], row["faults"]) for row in rows] == [
        (1, 3, 0),
        (2, 6, 0),
    ]
    assert all(row["processor_s"] > 0 for row in rows)
