"""How long from a move of the K slider to the redrawn picture, on MNIST.

`APPCA_DATA=... python -m benchmarks.slider ADDRESS [ROWS ...]`: ADDRESS of a running app with an
empty APPCA_HOME, as http://127.0.0.1:8501. Opens 10,000 and 70,000 digits and moves K by one, up
and down, to settings that have not been fitted yet: each move shows a preview first. The next move
waits until the full fit has replaced it. What passes until the points are in the browser is the
server's work, the way there and the 0.2 s for which Streamlit waits whether the slider moves on;
the rest is the browser's, until the frame after the one that the picture was drawn in. Writes
results/slider.json.
"""

import os
from typing import NamedTuple

from benchmarks import results
from benchmarks.first_picture import FLAGS

MINUTE = 60_000  # milliseconds
MOVES = [  # K, L and the key that leads there, on which slider
    (5, 2, "k", "ArrowRight"),
    (6, 2, "k", "ArrowRight"),
    (7, 2, "k", "ArrowRight"),
    (8, 2, "k", "ArrowRight"),
    (8, 3, "l", "ArrowRight"),
    (7, 3, "k", "ArrowLeft"),
    (6, 3, "k", "ArrowLeft"),
    (5, 3, "k", "ArrowLeft"),
    (4, 3, "k", "ArrowLeft"),
]
EXPLORER = "document.querySelector('.appca-explorer')"
SETTLED = """() => !document.querySelector('[class*=st-key-cancel-]') &&
  !document.querySelector('.st-key-refine') &&
  document.querySelector('[data-test-script-state]')?.dataset.testScriptState === 'notRunning' &&
  ![...document.querySelectorAll('[data-testid=stMain] span')].some(
    (badge) => badge.textContent === 'preview')"""
WATCH = """() => {
  const root = document.querySelector('.st-key-atlas .appca-explorer');
  const pictures = () => [...window.__appca.parcels.keys()].filter(
    (name) => name.startsWith('geometry:')).sort().join();
  const move = { pressed: 0, arrived: 0, drawn: 0 };
  window.sliderMove = move;
  document.addEventListener('keydown', () => {
    Object.assign(move, { pressed: performance.now(), arrived: 0, drawn: 0,
      before: pictures(), renders: root.dataset.renders });
  }, true);
  window.__appca.listeners.add(() => {
    if (!move.pressed || move.arrived || pictures() === move.before) return;
    move.arrived = performance.now();
  });
  new MutationObserver(() => {
    if (!move.arrived || move.drawn || root.dataset.renders === move.renders) return;
    move.renders = root.dataset.renders;
    requestAnimationFrame(() => requestAnimationFrame(() => { move.drawn = performance.now(); }));
  }).observe(root, { attributes: true, attributeFilter: ['data-renders'] });
}"""


class Move(NamedTuple):
    """Seconds of one move."""

    server: float  # until the points are in the browser
    browser: float  # from there to the picture

    @property
    def total(self) -> float:
        """From the key to the picture."""
        return self.server + self.browser

    def __str__(self) -> str:
        return f"{self.total:.2f} s ({self.server:.2f} s server, {self.browser:.2f} s browser)"


def main() -> None:
    """Print one line a move and the median of all moves of K, and write the moves."""
    from playwright.sync_api import sync_playwright

    parser = results.arguments(__doc__)
    parser.add_argument("address", help="of a running app")
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000, 70_000], metavar="ROWS")
    given = parser.parse_args()
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for n in given.sizes:
            page = browser.new_page(viewport={"width": 1440, "height": 950})
            open_mnist(page, given.address, n)
            page.evaluate(WATCH)
            found = []
            for k, active, slider, key in MOVES:
                move = moved(page, slider, key)
                print(f"{n:,} digits, K = {k}, L = {active}: {move}", flush=True)
                row = {"digits": n, "K": k, "L": active, "moved": slider.upper()}
                rows.append(row | {"server_s": move.server, "browser_s": move.browser})
                if slider == "k":
                    found.append(move)
            middle = sorted(found, key=lambda move: move.total)[len(found) // 2]
            load = f"the machine's load is {os.getloadavg()[0]:.1f}"
            print(f"{n:,} digits, median of {len(found)} moves of K: {middle}; {load}")
            page.close()
        browser.close()
    results.write(given.out, "slider", rows)


def moved(page, slider: str, key: str) -> Move:
    """Move a slider by a key when the last picture is final; return how long the next took."""
    page.wait_for_function(SETTLED, timeout=2 * MINUTE)
    page.wait_for_timeout(1000)  # the final picture itself is drawn
    page.locator(f".st-key-{slider} input").focus()
    page.keyboard.press(key)
    page.wait_for_function("() => window.sliderMove.drawn", timeout=2 * MINUTE)
    found = page.evaluate("() => window.sliderMove")
    arrived = (found["arrived"] - found["pressed"]) / 1000
    return Move(arrived, (found["drawn"] - found["arrived"]) / 1000)


def open_mnist(page, address: str, n: int) -> None:
    """Take the first n digits on the Data page and go to the subspaces."""
    page.goto(f"{address}/data")
    page.get_by_role("tab", name="MNIST and COIL-20").click()
    number = page.get_by_label("Take the first so many digits").locator("visible=true").first
    number.fill(str(n))
    number.press("Enter")
    page.wait_for_timeout(1500)  # the form takes the number over
    page.get_by_role("button", name="Open").locator("visible=true").first.click()
    page.get_by_text(f"{n:,} rows × 784").last.wait_for(timeout=MINUTE)
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name="Subspaces").click()
    page.wait_for_function(f"() => {EXPLORER}?.dataset.points == {n}", timeout=2 * MINUTE)


if __name__ == "__main__":
    main()
