"""Every page inside the frame: with the bundled digits, with uploads, good and bad, and by URL."""

import io
import zipfile
from functools import partial

import numpy as np
import pytest
from PIL import Image

from appca.analysis.selections import token_of
from appca.analysis.tables import projection_table
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.ui import downloads, fits, frame, state
from appca.ui.state import KEYS
from tests.ui.conftest import address, go, healthy, html, number, sentences, slider

PAGES = {  # place: title
    "explore": "Explore",
    "data/open": "Data",
    "data/this": "Data",
    "data/add": "Data",
    "components/gallery": "Components",
    "components/meaning": "Components",
    "groups/differences": "Groups",
    "groups/unusual": "Groups",
    "check/choose": "Check",
    "check/trust": "Check",
    "check/advanced": "Check",
    "paper": "Paper",
    "export": "Export",
}
DIGITS = 1797


def table_of(text: str) -> tuple[str, bytes, str]:
    return ("own.csv", text.encode(), "text/csv")


def good_table(label: str = "class") -> str:
    rng = np.random.default_rng(0)
    lines = [f"name,{label},a,b,c,d"]
    for row in range(40):
        values = ",".join(f"{value:.4f}" for value in rng.normal(size=4))
        lines.append(f"item {row},{'<b>x</b>' if row % 2 else '=1+1'},{values}")
    return "\n".join(lines)


def upload(app, file: tuple[str, bytes, str]):
    next(one for one in app.get("file_uploader") if "anywhere" in one.label).set_value([file])
    return app.run()


def test_every_page_runs_inside_the_frame(start):
    app = start()
    for page, title in PAGES.items():
        healthy(go(app, page))
        assert [shown.value for shown in app.title] == [title], page
        assert "Handwritten digits" in html(app), page
        assert {"data", "run", "k", "l"} <= set(address(app)), page


def test_the_first_page_is_the_finished_picture_of_the_digits(start):
    app = healthy(start())
    assert (slider(app, "k").value, slider(app, "l").value) == (4, 2)
    assert html(app).count('class="ca-piece"') == 4
    stored = RunStore(home()).list()
    assert [run.id for run in stored] == [address(app)["run"]]
    assert stored[0].config.parameters["n_components"] == 4


def test_moving_k_fits_again_and_moves_the_address(start):
    app = start()
    first = address(app)["run"]
    slider(app, "k").set_value(6).run()
    assert html(healthy(app)).count('class="ca-piece"') == 6
    assert address(app)["k"] == "6"
    assert address(app)["run"] != first
    slider(app, "k").set_value(4).run()
    assert address(app)["run"] == first


def test_k_pushes_l_down_and_l_pushes_k_up(start):
    app = start(k="5", l="4")
    slider(app, "k").set_value(3).run()
    assert (slider(app, "k").value, slider(app, "l").value) == (3, 3)
    slider(app, "l").set_value(5).run()
    assert (slider(app, "k").value, slider(app, "l").value) == (5, 5)
    slider(app, "k").set_value(1).run()
    assert (address(healthy(app))["k"], address(app)["l"]) == ("1", "1")


def test_a_run_comes_back_by_its_address_with_all_settings(start):
    app = start("explore")
    app.selectbox(key="set-init").select("pca").run()
    app.number_input(key="set-random_state").set_value(7).run()
    number(app, "k").set_value(5).run()
    wanted = address(healthy(app))
    again = healthy(start("explore", data=wanted["data"], run=wanted["run"]))
    assert again.selectbox(key="set-init").value == "pca"
    assert again.number_input(key="set-random_state").value == 7
    assert number(again, "k").value == 5
    assert address(again)["run"] == wanted["run"]


def test_an_unknown_data_set_in_the_address_gets_one_sentence_and_the_digits(start):
    app = start(data="f" * 64, k="3")
    assert len(sentences(app)) == 1
    assert "no stored data set" in sentences(app)[0]
    assert "Handwritten digits" in html(app)
    assert healthy(app.run())


