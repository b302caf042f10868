"""The page Sharing: circles, words, cautions, popularity, and the paper's preset."""

import csv
import io

import numpy as np
import pytest

from appca.analysis.components.sharing import sharing
from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.runs.configuration import RunConfig
from appca.ui.components import sharing as sharing_page
from appca.ui.parts.class_choice import Classes
from appca.ui.session import services
from appca.ui.session.fitting import Shown
from tests.fitted_runs import fitted_run, info_of
from tests.ui.conftest import address, go, healthy, html, sentences
from tests.ui.session.test_background import ScriptedJobs

PAGE = "components/sharing"


def texts(app) -> str:
    return " ".join(item.value for item in [*app.markdown, *app.caption, *app.info])


def charts(app) -> int:
    return len(app.get("plotly_chart"))


def open_with(start, dataset: Dataset, **more: str):
    services.datasets().put(dataset)
    return healthy(start(PAGE, data=dataset.digest, **more))


def test_digits_have_circles_words_and_bars(start):
    app = healthy(start(PAGE))
    assert charts(app) == 2
    assert "share most of all pairs of different classes" in texts(app)
    assert "1.00 (L²/K" in html(app)
    assert "2 of 4 components" in html(app)
    assert html(app).count('<th scope="row"') == 10


def test_popularity_by_class_is_a_map(start):
    app = start(PAGE)
    app.toggle(key="sharing_by_class").set_value(True).run()
    assert "Colour: the share of a class's rows" in texts(healthy(app))


def test_a_table_works_as_well_as_images(start):
    app = open_with(start, load("wine"))
    assert html(app).count('<th scope="row"') == 3
    assert charts(app) == 2


def test_a_large_l_is_called_meaningless(start):
    app = healthy(start(PAGE, k="4", l="4"))
    assert "the grid says nothing" in texts(app)
    app = healthy(start(PAGE, k="4", l="3"))
    assert "any two rows share at least 2 of their 3 components" in texts(app)


def test_without_labels_the_page_says_what_to_do_and_shows_the_popularity(start):
    wine = load("wine")
    app = open_with(start, Dataset("bare", wine.X, wine.ids))
    assert "has no labels" in app.info[0].value
    assert charts(app) == 1


def test_selected_rows_can_be_compared_with_the_rest(start):
    wine = load("wine")
    bare = Dataset("bare", wine.X, wine.ids)
    app = open_with(start, bare)
    go(app, "groups/similar")
    app.button(key="similar-select-0").click().run()
    go(app, PAGE)
    assert charts(healthy(app)) == 2
    assert "the rest" in html(app)


def test_labels_of_other_kinds_are_chosen_and_numbers_are_not_offered(start):
    wine = load("wine")
    rng = np.random.default_rng(0)
    labels = {"length": rng.normal(size=178), "kind": np.repeat(["<b>a</b>", "b"], 89)}
    app = open_with(start, Dataset("two", wine.X, wine.ids, labels=labels))
    (chooser,) = (box for box in app.selectbox if box.label == "Classes")
    assert chooser.options == ["Kind"]
    assert "&lt;b&gt;a&lt;/b&gt;" in html(app)
    assert "<b>a</b>" not in html(app)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def odd_digits() -> str:
    digits = load("digits")
    odd = np.isin(digits.labels["digit"].astype(str), list("13579"))
    return services.datasets().put(digits.take(odd))


def fits_the_papers_model(jobs: ScriptedJobs, digest: str) -> None:
    download, fit = jobs.jobs.values()
    assert download.kind == "download"
    assert download.spec["key"] == "mnist"
    assert download.spec["options"] == {"classes": ["1", "3", "5", "7", "9"], "per_class": 500}
    config = RunConfig.from_dict(fit.spec["config"])
    assert (fit.kind, config.dataset, config.model) == ("fit", digest, "aFA")
    assert (config.k, config.n_active, config.preprocessing["pca"]) == (100, 50, 350)


def test_the_papers_digits_are_opened_and_fitted_with_one_press(start, jobs):
    app = healthy(start(PAGE))
    app.button(key="sharing_paper").click().run()
    assert app.button(key="sharing_paper").disabled
    digest = odd_digits()
    jobs.end("000000000000", "done", dataset=digest)
    app.run()
    fits_the_papers_model(jobs, digest)
    assert address(healthy(app))["data"] == digest
    assert (address(app)["k"], address(app)["l"]) == ("100", "50")
    assert app.button(key="job_cancel")


