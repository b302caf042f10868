"""Tests of the page Export: files of tables, models, figures, sessions, annotated data."""

import io
from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest

from appca import load_model
from appca.analysis.association import associated
from appca.analysis.selections import SelectionStore
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.canvas.panels import colour_choices
from appca.cli import main
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.store import RunStore
from appca.studies.brain import STUDY, titles_of
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.store import StudyStore
from appca.ui import canvas, downloads, export, state
from appca.ui.export import Material, figures, report
from appca.ui.fits import Shown
from tests.canvas.test_file import data_of
from tests.commands.conftest import places
from tests.commands.test_annotated import ADDED, cells, tree
from tests.pages import give
from tests.plots.test_figures import loaded
from tests.ui.conftest import (
    Bar,
    address,
    charts,
    click,
    find,
    go,
    healthy,
    html,
    keys,
    press,
    preview,
    run_of,
    sentences,
    slider,
    stored_run,
    told,
)

__all__ = ["cells", "places"]  # fixtures
FEW, EVIL = load("digits").take(np.arange(300)), '<script src="https://example.org/x.js">'


@pytest.fixture
def made(monkeypatch) -> dict:
    """Return what every button of the page would save, by its key."""
    found = {}

    def take(label, make, file_name, *, key, primary=False):
        del label, primary
        found[key] = (file_name, make)

    monkeypatch.setattr("appca.ui.downloads.save_button", take)
    for module in ("export", "arrivals"):
        monkeypatch.setattr(f"appca.ui.{module}.save_button", take)
    return found


def file(made: dict, key: str) -> bytes:
    content = made[key][1]()
    return content.encode() if isinstance(content, str) else content


def arrays(made: dict, key: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(file(made, key))) as npz:
        return {name: npz[name] for name in npz.files}


def test_each_button_saves_what_it_says(start, made, tmp_path):
    app = healthy(start("export"))
    run = run_of(app)
    scores, columns = run.fitted.scores, [f"component_{k + 1}" for k in range(4)]
    csv = pd.read_csv(io.BytesIO(file(made, "projection-csv")))
    parquet = pd.read_parquet(io.BytesIO(file(made, "projection-parquet")))
    for table in (csv, parquet):
        assert table[columns].to_numpy(np.float32).tolist() == scores.tolist()
    assert arrays(made, "projection-npz")["scores"].tolist() == scores.tolist()
    found = pd.read_csv(io.BytesIO(file(made, "components-csv")))[columns].to_numpy().T
    assert found.tolist() == arrays(made, "components-npz")["components"].tolist()
    (tmp_path / "model.npz").write_bytes(file(made, "model"))
    again = load_model(tmp_path / "model.npz").score_samples(load("digits").X)
    np.testing.assert_allclose(again, run.fitted.log_likelihood_rows, rtol=1e-10)
    assert made["session"][0].endswith(".appca")
    assert "A new file: the rows as X, their labels as obs, and this fit." in told(app)
    digits = load("digits")
    with h5py.File(io.BytesIO(file(made, "h5ad"))) as saved_file:
        np.testing.assert_array_equal(saved_file["X"][()], digits.X)
        assert list(saved_file["obs/_index"].asstr()) == digits.ids.tolist()
        codes, names = (saved_file[f"obs/digit/{part}"] for part in ("codes", "categories"))
        digit = names.asstr()[()][codes[()]] if names.dtype.kind == "O" else names[()][codes[()]]
        assert digit.tolist() == digits.labels["digit"].tolist()
        assert saved_file["varm/appca"].shape[0] == 64
    state.rename(run, 1, "width & <b>")
    app.run()
    for key in ("export_inclusion",):
        healthy(app.toggle(key=key).set_value(True).run())
    heading = file(made, "projection-csv").decode().splitlines()[0].split(",")
    assert heading[3:7] == ["component_1", "width & <b>", "component_3", "component_4"]
    assert heading[7:11] == [f"inclusion_{k}" for k in (1, 2, 3, 4)]


SAVED = (
    *("projection-csv", "projection-parquet", "projection-npz", "components-csv"),
    *("picture", "components-png"),
)


