import json

import numpy as np

from appca.canvas import blobs as module
from appca.canvas.blobs import Parcels, publish
from appca.canvas.scene import scene_shown
from appca.data.dataset import Dataset
from tests.fitted_runs import fitted_run


def test_a_name_is_one_of_content_and_of_this_home():
    here, there = Parcels(b"one"), Parcels(b"other")
    assert here.offer(b"a") == here.offer(bytearray(b"a")) == Parcels(b"one").offer(b"a")
    assert len({here.offer(b"a"), here.offer(b"b"), there.offer(b"a")}) == 3
    assert there.get(here.offer(b"b")) is None


def test_what_was_not_asked_for_the_longest_goes_first():
    parcels = Parcels(b"", most_bytes=10)
    a, b = parcels.offer(b"aaaa"), parcels.offer(b"bbbb")
    assert parcels.get(a).content == b"aaaa"
    c = parcels.offer(b"cccc")
    assert parcels.get(b) is None
    assert {parcels.get(one).content for one in (a, c)} == {b"aaaa", b"cccc"}
    assert parcels.offer(b"aaaa") == a  # counts once
    large = parcels.offer(b"l" * 11)
    assert parcels.get(large) is not None  # alone, though too large
    assert parcels.get(a) is None


def test_a_promise_is_kept_once_and_again_when_it_had_to_go():
    made = []

    def make():
        made.append(1)
        return b"sheet"

    parcels = Parcels(b"", most_bytes=6)
    name = parcels.promise("sheet 0", make, "image/png")
    assert made == []
    assert parcels.get(name) == (b"sheet", "image/png")
    assert parcels.get(name).content == b"sheet"
    assert len(made) == 1
    parcels.offer(b"others")
    assert parcels.get(name).content == b"sheet"
    assert len(made) == 2


def test_a_scene_comes_back_from_its_shards(monkeypatch):
    monkeypatch.setattr(module, "SHARD", 100)
    rng = np.random.default_rng(0)
    active = np.stack([rng.permutation([1, 1, 0, 0]) for _ in range(90)]).astype(bool)
    X = rng.integers(0, 255, (90, 64)).astype(np.uint8)
    dataset = Dataset("d", X, np.arange(90).astype(str), image_shape=(8, 8))
    fitted = fitted_run(active, components=np.eye(4, 64), **_features())
    scene = scene_shown(dataset, fitted)
    parcels = Parcels(b"")
    names = publish(scene, dataset.digest, parcels)
    meta = json.loads(parcels.get(names["meta"]).content)
    assert meta == json.loads(json.dumps(scene.meta))
    for name, (kind, size) in meta["buffers"].items():
        raw = b"".join(bytes(parcels.get(one).content) for one in names["buffers"][name])
        assert np.array_equal(np.frombuffer(raw, f"<{kind}"), scene.buffers[name].ravel())
        assert len(raw) == size * np.dtype(kind).itemsize
    assert parcels.get(names["sheets"][0]).content == scene.sheets.png(0)
    assert parcels.get(names["components"]).content == scene.component_sheet
    assert publish(scene, dataset.digest, parcels) == names
    again = scene_shown(dataset, fitted)
    assert publish(again, dataset.digest, Parcels(b"")) == names


def _features():
    from appca.data.preprocessing import Fitted

    return {"mean": np.zeros(64), "preprocessing": Fitted(1.0, np.zeros(64), np.ones(64), None)}
