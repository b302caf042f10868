"""The page Similar objects: with images, with a table, and without labels."""

import re

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.runs.home import home
from appca.ui.session import services
from tests.ui.conftest import address, go, healthy, html, sentences

PAGE = "groups/similar"


def captions(app) -> str:
    return " ".join(caption.value for caption in app.caption)


def open_with(start, dataset: Dataset):
    services.datasets().put(dataset)
    return healthy(start(PAGE, data=dataset.digest))


def test_digits_are_rows_of_images_with_their_classes(start):
    app = healthy(start(PAGE))
    assert html(app).count('class="ca-row"') == 8
    assert html(app).count('class="ca-chips"') == 8
    assert "groups of 3 rows or more in 6 subspaces, together 1,7" in captions(app)
    assert re.search(r"rows\. [\d,]+ groups? joins? different classes", captions(app))
    assert any("Joined most often" in text.value for text in app.markdown)


def test_selecting_a_group_selects_its_rows_on_every_page(start):
    app = start(PAGE)
    assert "sel" not in address(app)
    app.button(key="similar-select-0").click().run()
    assert app.button(key="similar-select-0").disabled
    assert not app.button(key="similar-select-1").disabled
    chosen = address(healthy(app))["sel"]
    assert any("**Selection**" in text.value for text in app.markdown)
    go(app, "explore")
    assert address(healthy(app))["sel"] == chosen


def test_tightest_groups_of_one_class_are_left_out_until_asked_for(start):
    app = start(PAGE)
    joining = html(app)
    app.toggle(key="similar_only").set_value(False).run()
    app.segmented_control(key="similar_order").set_value("tight").run()
    assert html(healthy(app)) != joining
    chips = html(app).split('class="ca-chips"')[1:]
    assert min(part.split("</div>")[0].count("<span") for part in chips) == 1


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", 3, "18 groups of 3 rows or more in 6 subspaces"),
        ("silhouette", 5, "groups of 3 rows or more in 6 subspaces"),
    ],
)
def test_groups_can_be_counted_in_other_ways(start, kind, value, text):
    app = start(PAGE)
    app.selectbox(key="similar_kind").select(kind).run()
    app.number_input(key=f"similar_{kind}-{address(app)['data'][:8]}").set_value(value).run()
    assert text in captions(healthy(app))


def test_a_table_shows_the_lines_nearest_the_centre(start):
    app = open_with(start, load("wine"))
    assert 'class="ca-row"' not in html(app)
    assert html(app).count('class="ca-table ca-plain"') >= 1
    assert "<b>Subspace {" in html(app)


def test_without_labels_the_page_says_what_to_do_and_shows_the_tightest_groups(start):
    wine = load("wine")
    app = open_with(start, Dataset("bare", wine.X, wine.ids))
    assert "has no labels" in app.info[0].value
    assert html(app).count('class="ca-table ca-plain"') >= 1
    assert 'class="ca-chips"' not in html(app)


def test_names_from_files_stay_text(start):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(40, 4)), 5 + rng.normal(size=(40, 4))]
    wild = np.where(rng.random(80) < 0.5, "<b>x</b>", "[a](b) $1$")
    dataset = Dataset("wild", X, wild_ids(80), labels={"<i>kind</i>": wild})
    app = open_with(start, dataset)
    assert "&lt;b&gt;x&lt;/b&gt;" in html(app)
    assert "<b>x</b>" not in html(app)


def wild_ids(n: int) -> np.ndarray:
    return np.array([f"<u>{row}</u>" for row in range(n)])


def test_thin_subspaces_are_grouped_by_pairs_and_too_small_groups_are_not_shown(start):
    app = healthy(start(PAGE, k="12", l="6"))
    assert "in the 40 fullest of 66 pairs" in captions(app)
    assert "<b>Pair {" in html(app)
    three = Dataset("three", np.eye(3), np.array(["a", "b", "c"]))
    app = open_with(start, three)
    assert "No group of 3 or more rows" in app.info[0].value


def test_a_run_that_must_be_started_is_offered(start):
    app = start(PAGE, k="4", l="2")
    go(app, "explore")
    app.selectbox(key="set-model").select("aFA").run()
    go(app, PAGE)
    assert not sentences(app)
    assert app.button(key="start_fit").label == "Start the fit"
    assert home().exists()
