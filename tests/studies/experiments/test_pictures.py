"""The experiments that show pictures: on planted data, and on the paper's files."""

import numpy as np
import pytest

from appca.analysis.rows import SimilarRows
from appca.studies import coil20, planes
from appca.studies.fitting import PanelFit, codes_of
from appca.words import InputError


def silent(_stage: str, _share: float) -> None:
    pass


def test_the_three_planes_are_found_and_pca_loses_more():
    study = planes.STUDY
    outcome = study.run(study.options(), silent)
    rows = outcome.tables["planes"]
    assert sorted(row["plane"] for row in rows) == ["1 and 2", "1 and 3", "2 and 3"]
    assert all(row["angle"] < 2 for row in rows)
    assert sum(row["of_the_plane"] for row in rows) > 0.85 * 900
    assert [claim.holds for claim in outcome.claims] == ["yes", "yes"]
    figures = study.figures(outcome)
    assert len(figures["projections"].layout.annotations) == 4
    points, drawn = figures["space"].data[:3], figures["space"].data[3:]
    assert [trace.type for trace in points] == ["scatter3d"] * 3
    assert len(drawn) == 3
    for plane in drawn:  # spanned by two components each
        corners = np.array([plane.x, plane.y, plane.z]).T
        spread = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
        assert spread[2] < 1e-6 * spread[0]


def test_projections_lose_nothing_of_rows_that_lie_in_their_subspaces():
    Y = np.array([[2.0, 0, 0], [-2.0, 0, 0], [0, 3.0, 0], [0, -3.0, 0]])
    active = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    assert planes.residual(Y, PanelFit(Y[:, :2], active, np.eye(3)[:2])) == pytest.approx(0)
    wrong = PanelFit(Y[:, :2], active[::-1], np.eye(3)[:2])
    assert planes.residual(Y, wrong) == pytest.approx(1)


def test_classes_that_are_numbers_are_sorted_as_numbers():
    names, codes = codes_of(np.array(["10", "2", "2", "1"]))
    assert names == ["1", "2", "10"]
    assert codes.tolist() == [2, 1, 1, 0]


def test_width_is_compared_over_images_and_over_objects(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(6), 20)
    score = codes + 0.1 * rng.standard_normal(120)
    fitted = PanelFit(np.stack([score, -score], 1), np.stack([codes < 6, codes < 2], 1), np.eye(2))
    first, second = coil20.widths(fitted, 0.1 * codes + 0.3, codes)
    assert first["correlation_of_objects"] > 0.99
    assert (first["rows"], first["objects"]) == (120, 6)
    assert second["correlation"] < -0.9
    assert second["correlation_of_objects"] is None  # of two objects nothing follows
    assert first["width_low_half"] < first["width_high_half"]


def test_images_of_a_group_are_taken_from_its_objects_in_turn():
    codes = np.array([0, 0, 0, 1, 1, 2])
    group = SimilarRows((0, 1), np.array([2, 0, 3, 1, 5, 4]), 0.5)
    assert coil20.spread(group, codes, 4).tolist() == [2, 0, 3, 5]
    assert coil20.spread(group, codes, 99).tolist() == [2, 0, 1, 3, 4, 5]


def test_nearest_other_class_of_a_plain_picture_is_by_distance():
    E = np.array([[0.0, 0], [1, 0], [5, 0], [5.5, 0]])
    found = coil20.nearest_in(E, np.array([0, 0, 1, 2]), ["a", "b", "c"])
    assert [one.other for one in found] == ["b", "c", "b"]


def test_without_the_images_a_sentence_names_the_file(tmp_path, monkeypatch):
    from appca.data import downloads as source

    monkeypatch.setenv("APPCA_DATA", str(tmp_path))
    monkeypatch.setattr(source, "URLS", ("http://127.0.0.1:9/coil-20-proc.zip",))
    with pytest.raises(InputError, match=r"coil-20-proc\.zip"):
        coil20.STUDY.run(coil20.STUDY.options(), silent)


@pytest.mark.real_data
@pytest.mark.slow
def test_coil20_is_less_crowded_in_subspaces_and_one_component_is_the_width():
    outcome = coil20.STUDY.run(coil20.STUDY.options(), silent)
    panel = np.mean([row["panel_accuracy"] for row in outcome.tables["panels"]])
    assert panel > np.mean([row["pca_same_rows"] for row in outcome.tables["panels"]])
    assert max(abs(row["correlation"]) for row in outcome.tables["width"]) > 0.8
    figures = coil20.STUDY.figures(outcome)
    assert 50 < len(figures["pca"].layout.images) < 300
    found = coil20.SIMILAR.run(coil20.SIMILAR.options(), silent)
    assert [claim.holds for claim in found.claims] == ["yes", "yes", "yes"]
    assert len(coil20.SIMILAR.figures(found)["groups"].layout.images) == 12


@pytest.mark.real_data
@pytest.mark.slow
def test_umap_and_appca_have_other_nearest_objects():
    outcome = coil20.UMAP.run(coil20.UMAP.options(), silent)
    rows = outcome.tables["neighbours"]
    assert sum(row["appca"] != row["umap"] for row in rows) > 5
    assert len(coil20.UMAP.figures(outcome)) == 2
