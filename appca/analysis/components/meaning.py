"""Which label a component goes with, in a line: "higher for 0s, lower for 1s"."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from appca.analysis.components.association import associated
from appca.analysis.fitted import DescribedRows
from appca.data.dataset import Dataset
from appca.words.wording import shortened

MOST_LABELS, MOST_ROWS = 8, 1_000  # columns that are looked at; rows, a fair sample
LEAST = 0.25  # effect below which nothing is said
SIGNIFICANT = 0.05
_PERMUTATIONS = 99


def goes_with(dataset: Dataset, described: DescribedRows) -> list[str]:
    """Say of each component which label goes with its scores or its use; empty where none."""
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_ROWS]
    table = {name: values[rows] for name, values in list(dataset.labels.items())[:MOST_LABELS]}
    scores, active = described.scores[rows], described.active[rows]
    tests = associated(scores, active, table, n_permutations=_PERMUTATIONS, random_state=0)
    told = [""] * active.shape[1]
    strong = tests[(tests["effect"] >= LEAST) & (tests["p"] < SIGNIFICANT)]
    for test in strong.sort_values("effect", ascending=False, kind="stable").to_dict("records"):
        place = test["component"] - 1
        told[place] = told[place] or _said(test)
    return told


def _said(test: dict[Hashable, Any]) -> str:
    score = test["part"] == "score"
    if test["kind"] != "class":
        way = test["direction"] if score else f"use {test['direction']}"
        return f"{way} with {shortened(test['column'])}"
    ways = ("higher", "lower") if score else ("used more", "used less")
    ends = zip(ways, (test["high"], test["low"]), strict=True)
    return ", ".join(f"{way} for {_joined(names)}" for way, names in ends if names)


def _joined(names: Sequence[str]) -> str:
    """Join classes; a class that is one letter or digit reads better as several: "0s and 6s"."""
    return " and ".join(
        f"{name}s" if len(name) == 1 and name.isalnum() else shortened(name, 24) for name in names
    )
