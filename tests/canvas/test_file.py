"""The picture of a model as a file: all rows are in it, and it asks the network for nothing."""

import base64
import json
import re
import zlib

import numpy as np
import pandas as pd
import pytest

import appca
from appca.canvas.from_model import rows_of, run_of, scene_of_rows
from appca.cli import main
from appca.data.sources import load
from appca.runs.numbering import numbered_after
from appca.words import InputError


def content_of(page: str) -> dict:
    """Return what the page's script reads."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def data_of(page: str) -> dict:
    """Return what the script reads of a page of one fit."""
    content = content_of(page)
    (stored,) = content["fits"]
    return content | fit_of(content, stored)


def fit_of(content: dict, stored: dict) -> dict:
    """Return header and buffers of a fit, which are places among the packed texts."""
    meta = json.loads(values_of(content["packed"][stored["meta"]], "u1").tobytes())
    buffers = {name: content["packed"][place] for name, place in stored["buffers"].items()}
    return {"meta": meta, "buffers": buffers, "size": stored["size"]}


def values_of(text: str, dtype: str | np.dtype) -> np.ndarray:
    """Undo how a buffer is packed: bytes of one rank together, deflated, after their number."""
    content = base64.b64decode(text)
    ranks = np.frombuffer(zlib.decompress(content[1:]), np.uint8).reshape(content[0], -1)
    return np.ascontiguousarray(ranks.T).view(dtype).ravel()


@pytest.fixture(scope="module")
def model():
    wine = load("wine")
    X = (wine.X - wine.X.mean(axis=0)) / wine.X.std(axis=0)
    return appca.AdaptivePPCA(3, 1, random_state=0).fit(X), X, wine.labels["cultivar"]


def check(saved, scene):
    """Compare a stored fit with the scene that it was made of."""
    assert saved["meta"]["rows"] == scene.meta["rows"]
    assert set(saved["buffers"]) == set(scene.buffers)
    for name, buffer in scene.buffers.items():
        values = values_of(saved["buffers"][name], buffer.dtype.newbyteorder("<"))
        np.testing.assert_array_equal(values, buffer.ravel(), err_msg=name)


def test_a_page_holds_the_scene_and_asks_for_nothing(model, tmp_path):
    estimator, X, y = model
    appca.save_html(tmp_path / "wine.html", estimator, X, labels=y, title="Wine & <more>")
    page = (tmp_path / "wine.html").read_text("utf-8")
    assert "<h1>Wine &amp; &lt;more&gt;</h1>" in page
    assert not re.search(r'(src|href)="|url\(|\bfetch\(|import\(', page.split('id="data">')[0])
    rows = rows_of(X, y)
    scene = scene_of_rows(rows, numbered_after(run_of(estimator, rows.dataset), None), {})
    data = data_of(page)
    assert data["colouring"] == next(iter(scene.meta["colourings"]))
    check(data, scene)


def test_maps_and_images_are_in_the_page_and_bad_ones_leave_no_file(tmp_path):
    digits = load("digits").take(np.arange(200))
    estimator, X = appca.PPCA(2).fit(digits.X.astype(float)), digits.X
    path, xy = tmp_path / "digits.html", np.random.default_rng(0).normal(size=(200, 2))
    for wrong, of, words in (
        ({"maps": {"Map": np.zeros((3, 2))}}, estimator, "needs two coordinates"),
        ({"n_active": [3]}, appca.AdaptivePPCA(2, 1), "with no L <= K"),
        ({"n_active": [1]}, appca.PPCA(2), "PPCA has no n_active"),
    ):
        with pytest.raises(InputError, match=words):
            appca.save_html(path, of, X, **wrong)
    assert not path.exists()
    appca.save_html(path, estimator, X, images=(8, 8), maps={"My map": xy})
    data = data_of(path.read_text("utf-8"))
    assert "My map" in data["meta"]["layouts"]
    shown = appca.explore(estimator, X, images=(8, 8), maps={"My map": xy})._scene
    assert data["meta"] == json.loads(json.dumps(shown["meta"])), "the widget shows the same"
    for name, buffer in shown["buffers"].items():
        assert values_of(data["buffers"][name], "u1").tobytes() == buffer
    assert len(data["sheets"]) == 1
    with pytest.raises(InputError, match="could not be stored"):
        appca.save_html(tmp_path / "none" / "x.html", estimator, X)


def test_a_fit_writes_the_page_of_its_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "wine", "-K", "3", "-L", "1", "--html", "a.html", "--out", "m.npz"]) == 0
    assert "wrote a.html" in capsys.readouterr().out
    wine = load("wine")
    table = pd.DataFrame(wine.X, columns=list(wine.feature_names))
    appca.save_html("b.html", appca.load_model("m.npz"), table, labels=wine.labels)
    first, second = (data_of((tmp_path / name).read_text()) for name in ("a.html", "b.html"))
    assert second["buffers"].items() <= first["buffers"].items()  # the first also names the rows
    assert len(second["buffers"]) > 5
    assert first["meta"]["layouts"].keys() == second["meta"]["layouts"].keys()


def test_a_page_of_several_fits_holds_each_k_and_l_and_shares_what_does_not_change(model, tmp_path):
    _, X, y = model
    path = tmp_path / "several.html"
    estimator = appca.AdaptivePPCA(random_state=0)
    appca.save_html(path, estimator, X, y, n_components=(2, 3), n_active=(1, 3), note="a <b>")
    page = path.read_text("utf-8")
    assert "<footer>a &lt;b&gt;</footer>" in page
    content = content_of(page)
    assert [stored["size"] for stored in content["fits"]] == [[2, 1], [3, 1], [3, 3]]
    rows, before = rows_of(X, y), None
    for stored in content["fits"]:
        fitted = appca.AdaptivePPCA(*stored["size"], random_state=0).fit(X)
        before = numbered_after(run_of(fitted, rows.dataset), before)
        scene = scene_of_rows(rows, before, {})
        saved = fit_of(content, stored)
        assert saved["meta"] == json.loads(json.dumps(scene.meta))
        check(saved, scene)
    places = [stored["buffers"]["map.pca"] for stored in content["fits"]]
    assert len(set(places)) == 1, "the map is stored once"
