"""The app in a real browser: the first picture, live sliders, one selection, jobs and reloads."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
DIGITS = 1797
SECOND = 1000  # milliseconds
ATLAS = "document.querySelectorAll('.appca-explorer')[0]"


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def drawn(page, condition: str = "explorer.dataset.renders > 0", seconds: float = 40) -> None:
    """Wait until the first explorer of the page fulfils a condition."""
    page.wait_for_function(
        f"() => {{ const explorer = {ATLAS}; return Boolean(explorer && ({condition})); }}",
        timeout=seconds * SECOND,
    )


def idle(page, seconds: float = 40) -> None:
    """Wait until the script has ended: what is typed into a widget that is redrawn is lost."""
    page.locator("[data-test-script-state=notRunning]").wait_for(timeout=seconds * SECOND)


def panels(page) -> int:
    return page.evaluate(f"{ATLAS}.querySelectorAll('.appca-panel').length")


def selected(page) -> int:
    return int(page.evaluate(f"{ATLAS}.dataset.selected"))


def open_page(page, name: str) -> None:
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("heading", name=name, exact=True, level=1).wait_for(timeout=20 * SECOND)


def select_a_corner(page) -> int:
    """Select the rows of a sign cell by a click on its corner."""
    cell = page.locator(".appca-cell").first
    count = int(cell.locator(".appca-cell-count").inner_text().replace(",", ""))
    cell.click()
    drawn(page, f"explorer.dataset.selected == {count}")
    return count


def test_the_first_page_is_a_finished_picture_without_a_click(visit, address):
    page = visit(f"{address}/").page
    drawn(page, f"explorer.dataset.points == {DIGITS} && explorer.dataset.thumbnails > 20")
    assert panels(page) == 6
    assert page.locator(".ca-card").count() == 4
    assert page.locator("[data-testid=stException]").count() == 0


def test_a_slider_fits_again_and_redraws_in_place(visit, address):
    page = visit(f"{address}/").page
    drawn(page)
    page.evaluate(f"{ATLAS}.dataset.mark = 'same element'")
    page.locator(".st-key-k input").focus()
    page.keyboard.press("ArrowRight")
    drawn(page, "explorer.querySelectorAll('.appca-panel').length == 10")
    page.wait_for_url("**k=5**")
    drawn(page, f"explorer.dataset.points == {DIGITS}")
    assert page.evaluate(f"{ATLAS}.dataset.mark") == "same element"
    page.reload()
    drawn(page, "explorer.querySelectorAll('.appca-panel').length == 10")


@pytest.mark.slow  # test_selection takes one over pages and reloads in every run
def test_one_selection_in_all_pictures_on_all_pages_and_after_a_reload(visit, address):
    page = visit(f"{address}/").page
    drawn(page)
    count = select_a_corner(page)
    page.wait_for_url("**sel=**")
    page.wait_for_function(
        f"() => document.querySelectorAll('.appca-explorer')[1]?.dataset.selected == {count}"
    )
    open_page(page, "Export")
    page.get_by_text(f"Selected ({count:,})").wait_for()
    open_page(page, "Subspaces")
    drawn(page, f"explorer.dataset.selected == {count}")
    page.wait_for_url("**sel=**")
    page.reload()
    drawn(page, f"explorer.dataset.selected == {count}")
    page.locator(".st-key-colour-" + page.url.split("data=")[1][:8]).get_by_text("Residual").click()
    page.get_by_text("Residual", exact=True).first.wait_for()
    drawn(page, f"explorer.dataset.selected == {count}")
    page.locator(".st-key-tray_clear button").click()
    drawn(page, "explorer.dataset.selected == 0")


def set_number(page, name: str, value: int) -> None:
    idle(page)
    box = page.locator(f".st-key-{name} input")
    box.fill(str(value))
    box.press("Enter")


def start_a_long_fit(page, seed: int) -> None:
    """Start what takes minutes: many restarts on many components."""
    page.get_by_role("heading", name="Fit", exact=True, level=1).wait_for(timeout=20 * SECOND)
    set_number(page, "k_typed", 30)
    page.wait_for_url("**k=30**")
    set_number(page, "l_typed", 15)
    page.wait_for_url("**l=15**")
    set_number(page, "set-n_init", 50)
    set_number(page, "set-random_state", seed)
    page.locator(".st-key-start_fit button").click()
    page.locator(".st-key-fit_keep button").first.wait_for()
    page.wait_for_url("**job=**")


def test_a_fit_survives_pages_and_reloads_and_is_cancelled(visit, address):
    page = visit(f"{address}/fit").page
    start_a_long_fit(page, seed=3)
    job = page.url.split("job=")[1].split("&")[0]
    open_page(page, "Runs")
    page.locator(f".st-key-cancel-{job}").wait_for()
    open_page(page, "Fit")
    page.wait_for_url(f"**job={job}**")  # a link of the navigation takes it away for a moment
    idle(page)
    page.reload()
    page.locator(".st-key-fit_keep button").first.wait_for(timeout=20 * SECOND)
    assert page.locator(".st-key-set-n_init input").input_value() == "50"
    assert job in page.url
    page.locator(".st-key-job_cancel button").click()
    page.locator(".st-key-start_fit button").wait_for(timeout=20 * SECOND)
    page.locator(f".st-key-cancel-{job}").wait_for(state="detached", timeout=10 * SECOND)


def test_a_fit_stopped_by_hand_is_kept_and_marked(visit, address):
    page = visit(f"{address}/fit").page
    start_a_long_fit(page, seed=4)
    keep = page.locator(".st-key-fit_keep button").first
    page.wait_for_function("() => !document.querySelector('.st-key-fit_keep button')?.disabled")
    keep.click()
    page.get_by_text("kept as it was then").wait_for(timeout=40 * SECOND)
    open_page(page, "Runs")
    page.get_by_text("stopped by hand").first.wait_for()


@pytest.mark.slow  # a worker does it in test_embedding, test_background has the page: in every run
def test_umap_lays_out_all_rows_in_the_background(visit, address):
    page = visit(f"{address}/data").page
    idle(page)
    page.locator(".st-key-source-wine-open button").click()
    page.locator(".ca-side b", has_text="Wine").wait_for()
    open_page(page, "UMAP")
    page.locator(".st-key-umap_run button").click()
    page.locator(".st-key-job_cancel").wait_for()
    drawn(page, "explorer.dataset.points == 3 * 178", seconds=100)
    assert panels(page) == 3


def test_dark_mode_and_a_narrow_window_show_the_same_picture(visit, address):
    page = visit(f"{address}/", width=900, height=1000, dark=True).page
    drawn(page, f"explorer.dataset.points == {DIGITS}")
    ground = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert sum(map(int, ground.strip("rgb()").split(","))) < 150
    side = page.locator(".ca-cards").bounding_box()
    atlas = page.locator(".appca-explorer").first.bounding_box()
    assert side["y"] > atlas["y"] + atlas["height"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
