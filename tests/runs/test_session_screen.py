"""Work saved after many steps looks the same in another home: scenes and files, to the bit."""

import io

import numpy as np
import pytest

from appca import load_model
from appca.analysis.components import in_data_space
from appca.analysis.selections import SavedSelection, SelectionStore
from appca.analysis.tables import (
    Columns,
    Patterns,
    component_npz,
    csv_bytes,
    parquet_bytes,
    projection_table,
)
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.canvas.scene import Map, scene_shown
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.model_file import model_bytes, read_model
from appca.runs.numbering import ComponentNumbers, directions, numbered
from appca.runs.run import RunConfig
from appca.runs.session import Session, pack, unpack
from appca.runs.store import RunStore
from appca.words import InputError
from tests.runs.test_session import altered, set_to

SIZES = ((6, 2), (4, 2), (7, 2), (5, 3), (6, 2), (3, 1), (7, 2))
DRAWN = {"inference": "gibbs", "n_chains": 2, "burn_in": 3, "n_draws": 4}
PLACES = np.random.default_rng(0).normal(size=(120, 2)).astype(np.float32)  # on the map
LOOK = {"colour": "residual", "view": "umap", "n_neighbors": 9}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    part = load("digits").take(np.arange(120))
    return Dataset("Mine", part.X, part.ids, part.labels, part.image_shape, None, {"source": "x"})


def settings(dataset, K, L, **more) -> RunConfig:
    sizes = {"n_components": K, "n_active": L, "n_init": 1, "random_state": 0, **more}
    return RunConfig(dataset.digest, {"divide": 16.0}, "aPPCA", sizes)


@pytest.fixture(scope="module")
def home(dataset, tmp_path_factory):
    """K and L went to and fro, components were named and turned, and a posterior was sampled."""
    folder = tmp_path_factory.mktemp("here")
    DatasetStore(folder).put(dataset)
    numbers, screen = ComponentNumbers(folder), None
    configs = [settings(dataset, K, L) for K, L in SIZES]
    for step, config in enumerate([*configs, settings(dataset, 5, 2, **DRAWN)]):
        run = RunStore(folder).get(config.id)
        run = run or RunStore(folder).save(config, fit_run(dataset, config))
        numbers.of_run(run, screen)
        if step in (0, 2, 7):
            numbers.rename(run, step % 5, f"stroke {step}")
            numbers.flip(run, 1)
        screen = directions(numbered(run.fitted, numbers.of_run(run)))
    SelectionStore(folder).save(dataset.digest, "few", np.arange(120) < 5)
    return folder


@pytest.fixture(scope="module")
def content(home, dataset) -> bytes:
    runs = sorted(RunStore(home).list(), key=lambda run: run.config.id)
    started = EmbeddingConfig(dataset.digest, {"divide": 16.0}, 9, start="appca", run=runs[0].id)
    kept = (started, Embedding(PLACES, {"seconds": 1.0, "n_rows": 120}))
    few = np.arange(120) < 5
    named = [SavedSelection("few", few)]
    return pack(Session(dataset, runs, named, few, runs[0].id, LOOK, [kept]), home)


def files_of(home, run, dataset) -> dict[str, bytes]:
    """What a page draws of a run, and what it saves."""
    numbering = ComponentNumbers(home).of_run(run)
    fitted = numbered(run.fitted, numbering)
    first = {"pca": Map("PCA", fitted.scores)}
    scene = scene_shown(dataset, fitted, first)
    patterns = Patterns(in_data_space(fitted), fitted.mean)
    columns = Columns(named=True, inclusion=True)
    found = {f"scene {name}": values.tobytes() for name, values in scene.buffers.items()}
    return found | {
        "header": repr(scene.meta).encode(),
        "components": scene.component_sheet,
        "csv": csv_bytes(projection_table(dataset, fitted, None, columns)),
        "parquet": parquet_bytes(projection_table(dataset, fitted, None, columns)),
        "npz": component_npz(dataset, fitted, patterns, columns),
        "model": model_bytes(run.config.of_import(None), fitted, run.info),
        "numbering": repr(numbering).encode(),
        **{f"draws {name}": values.tobytes() for name, values in fitted.posterior.items()},
    }


