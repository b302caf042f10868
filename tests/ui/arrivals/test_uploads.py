"""Own files on the Data page: what can be chosen for each kind, and what is said of them."""

import io
import re

import nibabel
import numpy as np

from appca.data.dataset import Dataset
from appca.ui import services
from appca.ui.arrivals import Reading
from appca.ui.this_data import columns_of, contents
from tests.data.file_makers import counts, h5ad, idx, noise, store
from tests.pages import give
from tests.ui.conftest import (
    Bar,
    choices,
    choose,
    chosen,
    click,
    find,
    go,
    healthy,
    html,
    keys,
    press,
    sentences,
    told,
)


def test_a_clean_file_opens_at_once_and_one_of_the_same_name_takes_its_place(start):
    content = b"a,b,kind\n1,2,x\n3,4,y\n5,4,x\n"
    app = give(start("data/open"), ("mine <b>.csv", content))
    assert "Read as UTF-8 text, commas · Labels: kind." in told(healthy(app))
    assert app.title[0].value == "Explore"
    assert "3 rows × 2" in html(app)
    assert "mine &lt;b&gt;.csv" in html(go(app, "data/this"))
    give(go(app, "data/open"), ("mine <b>.csv", content + b"6,6,x\n"))
    assert "4 rows × 2" in html(healthy(app))
    assert "Read as UTF-8" in told(go(app, "explore"))
    assert "Read as" not in told(click(app, "assumed_close"))


def messy(n: int = 90) -> bytes:
    """Write a table as a spreadsheet program of the West does, with an id, dates and gaps."""
    rng = np.random.default_rng(3)
    X = 20 + rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(n, 5))
    lines = ["Kunde-Nr;Größe;b;c;d;e;Datum;Stadt;konstant"]
    for i, row in enumerate(X):
        cells = ["" if i % 9 == j else f"{x:.2f}".replace(".", ",") for j, x in enumerate(row)]
        town = ("Köln", "Ulm")[i % 2]
        lines.append(f"{10_000 + i};{';'.join(cells)};{i % 28 + 1}.06.2024;{town};7")
    return "\r\n".join(lines).encode("cp1252")


def test_a_messy_file_is_read_as_a_person_would_and_can_be_read_otherwise_and_undone(start):
    app = give(start("data/open"), ("messy.csv", messy()))
    said = told(healthy(app))
    assert "Read as Western European text (cp1252), semicolons, decimal comma" in said
    assert "Labels: Stadt · Left out: Datum (dates), konstant (one value)" in said
    assert "Missing: 50 cells, filled from the model" in said
    assert "upload_use" not in keys(go(app, "data/this"))
    assert chosen(app, "Encoding") == "Western European (cp1252)"
    choose(app, "read_as", "Missing values", "50 cells missing: column mean")
    choose(app, "read_as", "Encoding", "UTF-8")
    assert "name its encoding" in sentences(app)[0]
    choose(app, "read_as", "Encoding", "Latin-1")
    assert chosen(healthy(app), "Header") == "Line 1 is the header"
    assert "filled with their column's mean" in told(click(app, "upload_use"))
    assert "90 rows × 5" in html(app)
    assert "missing cell" not in html(app)
    Bar(app).send("undo")  # takes back how the file was read
    assert "50 missing cells" in html(healthy(app))
    go(app, "data/this")
    assert chosen(app, "Missing values") == "50 cells missing: fill from the model"
    assert "upload_use" not in keys(app)
    assert "missing cell" not in html(healthy(Bar(go(app, "explore")).send("redo")))


def test_a_refused_file_is_corrected_where_it_stands(start):
    rows = [f"{'xy'[i % 2]},{i % 7},{i * i},{-999 if i in (3, 7) else i / 9}" for i in range(20)]
    rows[1] = "y,1,inf,0.5"
    app = give(start("data/open"), ("t.csv", "\n".join(["k,a,b,c", *rows]).encode()))
    assert "is infinite in row 2" in sentences(app)[0]
    choose(app, "preview", "Role of b", "Label")
    choose(app, "preview", "Role of k", "Ignored")
    choose(app, "read_as", "Header", "No header")  # columns have other names now
    assert "There is no column" not in sentences(app)[0]
    choose(app, "read_as", "Header", "Line 1 is the header")
    choose(app, "preview", "Role of b", "Ignored")
    press(healthy(app), "read_as", "suggested")
    assert chosen(app, "Other gaps") == "-999 missing"
    choose(app, "read_as", "Other gaps", "No other gaps").button(key="upload_use").click().run()
    assert "20 rows × 2" in html(healthy(app))
    give(go(app, "data/open"), ("u.csv", b"1,2\n2,3\na,b\n4,5\n6,7.5\n"))
    press(go(app, "data/this"), "header_line", "line", 3)
    assert "2 rows × 2" in html(click(app, "upload_use")), "another line is the header"


