"""Stored and shipped results, the report and docs/paper.md that are made of them."""

import csv
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from appca.storage.files import aside
from appca.studies import report
from appca.studies import store as store_module
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.claims import Claim
from appca.studies.report import aligned, document, write
from appca.studies.store import FOLDER, MOST_BYTES, ShippedResults, StudyStore
from appca.studies.study import Outcome
from appca.words import InputError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paper.md"
PIXELS = {784, 1024}  # of an image of MNIST, of COIL-20
STUDY, POPULARITY = STUDIES["z-priors"], STUDIES["popularity"]
OPTIONS = STUDY.options("quick")
CLAIMS = [Claim("A <b> | c", "0.<5", "6 & 7", "partly"), Claim("a", "", "b", "yes")]
OUTCOME = Outcome(
    {
        "mixed": [
            {"name": "a,b\n“c”", "count": 3, "value": 0.123456, "none": None},
            {"name": "=1+1", "count": None, "value": 1 / 3, "none": None},
            {"name": None, "count": -2, "value": math.pi * 1e-300, "none": None},
        ],
        "empty": [],
    },
    {name: np.eye(3, dtype=bool) for name in ("sparse", "dense")} | {"x": np.arange(4.0)},
    CLAIMS,
    "B <i>\n\nC.",
)


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture
def store(tmp_path) -> StudyStore:
    return StudyStore(tmp_path)


def test_a_result_comes_back_as_it_was_and_other_options_make_another(store):
    name = store.save(STUDY, OPTIONS, OUTCOME, 12.34)
    stored = store.get(name)
    assert name == STUDY.id(OPTIONS) == stored.id
    assert stored.outcome[::2] == OUTCOME[::2]
    assert stored.outcome.text == OUTCOME.text
    assert [type(row["count"]) for row in stored.outcome.tables["mixed"]] == [int, type(None), int]
    np.testing.assert_equal(stored.outcome.arrays, OUTCOME.arrays)
    assert (stored.study, stored.options, stored.seconds) == ("z-priors", OPTIONS, 12.3)
    assert stored.versions["numpy"] == np.__version__
    assert [each.id for each in store.list()] == [name]
    assert store.list("table1") == []
    assert [store.get(name) for name in ("", "../jobs", "a" * 12, "A" * 12)] == [None] * 4
    assert store.save(STUDY, OPTIONS, OUTCOME._replace(text="new"), 1.0) == name
    assert store.get(name).outcome.text == "new"
    assert store.save(STUDY, STUDY.options("quick", seed=1), OUTCOME, 1.0) != name
    assert STUDY._replace(revision=99).id(OPTIONS) != name
    assert len(store.list()) == 2
    assert not list(store.folder.glob(".*"))


def test_a_full_disk_leaves_the_old_result_and_no_half_one(store, monkeypatch):
    name = store.save(STUDY, OPTIONS, OUTCOME, 1.0)

    def full(*_arguments, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.np, "savez_compressed", full)
    with pytest.raises(InputError, match=r"could not be stored.*No space left.*APPCA_HOME"):
        store.save(STUDY, OPTIONS, OUTCOME._replace(text="new"), 1.0)
    assert store.get(name).outcome.text == OUTCOME.text
    assert [path.name for path in store.folder.iterdir()] == [name]


def test_a_result_that_is_being_replaced_is_read_once(store, monkeypatch):
    name = store.save(STUDY, OPTIONS, OUTCOME, 1.0)
    place = store.folder / name
    place.rename(aside(place))
    assert [(stored.id, stored.outcome.text) for stored in store.list()] == [(name, OUTCOME.text)]
    store.save(STUDY, OPTIONS, OUTCOME._replace(text="new"), 1.0)
    shutil.copytree(place, aside(place))
    assert [stored.outcome.text for stored in store.list()] == ["new"]
    load = np.load

    def late(*arguments, **more):
        monkeypatch.setattr(store_module.np, "load", load)
        store.save(STUDY, OPTIONS, OUTCOME._replace(text="newer"), 1.0)
        return load(*arguments, **more)

    monkeypatch.setattr(store_module.np, "load", late)
    assert store.get(name).outcome.text == "newer"


def test_shipped_results_are_small_and_readable():
    assert sum(file.stat().st_size for file in FOLDER.rglob("*.*")) <= MOST_BYTES
    assert len(list(FOLDER.iterdir())) == len(shipped())