def test_the_papers_digits_arrive_after_a_reload_and_on_any_page(start, jobs):
    app = start(PAGE)
    app.button(key="sharing_paper").click().run()
    again = healthy(start("data/recent", job=address(app)["job"]))
    digest = odd_digits()
    jobs.end("000000000000", "done", dataset=digest)
    again.run()
    fits_the_papers_model(jobs, digest)
    assert address(healthy(again))["k"] == "100"


def test_a_failed_download_says_so_and_leaves_the_page_as_it_was(start, jobs):
    app = start(PAGE)
    app.button(key="sharing_paper").click().run()
    jobs.end("000000000000", "failed", "MNIST could not be fetched.")
    app.run()
    assert sentences(app) == ["MNIST could not be fetched."]
    assert not app.button(key="sharing_paper").disabled
    assert charts(app) == 2


def test_the_grid_is_saved_as_a_table_in_which_no_name_is_a_formula():
    found = sharing(np.eye(4, dtype=bool)[[0, 0, 1, 1]], np.array([0, 0, 1, 1]), 2)
    classes = Classes("kind", ("=1+1", 'a "b", c'), np.array([0, 0, 1, 1]))
    lines = list(csv.reader(io.StringIO(sharing_page.grid_csv(found, classes).decode())))
    assert lines[1] == ["'=1+1", "'=1+1", "2", "2", "1.0", "1.0"]
    assert lines[2] == ["'=1+1", 'a "b", c', "2", "2", "0.0", "0.0"]
    assert len(lines) == 5


def test_the_papers_words_stand_beside_the_numbers_of_its_own_data_only():
    names = ("1", "3", "5", "7", "9")
    codes = np.repeat(np.arange(5), 4)
    X = np.random.default_rng(0).random((20, 3))
    own = {"source": "mnist", "options": {"n": 10_000, **sharing_page.ODD}}
    digits = Dataset("odd", X, np.arange(20).astype(str), provenance=own)
    active = np.zeros((20, 4), bool)
    active[np.isin(codes, [0, 3]), 1] = True
    found, classes = sharing(active, codes, 5), Classes("digit", names, codes)
    text = sharing_page.beside_paper(digits, found, classes)
    assert "1 and 7 share 1.00 and 5 and 9 share 0.00" in text
    other = Dataset("odd", X, digits.ids, provenance={"source": "mnist", "options": {"n": 20}})
    assert sharing_page.beside_paper(other, found, classes) is None
    assert sharing_page.beside_paper(digits, found, Classes("part", ("a", "b"), codes % 2)) is None


def some_run(active: np.ndarray, model: str, **parameters) -> Shown:
    return Shown(RunConfig("0" * 64, {}, model, parameters), fitted_run(active), info_of(), None)


def test_of_rows_that_use_different_numbers_of_components_the_page_warns():
    rng = np.random.default_rng(0)
    active, codes = rng.random((30, 6)) < 0.5, np.arange(30) % 3
    shown = some_run(active, "isFA", max_components=20)
    found = sharing(active, codes, 3)
    assert "different numbers of components" in sharing_page.cautions(shown, found)[0]
    lines = sharing_page.numbers(shown, found)
    assert lines["A row uses"] == f"{active.sum(axis=1).mean():.1f} of 6 components on average"
    assert not any("L²/K" in line for line in lines.values())


def test_a_grid_of_equal_circles_is_called_so_and_a_planted_one_is_not():
    codes = np.arange(40) % 2
    alike = np.random.default_rng(1).random((40, 8)).argsort(axis=1) < 3
    alike = np.repeat(alike[::2], 2, axis=0)  # both classes use the same sets
    planted = np.where(codes[:, None] == 0, np.arange(8) < 3, np.arange(8) >= 5)
    for active, warned in ((alike, True), (planted, False)):
        shown = some_run(active, "aPPCA", n_components=8, n_active=3)
        cautions = sharing_page.cautions(shown, sharing(active, codes, 2))
        assert any("nearly alike" in text for text in cautions) == warned
