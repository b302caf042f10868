"""The canvas in a browser, without Streamlit: what it draws, selects, opens, turns and keeps."""

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.plots.explore.scene.scene import Map, NumberedComponent, scene_of
from appca.plots.palette import Colour
from benchmarks.scenes import write
from tests.fitted_runs import fitted_run

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
N = 900


def write_scene(folder: Path, K: int, L: int, numbers: range | list[int] | None = None) -> None:
    """Rows in random pairs of components, with images of their class."""
    random = np.random.default_rng(3)
    active = np.zeros((N, K), bool)
    for row in range(N):
        active[row, random.permutation(K)[:L]] = True
    scores = np.where(active, random.normal(1, 3, (N, K)), 0).astype(np.float32)
    classes = scores.argmax(1) % 4
    run = fitted_run(
        active,
        scores=scores,
        n_active=L,
        membership=random.random(N).astype(np.float32),
        components=random.normal(size=(K, 144)),
    )
    images = np.zeros((N, 12, 12), np.uint8)
    images[np.arange(N), classes * 3] = 255
    ids = np.array([f"bar {row}" for row in range(N)])
    dataset = Dataset("bars", images.reshape(N, 144).astype(np.float32), ids, image_shape=(12, 12))
    components = [NumberedComponent(number) for number in numbers or range(1, K + 1)]
    colour = Colour("category", "Bar", classes, ("a", "b", "c", "d"))
    scene = scene_of(run, dataset, components, {"label": colour, "other": colour}, {"pca": Map("PCA", scores[:, :2])})
    write(scene, folder)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the canvas, its demo page and scenes of K 4 and 5."""
    folder = tmp_path_factory.mktemp("canvas")
    for name, K, L, numbers in (("two", 5, 2, None), ("three", 5, 3, None), ("six", 6, 2, [1, 2, 3, 4, 5, 9])):
        write_scene(folder / name, K, L, numbers)

    class Files(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            top, _, rest = path.split("?")[0].lstrip("/").partition("/")
            return str({"scenes": folder, "appca": ROOT / "appca"}.get(top, ROOT / "tests/browser" / top) / rest)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/canvas.html"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page(visit: Any, address: str) -> Any:
    """One page for all tests; each begins at all panels with nothing selected."""
    opened = visit(f"{address}?d=two", width=1000, height=760)
    opened.page.wait_for_function("window.ready")
    return opened.page


@pytest.fixture(autouse=True)
def start(page: Any) -> None:
    page.evaluate(
        """async () => {
          const { stage } = canvas;
          if (stage.views[0].layout.name !== 'subspaces') await canvas.morph('subspaces');
          if (stage.views.length > 1) await canvas.update({ options: { beside: '' } });
          if (stage.views[0].opened) canvas.actions.close(stage.views[0]);
          canvas.actions.filter({}); canvas.actions.home(stage.views[0]); canvas.select([]);
          stage.only = -1; told.selections.length = 0;
        }"""
    )
    settle(page)


def settle(page: Any) -> dict[str, str]:
    page.wait_for_function("canvas.stage.root.dataset.settled === 'yes' && !canvas.stage.morph")
    return page.evaluate("({ ...canvas.stage.root.dataset })")


def test_every_row_is_in_the_picture_and_images_are_drawn(page):
    said = settle(page)
    assert (said["rows"], said["points"], said["panels"]) == (str(N), str(N), "10")
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 20")


def test_pixels_of_the_panels_have_the_classes_colours(page):
    found = page.evaluate(
        """() => { const { stage } = canvas; stage.draw(); const { gl } = stage.gpu;
          const { plot } = stage.placed[0]; const bytes = new Uint8Array(4 * 80 * 80);
          gl.readPixels(plot.x, stage.height - plot.y - 80, 80, 80, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
          const seen = new Set(); for (let i = 0; i < bytes.length; i += 4) seen.add(bytes.slice(i, i + 3).join());
          return [...seen].length; }"""
    )
    assert found > 20


def test_a_lasso_selects_in_all_layouts_and_the_host_gets_bits(page):
    box = page.evaluate("(() => { const { card } = canvas.stage.placed[2]; return card })()")
    x, y, w, h = (box[key] for key in "xywh")
    page.keyboard.down("Shift")
    page.mouse.move(x + 2, y + 2)
    page.mouse.down()
    for px, py in ((x + w - 2, y + 2), (x + w - 2, y + h - 2), (x + 2, y + h - 2), (x + 2, y + 8)):
        page.mouse.move(px, py, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    selected = int(settle(page)["selected"])
    panel = page.evaluate("canvas.stage.views[0].layout.panels[2].count")
    assert 0.95 * panel <= selected <= panel
    bits, count = page.evaluate("[Array.from(told.selections.at(-1)[0]), told.selections.at(-1)[1]]")
    assert count == selected == int(np.unpackbits(np.array(bits, np.uint8)).sum())
    page.evaluate("canvas.morph('pca')")
    assert settle(page)["selected"] == str(selected)


def test_the_keys_reach_open_step_and_leave_a_panel(page):
    page.evaluate("canvas.stage.hit.focus()")
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    first = settle(page)["view"]
    page.keyboard.press("ArrowRight")
    second = settle(page)["view"]
    assert first.startswith("subspaces {")
    assert second.startswith("subspaces {")
    assert first != second
    page.keyboard.press("a")
    assert int(settle(page)["selected"]) > 0
    page.keyboard.press("Escape")
    assert settle(page)["view"] == "subspaces"
    assert page.locator(".appca-live").text_content() == "All panels"


def test_a_tour_ends_exactly_on_the_panel(page):
    page.evaluate("canvas.tour('{1,2}', '{1,3}', 0.5)")
    settle(page)
    ends = page.evaluate(
        """() => { const { stage } = canvas; canvas.tour('{1,2}', '{1,3}', 1); stage.draw();
          const { raw, rows, members, frame, range, b } = stage.tour, { layout } = stage.views[0];
          let worst = 0; rows.forEach((row, i) => { if (!(members[i] & 2)) return;
            const at = layout.rows.indexOf(row, b.start);
            const dot = (axis) => axis.reduce((sum, value, k) => sum + value * raw[4 * i + k], 0);
            worst = Math.max(worst, Math.abs(dot(frame.x) - layout.xy[2 * at]), Math.abs(dot(frame.y) - layout.xy[2 * at + 1])); });
          return [worst, range.every((value, k) => value === b.own[k])]; }"""
    )
    assert ends == [0, True]
    page.evaluate("canvas.actions.arrive(canvas.stage.views[0], canvas.stage.tour.b.index)")
    assert settle(page)["view"] == "subspaces {1,3}"


def test_a_new_scene_keeps_selection_and_moves_points_to_its_panels(page):
    page.evaluate("canvas.select([1, 2, 3])")
    page.evaluate("(async () => { window.two = await load('two'); await canvas.update(await load('six')) })()")
    said = settle(page)
    assert (said["panels"], said["selected"]) == ("15", "3")
    assert page.evaluate("canvas.stage.views[0].layout.panels.at(-1).name") == "{5,9}"
    page.evaluate("canvas.update(two)")
    assert settle(page)["panels"] == "10"


def test_a_lost_context_comes_back_with_the_selection(page):
    page.evaluate("canvas.select([5, 6])")
    page.evaluate(
        """() => new Promise((done) => { const { stage } = canvas; const lose = stage.gpu.gl.getExtension('WEBGL_lose_context');
          stage.canvas.addEventListener('webglcontextrestored', () => setTimeout(done, 0), { once: true });
          stage.canvas.addEventListener('webglcontextlost', () => setTimeout(() => lose.restoreContext(), 0), { once: true });
          lose.loseContext(); })"""
    )
    assert settle(page)["selected"] == "2"
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 20")


def test_a_search_goes_to_a_panel_and_to_a_row(page):
    page.evaluate("canvas.stage.hit.focus()")
    page.keyboard.press("/")
    page.keyboard.type("3,2")
    page.keyboard.press("Enter")
    assert settle(page)["view"] == "subspaces {2,3}"
    page.evaluate("canvas.fly({ row: 17 })")
    assert settle(page)["selected"] == "1"


def test_two_views_share_one_selection_and_the_class_alone_is_shown(page):
    page.evaluate("canvas.update({ options: { beside: 'pca' } })")
    assert settle(page)["view"] == "subspaces+pca"
    legend = page.locator(".appca-class").first
    legend.dispatch_event("pointerenter")
    assert page.evaluate("canvas.stage.only") == 0
    legend.dispatch_event("pointerleave")
    assert page.evaluate("canvas.stage.only") == -1


def test_the_hover_card_is_off_the_point_and_inside_the_view(page):
    x, y = page.evaluate(
        """() => { canvas.actions.open(canvas.stage.views[0], 0); canvas.stage.tweens.tick(performance.now() + 999); canvas.stage.settle();
          const one = canvas.stage.placed.find(({ open }) => open), { layout } = canvas.stage.views[0];
          const i = one.panel.start, { plot, range } = one;
          return [plot.x + (layout.xy[2 * i] - range[0]) / (range[1] - range[0]) * plot.w, plot.y + plot.h - (layout.xy[2 * i + 1] - range[2]) / (range[3] - range[2]) * plot.h]; }"""
    )
    settle(page)
    page.mouse.move(x, y)
    card = page.locator(".appca-card")
    card.wait_for(state="visible")
    box = card.bounding_box()
    assert not (box["x"] - 8 < x < box["x"] + box["width"] + 8 and box["y"] - 8 < y < box["y"] + box["height"] + 8)
    assert 0 <= box["x"] <= 1000 - box["width"]
    assert "bar " in card.text_content()


def test_words_stand_on_no_words(page):
    overlaps = page.evaluate(
        """async () => { const { stage } = canvas; canvas.actions.open(stage.views[0], 3); await new Promise((done) => setTimeout(done, 600)); stage.settle();
          const { context } = stage, words = [], write = context.fillText;
          context.fillText = function (text, x, y) { const w = context.measureText(text).width, size = parseFloat(context.font.match(/([\\d.]+)px/)[1]);
            words.push({ text, x: context.textAlign === 'right' ? x - w : context.textAlign === 'center' ? x - w / 2 : x, y, w, h: size * .8 }); return write.call(this, text, x, y); };
          stage.draw(); delete context.fillText;
          return words.flatMap((a, i) => words.slice(i + 1).filter((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h).map((b) => `${a.text} / ${b.text}`)); }"""
    )
    assert overlaps == []


def test_a_filter_hides_rows_and_panels(page):
    page.evaluate("canvas.actions.filter({ components: [0], classes: [1] })")
    settle(page)
    kept, strong = page.evaluate("[canvas.stage.rows.count - canvas.stage.rows.hidden, canvas.stage.placed.filter(({ part, strength }) => !part.inset && strength === 1).length]")
    assert 0 < kept < N
    assert strong == 4


def test_destroy_leaves_nothing_and_another_mount_works(page):
    left = page.evaluate(
        """async () => { const host = document.createElement('div'); host.style.cssText = 'width:400px;height:300px'; document.body.append(host);
          for (let i = 0; i < 18; i += 1) { const one = mount(host, await load('three')); if (i > 15) await one.ready; one.destroy(); }
          const rest = host.childElementCount; host.remove(); return rest; }"""
    )
    assert left == 0
    assert not page.evaluate("canvas.stage.gpu.gl.isContextLost()")


def test_a_seeded_robot_leaves_no_error_and_the_selection_it_knows(page):
    known = page.evaluate(
        """async () => {
          let seed = 7; const random = () => ((seed = Math.imul(seed, 1664525) + 1013904223 >>> 0) / 4294967296);
          const { stage } = canvas, pause = () => new Promise((done) => requestAnimationFrame(done)); let model = new Set();
          for (let i = 0; i < 120; i += 1) {
            const [view] = stage.views, panels = view.layout.panels.length, pick = Math.floor(random() * 10);
            if (pick === 0) canvas.actions.zoom(view, 0.5 + 1.5 * random());
            else if (pick === 1) canvas.actions.home(view);
            else if (pick === 2) { const rows = Array.from({ length: 5 }, () => Math.floor(random() * stage.rows.count)); canvas.select(rows); model = new Set(rows); }
            else if (pick === 3) canvas.actions.open(view, Math.floor(random() * panels));
            else if (pick === 4 && view.opened?.groups[0]) canvas.actions.tour(view, view.opened.groups[0].panels[0], random());
            else if (pick === 5) await canvas.morph(['subspaces', 'pca'][Math.floor(2 * random())]);
            else if (pick === 6) await canvas.update({ options: { theme: random() < 0.5 ? 'dark' : 'light', colouring: random() < 0.5 ? 'other' : 'component:2' } });
            else if (pick === 7) { stage.root.style.width = `${700 + 300 * random()}px`; }
            else if (pick === 8) await canvas.update({ options: { beside: random() < 0.4 ? 'pca' : '' } });
            else if (pick === 9) { const x = 300 * random(), y = 300 * random(); canvas.actions.click(x, y, 'add'); model = new Set([...stage.rows.flags.keys()].filter((row) => stage.rows.flags[row] & 1)); }
            await pause();
          }
          stage.root.style.width = ''; await canvas.update({ options: { theme: 'light', colouring: 'label' } });
          return [[...model].sort().join(), [...stage.rows.flags.keys()].filter((row) => stage.rows.flags[row] & 1).sort().join()]; }"""
    )
    assert known[0] == known[1]
    settle(page)


def test_the_table_for_screen_readers_lists_the_panels(page):
    settle(page)
    rows = page.locator("table.appca-hidden tbody tr")
    assert rows.count() == 10
    meta = json.loads(page.evaluate("JSON.stringify(canvas.stage.meta.layouts.subspaces.panels.map(({ count }) => count))"))
    assert rows.first.locator("td").nth(2).text_content() == str(max(meta))