@pytest.mark.parametrize(
    "wrong",
    [{"run": "nonsense"}, {"data": "../../etc"}, {"k": "900", "l": "-3"}, {"job": "x", "sel": "y"}],
)
def test_nonsense_in_the_address_still_opens_a_picture(start, wrong):
    app = start(**wrong)
    assert not app.exception
    assert len(sentences(app)) <= 1
    assert slider(app, "k").value >= 1


def test_an_uploaded_table_is_open_on_every_page(start):
    app = upload(start("data/open"), table_of(good_table()))
    assert "40 rows" in html(healthy(app))
    assert address(healthy(app))["data"] != load("digits").digest
    assert "own" in html(app)
    for page in PAGES:
        healthy(go(app, page))


def test_labels_that_look_like_html_are_shown_literally(start):
    app = upload(start("data/open"), table_of(good_table("<script>alert(1)</script>")))
    go(app, "explore")
    select(go(app, "explore/selection"), np.arange(20))
    shown = html(healthy(app))
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert "<b>x</b>" not in shown
    assert "<script>" not in shown


def broken_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.png", b"this is no image")
    return buffer.getvalue()


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "file",
    [
        ("empty.csv", b"", "text/csv"),
        ("head.csv", b"a,b,c\n", "text/csv"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "text/csv"),
        ("objects.npy", pickled(), "application/octet-stream"),
        ("short.npy", b"\x93NUMPY", "application/octet-stream"),
        ("images.zip", broken_zip(), "application/zip"),
        ("no.zip", b"PK\x03\x04 and nothing more", "application/zip"),
    ],
    ids=lambda file: file[0],
)
def test_a_bad_upload_gets_one_sentence_and_leaves_the_session_alive(start, file):
    app = upload(start("data/open"), file)
    assert not app.exception
    assert len(sentences(app)) == 1
    assert sentences(app)[0].endswith(".")
    assert "\n" not in sentences(app)[0]
    healthy(go(app, "explore"))


def test_a_zip_of_images_becomes_a_data_set_with_classes(start):
    rng = np.random.default_rng(1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(12):
            picture = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (9, 7), dtype=np.uint8)).save(picture, "PNG")
            archive.writestr(f"{'cat' if number % 2 else 'dog'}/{number}.png", picture.getvalue())
    app = upload(start("data/open"), ("pets.zip", buffer.getvalue(), "application/zip"))
    assert "9 × 7 pixels" in html(healthy(go(app, "data/this")))
    healthy(go(app, "explore"))


@pytest.mark.parametrize(
    "key",
    ["wine", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("planes", "turntable"))],
)
def test_a_bundled_data_set_is_one_click_away(start, key):
    app = start("data/open")
    app.button(key=f"source-{key}-open").click().run()
    name = load(key).name
    assert name in html(healthy(app))
    assert address(app)["data"] == load(key).digest
    go(app, "explore")
    assert name in html(healthy(app))


def test_preprocessing_is_part_of_the_run(start):
    app = start("data/this")
    before = address(app)["run"]
    app.number_input(key="pre-divide").set_value(2.0).run()
    assert address(healthy(app))["run"] != before
    app.button(key="pre-suggest").click().run()
    assert address(healthy(app))["run"] == before
    app.selectbox(key="pre-reduce").select("dimensions").run()
    app.number_input(key="pre-dimensions").set_value(3).run()
    assert address(healthy(app))["k"] == "3"  # K cannot exceed the dimensions


def select(app, rows: np.ndarray, n_rows: int | None = None):
    """Do what comes of a lasso that is closed."""
    n_rows = n_rows or (DIGITS if "Handwritten" in html(app) else 40)
    mask = np.zeros(n_rows, dtype=bool)
    mask[rows] = True
    state._server_wide()[token_of(mask)] = np.packbits(mask).tobytes()
    app.session_state[KEYS.selections] = {address(app)["data"]: mask}
    return app.run()


