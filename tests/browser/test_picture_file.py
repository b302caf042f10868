"""The picture as one HTML file, opened from the disk: 10,000 images, no request but for itself."""

import numpy as np
import pytest

import appca
from appca.analysis.components import principal_scores
from appca.canvas.html import picture_page
from appca.canvas.scene import Map, scene_shown
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.runs.fit import preview
from appca.runs.run import RunConfig, defaults
from tests.browser.conftest import WAIT_MS

pytestmark = pytest.mark.browser
N = 10_000
MOST_BYTES = 4_000_000


def images() -> Dataset:
    """The digits of scikit-learn, larger, shifted and noisy."""
    small, rng = load("digits"), np.random.default_rng(0)
    rows = rng.integers(0, small.n_rows, N)
    wide = np.zeros((N, 28, 28), np.uint8)
    wide[:, 2:26, 2:26] = (15 * small.X[rows].reshape(N, 8, 8)).repeat(3, 1).repeat(3, 2)
    ink = np.clip(wide + rng.integers(-3, 4, wide.shape), 0, 255) * (wide > 0)
    X = np.roll(ink, 1, axis=2).reshape(N, 784).astype(np.uint8)
    labels = {"digit": small.labels["digit"][rows]}
    return Dataset("images", X, np.arange(N).astype(str), labels, (28, 28))


def file_of(dataset: Dataset) -> bytes:
    parameters = defaults("aPPCA") | {"n_components": 5, "n_active": 2}
    config = RunConfig(dataset.digest, {"divide": 255.0}, "aPPCA", parameters)
    principal = principal_scores(dataset.X.astype(np.float32))[0]
    maps = {"pca": Map("PCA", principal)}
    scene = scene_shown(dataset, preview(dataset, config).fitted, maps)
    return picture_page([scene], dataset.name, next(iter(scene.meta["colourings"])))


@pytest.fixture
def opened(browsers):
    """Return what opens a file with all other requests blocked; at the end there was none."""
    blocked, errors, contexts = [], [], []

    def open_file(made):
        def only_files(route) -> None:
            if route.request.url == made.as_uri() or route.request.url.startswith("data:"):
                route.continue_()
            else:
                blocked.append(route.request.url)
                route.abort()

        contexts.append(browsers().new_context(viewport={"width": 1200, "height": 800}))
        contexts[-1].set_default_timeout(WAIT_MS)
        contexts[-1].route("**/*", only_files)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(made.as_uri())
        page.locator("html[data-ready=yes]").wait_for()
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert (blocked, errors) == ([], [])


def settled(page, condition: str = "true") -> None:
    page.wait_for_function(
        "() => { const said = appca.stage.root.dataset;"
        f" return said.settled === 'yes' && Boolean({condition}); }}"
    )


def lasso(page, box) -> None:
    page.get_by_role("button", name="Lasso").first.click()
    corners = [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def test_ten_thousand_images_are_explored_found_and_turned_in_one_file(opened, tmp_path):
    made = tmp_path / "picture.html"
    made.write_bytes(file_of(images()))
    assert made.stat().st_size <= MOST_BYTES
    page = opened(made)
    settled(page, f"said.rows == {N} && said.thumbnails > 10")
    page.get_by_label("Colour", exact=True).select_option("residual")
    settled(page, "appca.stage.colouringName === 'residual'")
    page.get_by_label("Colour", exact=True).select_option("label:digit")
    page.get_by_role("radio", name="PCA").check(force=True)
    settled(page, "said.view === 'pca' && said.thumbnails > 10")
    box = page.locator(".appca-hit").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    card = page.locator(".appca-card")
    card.wait_for(state="visible")
    assert card.locator("canvas").is_visible()
    assert "digit" in card.text_content()
    lasso(page, box)
    settled(page, "said.selected > 1000")
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Subspaces").check(force=True)
    settled(page, "said.view === 'subspaces'")
    page.evaluate("appca.stage.hit.focus()")
    page.keyboard.press("/")
    page.keyboard.type("row 4321")
    page.locator(".appca-found [role=option]").first.wait_for()
    page.keyboard.press("Enter")
    settled(page, "said.selected == 1")
    page.evaluate("appca.actions.open(appca.stage.views[0], 0)")
    settled(page, "said.view.includes('{')")
    page.get_by_role("button", name="Play the turn (T)").click()
    page.wait_for_function("() => appca.stage.tour && appca.stage.tour.t > 0")


def test_sliders_of_k_and_l_move_between_the_fits_of_a_file(opened, tmp_path):
    made, wine = tmp_path / "sliders.html", load("wine")
    X = (wine.X - wine.X.mean(axis=0)) / wine.X.std(axis=0)
    model = appca.AdaptivePPCA(random_state=0)
    appca.save_html(made, model, X, wine.labels, n_components=(2, 3, 5), n_active=(1, 2, 3))
    page = opened(made)
    k = page.get_by_role("slider", name="Components, K")
    active = page.get_by_role("slider", name="Components a row uses, L")
    shown = lambda: [slider.get_attribute("aria-valuetext") for slider in (k, active)]  # noqa: E731
    assert shown() == ["K = 3", "L = 2"]
    assert not page.locator("header button").filter(visible=True).count(), "no step to undo"
    settled(page, "said.panels == 3")
    page.evaluate("appca.select([3, 5])")
    k.press("ArrowRight")
    settled(page, "said.panels == 10")
    assert shown() == ["K = 5", "L = 2"]
    active.press("ArrowRight")
    page.get_by_role("radio", name="Pairs").check(force=True)  # not there for L = 2
    settled(page, "said.view == 'pairs'")
    k.press("Home")
    settled(page, "said.panels == 1")
    assert shown() == ["K = 2", "L = 2"], "two components allow at most two in a row"
    assert page.evaluate("appca.stage.rows.selected") == 2, "the selection stays"
    assert page.locator("output.appca-count").inner_text() == "2 selected"
    k.press("End")
    settled(page, "said.panels == 10")
    assert shown() == ["K = 5", "L = 3"], "the L that was wanted comes back"
    active.press("Home")
    settled(page, "said.panels == 5")
