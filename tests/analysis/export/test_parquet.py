"""Parquet for other explorers: the forms of columns they read, and the numbers in them."""

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from appca.analysis.export.parquet import explorer_parquet, nearest_projections, own_axes
from appca.analysis.export.projections import Columns, projection_table
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.components import png
from tests.fitted_runs import fitted_run

N, K, D = 40, 3, 12


def dataset(**changes: object) -> Dataset:
    rng = np.random.default_rng(3)
    parts = {
        "name": "made up",
        "X": rng.integers(0, 256, (N, D)).astype(np.uint8),
        "ids": np.array([f"../row {n}" for n in range(N)]),
        "labels": {"class": np.array(["a", "b"])[np.arange(N) % 2]},
        "image_shape": (3, 4),
    }
    return Dataset(**(parts | changes))


@pytest.fixture
def fitted(seed) -> FittedRun:
    rng = np.random.default_rng(seed)
    active = rng.random((N, K)) < 0.6
    return fitted_run(
        scores=(rng.normal(size=(N, K)) * active).astype(np.float32),
        active=active,
        membership=rng.random(N).astype(np.float32),
        error=rng.random(N).astype(np.float32),
        log_likelihood_rows=rng.normal(size=N),
        inclusion=rng.random((N, K)).astype(np.float32),
        components=rng.normal(size=(K, D)),
    )


def read(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def test_the_columns_have_the_forms_that_explorers_read(fitted):
    place = own_axes(fitted)
    table = read(explorer_parquet(dataset(), fitted, place, picture=png))
    assert table.schema.field("x").type == table.schema.field("y").type == pa.float64()
    neighbours = table.schema.field("neighbors").type
    assert neighbours.field("ids").type == pa.list_(pa.int64())
    assert neighbours.field("distances").type == pa.list_(pa.float32())
    image = table.schema.field("image").type
    assert (image.field("bytes").type, image.field("path").type) == (pa.binary(), pa.string())
    declared = json.loads(table.schema.metadata[b"huggingface"])
    assert declared == {"info": {"features": {"image": {"_type": "Image"}}}}
    assert b"pandas" in table.schema.metadata  # read_parquet still knows its types


def test_images_and_places_are_those_of_their_rows(fitted, seed):
    data = dataset()
    rows = np.random.default_rng(seed).permutation(N)[:15]
    place = np.stack([np.arange(N) * 1.5, -np.arange(N) * 1.0], axis=1)
    found = read(explorer_parquet(data, fitted, place, rows, picture=png)).to_pylist()
    assert [line["id"] for line in found] == data.ids[rows].tolist()
    assert [line["x"] for line in found] == (rows * 1.5).tolist()
    assert [line["y"] for line in found] == (-1.0 * rows).tolist()
    for line, row in zip(found, rows, strict=True):
        picture = np.asarray(Image.open(io.BytesIO(line["image"]["bytes"])))
        np.testing.assert_array_equal(picture, data.image(row))
        assert line["image"]["path"] == f"../row {row}.png"


def test_neighbours_are_positions_in_the_file_by_the_distance_of_reconstructions(fitted, seed):
    rows = np.random.default_rng(seed).permutation(N)[:25]
    rebuilt = fitted.scores[rows].astype(float) @ fitted.components
    distance = np.linalg.norm(rebuilt[:, None] - rebuilt[None], axis=2)
    found = read(explorer_parquet(dataset(), fitted, own_axes(fitted), rows)).to_pylist()
    for position, line in enumerate(found):
        ids, given = line["neighbors"]["ids"], line["neighbors"]["distances"]
        assert len(ids) == 15
        assert position not in ids
        np.testing.assert_allclose(given, distance[position, ids], rtol=1e-4, atol=1e-5)
        nearest = np.sort(np.delete(distance[position], position))[:15]
        np.testing.assert_allclose(given, nearest, rtol=1e-4, atol=1e-5)


def test_many_equal_rows_have_each_other_and_themselves_first(fitted):
    equal = replace(fitted, scores=np.repeat(fitted.scores[:1], N, axis=0))
    ids, distances = nearest_projections(equal, np.arange(N))
    assert ids.shape == (N, 16)
    assert ids[:, 0].tolist() == list(range(N))
    assert not (ids[:, 1:] == np.arange(N)[:, None]).any()
    assert distances.max() < 1e-3


def test_two_rows_have_one_neighbour_each_and_one_row_has_no_such_column(fitted):
    ids, _ = nearest_projections(fitted, np.array([7, 3]))
    assert ids.tolist() == [[0, 1], [1, 0]]
    alone = read(explorer_parquet(dataset(), fitted, own_axes(fitted), np.array([4])))
    assert "neighbors" not in alone.column_names
    assert alone.num_rows == 1


def test_all_other_columns_are_those_of_the_plain_table(fitted):
    columns = Columns(inclusion=True)
    expected = projection_table(dataset(), fitted, columns=columns)
    found = read(explorer_parquet(dataset(), fitted, own_axes(fitted), columns=columns)).to_pandas()
    for name in expected.columns:
        assert found[name].tolist() == expected[name].tolist(), name


def test_a_label_of_the_same_name_keeps_its_values(fitted):
    data = dataset(labels={"x": np.arange(N), "label_x": np.arange(N) * 2})
    found = read(explorer_parquet(data, fitted, np.zeros((N, 2)))).to_pandas()
    assert found["x"].tolist() == [0.0] * N
    assert found["label_x"].tolist() == (np.arange(N) * 2).tolist()
    assert found["label_label_x"].tolist() == np.arange(N).tolist()


def test_own_axes_are_the_first_two_scores_a_row_has():
    scores = np.array([[1.0, 2, 3], [0, 5, 6], [0, 0, 9], [0, 0, 0]])
    places = own_axes(fitted_run(scores != 0, scores=scores))
    assert places.tolist() == [[1, 2], [5, 6], [9, 0], [0, 0]]
