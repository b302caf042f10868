"""Screenshots of the running app for the documentation: `python -m docs.pictures [NAME...]`.

Starts the app with an empty home and does what the guides say, with data that ship with the
project or are made here. Writes ``docs/subspaces.png``, ``docs/pictures/*.png``, each with a dark
twin, and ``docs/pictures/readme.png``. With the name ``gallery`` it takes the thumbnails of the
gallery from the built site. Needs the extra ``test`` and a Chromium.
"""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from benchmarks.browser import chromium, served

DOCS = Path(__file__).resolve().parent
WIDTH, HEIGHT, TALL = 1440, 900, 1240
COLOURS = 256  # of a picture as it is stored
PATIENCE = 240_000  # milliseconds, for the slowest answer
CANVAS = ".appca-explorer"
THUMBNAIL = (480, 300)
README = {"width": 960, "height": 720}


def main(names: list[str]) -> None:
    """Write all pictures of the documentation, or those that are named."""
    with (
        tempfile.TemporaryDirectory() as home,
        served(home, APPCA_DATA=home) as address,
        chromium() as browser,
    ):
        for name in PICTURES:
            if names and name not in names:
                continue
            taken(browser, address, name)
        if not names or "readme" in names:
            readme(browser, address)
        if "gallery" in names:
            gallery(browser)


