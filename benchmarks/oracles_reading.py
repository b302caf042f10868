"""How the rows of `benchmarks.oracles` become tables of docs/benchmarks.md, and what they mean."""

from collections.abc import Sequence

from benchmarks.numbers import columns, number
from benchmarks.results import Row

ALIKE = 0.01  # nats a row


def _cased(rows: Sequence[Row]) -> list[Row]:
    """Write data, sizes and numbers of components into one cell."""
    return [
        row | {"case": f"{row['data']}, {row['N']:,} x {row['D']:,} ({row['K']}, {row['L']})"}
        for row in rows
    ]


def starts_lines(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Write a line a data set and model."""
    losses = ("lost", "median_lost")
    shown = [row | {name: f"{row[name]:z.3f}" for name in losses} for row in _cased(rows)]
    names = {
        "case": "data (K, L)",
        "model": "model",
        "default": "nats a row",
        "lost": "lost against the best start",
        "median_lost": "lost by the median start",
        "processor_s": "processor s",
    }
    return columns(shown, names, 4)


def starts_reading(rows: Sequence[Row]) -> list[str]:
    """Say for each model how often a default fit is as good as the best, and the largest loss."""
    sentences = []
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        worst = max(own, key=lambda row: row["lost"])
        alike = sum(row["lost"] < ALIKE for row in own)
        random = sum(row["median_lost"] - row["lost"] >= ALIKE for row in own)
        worse = sum(row["lost"] - row["median_lost"] >= ALIKE for row in own)
        sentences.append(
            f"{model}: a default fit loses less than {ALIKE} nats against the best of "
            f"{own[0]['starts']} random starts on {alike} of {len(own)} data sets, and at most "
            f"{worst['lost']:.2f} nats ({worst['data']}). It is better than the median random "
            f"start by more than that on {random} and worse on {worse}."
        )
    return sentences


def gaps_lines(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Write a line a data set."""
    names = {
        "case": "data (K, L)",
        "supports": "supports",
        "best_alone": "error of the best support alone",
        "error": "error with its exchanges",
        "largest": "largest",
        "fit_lost": "lost by a fit",
        "noise": "its noise variance / exact",
    }
    return columns(_cased(rows), names)


def gaps_reading(rows: Sequence[Row]) -> list[str]:
    """Say how large the errors are."""
    names = ("error", "best_alone", "noise")
    errors, alone, noise = ([row[name] for row in rows] for name in names)
    return [
        f"With exchanges the mean error is {number(min(errors), 2)} to {number(max(errors), 2)} "
        f"nats a row, of the best support alone {number(min(alone), 2)} to "
        f"{number(max(alone), 2)}; the sum is a lower bound, so all errors have one sign. A fit "
        f"that uses it finds {number(min(noise), 2)} to {number(max(noise), 2)} times the noise "
        "variance of the exact fit."
    ]


def streams_lines(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Write a line a data set."""
    names = {
        "case": "data (K, L)",
        "batch": "rows a batch",
        "all": "full fit, nats a row",
        "random": "lost, random order",
        "random_worst": "worst of three",
        "sorted": "lost, sorted by class",
        "sorted_worst": "worst of three, sorted",
        "one_row": "lost by one more row",
    }
    shown = [row | {"one_row": f"{row['one_row']:z.4f}"} for row in _cased(rows)]
    return columns(shown, names)


def streams_reading(rows: Sequence[Row]) -> list[str]:
    """Say where the order of a stream costs most."""
    worst = max(rows, key=lambda row: row["sorted"])
    rowwise = max(row["one_row"] for row in rows)
    return [
        f"The largest loss of a sorted stream is on {worst['data']}: {number(worst['sorted'])} of "
        f"{number(worst['all'])} nats per row, and {number(worst['random'])} in random order. "
        f"After a fit, learning one more row costs at most {max(rowwise, 0.0):.4f} nats per row."
    ]