def test_several_arrays_are_offered_and_the_shape_of_images_stays_with_other_changes(start):
    rng, stream = np.random.default_rng(0), io.BytesIO()
    b = rng.normal(size=(20, 12))
    b[3, 4] = np.nan
    np.savez(stream, a=rng.normal(size=(30, 6)), b=b)
    app = give(start("data/open"), ("x.npz", stream.getvalue()))
    assert app.title[0].value == "Data"
    assert "several arrays" in sentences(app)[0]
    choose(app, "read_as", "The array with the rows", "b (20 x 12)")
    find(app.number_input, "Height").set_value(3).run()
    assert find(app.number_input, "Width").value == 4
    assert any("images of 3 × 4 pixels" in one.value for one in healthy(app).text)
    assert "20 rows × 12" in html(click(app, "upload_use"))
    assert "3 × 4 pixels" in html(go(app, "data/this"))
    assert [find(app.number_input, label).value for label in ("Height", "Width")] == [3, 4]
    assert "upload_use" not in keys(app)
    choose(app, "read_as", "Missing values", "1 cell missing: column mean")
    assert "3 × 4 pixels" in html(go(click(app, "upload_use"), "data/this"))


def test_digits_and_their_labels_come_as_two_files_and_a_folder_of_zarr_as_one(start, tmp_path):
    images, labels = noise(0, 30, 4, 4), np.arange(30, dtype=np.uint8) % 3
    app = give(start("data/open"), ("x-images.idx", idx(images)), ("x-labels.idx", idx(labels)))
    assert "30 rows × 16" in html(healthy(app))
    assert "4 × 4 pixels" in html(go(app, "data/this"))
    folder = store(tmp_path / "cells.zarr", h5ad(counts(0, 9, 7), kind=list("abcabcabc")), 2)
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = [(f"cells.zarr/{path.relative_to(folder)}", path.read_bytes()) for path in paths]
    assert "Labels: kind" in told(healthy(give(go(app, "data/open"), *files)))


def test_annotated_data_let_choose_values_and_variables(start):
    X = counts(0, 30, 8).astype(np.float32)
    kinds = {"kind": list("abc") * 10, "batch": list("uvwxyz") * 5, "depth": np.arange(30) / 7}
    marks = np.arange(8) % 2 == 0
    data = h5ad(X, {"twice": 2 * X}, {"X_two": X[:, :2]}, highly_variable=marks, **kinds)
    app = healthy(go(healthy(give(start("data/open"), ("cells.h5ad", data))), "data/this"))
    arrays = {"X (30 x 8)", "twice, of layers (30 x 8)", "X_two, of obsm (30 x 2)"}
    assert set(choices(app, "The array with the rows")) == arrays
    assert chosen(app, "Variables") == "Only variables marked highly_variable"
    choose(app, "read_as", "Variables", "All variables")
    assert "30 rows × 8" in html(click(app, "upload_use"))
    choose(go(app, "data/this"), "read_as", "The array with the rows", "X_two, of obsm (30 x 2)")
    assert "30 rows × 2" in html(click(app, "upload_use"))


def recording() -> bytes:
    """Write 20 volumes, 2 s apart, with a bright box that a mask finds."""
    values = np.random.default_rng(0).normal(20, 2, (12, 12, 10, 20)).astype(np.float32)
    values[2:10, 2:10, 2:8] += 900
    image = nibabel.Nifti1Image(values, np.eye(4))
    image.header.set_zooms((1.0, 1.0, 1.0, 2.0))
    return image.to_bytes()


def test_a_recording_opens_with_components_and_its_events(start):
    events = ("own_events.tsv", b"onset\tduration\n4\t6\n20\t6\n")
    app = healthy(give(start("data/open"), ("own.nii", recording()), events))
    assert app.title[0].value == "Explore"
    assert len(re.findall('<img[^>]*alt="Component', html(app))) == 4
    digest = app.session_state["config"].dataset
    assert [event["onset"] for event in services.dataset(digest).provenance["events"]] == [4, 20]


def test_gaps_are_counted_where_the_file_is_no_longer_at_hand():
    missing = np.zeros((12, 3), bool)
    missing[2, 0] = missing[[4, 5], 2] = True
    X = np.random.default_rng(0).normal(size=(12, 3))
    data = Dataset("t", X, np.arange(12), feature_names=("a", "b", "c"), missing=missing)
    reading = Reading(data, "", {})
    columns = columns_of(reading)
    assert [column.n_missing for column in columns] == [1, 0, 2]
    said = [contents(reading, column).words for column in columns]
    assert said == ["1 missing", "none missing", "2 missing"]