def taken(browser: Any, address: str, name: str) -> None:
    """Take one picture, in a light page and in a dark one."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page.set_default_timeout(PATIENCE)
    height = PICTURES[name](page, address) or HEIGHT
    part = {"x": 0, "y": 0, "width": WIDTH, "height": height}
    for scheme, file in (("light", name), ("dark", f"{name}-dark")):
        page.emulate_media(color_scheme=scheme)
        idle(page)
        page.mouse.move(WIDTH - 2, HEIGHT - 2)
        page.wait_for_timeout(1500)  # images and words fade in
        store(page.screenshot(clip=part), file)
    page.close()


def gallery(browser: Any) -> None:
    """Take thumbnails of the pages of several fits and of the notebooks, from the built site."""
    site = DOCS / "_build/html"
    (DOCS / "pictures/gallery").mkdir(exist_ok=True)
    for file in sorted([*site.glob("demo/*.html"), *(site / "examples").glob("*.html")]):
        page = browser.new_page(viewport={"width": 960, "height": 600}, color_scheme="light")
        page.goto(file.as_uri())
        if file.parent.name == "demo":
            page.locator("html[data-ready=yes]").wait_for()
            page.wait_for_timeout(1500)
            shot = page.screenshot()
        else:
            shown = page.locator(".cell_output img, .cell_output table")
            shot = shown.last.screenshot() if shown.count() else b""
        page.close()
        if shot:
            thumbnail = ImageOps.pad(
                Image.open(io.BytesIO(shot)).convert("RGB"), THUMBNAIL, color="white"
            )
            thumbnail.quantize(COLOURS).save(
                DOCS / f"pictures/gallery/{file.stem}.png", optimize=True
            )


def readme(browser: Any, address: str) -> None:
    """Take the opened panel of the README, large enough that digits can be read there."""
    page = browser.new_page(viewport=README, device_scale_factor=2, color_scheme="light")
    page.set_default_timeout(PATIENCE)
    panel(page, address)
    page.wait_for_timeout(1500)
    box = page.locator(CANVAS).first.bounding_box()
    box["height"] *= 0.762  # without the strip of neighbours
    store(page.screenshot(clip=box), "readme")
    page.close()


def store(shot: bytes, name: str) -> None:
    """Write a screenshot in few colours, which halves it and is not seen."""
    folder = DOCS if name.startswith("subspaces") else DOCS / "pictures"
    file = folder / f"{name}.png"
    file.parent.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(shot)).convert("RGBA")
    # A canvas that is partly out of view has transparent strips in a screenshot, not on a screen.
    picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = picture.convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        file, optimize=True
    )


def idle(page: Any) -> None:
    """Wait until the page is drawn."""
    page.wait_for_selector("[data-test-script-state='notRunning']")
    page.wait_for_timeout(300)
    page.wait_for_selector("[data-test-script-state='notRunning']")


def settled(page: Any, more: str = "") -> None:
    """Wait until the canvas stands still."""
    page.wait_for_selector(f"{CANVAS}[data-settled='yes']{more}")


def explore(page: Any, address: str, query: str = "") -> None:
    """Open the picture of all subspaces."""
    page.goto(f"{address}/{query}")
    settled(page, "[data-thumbnails]")
    idle(page)


def press(page: Any, *keys: str) -> None:
    """Press keys on the canvas."""
    page.locator(".appca-hit").focus()
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(600)


def click(page: Any, key: str) -> None:
    """Press the button of a key of Streamlit."""
    idle(page)
    page.locator(f".st-key-{key} button").first.click()


def built_in(page: Any, address: str, name: str) -> None:
    """Open a data set from its card."""
    page.goto(f"{address}/data")
    click(page, f"source-{name}-open")
    settled(page)
    idle(page)


def panel(page: Any, address: str) -> None:
    """Open a panel."""
    explore(page, address)
    press(page, "ArrowRight", "ArrowRight", "Enter")
    settled(page)


def tour(page: Any, address: str) -> None:
    """Stop halfway from one panel to another."""
    panel(page, address)
    slider = page.locator(".appca-tour input")
    slider.evaluate("(one) => { one.value = 0.5; one.dispatchEvent(new Event('input')); }")


def opened(page: Any, address: str) -> None:
    """Drop a table with gaps and dates."""
    page.goto(f"{address}/data")
    idle(page)
    file = {"name": "measurements.csv", "mimeType": "text/csv", "buffer": table()}
    page.locator("input[type=file]").first.set_input_files(file)
    settled(page)
    page.get_by_text("Read as").wait_for()


def table() -> bytes:
    """Write patients of three kinds as Excel would: semicolons, decimal commas, gaps."""
    rng = np.random.default_rng(4)
    names = ("heart_rate", "pressure", "glucose", "oxygen", "weight", "sleep", "lactate", "pain")
    W = rng.standard_normal((4, len(names)))
    lines = [";".join(("patient", "visit", "ward", *names))]
    for row in range(400):
        kind = row % 3
        scores = np.zeros(4)
        scores[[kind, 3]] = rng.normal(2.5, 0.8), rng.normal(0, 1.2)
        values = 20 + scores @ W + 0.3 * rng.standard_normal(len(names))
        cells = ["" if rng.random() < 0.03 else f"{one:.2f}".replace(".", ",") for one in values]
        day = f"2026-0{1 + row % 6}-{10 + row % 18}"
        lines.append(";".join((f"{1001 + row}", day, ["north", "south", "west"][kind], *cells)))
    return "\n".join(lines).encode()


def choose(page: Any, address: str) -> None:
    """Measure a grid of K and L."""
    opened(page, address)
    page.get_by_role("link", name="Check").click()
    click(page, "grid_start")
    page.get_by_text("Try K =").wait_for()
    page.get_by_role("button", name="Adopt").wait_for()
    page.wait_for_timeout(8000)  # until the notices are gone


def components(page: Any, address: str) -> int:
    """Name two components of the turntable."""
    built_in(page, address, "turntable")
    page.get_by_role("link", name="Components").click()
    idle(page)
    for place, name in enumerate(("lit from the left", "tall")):
        page.locator(".ca-named").nth(place).click()
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        page.locator(".ca-named", has_text=name).wait_for()
        idle(page)
    return 460


def steer(page: Any, address: str) -> int:
    """Drag the point of a row."""
    page.goto(f"{address}/?tab=point")
    page.get_by_text("Steer this row").click()
    page.locator(".ca-steer-plane").wait_for()
    idle(page)
    box = page.locator(".ca-steer-plane").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.3 * box["height"], steps=5)
    page.mouse.up()
    return 760


def compare(page: Any, address: str) -> None:
    """Compare with PCA."""
    page.goto(f"{address}/check?tab=trust")
    page.locator(CANVAS).nth(1).wait_for()


def new_rows(page: Any, address: str) -> int:
    """Describe new digits, six of them noise."""
    from sklearn.datasets import load_digits

    page.set_viewport_size({"width": WIDTH, "height": TALL})
    explore(page, address)
    page.goto(f"{address}/data?tab=add")
    idle(page)
    noise = np.random.default_rng(0).integers(0, 17, (6, 64))
    rows = np.vstack([load_digits().data[:40], noise]).astype(int)
    lines = [",".join(f"pixel{j}" for j in range(64)), *(",".join(map(str, row)) for row in rows)]
    file = {"name": "new.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
    page.locator("input[type=file]").last.set_input_files(file)
    page.get_by_text("new rows do not fit").first.wait_for()
    settled(page)
    return TALL


PICTURES = {
    "subspaces": explore,
    "panel": panel,
    "tour": tour,
    "open": opened,
    "steer": steer,
    "compare": compare,
    "new_rows": new_rows,
    "components": components,
    "choose": choose,
}

if __name__ == "__main__":
    main(sys.argv[1:])
