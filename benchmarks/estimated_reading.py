"""How estimated likelihoods become a table of docs/benchmarks.md, and what they mean."""

from collections.abc import Sequence

from appca.words.numbers import percent
from benchmarks.numbers import columns, number
from benchmarks.results import Row


def lines(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Write a line a model, size and number of paths."""
    names = {
        "model": "model",
        "K": "K",
        "L": "L",
        "D": "D",
        "noise": "noise sd",
        "paths": "paths",
        "off": "error, nats",
        "stated": "stated",
        "z": "error / stated",
        "beyond_3": "rows beyond 3",
        "worst": "worst",
    }
    cells = columns(rows, names)
    for row, line in zip(rows, cells, strict=True):
        line["rows beyond 3"] = percent(row["beyond_3"], 1)
    return cells


def reading(rows: Sequence[Row]) -> list[str]:
    """Say how far stated errors are from true ones, and of how many rows they say too little."""
    sentences = []
    for model in dict.fromkeys(row["model"].partition(",")[0] for row in rows):
        mine = [row for row in rows if row["model"].startswith(model)]
        ratios, beyond = ([row[name] for row in mine] for name in ("z", "beyond_3"))
        sentences.append(
            f"{model}: errors are {number(min(ratios), 2)} to {number(max(ratios), 2)} times as "
            f"large as stated, and at most {percent(max(beyond), 1)} of rows are off by more than "
            "three stated errors."
        )
    return sentences