def test_work_opens_elsewhere_with_the_same_canvas_and_files(start, made, tmp_path, monkeypatch):
    sent: dict = {}
    monkeypatch.setattr(canvas, "_canvas", lambda key, data, **_: sent.update({key: data}))
    app = start("explore", data=FEW)
    for size, value in (("k", 6), ("l", 3), ("l", 2), ("k", 5), ("k", 6)):
        slider(app, size).set_value(value).run()
    run = run_of(app)
    SelectionStore(home()).save(run.config.dataset, "few", np.arange(run.info.n_rows) < 7)
    rows = np.random.default_rng(0).normal(size=(run.info.n_rows, 2)).astype(np.float32)
    laid_out = EmbeddingConfig(run.config.dataset, run.config.preprocessing)
    EmbeddingStore(home()).save(laid_out, Embedding(rows))
    healthy(press(app, "drawer_components", "rename", 1, "slant"))
    healthy(press(app, "drawer_components", "flip", 0))
    Bar(app).send("colour", "residual")
    Bar(app).send("view", "umap")
    press(app, "drawer_components", "users", 1)
    go(app, "explore")
    seen = canvas_of(sent)
    sent.clear()
    healthy(start("explore", **address(app)))  # a reload
    assert canvas_of(sent) == seen
    healthy(go(app, "export"))
    assert find(app.selectbox, "Colour by").value == "residual"
    assert {"PCA", "UMAP"} <= {*find(app.segmented_control, "Which").options}
    content, ours = file(made, "session"), {key: file(made, key) for key in SAVED}
    numbering = ComponentNumbers(home()).of_run(run)
    (tmp_path / "model.npz").write_bytes(file(made, "model"))
    saved = load_model(tmp_path / "model.npz").estimator_.components_
    assert saved.tobytes() == numbered(run.fitted, numbering).components.tobytes()

    monkeypatch.setenv("APPCA_HOME", str(tmp_path / "other"))
    sent.clear()
    fresh = give(start("data/open"), (made["session"][0], content))
    notices = " ".join(one.value.replace("\\", "") for one in healthy(fresh).toast)
    assert "is open, with 1 fit and 1 kept selection" in notices
    healthy(go(fresh, "explore"))
    assert canvas_of(sent) == seen
    assert (seen["options"]["colouring"], seen["options"]["layout"]) == ("residual", "umap")
    assert seen["selected"]
    opened = RunStore(tmp_path / "other").get(address(fresh)["run"])
    assert opened.name == f"{run.name} (imported)"
    assert opened.fitted.scores.tobytes() == run.fitted.scores.tobytes()
    assert ComponentNumbers(tmp_path / "other").of_run(opened) == numbering
    assert numbering.names[1] == "slant"
    healthy(go(fresh, "export"))
    assert [key for key in SAVED if file(made, key) != ours[key]] == []


def canvas_of(told: dict) -> dict:
    """What the page tells its canvas, but for what is new: that depends on the picture before."""
    data = told["canvas"]
    data["options"].pop("came", None)
    shown = {name: data["scene"][name] for name in ("meta", "buffers", "sheets", "components")}
    return {"scene": shown, **{name: data[name] for name in ("options", "selected", "height")}}


def test_pictures_load_nothing_and_have_the_signs_on_screen(start, made, monkeypatch):
    drawn, seen = [], lambda key, make: drawn.append(preview(key, make)) or drawn[-1]
    monkeypatch.setattr(export, "preview", seen)
    app = start(data=FEW)
    run = run_of(app)
    state.rename(run, 0, EVIL)
    healthy(go(app, "export"))
    text = file(made, "picture").decode()
    assert (loaded(text), text.count("</script>")) == ([], 2)
    assert EVIL not in text
    data = data_of(text)
    assert (data["meta"]["rows"], data["meta"]["first"]) == (300, "subspaces")
    assert len(data["sheets"]) == 1
    assert RunStore(home()).get(run.id).kept
    app.segmented_control(key="export_figure").set_value("components").run()
    keys = ("components-png", "picture", "figure-components")
    before = [file(made, key) for key in keys]
    assert drawn[-1] == before[2]  # on the page
    state.flip(run, 0)
    healthy(app.run())
    assert [file(made, key) == old for key, old in zip(keys, before, strict=True)] == [False] * 3
    state.flip(run, 0)
    healthy(app.run())
    assert file(made, "components-png") == before[0]


