import importlib

import numpy as np
import pytest

from appca.data.folders import project_folder
from appca.data.sources import load
from appca.words import InputError

SAMPLES = project_folder() / "sample_data"


@pytest.fixture
def script(monkeypatch):
    """The script that made the files, imported from its folder."""
    monkeypatch.syspath_prepend(SAMPLES)
    return importlib.import_module("make")


def test_the_three_planes_are_spanned_by_pairs_of_three_orthonormal_directions(script):
    planes = load("planes")
    names, codes = planes.class_column
    assert names == ["1 and 2", "1 and 3", "2 and 3"]
    assert np.bincount(codes).tolist() == [300] * 3
    groups = [planes.X[codes == code] for code in range(3)]
    normals = np.array([np.linalg.svd(group - group.mean(0))[2][2] for group in groups])
    # The normal of the plane of two directions is the third, so normals are orthonormal, too.
    np.testing.assert_allclose(np.abs(normals @ normals.T), np.eye(3), atol=0.02)
    points, kinds, _ = script.planes(np.random.default_rng(1))
    np.testing.assert_allclose(planes.X, points, atol=6e-5)
    assert planes.labels["plane"].tolist() == kinds


def test_the_turntable_has_72_views_of_each_solid_as_the_renderer_makes_them(script):
    table = load("turntable")
    names, codes = table.class_column
    assert np.bincount(codes).tolist() == [72] * len(names)
    angles = table.labels["angle"].reshape(-1, 72)
    assert (angles == np.arange(0, 360, 5)).all()
    assert len(np.unique(table.X, axis=0)) == table.n_rows
    for row in (0, 72 * 6 + 20, 72 * 9 + 41):
        solid = script.SOLIDS[str(table.labels["solid"][row])]
        drawn = script.view(solid.shape, float(table.labels["angle"][row]), solid.albedo)
        difference = np.abs(drawn.astype(int) - table.images([row])[0])
        assert np.median(difference) == 0
        assert difference.mean() < 0.2  # machines round differently at a few edges


def test_regions_of_the_brain_follow_their_condition():
    brain = load("brain")
    times = np.arange(brain.n_features) * brain.provenance["repetition"]
    shown = {name: np.zeros(brain.n_features) for name in ("faces", "places")}
    for event in brain.provenance["events"]:
        late = times - event["onset"] - 6  # blood answers some six seconds late
        shown[event["trial_type"]][(late >= 0) & (late < event["duration"])] = 1
    region = {
        name: brain.X[brain.labels["region"] == name].mean(axis=0)
        for name in np.unique(brain.labels["region"])
    }
    correlation = {
        (name, condition): np.corrcoef(course, shown[condition])[0, 1]
        for name, course in region.items()
        for condition in shown
    }
    for area, own, other in (("face area", "faces", "places"), ("place area", "places", "faces")):
        assert correlation[area, own] > 0.8
        assert correlation[area, other] < 0.2
    assert correlation["visual cortex", "faces"] > 0.3
    assert correlation["visual cortex", "places"] > 0.3
    assert correlation["default network", "faces"] < 0
    assert abs(correlation["vessel", "faces"]) < 0.2


def test_the_committed_brain_is_the_one_the_script_draws(script):
    made = script.recording.recording(np.random.default_rng(2))
    brain = load("brain")
    np.testing.assert_allclose(made.series / 100, brain.X, atol=0.0101)
    np.testing.assert_array_equal(made.region, brain.labels["region"])
    assert made.mask.sum() == brain.n_rows


def test_a_missing_sample_file_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr("appca.data.folders.project_folder", lambda: tmp_path)
    for key, name in (("planes", "planes.csv"), ("turntable", "turntable.npz"), ("brain", "brain")):
        with pytest.raises(InputError, match=f"{name}.* is missing .*run python sample_data/make"):
            load(key)
