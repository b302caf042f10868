"""A session in a file: the same data, runs, names and selections in another home, or a refusal."""

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from appca import load_model
from appca.analysis.selections import SavedSelection, SelectionStore
from appca.analysis.tables import projection_table
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.model_file import model_bytes
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.run import RunConfig
from appca.runs.session import CONTENTS, Session, pack, unpack
from appca.runs.store import Run, RunStore
from appca.words import InputError
from tests.data.file_makers import packed, stored


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    part = load("digits").take(np.arange(80))
    labels_ = {**part.labels, "size <b>": np.arange(80) / 7}
    return Dataset("My digits", part.X, part.ids, labels_, part.image_shape, None, {"source": "x"})


@pytest.fixture(scope="module")
def home(dataset, tmp_path_factory) -> Path:
    """A home in which somebody has worked."""
    folder = tmp_path_factory.mktemp("sender")
    DatasetStore(folder).put(dataset)
    learned = {"row_scale": "learned", "n_active": "learned", "max_iter": 20}
    for i, parameters in enumerate(
        (
            {"n_components": 3, "n_active": 1},
            {"n_components": 5, "noise": "feature"} | learned,
            {"n_components": 6, "inference": "gibbs", "burn_in": 5, "n_draws": 10} | learned,
        )
    ):
        config = RunConfig(dataset.digest, {"divide": 16.0}, "aPPCA", parameters)
        with warnings.catch_warnings(action="ignore"):  # of features that are constant
            result = fit_run(dataset, config)
        run = RunStore(folder).save(config, result, "my run" if i else None)
        ComponentNumbers(folder).rename(run, 1, "slant =1+1")
        ComponentNumbers(folder).flip(run, i)
    return folder


PLACES = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)  # on the map
LOOK = {"colour": "residual", "view": "umap", "n_neighbors": 9.0}


@pytest.fixture(scope="module")
def session(dataset, home) -> Session:
    runs = sorted(RunStore(home).list(), key=lambda run: run.config.k)
    few, odd = np.arange(80) < 5, np.arange(80) % 2 == 1
    saved = [SavedSelection("few", few), SavedSelection("odd", odd)]
    laid_out = [(layout_of(dataset, runs[0].id), Embedding(PLACES))]
    return Session(dataset, runs, saved, few, runs[1].id, LOOK, laid_out)


def layout_of(dataset, run: str) -> EmbeddingConfig:
    return EmbeddingConfig(dataset.digest, {"divide": 16.0}, 9, start="appca", run=run)


@pytest.fixture(scope="module")
def content(session, home) -> bytes:
    return pack(session, home)


def everything_of(run: Run) -> list:
    shown = ComponentNumbers(run.path.parents[1]).of_run(run)
    seen = numbered(run.fitted, shown).to_arrays()
    arrays = {name: (v.dtype, v.shape, v.tobytes()) for name, v in seen.items()}
    return [run.config.of_import(None), run.info, run.custom_name, shown, arrays]


def test_all_of_it_is_the_same_in_another_home(session, content, tmp_path):
    found = unpack("my.appca", io.BytesIO(content), tmp_path)
    got = DatasetStore(tmp_path).get(found.dataset)
    given = session.dataset
    assert got.digest == given.digest
    assert (got.name, got.image_shape, got.provenance) == ("My digits", (8, 8), {"source": "x"})
    assert got.X.dtype == given.X.dtype
    np.testing.assert_array_equal(got.X, given.X)
    np.testing.assert_array_equal(got.ids, given.ids)
    assert list(got.labels) == list(given.labels)
    for name, column in given.labels.items():
        np.testing.assert_array_equal(got.labels[name], column)
    assert found.opened == found.runs[1]
    for here, run in zip(found.runs, session.runs, strict=True):
        assert everything_of(RunStore(tmp_path).get(here)) == everything_of(run)
    kept = SelectionStore(tmp_path).list(found.dataset, 80)
    assert [saved.name for saved in kept] == ["few", "odd"] == list(found.selections)
    for saved, expected in zip(kept, session.selections, strict=True):
        np.testing.assert_array_equal(saved.mask, expected.mask)
    np.testing.assert_array_equal(found.selected, session.selected)
    assert found.look == LOOK
    laid_out = EmbeddingStore(tmp_path).get(layout_of(got, found.runs[0]).id)
    assert np.array_equal(laid_out.coordinates, PLACES), "under the fit as it is called here"