@pytest.mark.parametrize("name", STUDIES)
def test_every_shipped_result_has_its_stamp_and_figures_and_no_row_of_data(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))  # nobody's copy
    study, stored = STUDIES[name], shipped()[name]
    assert study.size_of(stored.options) in study.sizes
    assert {"appca", "numpy"} <= set(stored.versions)
    assert any(claim.value for claim in stored.outcome.claims)
    assert all(len(c.value) < 12 and len(c.caption) < 36 for c in stored.outcome.claims)
    assert study.figures(stored.outcome)
    arrays = stored.outcome.arrays
    for key, array in arrays.items():
        assert key not in study.private
        assert array.dtype != np.uint8 or key.endswith("_rgb"), key  # what images are made of
        if name not in {"fmri", "planes", "z-priors"}:  # drawn here, or maps of components
            assert array.ndim <= 2, key
            assert not PIXELS & set(array.shape[1:]), key
        elif name == "fmri" and arrays["mask"].sum() in array.shape:
            assert array.ndim == 1, "one number a voxel, never its course"


def test_a_result_ships_in_the_place_of_an_older_one_and_within_the_limit(tmp_path, monkeypatch):
    store, study = ShippedResults(tmp_path), STUDY._replace(private=("sparse",))
    store.save(study, study.options(seed=1), OUTCOME, 1.0)
    name = store.save(study, study.options(seed=2), OUTCOME, 1.0)
    (stored,) = store.list()
    assert (stored.id, stored.outcome.arrays["x"].dtype) == (name, np.float32)
    assert list(stored.outcome.arrays) == ["dense", "x"]
    monkeypatch.setattr(store_module, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="may have 10 bytes together; these have"):
        store.save(STUDY, STUDY.options(seed=2), OUTCOME, 1.0)


def test_the_page_holds_every_figure_and_shows_texts_literally():
    outcome = STUDY.run(OPTIONS, silent, 1)._replace(claims=CLAIMS, text=OUTCOME.text)
    missing = report.ReportEntry(STUDIES["table1"], {"seeds": 2}, None, "No <file>.")
    html = report.page([missing, report.ReportEntry(STUDY, OPTIONS, outcome, "Now.")])
    assert html.count('class="plotly-graph-div"') == 1
    assert "<td>A &lt;b&gt; | c</td><td>0.&lt;5</td><td>6 &amp; 7</td><td>partly</td>" in html
    assert "<p>B &lt;i&gt;</p><p>C.</p>" in html
    assert html.index("No &lt;file&gt;.") < html.index('id="z-priors"')


def test_a_result_without_its_data_does_not_keep_the_others_back(tmp_path, monkeypatch):
    def refuse(*_arguments) -> Outcome:
        msg = "The file x is missing."
        raise InputError(msg)

    monkeypatch.setitem(STUDIES, "popularity", POPULARITY._replace(run=refuse))
    monkeypatch.setattr(report, "write", lambda *_arguments: [])
    lines: list[str] = []
    out = tmp_path / "out"
    how = "quick", {}, StudyStore(tmp_path), out, lines.append, silent
    with pytest.raises(InputError, match=r"1 of 2 results .* popularity: The file x is missing"):
        report.paper(["popularity", "z-priors"], *how)
    assert "The file x is missing." in (out / "report.html").read_text("utf-8")
    assert any("stored as" in line for line in lines)
    with pytest.raises(InputError, match=r"^The file x is missing\.$"):
        report.paper(["popularity"], *how)


def test_tables_and_figures_are_written_for_anybody_to_open(tmp_path):
    written = write(STUDY, OUTCOME._replace(arrays={"Z": np.eye(3)}), tmp_path / "a" / "b")
    assert [path.suffix for path in written] == [".csv", ".csv", ".html"]
    lines = list(csv.DictReader(written[0].read_text("utf-8").splitlines(keepends=True)))
    assert [line["name"] for line in lines] == ["a,b\n“c”", "=1+1", ""]
    html = written[2].read_text("utf-8")
    assert "plotly.js v" in html
    assert "<script src=" not in html  # standalone
    with pytest.raises(InputError, match="could not be written"):
        write(STUDY, OUTCOME._replace(arrays={"Z": np.eye(3)}), written[0] / "folder")
    assert aligned(["a", "b"], [["1", "-"], ["100", "0.5"]]) == "a    b\n1    -\n100  0.5"
    assert aligned(["a"], []) == ""


def test_the_page_of_the_paper_is_made_of_the_shipped_results():
    """After new results, or a changed sentence: python -m appca paper --document docs/paper.md."""
    assert PAGE.read_text(encoding="utf-8") == document(shipped(), PAGE)
