"""docs/benchmarks.md against the results it is made of, and its tables on made-up rows."""

import json
import sys

import numpy as np
import pytest

from appca import __version__
from benchmarks import (
    app_readings,
    document,
    estimated,
    estimated_reading,
    missing,
    planted,
    readings,
    results,
    table,
)
from benchmarks.document import PAGE, SECTIONS, TABLES
from benchmarks.numbers import columns, number
from benchmarks.shapes import LARGE
from benchmarks.targets import targets
from tests.benchmarks.test_table import SHAPE, run

DIGITS = SHAPE._replace(name="MNIST 60,000 x 784")


def test_the_page_is_what_the_stored_results_say():
    """After new results, or a changed sentence: python -m benchmarks.document."""
    assert PAGE.read_text(encoding="utf-8") == document.page()
    assert TABLES.read_text(encoding="utf-8") == document.tables()


def test_the_advice_quotes_the_stored_results():
    assert document.ADVICE.read_text(encoding="utf-8") == document.advice()


def test_a_changed_number_is_seen(tmp_path):
    for file in results.RESULTS.glob("*.json"):
        found = json.loads(file.read_text())
        if file.stem == "planted":
            found["rows"][0]["mean_cosine"] = 0.5
        (tmp_path / file.name).write_text(json.dumps(found))
    changed, kept = document.tables(tmp_path).splitlines(), document.tables().splitlines()
    (different,) = (
        i for i, lines in enumerate(zip(changed, kept, strict=True)) if len({*lines}) > 1
    )
    assert changed[different].startswith("| 1,000 | 50 | 10 | 5 | 3 | 0.5 |")


def test_estimated_likelihoods_are_read_by_model():
    case = {"K": 14, "L": None, "D": 8, "noise": 0.1, "paths": 4, "rows": 400, "off": 0.2}
    case |= {"stated": 0.1, "worst": 2.5}
    rows = [
        {**case, "model": "fsFA", "z": 0.6, "beyond_3": 0.0},
        {**case, "model": "fsFA, averaged over draws", "z": 1.21, "beyond_3": 0.0125},
        {**case, "model": "aFA", "L": 7, "z": 12.3, "beyond_3": 0.155},
    ]
    line = estimated_reading.lines(rows)[1]
    assert (line["error, nats"], line["stated"], line["L"]) == ("0.2", "0.1", "")
    assert line["rows beyond 3"] == "1.2%"
    assert estimated_reading.reading(rows) == [
        "fsFA: errors are 0.6 to 1.2 times as large as stated, and at most 1.2% of rows are off by "
        "more than three stated errors.",
        "aFA: errors are 12 to 12 times as large as stated, and at most 15.5% of rows are off by "
        "more than three stated errors.",
    ]


def test_the_calibration_of_honest_errors_is_one():
    rng = np.random.default_rng(0)
    error = rng.uniform(0.1, 2.0, 100_000)
    told = estimated.calibration(error * rng.normal(size=len(error)), error)
    assert told["z"] == pytest.approx(1.0, abs=0.01)
    assert told["beyond_3"] == pytest.approx(0.0027, abs=0.001)
    assert told["off"] == pytest.approx(told["stated"], rel=0.02)
    small = estimated.sparse(5, 4, 0.5, 30)
    assert [row["paths"] for row in small] == list(estimated.PATHS)
    assert small[-1]["off"] < 0.2


def test_every_file_of_results_has_its_section():
    names = [section.name for section in SECTIONS]
    assert {file.stem for file in results.RESULTS.glob("*.json")} <= set(names)
    assert len(set(names)) == len(names)