def test_the_report_says_all_of_it_literally_and_loads_nothing():
    rng, names = np.random.default_rng(0), tuple(f"{EVIL}{j}" for j in range(16))
    labels = {"weight": rng.random(90), EVIL: np.array([f"a{EVIL}", "b"])[np.arange(90) % 2]}
    X = rng.random((90, 16))
    X[7, 3] = 50.0
    dataset = Dataset(EVIL, X, [f"r{n}" for n in range(90)], labels, None, names)
    run = stored_run(dataset, "aPPCA", {"centre": True}, n_components=3)
    selected = np.arange(90) < 9
    SelectionStore(home()).save(dataset.digest, "the first nine", selected)
    fitted = run.fitted.arranged(range(3), [1] * 3, ("Fullness", "", ""))
    shown, findings = Shown(run.config, fitted, run.info, None), ["The b differ."]
    material = Material(dataset, shown, f"label:{EVIL}", selected, rng.random((90, 2)), findings)
    assert "Associations with columns are not computed" in report(material, "")
    order, rows = {"row order": np.arange(90)}, (fitted.scores, fitted.active)
    tests = associated(*rows, order | {EVIL: labels[EVIL]}, (), order).assign(q=0.01)
    text = report(material._replace(associations=tests), f"# {EVIL}\nrun()")
    axes = figures(material)["subspaces"]().axes
    assert "1 Fullness →" in {text for of in axes for text in (of.get_xlabel(), of.get_ylabel())}
    assert "<th>weight</th>" not in text, "a number is no class"
    assert all(source.startswith("data:image/png;base64,") for source in loaded(text))
    assert "<script" not in text
    assert text.count("<img ") >= len(figures(material))
    words = ["9 of 90 rows", "the first nine", "The b differ.", "12 of 12 tests have q below 5%"]
    words += ["1 · Fullness</td><td>use", "row order (artifact?)", run.id, dataset.digest]
    words += [
        "Halves not fitted yet</td><td>not checked",
        "<td>r7</td><td>far",
        "“r5”, “r6”, “r7”, “r8”",
    ]
    assert [each for each in (*words, "scikit-learn") if each not in text] == []
    headings = ["Data", "Settings", "Fit", "Selection", "Named selections", "Can I trust it?"]
    headings += ["Unusual rows", "Components", "Subspaces", "Figure: UMAP"]
    assert [each for each in headings if f"<h2>{each}</h2>" not in text] == []


def test_a_selection_is_marked_in_figures_and_only_its_images_are_drawn():
    dataset = load("digits").take(np.arange(200))
    run = stored_run(dataset, "aPPCA", {"divide": 16.0}, n_components=3)
    colour = next(iter(colour_choices(dataset)))
    whole = Material(dataset, Shown(run.config, run.fitted, run.info, None), colour)
    selected = np.zeros(200, bool)
    selected[[3, 50, 120]] = True
    marked = figures(whole._replace(selected=selected))["subspaces"]()
    both = (marked, figures(whole)["subspaces"]())
    assert "Not checked yet." in report(whole, "")
    few, many = (sum(len(axes.artists) for axes in figure.axes) for figure in both)
    assert few <= 3 < many
    points = [axes.collections[0].get_edgecolor() for axes in marked.axes if axes.collections]
    assert sum(int((colours[:, 3] > 0.5).sum()) for colours in points) == 3
    names, selected = np.array([f"{i}th" for i in range(178)]), selected[:178]
    run = stored_run(named := replace(load("wine"), ids=names), "aPPCA", {}, n_components=3)
    of = named, Shown(run.config, run.fitted, run.info, None), "label:cultivar", selected
    (axes,) = figures(Material(*of))["pca"]().axes
    assert {*names[selected]} == {text.get_text() for text in axes.texts} & {*names}


def test_names_of_files_hold_letters_digits_and_strokes_only():
    named = [downloads.stem_of(name) for name in ("../My <data>: 8 x 8", "…", "é" * 99)]
    assert named == ["My-data-8-x-8", "data", "é" * 40]


def test_the_file_that_was_opened_gets_the_fit_and_keeps_everything_else(start, made, cells):
    content = (cells.name, cells.read_bytes())
    app = healthy(go(healthy(give(start("data/open"), content)), "export"))
    assert "“cells.h5ad” with this fit. Nothing else in the file is changed." in told(app)
    before, after = tree(cells), tree(saved := io.BytesIO(file(made, "h5ad")))
    assert {name for name, digest in before.items() if after.get(name) != digest} == {"obs"}
    new = after.keys() - before.keys() - {"obsm", "varm", "uns"}
    assert all(name.startswith(ADDED) for name in new)
    run = run_of(app)
    with h5py.File(saved) as saved_file:
        scores = saved_file["obsm/X_appca"][()]
        assert saved_file["uns/appca/params/model"][()] == b"aPPCA"
        assert saved_file["uns/appca/variance_ratio"].shape == (scores.shape[1],)
    np.testing.assert_array_equal(scores != 0, run.fitted.scores != 0)
    app = healthy(start("export", data=address(app)["data"]))  # the file is not at hand any more
    assert "To add the fit to “cells.h5ad” instead, open that file again." in told(app)
    app = healthy(go(give(go(app, "data/open"), content), "export"))
    assert "“cells.h5ad” with this fit." in told(app)


