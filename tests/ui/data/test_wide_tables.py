"""Tables of very many columns on the pages: no widget and no table grows with them."""

import io

import numpy as np
import pytest

from appca.ui import services, state
from tests.ui.arrivals.test_uploads import field, give
from tests.ui.conftest import address, chosen, go, healthy, html, press

MOST_OPTIONS = 2000  # of one widget
MOST_LETTERS = 500_000  # of all HTML of a page
PAGES = (
    "data/open",
    "explore",
    "explore",
    "explore",
    "groups/differences",
    "components/gallery",
    "check/trust",
    "export",
)


def expression_table(columns, rows=8):
    """Genes as columns, as they come from a sequencer: a sample's name, its group, numbers."""
    rng = np.random.default_rng(0)
    text = io.StringIO()
    text.write(",".join(["sample", "kind", *(f"gene_{j}" for j in range(columns))]) + "\n")
    for i in range(rows):
        cells = rng.normal(size=columns).round(2).astype(str).tolist()
        text.write(",".join([f"s{i}", "ab"[i % 2], *cells]) + "\n")
    return text.getvalue().encode()


def options_of(app):
    widgets = [*app.selectbox, *app.multiselect, *app.radio]
    return {one.label: len(one.options) for one in widgets}


@pytest.mark.parametrize("columns", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_pages_stay_usable_with_very_many_columns(columns, start):
    app = start("data/open")
    app.default_timeout = 100
    give(app, ("genes.csv", expression_table(columns)))
    assert f"8 rows × {columns:,}" in html(healthy(app))
    field(go(app, "data/this"), "Find a column").set_value("gene_17").run()
    assert max(options_of(healthy(app)).values()) < MOST_OPTIONS
    assert "Use " in html(app)
    for page in PAGES:
        go(app, page)
        assert max(options_of(healthy(app)).values(), default=0) < MOST_OPTIONS
        assert len(html(app)) < MOST_LETTERS


def test_columns_with_words_among_numbers_are_left_out_together_where_they_are_many(start):
    head = ",".join(f"c{j}" for j in range(600))
    cells = ["0", "1", "2", "oops", "4", "5", "6", "7", "8"]
    rows = [",".join([str(i % 4), *[cell] * 597, f"{i}.5", "1.5"]) for i, cell in enumerate(cells)]
    app = give(start("data/open"), ("t.csv", "\n".join([head, *rows]).encode()))
    assert "9 rows × 2" in html(healthy(app))


def test_whole_numbers_that_may_be_labels_are_said_and_become_labels_by_one_click(start):
    rng = np.random.default_rng(1)
    lines = [f"{i % 11 + 1},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    app = give(start("data/open"), ("t.csv", "\n".join(["population,a,b", *lines]).encode()))
    assert any("may be labels" in one.value for one in healthy(app).markdown)
    go(app, "data/this")
    assert chosen(app, "Role of population") == "Feature"
    press(app, "read_as", "suggested")
    assert chosen(healthy(app), "Role of population") == "Label"
    assert "as label" not in html(app)
    app.button(key="upload_use").click().run()
    assert "44 rows × 2" in html(healthy(app))


def test_a_feature_that_may_be_a_label_becomes_one_by_a_click_beside_the_picture(start):
    rng = np.random.default_rng(1)
    lines = [f"{i % 11 + 1},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    app = give(start("data/open"), ("t.csv", "\n".join(["population,a,b", *lines]).encode()))
    go(healthy(app), "explore").button(key="assumed_label").click().run()
    assert any("Labels" in one.value and "population" in one.value for one in healthy(app).markdown)
    assert not [one for one in app.button if one.key == "assumed_label"]
    go(app, "data/this")
    assert not [one for one in app.button if one.key == "upload_use"]


def test_classes_are_renamed_and_keep_the_fit(start, monkeypatch):
    steps: list[tuple] = []
    rng = np.random.default_rng(1)
    lines = [f"{'ab'[i % 2]},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    file = ("t.csv", "\n".join(["kind,a,b", *lines]).encode())
    app = give(start("data/open"), file)
    run = address(healthy(app))["run"]
    digest = address(app)["data"]

    monkeypatch.setattr(state, "note", lambda *both: steps.append(both))

    def names() -> list[str]:
        return services.dataset(digest).classes("kind")[0]

    state.rename_class(digest, "kind", "b", "bee")
    state.rename_class(digest, "kind", "a", "ant")
    assert names() == ["ant", "bee"]
    steps[-1][0]()
    assert names() == ["a", "bee"]
    assert address(healthy(app.run()))["run"] == run
    give(go(app, "data/open"), file)
    assert services.dataset(address(healthy(app))["data"]).classes("kind")[0] == ["a", "bee"]
