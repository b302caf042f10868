"""A fit that takes its time: what the page says meanwhile, and how it is stopped."""

import pytest

from tests.browser.conftest import ROOT
from tests.browser.test_app import SECOND, idle
from tests.browser.test_explore import settled

pytestmark = pytest.mark.browser
HELD = """
import time

from appca.ui import fits as fitting

if not hasattr(fitting, "fits"):
    fitting.fits, fitting.looks = fitting.fit_run, fitting.preview
    fitting.takes = fitting.estimate_seconds

    def held(dataset, config, callback=None, **more):
        while config.k == 7:
            time.sleep(0.05)
            callback(None)
        return fitting.fits(dataset, config, callback=callback, **more)

    def held_look(dataset, config, watch=bool, **more):
        while config.k == 8:
            time.sleep(0.05)
            watch()
        return fitting.looks(dataset, config, watch=watch, **more)

    def long(n_rows, n_features, config, **more):
        return 9.0 if config.k == 8 else fitting.takes(n_rows, n_features, config, **more)

    fitting.fit_run, fitting.preview, fitting.estimate_seconds = held, held_look, long
"""
STRENGTH = """() => {
  const stale = document.querySelectorAll('.st-key-explore_canvas [data-stale=true]').length;
  for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
  let strength = 1;
  for (let one = document.querySelector('.appca-explorer'); one; one = one.parentElement)
    strength *= Number(getComputedStyle(one).opacity);
  return [stale > 0, strength];
}"""


@pytest.fixture(scope="module")
def page(serve, visit, tmp_path_factory):
    """Open the app where fits of seven components and previews of eight never end by themselves."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "pages").symlink_to(ROOT / "pages")
    app = folder / "app.py"
    app.write_text(HELD + (ROOT / "app.py").read_text())
    opened = visit(f"{serve(app, OMP_NUM_THREADS='1').url}/").page
    settled(opened, "said.rows === '1797'")
    return opened


def choose(page, k: int) -> None:
    idle(page)
    box = page.locator("[class*=st-key-k_typed-] input")
    box.fill(str(k))
    box.press("Enter")


def test_the_picture_does_not_fade_while_a_fit_is_made_and_stop_ends_it(page):
    choose(page, 7)
    fitting = page.locator(".st-key-fitting")
    fitting.get_by_text("Fitting K = 7, L = 2 …").wait_for()
    assert page.evaluate(STRENGTH) == [True, 1]
    assert not page.locator(".ca-outcome").is_visible()
    fitting.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Fit fully").wait_for(timeout=60 * SECOND)
    settled(page, "said.panels === '21'")
    idle(page)
    assert fitting.count() == 0
    assert page.locator(".ca-outcome").inner_text() == "Not fitted yet"


def test_stop_ends_a_preview_at_once_and_the_picture_stays(page):
    choose(page, 4)
    settled(page, "said.panels === '6'")
    choose(page, 8)
    fitting = page.locator(".st-key-fitting")
    fitting.get_by_text("Fitting K = 8, L = 2 …").wait_for()
    fitting.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Start the fit").wait_for(timeout=60 * SECOND)
    idle(page)
    assert fitting.count() == 0
    assert settled(page)["panels"] == "6"
    page.get_by_role("button", name="Start the fit").click()
    settled(page, "said.panels === '28'")


def test_another_k_ends_the_fit_of_the_last_one(page):
    choose(page, 4)
    settled(page, "said.panels === '6'")
    page.get_by_role("button", name="Adaptive PPCA").click()
    seed = page.locator("[class*=st-key-set-random_state] input")
    seed.fill("1")
    seed.press("Enter")
    page.keyboard.press("Escape")
    choose(page, 7)
    page.locator(".st-key-fitting").get_by_text("Fitting K = 7").wait_for()
    box = page.locator("[class*=st-key-k_typed-] input")
    box.fill("5")
    box.press("Enter")
    settled(page, "said.panels === '10'")
    page.wait_for_url("**k=5**", timeout=60 * SECOND)
