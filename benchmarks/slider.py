"""How long from a move of the K slider to redrawn panels, on MNIST.

`APPCA_DATA=... python -m benchmarks.slider ADDRESS`: ADDRESS of a running app, as
http://127.0.0.1:8501. Opens 10,000 and 70,000 digits, moves K from 4 to 5 and then to 6.
"""

import sys
import time

from benchmarks.first_picture import FLAGS

EXPLORER = "document.querySelector('.appca-explorer')"
MINUTE = 60_000  # milliseconds


def main() -> None:
    """Print one line a move."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for n in (10_000, 70_000):
            page = browser.new_page(viewport={"width": 1440, "height": 950})
            open_mnist(page, sys.argv[1], n)
            for k, panels in ((5, 10), (6, 12)):
                page.wait_for_timeout(20_000)  # let the refinement of the picture before end
                page.locator(".st-key-k input").focus()
                began = time.perf_counter()
                page.keyboard.press("ArrowRight")
                wait(page, f"querySelectorAll('.appca-panel').length == {panels}")
                print(f"{n:,} digits, K = {k}: {time.perf_counter() - began:.1f} s", flush=True)
            page.close()
        browser.close()


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
    wait(page, f"dataset.points == {n}")


def wait(page, condition: str) -> None:
    """Wait until the first explorer fulfils a condition on its element."""
    page.wait_for_function(f"() => {EXPLORER}?.{condition}", timeout=2 * MINUTE)


if __name__ == "__main__":
    main()