def test_files_of_a_run_have_the_order_and_the_signs_on_screen(session, home, dataset, tmp_path):
    numbers = ComponentNumbers(home)
    assert any(-1 in numbers.of_run(run).signs for run in session.runs)
    for run in session.runs:
        numbering = numbers.of_run(run)
        order, signs = list(numbering.order), np.array(numbering.signs)
        raw, shown = run.fitted, numbered(run.fitted, numbering)
        np.testing.assert_array_equal(shown.components, raw.components[order] * signs[:, None])
        for name, values in shown.posterior.items():
            if name == "components":
                drawn = raw.posterior[name][:, :, order]
                np.testing.assert_array_equal(values, drawn * signs[:, None])
        loaded = []
        for name, fitted in (("shown", shown), ("raw", raw)):
            (tmp_path / f"{name}.npz").write_bytes(model_bytes(run.config, fitted, run.info))
            loaded.append(load_model(tmp_path / f"{name}.npz"))
        scores, of_raw = (model.transform(dataset.X) for model in loaded)
        np.testing.assert_allclose(scores, of_raw[:, order] * signs, atol=1e-12)
        table = projection_table(dataset, shown)
        for j in range(len(order)):
            np.testing.assert_array_equal(table[f"component_{j + 1}"], shown.scores[:, j])


def test_what_is_there_already_stays(content, session, tmp_path):
    first = unpack("my.appca", io.BytesIO(content), tmp_path)
    run = RunStore(tmp_path).rename(first.runs[0], "mine")
    ComponentNumbers(tmp_path).rename(run, 1, "width")
    other = np.arange(80) == 70
    SelectionStore(tmp_path).save(first.dataset, "few", other)
    second = unpack("my.appca", io.BytesIO(content), tmp_path)
    assert second.runs == first.runs
    run = RunStore(tmp_path).get(first.runs[0])
    assert (run.custom_name, ComponentNumbers(tmp_path).of_run(run).names[1]) == ("mine", "width")
    assert second.selections == ("few (2)", "odd")
    kept = {saved.name: saved.mask for saved in SelectionStore(tmp_path).list(first.dataset, 80)}
    np.testing.assert_array_equal(kept["few"], other)
    np.testing.assert_array_equal(kept["few (2)"], session.selections[0].mask)


def test_without_data_the_data_must_be_here(session, dataset, tmp_path):
    light = pack(session, with_data=False)
    names = zipfile.ZipFile(io.BytesIO(light)).namelist()
    assert not any(name.startswith("data/") for name in names)
    with pytest.raises(InputError, match="“My digits” is not here; open it first from your own"):
        unpack("light.appca", io.BytesIO(light), tmp_path)
    assert list(tmp_path.iterdir()) == []
    DatasetStore(tmp_path).put(dataset)
    assert len(unpack("light.appca", io.BytesIO(light), tmp_path).runs) == len(session.runs)
    provenance = {"source": "mnist", "options": {"n": 80}}
    mnist = Dataset("MNIST", dataset.X, dataset.ids, provenance=provenance)
    with pytest.raises(InputError, match="open it first from MNIST with n = 80"):
        unpack("m.appca", io.BytesIO(pack(Session(mnist, []), with_data=False)), tmp_path)
    gaps = np.zeros(dataset.X.shape, bool)
    gaps[[3, 70], [5, 60]] = True
    holed = Dataset("holes", dataset.X.astype(float), dataset.ids, missing=gaps)
    found = unpack("h.appca", io.BytesIO(pack(Session(holed, []))), tmp_path)
    got = DatasetStore(tmp_path).get(found.dataset)
    np.testing.assert_array_equal(got.with_gaps(), holed.with_gaps())


MATRIX = "data/matrix.npy"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [  # what is wrong with its description is in tests/attacks/test_sessions
        (CONTENTS, None, "is not a session file"),
        (CONTENTS, b"[", "holds a damaged “session.json”"),
        (MATRIX, stored(np.save, np.zeros((80, 64), np.uint8)), "digest differs"),
        (MATRIX, stored(np.save, np.zeros((80, 64)))[:900], "holds a damaged"),
        (MATRIX, None, "lacks “data/matrix.npy”"),
        ("runs/1/pre_offset.npy", None, "is damaged"),
        ("selections/0.npy", stored(np.save, np.zeros(79, bool)), "is damaged"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_stored(
    content, tmp_path, name, given, sentence
):
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {one: old.read(one) for one in old.namelist()} | {name: given}
    altered = packed({one: data for one, data in members.items() if data is not None})
    with pytest.raises(InputError, match=sentence):
        unpack("bad.appca", io.BytesIO(altered), tmp_path)
    assert list(tmp_path.iterdir()) == []