def test_without_results_every_section_says_so(tmp_path):
    text = document.page(tmp_path) + document.tables(tmp_path)
    assert text.count("No results are stored yet") == len(SECTIONS)
    assert "Asked and measured" not in text


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(document, "TABLES", tmp_path / "tables.md")
    advice = tmp_path / "advice.md"
    advice.write_text(document.ADVICE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(document, "ADVICE", advice)
    document.main()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == document.page()
    assert (tmp_path / "tables.md").read_text(encoding="utf-8") == document.tables()


def test_results_are_read_as_they_were_written_with_the_facts_of_the_machine(tmp_path):
    rows = [{"data": "x", "mean": np.float32(0.5), "grid": np.eye(2), "own": np.bool_(True)}]
    results.write(tmp_path / "new", "some", rows, runs=[1])
    found = results.read(tmp_path / "new", "some")
    assert found.rows == [{"data": "x", "mean": 0.5, "grid": [[1, 0], [0, 1]], "own": True}]
    assert found.about["version"] == __version__
    assert found.about["cores"] >= 1
    assert all(one["kernel"] and one["threads"] >= 1 for one in found.about["blas"])
    assert str(sys.prefix) not in json.dumps(found.about)
    assert json.loads((tmp_path / "new" / "some.json").read_text())["runs"] == [1]
    assert results.read(tmp_path, "other") is None


def test_seconds_are_left_out_and_nothing_else():
    row = {"rows": 5, "clock_s": 1.0, "processor_s": 2.0, "nats": 3.0}
    assert results.untimed([row]) == [{"rows": 5, "nats": 3.0}]


def test_a_busy_machine_is_said_to_have_been_busy():
    row = {"data": "x", "N": 10, "D": 3, "K": 2, "L": 1, "nats": -1.5, "processor_s": 0.25}
    assert readings.NO_SECONDS not in readings.likelihoods_reading([row])
    assert readings.likelihoods_lines([row])[0]["processor s"] == "0.25"
    assert readings.NO_SECONDS in readings.likelihoods_reading(results.untimed([row]))
    assert "processor s" not in readings.likelihoods_lines(results.untimed([row]))[0]


def test_the_table_tells_what_was_fitted_once_and_what_was_ended():
    runs = [
        run("pca", 0, 2.0, peak_over_data=1.0, error=0.04, coded_s=2.5, held_out_nats=1234.56),
        run("appca_one", 0, 4.0, peak_over_data=1.25, error=0.05, coded_s=5.0),
        run("sparse_pca", 0, None, "over 300 s"),
    ]
    rows = table.summary(DIGITS, ["pca", "appca_one", "sparse_pca"], runs)
    pca, one, ended = ([*line.values()] for line in readings.table_lines(rows))
    assert one[2:7] == ["4 (once)", "2", "5", "1.25", "0.05"]
    assert pca[-1] == "1,235"
    assert ended[2:] == ["over 300 s", "", "", "", "", "", ""]


def test_targets_are_met_up_to_their_limits():
    runs = [
        run("pca", 0, 2.0),
        run("appca_one", 0, 4.0, error=0.05, coded_s=5.0),
        run("dictionary", 0, 48.0, error=0.06, coded_s=20.0),
    ]
    rows = table.summary(DIGITS, ["pca", "appca_one", "dictionary"], runs)
    long_rows = [
        {"data": DIGITS.name, "below": 0.0512, "passes": 2000},
        {"data": "other", "below": 9.0, "passes": 2000},
    ]
    pass_rows = [{"data": DIGITS.name, "ratio": 1.4142, "ratio_clock": 1.2}]
    moves = [
        {"digits": 10_000, "motion": motion, "ahead": ahead, "server_s": server, "browser_s": 0.5}
        for motion, ahead, server in (
            ("reduce", False, 0.05),
            ("reduce", False, 0.1),
            ("reduce", False, 9.0),
            ("reduce", True, 9.0),
            ("no-preference", False, 9.0),
            ("no-preference", False, 9.0),
        )
    ]
    found = targets({"table": rows, "passes": pass_rows, "long": long_rows, "slider": moves})
    assert [target.cells()[1:] for target in found] == [
        ("at most 3", "2", "yes"),
        ("at most 1.5", "1.41 (of the clock 1.2)", "yes"),
        ("at least 10", "12", "yes"),
        ("at least 10", "4", "no"),
        ("at most 0.05", "0.0512", "no"),
        ("no larger", "0.05, 0.06", "yes"),
        ("0.6 s", "0.6 s", "yes"),
        ("0.1 s", "9.5 s", "no"),
    ]


def test_twenty_visitors_wait_little_longer_than_one_and_meet_no_error():
    alone = {"visitors": 1, "median_s": 0.2, "p95_s": 0.5, "faults": 0}
    many = {"visitors": 20, "median_s": 1.0, "p95_s": 3.75, "faults": 1}
    memory = {"half_mb": 400.0, "end_mb": 420.0}
    found = targets({"visitors": [alone | memory, many | memory]})
    assert [target.cells()[1:] for target in found] == [
        ("at most 3.8", "3.75", "yes"),
        ("at most 0", "1", "no"),
        ("at most 1.1", "1.05", "yes"),
    ]
    assert targets({"visitors": [alone]}) == []


def test_the_large_data_have_ten_minutes_and_eight_gigabytes():
    shape = LARGE[0]

    def cells(**more):
        rows = table.summary(shape, ["appca_one"], [run("appca_one", 0, **more)])
        return targets({"table": rows})[0].cells()[2:]

    assert cells(seconds=None, status="over 600 s") == ("over 600 s", "no")
    assert cells(seconds=9.0, peak_bytes=2.5e9) == ("9 s, 2.5 GB", "yes")
    assert cells(seconds=9.0, peak_bytes=8.5e9) == ("9 s, 8.5 GB", "no")
    assert cells(seconds=601.0, peak_bytes=2.5e9) == ("601 s, 2.5 GB", "no")


def test_memory_is_over_the_limit_if_one_model_is():
    peaks = {"appca_em": 1.5, "appca_gibbs": 1.25, "afa_em": 2.5}
    runs = [run(method, 0, 1.0, peak_over_data=peak) for method, peak in peaks.items()]
    (target,) = targets({"table": table.summary(SHAPE, list(peaks), runs)})
    assert target.cells()[1:] == ("at most 2", "1.5, 1.25, 2.5", "no")


def test_growth_has_a_line_a_size():
    sizes = {"N": 1000, "D": 50}
    rows = [
        {"grows": "N", **sizes, "N": n, "seconds_a_pass": n / 1e5, "slope": 1.0}
        for n in (5000, 10_000, 20_000)
    ]
    rows += [
        {"grows": "D", **sizes, "D": d, "seconds_a_pass": 0.5, "slope": 0.0} for d in (10, 100)
    ]
    first, second = readings.growth_lines(rows)
    assert [*first.values()] == ["N", "5,000", "20,000", "0.05", "0.2", "1"]
    assert [*second.values()] == ["D", "10", "100", "0.5", "0.5", "0"]
    assert readings.growth_reading(rows)[0] == "The sizes that stay are N = 1,000, D = 50."


def test_a_start_that_ends_lower_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(planted, "SHAPES", [(60, 8, 3, 1), (70, 8, 3, 1)])
    said = {60: (0.5, 0.25, 1.0, 0.5), 70: (1.0, 1.0, 1.0, -1e-9)}
    monkeypatch.setattr(planted, "one", lambda n, *_: tuple(map(np.float64, said[n])))
    monkeypatch.setattr(sys, "argv", ["planted", "2", "--out", str(tmp_path)])
    planted.main()
    rows = results.read(tmp_path, "planted").rows
    first, second = readings.planted_lines(rows)
    assert [*first.values()] == ["60", "8", "3", "1", "2", "0.5", "0.25", "1", "0.500"]
    assert second["gap, nats per row"] == "0.000"
    assert "on 1 of 2 shapes, (N, D, K, L) = (60, 8, 3, 1)." in readings.planted_reading(rows)[0]


def test_masked_cells_have_a_column_a_method():
    errors = {"own": [0.5, 0.7], "ppca_l": [0.6, 0.6], "ppca_k": [0.2, 0.4], "means": [1.0, 1.0]}
    found = missing.compared({name: np.array(values) for name, values in errors.items()})
    rows = [{"data": "wine", "K": 4, "L": 2, "share": 0.1, **row} for row in found]
    assert readings.missing_lines(rows) == [
        {
            "data (K, L)": "wine (4, 2)",
            "masked": "10%",
            "aPPCA": "0.6",
            "PPCA with L": "0.6",
            "PPCA with K": "0.3",
            "column means": "1",
        }
    ]
    assert {row["method"]: row["beaten"] for row in rows} == {
        "own": None,
        "ppca_l": 1,
        "ppca_k": 0,
        "means": 2,
    }
    assert readings.missing_reading(rows) == [
        "Of 1 cases aPPCA has the lower error than PPCA with L in 0, than PPCA with K in 0, "
        "than column means in 1.",
        "No standard error over the seeds exceeds 0.1.",
    ]


def test_the_worst_of_the_data_sets_is_told():
    names = ("oracle", "times_oracle", "least_cosine", "right", "paper_times_oracle")
    values = [(0.01, 0.99, 0.5, 0.98, 8.0), (0.01, 1.5, 0.999, 0.9, 1.01)]
    rows = [
        {"K": 4, "L": 2, "seed": i, "paper_cosine": 0.1 * i, **dict(zip(names, some, strict=True))}
        for i, some in enumerate(values)
    ]
    (line,) = readings.balanced_lines(rows)
    assert [*line.values()] == ["4", "2", "2", "1.5", "0.5", "90.0%", "1.01", "0.1"]
    assert "on 1 of 2 data sets, from the paper's start on 1." in readings.balanced_reading(rows)[0]


def test_the_pair_of_digits_that_shares_most_is_named():
    grid = [[1.0, 0.2, 0.3], [0.2, 1.0, 0.4], [0.3, 0.4, 1.0]]
    row = {"seed": 0, "digits": ["1", "7", "9"], "grid": grid, "own_most": True}
    assert readings.digits_reading([row]) == [
        "Of two different digits, 7 and 9 share most factors in 1 of 1 fits."
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0123456, "0.0123"),
        (9.999, "10"),
        (14.25, "14.2"),
        (123.4, "123"),
        (-81_485_868.6, "-81,500,000"),
        (0.0, "0"),
        (4e-05, "0.00004"),
        (215_302, "215,302"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert number(value) == text


def test_a_column_that_no_row_has_is_left_out():
    assert columns([{"a": 1}, {"b": "x"}], {"b": "B", "c": "C", "a": "A"}) == [
        {"B": "", "A": "1"},
        {"B": "x", "A": ""},
    ]


def test_the_canvas_has_a_line_a_measurement_with_what_was_asked():
    row = dict.fromkeys(app_readings.CANVAS, 50.0) | {"rows": 100_000}
    lines = app_readings.canvas_lines([row])
    assert lines[0] == {"": "bytes a row of the first view", "100,000 rows": "50 (at most 20)"}
    assert lines[-1]["100,000 rows"] == "50"
    assert app_readings.canvas_reading([row]) == ["4 of 10 bounds are held."]


def test_the_cost_of_uploads_is_compared_with_none():
    rows = [
        {"file": "none", "page_s": 0.5, "openings": 5},
        {"file": "a.zip", "bytes": 3000, "grown_mb": 120.0, "page_s": 1.0, "openings": 2},
        {"file": "b.npy.gz", "bytes": 9000, "grown_mb": 501.0, "page_s": 0.75, "openings": 3},
    ]
    assert [line["file"] for line in app_readings.uploads_lines(rows)] == ["a.zip", "b.npy.gz"]
    (text,) = app_readings.uploads_reading(rows)
    assert "during a.zip, 1 s" in text
    assert "b.npy.gz, 501 MB" in text
    memory, page = targets({"uploads": rows})
    assert (memory.held, page.held) == (False, True)
    assert page.measured == "0.5 s"