def test_what_was_opened_by_its_path_gets_the_fit_until_it_changes(start, made, cells, places):
    assert main([str(cells)]) == 0
    app = healthy(start("export", data=places[0]["data"]))
    assert "“cells.h5ad” with this fit. Nothing else in the file is changed." in told(app)
    run = run_of(app)
    with h5py.File(io.BytesIO(file(made, "h5ad"))) as there:
        np.testing.assert_allclose(there["obsm/X_appca"][()], run.fitted.scores)
    cells.write_bytes(b"{}")
    assert "open that file again" in told(healthy(go(app, "export")))


def test_anndata_takes_a_new_file(start, made, tmp_path):
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    healthy(start("export"))
    (tmp_path / "digits.h5ad").write_bytes(file(made, "h5ad"))
    adata = ad.read_h5ad(tmp_path / "digits.h5ad")
    assert adata.shape == load("digits").X.shape
    assert adata.obs["appca_support"].cat.categories[0].startswith("{")
    adata.write_h5ad(tmp_path / "again.h5ad")


PAGE = "paper"


def experiment(start, name: str, **address: object):
    app = healthy(start(PAGE, **address))
    return healthy(app.toggle(key=f"experiment_{name}").set_value(True).run())


def test_results_stand_there_at_once_and_are_computed_anew(start, jobs, monkeypatch):
    without = {name: one for name, one in shipped().items() if name != "umap"}
    monkeypatch.setattr("appca.ui.paper.shipped", lambda: without)
    app = healthy(start(PAGE))
    assert len(charts(app)) == len(without)
    text = html(app)
    places = [text.index(f'id="{study.name}"') for study in STUDIES.values()]
    assert places == sorted(places)
    assert "✓" in text
    assert "Not computed yet · about 30 s" in told(app)
    few = {"popularity": without["popularity"]}  # the others are drawn, and checked, once
    monkeypatch.setattr("appca.ui.paper.shipped", lambda: few)
    app.button(key="paper_run_umap").click().run()
    (job,) = jobs.jobs
    assert jobs.keys[job] == STUDIES["umap"].id(STUDIES["umap"].options())
    assert "paper_cancel_umap" in keys(healthy(app))
    jobs.cancel(job)
    app.run()
    study = STUDIES["popularity"]
    assert study.paper in told(click(app, "paper_why_popularity"))
    assert "python -m appca paper popularity" in app.code[0].value
    app.button(key="again_popularity").click().run()
    job, again = list(jobs.jobs)[-1], healthy(start(PAGE, **address(app)))
    assert "paper_cancel_popularity" in keys(again)
    options = without["popularity"].options
    assert jobs.keys[job] == study.id(options)
    outcome = without["popularity"].outcome
    claims = tuple(one._replace(value=f"{one.value} here") for one in outcome.claims)
    StudyStore(home()).save(study, options, outcome._replace(claims=claims), 9.0)
    jobs.end(job, "done", study=study.id(options))
    assert all(claim.value in html(healthy(again.run())) for claim in claims)


def test_z_is_there_at_once_and_its_data_open(start, monkeypatch):
    monkeypatch.setattr("appca.ui.paper.shipped", dict)
    app = experiment(start, "lab")
    assert len(charts(app)) == 1
    assert "5.0 of 10" in html(app)
    app.number_input(key="lab_n_active").set_value(11).run()
    assert sentences(app) == ["n_active must be between 1 and n_components=10; got 11."]
    for name, value in (("n_rows", 90), ("n_components", 6), ("n_active", 3)):
        app.number_input(key=f"lab_{name}").set_value(value).run()
    assert len(charts(healthy(app))) == 1
    assert (address(click(app, "lab_open"))["k"], address(app)["l"]) == ("6", "3")
    assert app.button(key="lab_open").disabled


def test_what_ships_is_shown_until_the_recording_is_separated_here(start):
    ships, made_up = shipped()["fmri"].outcome, STUDY.options("quick")
    StudyStore(home()).save(STUDY, made_up, ships._replace(text="Of another recording."), 5.0)
    app = experiment(start, "brain")
    assert len(charts(app)) == len(shipped()) + 2
    assert ships.text in html(app)
    assert "Of another recording." not in html(app), "it is not judged as the paper's"
    StudyStore(home()).save(STUDY, STUDY.options(), ships._replace(text="Own."), 5.0)
    assert "Own." in html(healthy(app.run()))
    saves = {button.proto.label for button in app.get("download_button")}
    assert saves >= set(titles_of(ships).values())


def test_data_without_classes_are_told_so(start):
    plain = Dataset("plain", np.random.default_rng(0).standard_normal((40, 5)), np.arange(40))
    app = experiment(start, "whitening", data=plain)
    assert "names the class of each row" in app.info[0].value
    assert "whitening_run" not in keys(app)
