"""The tables of what the app costs: pages, canvas, sliders, visitors, storage, uploads.

Two functions a benchmark, as in `benchmarks.readings`.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from statistics import median

from appca.words.wording import counted
from benchmarks.numbers import columns, number
from benchmarks.results import Row

Cells = list[dict[str, str]]


def pages_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a page."""
    return columns(rows, {"what": "", "first_s": "first time, s", "second_s": "second time, s"})


def pages_reading(rows: Sequence[Row]) -> list[str]:
    """Say which change takes longest."""
    most = max(rows[1:], key=lambda row: max(row["first_s"], row["second_s"]))
    longest = max(most["first_s"], most["second_s"])
    return [f"The longest change is that to {most['what']}, {number(longest)} s."]


MILLION = {
    "start": "start",
    "picture_s": "to the picture, s",
    "picture_mb": "memory until then, MB",
    "fit_mb": "until the whole fit is drawn, MB",
    "heap_mb": "heap of the page, MB",
}


def million_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a start."""
    return columns(rows, MILLION)


def million_reading(rows: Sequence[Row]) -> list[str]:
    """Say what a person waits for."""
    return [f"A median of {number(median(row['picture_s'] for row in rows))} s."]


CANVAS = {  # column of results -> what it is, what was asked of it at each number of rows
    "first_view_bytes_a_row": ("bytes a row of the first view", {100_000: 20, 1_000_000: 20}),
    "layouts_s": ("laying out, s", {10_000: 0.15, 100_000: 1, 1_000_000: 6}),
    "picture_ms": ("navigation to picture, ms", {10_000: 1000, 1_000_000: 1500}),
    "pan_js_ms": ("JavaScript a frame, pan, ms", dict.fromkeys((10_000, 100_000, 1_000_000), 4)),
    "zoom_js_ms": ("JavaScript a frame, zoom, ms", dict.fromkeys((10_000, 100_000, 1_000_000), 10)),
    "pan_gap_ms": ("from frame to frame, pan, ms", dict.fromkeys((10_000, 100_000, 1_000_000), 45)),
    "zoom_gap_ms": (
        "from frame to frame, zoom, ms",
        dict.fromkeys((10_000, 100_000, 1_000_000), 80),
    ),
    "recolour_ms": ("recolour to a fair sample in colour, ms", {100_000: 80, 1_000_000: 400}),
    "recolour_whole_ms": ("recolour, all points, ms", {}),
    "lasso_js_ms": ("lasso, processor, ms", {100_000: 20}),
    "lasso_ms": ("lasso to a fair sample of the selection, ms", {100_000: 120}),
    "lasso_whole_ms": ("lasso, all points, ms", {}),
    "tour_gap_ms": ("frame of a tour, ms", {10_000: 40, 100_000: 60}),
    "heap_mb": ("heap of the page, MB", {1_000_000: 120}),
    "fetched_ms": ("all parts over HTTP, ms", {}),
    "transferred_again": ("bytes transferred after a reload", {}),
    "plotly_first_ms": ("plotly.js: first picture, ms", {}),
    "plotly_recolour_ms": ("plotly.js: recolour, ms", {}),
    "plotly_lasso_ms": ("plotly.js: selection, ms", {}),
    "plotly_pan_one_ms": ("plotly.js: one panel moved, ms", {}),
    "plotly_heap_mb": ("plotly.js: heap, MB", {}),
}


def canvas_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a measurement, with what was asked."""
    lines = []
    for name, (what, asked) in CANVAS.items():
        line = {"": what}
        for row in rows:
            bound = asked.get(row["rows"])
            said = f" (at most {number(bound)})" if bound else ""
            line[f"{number(row['rows'])} rows"] = number(row[name]) + said
        lines.append(line)
    return lines


def canvas_reading(rows: Sequence[Row]) -> list[str]:
    """Count the bounds that are held."""
    held = [
        row[name] <= asked[row["rows"]]
        for name, (_, asked) in CANVAS.items()
        for row in rows
        if row["rows"] in asked
    ]
    return [f"{sum(held)} of {len(held)} bounds are held."]