@pytest.mark.thorough  # tests/ui/export/test_export opens work of ten steps elsewhere
def test_work_after_many_steps_looks_the_same_in_another_home(home, dataset, content, tmp_path):
    runs = sorted(RunStore(home).list(), key=lambda run: run.config.id)
    numberings = [ComponentNumbers(home).of_run(run) for run in runs]
    assert any(one.key for one in numberings), "else there is nothing to carry"
    assert len({one.key for one in numberings}) > 3
    found = unpack("work.appca", io.BytesIO(content), tmp_path)
    for there, run in zip(found.runs, runs, strict=True):
        seen = RunStore(tmp_path).get(there)
        ours, theirs = files_of(home, run, dataset), files_of(tmp_path, seen, dataset)
        assert sorted(theirs) == sorted(ours)
        assert [name for name in ours if ours[name] != theirs[name]] == []
    assert found.look == LOOK
    started = EmbeddingConfig(
        *(dataset.digest, {"divide": 16.0}, 9), start="appca", run=found.runs[0]
    )
    laid_out = EmbeddingStore(tmp_path).get(started.id)
    assert laid_out is not None, "the map starts from the fit as it is called here"
    assert np.array_equal(laid_out.coordinates, PLACES)


@pytest.mark.thorough
def test_what_comes_back_is_known_and_keeps_its_numbers(home, content, tmp_path):
    runs = sorted(RunStore(home).list(), key=lambda run: run.config.id)
    there = unpack("work.appca", io.BytesIO(content), tmp_path)
    moved = [RunStore(tmp_path).get(one) for one in there.runs]
    for run in moved:
        ComponentNumbers(tmp_path).flip(run, 0)
    dataset = DatasetStore(tmp_path).get(there.dataset)
    back = unpack("b.appca", io.BytesIO(pack(Session(dataset, moved), tmp_path)), home)
    assert back.runs == tuple(run.id for run in runs), "no copy of a fit that is here"


def test_row_j_of_every_file_is_component_j_with_the_sign_on_screen(home, dataset):
    run = next(one for one in RunStore(home).list() if "gibbs" in one.config.parameters.values())
    numbering = ComponentNumbers(home).of_run(run)
    order, signs = list(numbering.order), np.array(numbering.signs)
    assert -1 in signs
    raw, shown = run.fitted, numbered(run.fitted, numbering)
    np.testing.assert_array_equal(shown.components, raw.components[order] * signs[:, None])
    drawn = raw.posterior["components"]
    np.testing.assert_array_equal(
        shown.posterior["components"], drawn[:, :, order] * signs[:, None]
    )
    file = io.BytesIO(model_bytes(run.config, shown, run.info))
    model = read_model("model.npz", file).model
    assert model.components.tobytes() == shown.components.tobytes()
    table = projection_table(dataset, shown)
    for j in range(len(order)):
        np.testing.assert_array_equal(table[f"component_{j + 1}"], shown.scores[:, j])


def test_a_loaded_model_answers_in_the_order_on_screen_and_learns_in_it(home, dataset, tmp_path):
    runs = [run for run in RunStore(home).list() if "gibbs" not in run.config.parameters.values()]
    numberings = [(run, ComponentNumbers(home).of_run(run)) for run in runs]
    run, numbering = next(
        pair for pair in numberings if pair[1].order != tuple(sorted(pair[1].order))
    )
    shown = numbered(run.fitted, numbering)
    (tmp_path / "model.npz").write_bytes(model_bytes(run.config, shown, run.info))
    (tmp_path / "raw.npz").write_bytes(model_bytes(run.config, run.fitted, run.info))
    model, raw = load_model(tmp_path / "model.npz"), load_model(tmp_path / "raw.npz")
    assert model.estimator_.components_.tobytes() == shown.components.tobytes()
    order, signs = list(numbering.order), np.array(numbering.signs)
    np.testing.assert_allclose(
        model.transform(dataset.X), raw.transform(dataset.X)[:, order] * signs, atol=1e-12
    )
    np.testing.assert_allclose(
        model.score_samples(dataset.X), raw.score_samples(dataset.X), rtol=1e-12
    )
    learner, before = model.estimator_, shown.components.astype(np.float64)
    learner.partial_fit(dataset.X[:60] / 16.0)
    cosines = (learner.components_ * before).sum(axis=1)
    assert (cosines > 0.8 * np.square(before).sum(axis=1)).all(), "each row as before, sign too"


@pytest.mark.parametrize(
    ("name", "value"), [("rows", [0, 0, 1]), ("turned", [1]), ("rows", [7]), ("turned", [2, 1, 1])]
)
def test_forged_numbers_are_refused(content, tmp_path, name, value):
    bad = altered(content, set_to("runs", 0, "components", name, value=value))
    with pytest.raises(InputError, match="is damaged"):
        unpack("bad.appca", bad, tmp_path)
    assert list(tmp_path.iterdir()) == []