def test_a_selection_is_the_same_on_every_page_and_after_a_reload(start):
    app = start()
    select(app, np.array([3, 5, 800]))
    go(healthy(app), "explore/selection")
    assert any("### 3" in text.value for text in healthy(app).markdown)
    go(app, "export")
    assert "Selected (3)" in str(healthy(app).get("button_group")[0].proto)
    reloaded = healthy(start(**address(app)))
    healthy(go(reloaded, "explore/selection"))
    assert any("### 3" in text.value for text in reloaded.markdown)
    reloaded.button(key="tray_clear").click().run()
    assert "sel" not in address(healthy(reloaded))


def test_what_is_saved_holds_the_selected_rows_only(start):
    app = start()
    run = RunStore(home()).get(address(app)["run"])
    shown = fits.Shown(run.config, run.fitted, run.info, run)
    made = partial(projection_table, load("digits"), shown.fitted, np.array([7, 2]))
    text = downloads.file_of("csv", made, shown).decode()
    assert [line.split(",")[0] for line in text.split()] == ["id", "digit-7", "digit-2"]
    go(app, "export")
    saved = [one.proto.label for one in app.get("download_button")]
    assert {"Save figure", "Save CSV", "Save Parquet", "Save NPZ"} <= {*saved}


def test_work_is_opened_renamed_and_deleted_and_the_steps_of_a_slider_are_none(start):
    app = start()
    slider(app, "k").set_value(5).run()
    slider(app, "k").set_value(6).run()
    last = address(app)["run"]
    go(app, "data/open")
    assert [one.key for one in healthy(app).button if (one.key or "").startswith("open-")] == [
        f"open-{last}"
    ]
    app.text_input(key=f"name-{last}").set_value("my <i>work</i>").run()
    assert RunStore(home()).get(last).name == "my <i>work</i>"
    assert "my &lt;i&gt;work&lt;/i&gt;" in html(healthy(app))
    go(app, "data/open").button(key="source-wine-open").click().run()
    go(app, "data/open").button(key=f"open-{last}").click().run()
    assert address(healthy(app))["run"] == last
    go(app, "data/open").button(key=f"delete-{last}").click().run()
    assert RunStore(home()).get(last) is None
    healthy(app)


def test_a_damaged_run_is_named_and_does_not_stop_the_page(start):
    app = start()
    run = RunStore(home()).get(address(app)["run"])
    (run.path / "config.json").write_text("{", encoding="utf-8")
    go(app, "data/open")
    assert not app.exception
    assert any("damaged" in box.value for box in app.warning)


def test_a_run_whose_arrays_are_damaged_is_fitted_again(start):
    wanted = address(start())
    run = RunStore(home()).get(wanted["run"])
    file = run.path / "arrays.npz"
    file.write_bytes(bytes(file.stat().st_size))  # the size alone does not show it
    app = start(**wanted)
    assert not app.exception
    assert html(app).count('class="ca-piece"') == 4
    assert "cannot be read" in sentences(app.run())[0]
    healthy(app.run())
    assert RunStore(home()).get(wanted["run"]).fitted.scores.shape == (DIGITS, 4)


def too_large(*_given: object, **_more: object) -> np.ndarray:
    return np.empty(1 << 62, np.uint8)  # 4 EiB, more than any process can address


@pytest.mark.parametrize("page", ["explore", "components/gallery", "export"])
def test_a_page_without_the_memory_to_draw_says_so_in_a_sentence(start, monkeypatch, page):
    with monkeypatch.context() as patch:
        patch.setattr(fits, "fit_run", too_large)
        app = start(page)
    assert not app.exception
    assert sentences(app) == ["There is not enough memory; use fewer rows or fewer features."]
    assert "Handwritten digits" in html(app)  # the navigation is there to choose other data
    healthy(app.run())  # and the session goes on


def test_a_status_line_without_the_memory_to_draw_leaves_the_page(start, monkeypatch):
    monkeypatch.setattr(frame, "_on_screen", too_large)
    app = start()
    assert not app.exception
    assert html(app).count('class="ca-piece"') == 4
