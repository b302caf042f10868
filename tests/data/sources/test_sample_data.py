import importlib
import itertools

import numpy as np
import pytest

from appca.data.folders import project_folder
from appca.data.readers import read
from appca.data.sources import load
from appca.words import InputError

SAMPLES = project_folder() / "sample_data"


@pytest.fixture
def script(monkeypatch):
    """The script that made the files, imported from its folder."""
    monkeypatch.syspath_prepend(SAMPLES)
    return importlib.import_module("make")


def normals(dataset):
    """Normal of the plane nearest to each group of points."""
    names, codes = dataset.class_column
    groups = [dataset.X[codes == code] for code in range(len(names))]
    return np.array([np.linalg.svd(group - group.mean(0))[2][2] for group in groups])


def test_the_three_planes_are_spanned_by_pairs_of_three_orthonormal_directions():
    planes = load("planes")
    assert planes.class_column[0] == ["1 and 2", "1 and 3", "2 and 3"]
    assert np.bincount(planes.class_column[1]).tolist() == [300] * 3
    # The normal of the plane of two directions is the third, so normals are orthonormal, too.
    np.testing.assert_allclose(np.abs(normals(planes) @ normals(planes).T), np.eye(3), atol=0.02)


def test_each_point_is_near_its_own_plane_and_most_are_far_from_the_others():
    planes = load("planes")
    distance = np.abs(planes.X @ normals(planes).T)
    own = distance[np.arange(900), planes.class_column[1]]
    assert own.std() == pytest.approx(0.08 * np.sqrt(1 - 2 / np.pi), rel=0.1)
    assert own.max() < 0.4
    assert (distance > 0.4).sum() > 900


def test_the_committed_planes_are_those_the_script_makes(script):
    points, names, directions = script.planes(np.random.default_rng(1))
    dataset = load("planes")
    np.testing.assert_allclose(dataset.X, points, atol=6e-5)
    assert dataset.labels["plane"].tolist() == names
    np.testing.assert_allclose(directions.T @ directions, np.eye(3), atol=1e-12)


def test_the_file_of_planes_can_be_dropped_onto_the_page():
    uploaded, built_in = read("planes.csv", SAMPLES / "planes.csv"), load("planes")
    np.testing.assert_array_equal(uploaded.X, built_in.X)
    np.testing.assert_array_equal(uploaded.ids, built_in.ids)
    assert uploaded.labels["plane"].tolist() == built_in.labels["plane"].tolist()


def test_the_turntable_has_72_views_of_at_least_8_solids_and_no_two_images_are_equal():
    table = load("turntable")
    names, codes = table.class_column
    assert len(names) >= 8
    assert np.bincount(codes).tolist() == [72] * len(names)
    for code in range(len(names)):
        assert table.labels["angle"][codes == code].tolist() == list(range(0, 360, 5))
    assert len(np.unique(table.X, axis=0)) == table.n_rows


def test_ids_of_the_turntable_name_solid_and_angle():
    table = load("turntable")
    for row in range(0, table.n_rows, 37):
        assert table.ids[row] == f"{table.labels['solid'][row]}__{table.labels['angle'][row]}"


def test_neighbouring_views_differ_and_are_nearer_than_other_solids():
    table = load("turntable")
    views = table.X.reshape(-1, 72, 1024).astype(float)
    steps = np.abs(views - np.roll(views, 1, axis=1)).mean(axis=2)
    assert steps.min() > 0.5  # grey values in the mean over the image: visible
    means = views.mean(axis=1)
    for one, other in itertools.combinations(means, 2):
        assert np.abs(one - other).mean() > 1.3 * steps.mean()


def test_solids_fill_the_picture_without_being_cut_off():
    images = load("turntable").X.reshape(-1, 32, 32)
    lit = (images > 0).mean(axis=(1, 2))
    assert lit.min() > 0.05
    assert lit.max() < 0.6
    border = np.concatenate(
        [images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], axis=1
    )
    assert (border.max(axis=1) > 100).sum() == 0


def test_the_committed_views_are_those_the_renderer_makes(script):
    table = load("turntable")
    rows = np.array([0, 72 * 6 + 20, 72 * 9 + 41])
    for row in rows:
        solid = script.SOLIDS[str(table.labels["solid"][row])]
        drawn = script.view(solid.shape, float(table.labels["angle"][row]), solid.albedo)
        difference = np.abs(drawn.astype(int) - table.image(row))
        assert np.median(difference) == 0
        assert difference.mean() < 0.2  # machines round differently at a few edges


def test_a_sphere_is_round_bright_towards_the_lamp_and_the_same_from_all_sides(script):
    shapes = importlib.import_module("shapes")
    ball = shapes.ellipsoid((0.8, 0.8, 0.8))
    image = script.view(ball, 0).astype(float)
    np.testing.assert_allclose(image, script.view(ball, 70), atol=1.5)
    lit = image > 0
    np.testing.assert_array_equal(lit.sum(axis=0), lit.sum(axis=0)[::-1])
    radius = np.sqrt(lit.sum() / np.pi) * 2 * 1.28 / 32
    assert radius == pytest.approx(0.8, rel=0.06)  # perspective and half-lit border pixels
    assert image[:16, :16].sum() > 1.5 * image[16:, 16:].sum()  # the lamp is upper left


@pytest.mark.parametrize("turn", [0, 30, 200])
def test_distances_of_turned_shapes_are_distances(script, turn):
    shapes = importlib.import_module("shapes")
    box = shapes.turned(
        shapes.extruded([(-1, -0.5), (1, -0.5), (1, 0.5), (-1, 0.5)], 0.6, 0), 2, turn
    )
    points = np.random.default_rng(0).uniform(-2, 2, (200, 3))
    local = points @ shapes.rotation(2, turn)
    outside = np.maximum(np.abs(local) - [1, 0.3, 0.5], 0)
    inside = (np.abs(local) - [1, 0.3, 0.5]).max(axis=1)
    expected = np.linalg.norm(outside, axis=1) + np.minimum(inside, 0)
    np.testing.assert_allclose(box(points), expected, atol=1e-12)


def test_the_brain_has_a_grid_events_and_a_row_for_each_voxel_of_its_mask():
    brain = load("brain")
    facts = brain.provenance
    places = np.array([name.split("-")[1:] for name in brain.ids], dtype=int)
    assert (places < facts["grid"]).all()
    assert len(np.unique(places, axis=0)) == brain.n_rows
    assert len(facts["events"]) == 8
    last = facts["events"][-1]
    assert last["onset"] + last["duration"] <= brain.n_features * facts["repetition"]
    assert np.array(facts["affine"]).shape == (4, 4)


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


def test_the_sample_files_are_small():
    for path in SAMPLES.iterdir():
        assert path.is_dir() or path.stat().st_size < 1_000_000


def test_a_missing_sample_file_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr("appca.data.folders.project_folder", lambda: tmp_path)
    for key, name in (("planes", "planes.csv"), ("turntable", "turntable.npz"), ("brain", "brain")):
        with pytest.raises(InputError, match=f"{name}.* is missing .*run python sample_data/make"):
            load(key)