def slider_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a number of digits, for moves the app prepared and for others."""
    lines = []
    kind = itemgetter("digits", "motion", "ahead")
    for (n, motion, ahead), group in groupby(sorted(rows, key=kind), key=kind):
        some = list(group)
        line = {"digits": number(n), "motion": motion, "fitted ahead": "yes" if ahead else "no"}
        line["moves"] = number(len(some))
        line["points arrive, s"] = number(median(row["server_s"] for row in some))
        complete = [row["server_s"] + row["browser_s"] for row in some]
        line["complete, s"] = number(median(complete))
        lines.append(line)
    return lines


def slider_reading(rows: Sequence[Row]) -> list[str]:
    """Say what the numbers hold."""
    del rows
    return [
        "The bounds are 0.6 s, and 0.1 s where the fit was precomputed. Points travel for 0.42 s, "
        "or not at all if motion is reduced."
    ]


def first_view_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a fit."""
    names = {"fit": "fit", "digits": "rows", "panels": "panels", "points": "points"}
    names["view_s"] = "picture after the fit, s"
    return columns(rows, names)


def first_view_reading(rows: Sequence[Row]) -> list[str]:
    """Give the median."""
    return [f"A median of {number(median(row['view_s'] for row in rows))} s."]


def visitors_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a number of visitors."""
    names = {
        "visitors": "visitors",
        "moves": "moves",
        "median_s": "median, s",
        "p95_s": "95%, s",
        "most_s": "longest, s",
        "processor_s": "processor s a move",
        "faults": "errors",
        "half_mb": "MB halfway",
        "end_mb": "MB at the end",
        "load": "load before",
    }
    return columns(rows, names)


def visitors_reading(rows: Sequence[Row]) -> list[str]:
    """Say what the numbers hold."""
    del rows
    return [
        "Processor time is that of the server, opening the pages included; fits in the background "
        "have processes of their own, which stand back behind it.",
        "A load near or above the number of cores before the start is other work on the machine, "
        "which makes all times longer.",
    ]


def stored_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a data set."""
    names = {
        "data": "data",
        "megabytes": "MB",
        "put_s": "store, s",
        "open_s": "open first, s",
        "again_s": "open again, s",
        "check_s": "check, s",
        "check_megabytes": "check, MB of memory",
        "sha256_s": "SHA-256, s",
        "blake2b_s": "BLAKE2b, s",
        "crc32_s": "CRC-32, s",
    }
    return columns(rows, names, 2)


def stored_reading(rows: Sequence[Row]) -> list[str]:
    """Say why the digests are what they are."""
    most = max(rows, key=lambda row: row["megabytes"])
    rate = most["megabytes"] / most["sha256_s"] / 1000
    return [
        f"SHA-256 of blocks of 4 MB by {counted(most['threads'], 'thread')} reads "
        f"{number(rate)} GB a second."
    ]


def uploads_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a file."""
    return [
        {
            "file": row["file"],
            "kB": number(row["bytes"] / 1e3),
            "memory, MB": number(row["grown_mb"]),
            "longest opening, s": number(row["page_s"]),
        }
        for row in rows
        if "grown_mb" in row
    ]


def uploads_reading(rows: Sequence[Row]) -> list[str]:
    """Compare with openings while nothing is uploaded, and name the file that took most."""
    alone = max(row["page_s"] for row in rows if "grown_mb" not in row)
    files = [row for row in rows if "grown_mb" in row]
    most = max(files, key=lambda row: row["grown_mb"])
    slowest = max(files, key=lambda row: row["page_s"])
    return [
        f"While nothing is uploaded, the longest opening takes {number(alone)} s; during "
        f"{slowest['file']}, {number(slowest['page_s'])} s. Most memory is taken by "
        f"{most['file']}, {number(most['grown_mb'])} MB."
    ]
