"""Tests of the widget in JupyterLab and marimo: selections in both directions (`.ci/installed`)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import FLAGS, ROOT, WAIT_MS, _free_port, wait_for

nbformat = pytest.importorskip("nbformat", reason="`.ci/installed` has JupyterLab and marimo")
pytest.importorskip("marimo", reason="`.ci/installed` has JupyterLab and marimo")
pytestmark = pytest.mark.browser

MODEL = """\
import appca
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
model = appca.AdaptivePPCA(n_components=5, n_active=2, random_state=0).fit(X)
widget = appca.explore(model, X, labels=y, images=(8, 8))"""
CELLS = (
    f"{MODEL}\nwidget",
    "print('selected', len(widget.selection), (widget.selection >= 0).all())",
    "widget.selection = [1, 2, 3]",
    "widget.model = appca.AdaptivePPCA(n_components=6, n_active=2, random_state=0).fit(X)",
)
APP = f"""\
import marimo
app = marimo.App()

@app.cell
def _():
    import marimo as mo
    {MODEL.replace(chr(10), chr(10) + "    ")}
    explorer = mo.ui.anywidget(widget)
    explorer
    return appca, X, explorer, mo, widget

@app.cell
def _(explorer, mo):
    explorer.value
    mo.md(f"selected {{len(explorer.selection)}}")
    return

@app.cell
def _(X, appca, explorer, mo):
    def choose(_):
        explorer.selection = [1, 2, 3]

    def change(_):
        explorer.model = appca.AdaptivePPCA(n_components=6, n_active=2, random_state=0).fit(X)

    buttons = [mo.ui.button(label="choose", on_click=choose),
               mo.ui.button(label="change", on_click=change)]
    mo.hstack(buttons)
    return buttons

if __name__ == "__main__":
    app.run()
"""
STANDS = """(rows) => {
  const inside = (node) => [...node.querySelectorAll('*')].flatMap((one) =>
    [one, ...(one.shadowRoot ? inside(one.shadowRoot) : [])]);
  const found = inside(document).find((one) => one.classList.contains('appca-explorer'));
  const { settled, selected } = found?.dataset ?? {};
  return settled === 'yes' && (rows === null || selected === String(rows));
}"""


def notebook() -> "nbformat.NotebookNode":
    cells = [nbformat.v4.new_code_cell(one) for one in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory) -> dict[str, str]:
    """Keep everything that Jupyter, marimo and appca write in a folder of the tests."""
    home = tmp_path_factory.mktemp("home")
    own = {name: str(home) for name in ("HOME", "APPCA_HOME", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    return os.environ | own | {"PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def page() -> Iterator:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[*FLAGS])
        page = browser.new_page(viewport={"width": 1200, "height": 1000}, color_scheme="light")
        page.set_default_timeout(WAIT_MS)
        yield page
        browser.close()


def served(command: list[str], address: str, folder: Path, environment: dict[str, str]) -> Iterator:
    """Start a server, wait until it answers, and end it with the test."""
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        wait_for(address, process, folder / "server.log")
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def lab(tmp_path, environment) -> Iterator[str]:
    nbformat.write(notebook(), tmp_path / "picture.ipynb")
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=", f"--port={port}"]
    options += ["--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True"]
    yield from (
        f"{address}/lab/tree/picture.ipynb"
        for _ in served(["jupyterlab", *options], f"{address}/api", tmp_path, environment)
    )


@pytest.fixture
def marimo(tmp_path, environment) -> Iterator[str]:
    (tmp_path / "app.py").write_text(APP)
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    command = ["marimo", "run", "app.py", "--headless", "--no-token", "--port", str(port)]
    yield from (address for _ in served(command, address, tmp_path, environment))


def stands(page, selected: int | None = None) -> None:
    page.wait_for_function(STANDS, arg=selected, timeout=2 * WAIT_MS)


def lasso(page) -> int:
    """Draw a lasso around the middle of the map; return how many rows it has selected."""
    page.get_by_role("button", name="Lasso").click()
    box = page.locator(".appca-explorer").bounding_box()
    corners = [(0.06, 0.5), (0.48, 0.5), (0.48, 0.82), (0.06, 0.82), (0.06, 0.5)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()
    page.locator(".appca-controls output", has_text="selected").wait_for()
    stands(page)  # a late frame is announced after the text
    return int(page.locator(".appca-explorer").get_attribute("data-selected"))


def test_jupyterlab_reads_a_lasso_and_selects(page, lab):
    def run(cell: int) -> None:
        page.evaluate(f"jupyterapp.shell.currentWidget.content.activeCellIndex = {cell}")
        page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")

    page.goto(lab)
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    run(0)
    stands(page, 0)
    count = lasso(page)
    assert count > 10
    run(1)
    page.locator(".jp-OutputArea-output", has_text=f"selected {count} True").wait_for()
    run(2)
    stands(page, 3)
    run(3)
    page.locator(".appca-explorer[data-panels='15']").wait_for()


def test_marimo_reads_a_lasso_and_selects(page, marimo):
    page.goto(marimo)
    stands(page, 0)
    count = lasso(page)
    assert count > 10
    page.get_by_text(f"selected {count}", exact=True).last.wait_for()
    page.get_by_role("button", name="choose").click()
    stands(page, 3)
    page.get_by_role("button", name="change").click()
    page.locator(".appca-explorer[data-panels='15']").wait_for()
