"""A model in a file: the same bits on new rows, for every model, and no harm from a bad file."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from appca import PPCA, AdaptivePPCA, load_model
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources import load
from appca.runs.fit import fit_run, prepared
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import RunConfig, estimator_class
from appca.words import InputError

SHORT = {"n_chains": 1, "burn_in": 4, "n_draws": 4}
MODELS = [
    ("aPPCA", {"n_components": 5, "n_active": 2}),
    ("aPPCA", {"n_components": 5, "n_active": 2, "inference": "gibbs", **SHORT}),
    ("PPCA", {"n_components": 3}),
    ("aFA", {"n_components": 5, "n_active": 2}),
    ("NPPCA", {"max_components": 4, **SHORT}),
    ("isFA", {"max_components": 4, **SHORT}),
    ("fsFA", {"max_components": 4, **SHORT}),
]
QUERIES = (
    "transform",
    "allocate",
    "inclusion_probabilities",
    "allocation_probability",
    "score_samples",
)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(300))


def config_of(dataset: Dataset, model: str, **parameters: object) -> RunConfig:
    options = {"divide": 16.0, "scale": "global", "pca": 12}
    return RunConfig(dataset.digest, options, model, parameters)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("model", "parameters"), MODELS)
def test_a_loaded_model_gives_the_bits_it_gave_before(digits, tmp_path, model, parameters):
    config = config_of(digits, model, **parameters)
    fitted = Preprocessing.from_dict(config.preprocessing).fit(digits.X)
    Y = fitted.transform(digits.X)
    before = estimator_class(model)(**config.parameters).fit(Y)
    result = fit_run(digits, config)
    path = tmp_path / "model.npz"
    path.write_bytes(model_bytes(config, result.fitted, result.info))

    after = load_model(path)
    assert type(after.estimator_) is type(before)
    assert after.estimator_.get_params() == before.get_params()
    assert after.config == config
    assert after.estimator_.stop_reason_ == before.stop_reason_
    new = load("digits").X[400:460]
    rows = prepared(config, fitted, new)
    for query in QUERIES:
        expected, got = getattr(before, query)(rows), getattr(after, query)(new)
        assert got.tobytes() == expected.tobytes(), query
    assert after.sample(3).tobytes() == fitted.inverse_transform(before.sample(3)).tobytes()
    scores = after.describe(digits.X).scores.astype(np.float32)
    np.testing.assert_allclose(scores, result.fitted.scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        after.score_samples(digits.X), result.fitted.log_likelihood_rows, rtol=1e-10
    )
    np.testing.assert_allclose(
        after.inverse_transform(scores, "map"), scores @ after.components_ + after.mean_, atol=1e-3
    )
    after.save(tmp_path / "again.npz")
    again = load_model(tmp_path / "again.npz")
    for query in QUERIES:
        assert getattr(again, query)(new).tobytes() == getattr(after, query)(new).tobytes(), query


def wine_file(path: Path, *, gaps: bool = False) -> Dataset:
    """Write the model file that the page Export gives of a fit to the wine data."""
    wine = load("wine")
    missing = np.zeros(wine.X.shape, bool)
    missing[::9, 3] = gaps
    wine = replace(wine, missing=missing)
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", {"n_components": 3})
    result = fit_run(wine, config)
    path.write_bytes(model_bytes(config, result.fitted, result.info, wine.feature_names))
    return wine


def test_columns_in_another_order_are_refused_by_name(tmp_path):
    wine = wine_file(tmp_path / "wine.npz")
    model = load_model(tmp_path / "wine.npz")
    table = pandas.DataFrame(wine.X, columns=list(wine.feature_names))
    assert list(model.feature_names_in_) == list(wine.feature_names)
    np.testing.assert_array_equal(model.transform(table), load_model_unnamed(model, wine.X))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.score(table[table.columns[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.transform(table.rename(columns={"ash": "dust"}))


def load_model_unnamed(model, X: np.ndarray) -> np.ndarray:
    """Return scores of rows without names, whose columns cannot be checked."""
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        return model.transform(X)


def test_a_loaded_model_is_a_scikit_learn_estimator(tmp_path):
    wine = wine_file(tmp_path / "wine.npz")
    table = pandas.DataFrame(wine.X, columns=list(wine.feature_names))
    model = load_model(tmp_path / "wine.npz")
    scores = model.transform(table)
    framed = clone(model).set_output(transform="pandas").fit_transform(table)
    assert list(framed.columns) == [f"adaptiveppca{k}" for k in range(3)]
    np.testing.assert_array_equal(framed.to_numpy(), scores)
    chain = make_pipeline(model, KNeighborsClassifier()).fit(table, wine.labels["cultivar"])
    assert chain.score(table, wine.labels["cultivar"]) > 0.8
    search = GridSearchCV(model, {"estimator__n_components": [2, 3]}, cv=2).fit(table)
    assert search.best_params_ == {"estimator__n_components": 3}
    with pytest.raises(NotFittedError):
        clone(model).transform(table)
    assert not hasattr(clone(model), "components_")
    np.testing.assert_array_equal(
        model.predict(table), model.estimator_.predict(model.prepared(table))
    )


def test_a_loaded_model_imputes_in_units_of_the_data(tmp_path):
    wine = wine_file(tmp_path / "wine.npz", gaps=True)
    model = load_model(tmp_path / "wine.npz")
    gappy = pandas.DataFrame(wine.with_gaps(), columns=list(wine.feature_names))
    filled = model.impute(gappy)
    run = fit_run(wine, model.config).fitted
    np.testing.assert_allclose(filled[wine.missing], run.imputed, rtol=1e-12)
    np.testing.assert_array_equal(filled[~wine.missing], wine.X[~wine.missing])
    again = clone(model).fit(gappy)
    np.testing.assert_array_equal(again.transform(gappy), model.transform(gappy))


@pytest.mark.parametrize(("model", "parameters"), MODELS)
def test_an_estimator_that_was_saved_comes_back(digits, tmp_path, model, parameters):
    rows = digits.X[:, :20] + np.random.default_rng(0).standard_normal((300, 20))
    table = pandas.DataFrame(rows, columns=[f"pixel {i}" for i in range(20)])
    before = estimator_class(model)(**parameters, random_state=0).fit(table)
    before.save(tmp_path / "model")
    after = load_model(tmp_path / "model")
    assert type(after) is type(before)
    assert after.get_params() == before.get_params()
    assert (after.n_iter_, after.stop_reason_) == (before.n_iter_, before.stop_reason_)
    assert list(after.feature_names_in_) == list(table.columns)
    assert after.describe(table).method == before.describe(table).method
    for query in QUERIES:
        expected, got = getattr(before, query)(table), getattr(after, query)(table)
        assert got.tobytes() == expected.tobytes(), query
    np.testing.assert_array_equal(after.log_likelihoods_, before.log_likelihoods_)


def test_what_is_no_number_or_word_stays_behind_a_start_comes_along(tmp_path):
    X, start = np.random.default_rng(0).standard_normal((50, 5)), np.eye(5)[:3]
    model = AdaptivePPCA(3, 2, init=start, random_state=np.random.default_rng(1), callback=print)
    model.fit(X).save(tmp_path / "model.npz")
    after = load_model(tmp_path / "model.npz")
    assert (after.random_state, after.callback) == (None, None)
    np.testing.assert_array_equal(after.init, start)
    np.testing.assert_array_equal(after.fit(X).components_, model.components_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": "Pickle"}, "which estimator"),
        ({"parameters": {"n_components": "x"}}, "which estimator"),
        ({"parameters": {"n_components": 3, "evil": 1}}, "which estimator"),
        ({"format": 99}, "newer version"),
    ],
)
def test_a_changed_file_of_an_estimator_is_refused(tmp_path, change, message):
    PPCA(3).fit(np.random.default_rng(0).standard_normal((50, 5))).save(tmp_path / "model.npz")
    with (
        zipfile.ZipFile(tmp_path / "model.npz") as old,
        zipfile.ZipFile(tmp_path / "other.npz", "w") as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "estimator.json":
                content = json.dumps(json.loads(content) | change).encode()
            new.writestr(name, content)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "other.npz")


def altered(content: bytes, **changes: np.ndarray | None) -> io.BytesIO:
    """Return an NPZ with other arrays in it; None takes one away."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    buffer = io.BytesIO()
    np.savez(buffer, **{name: value for name, value in arrays.items() if value is not None})
    buffer.seek(0)
    return buffer


@pytest.fixture(scope="module")
def content(digits) -> bytes:
    config = config_of(digits, "aPPCA")
    result = fit_run(digits, config)
    return model_bytes(config, result.fitted, result.info)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"run": None}, "is not a model file"),
        ({"mean": None}, "lacks mean"),
        ({"mean": np.zeros(3)}, "do not fit together"),
        ({"components": np.zeros(12)}, "do not fit together"),
        ({"mean": np.full(12, np.nan)}, "do not fit together"),
        ({"pre_scale": np.ones(2)}, "do not fit together"),
        ({"run": np.array("[1]")}, "does not say which model"),
        ({"run": np.array('{"config": {"model": "os"}}')}, "does not say which model"),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_a_sentence(content, changes, sentence):
    with pytest.raises(InputError, match=sentence) as refused:
        read_model("given.npz", altered(content, **changes))
    assert str(refused.value).startswith(("“given.npz”", "The arrays in “given.npz”"))


def test_objects_are_never_unpickled(content):
    harmful = np.array([print], dtype=object)
    with zipfile.ZipFile(io.BytesIO(content)) as old, io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w") as new:
            for name in old.namelist():
                if name != "mean.npy":
                    new.writestr(name, old.read(name))
            with new.open("mean.npy", "w") as member:
                np.lib.format.write_array(member, harmful, allow_pickle=True)
        with pytest.raises(InputError, match=r"holds a damaged “mean\.npy”"):
            read_model("given.npz", io.BytesIO(stream.getvalue()))


def test_draws_that_do_not_fit_a_model_are_refused(digits):
    config = config_of(digits, "isFA", max_components=3, n_chains=1, burn_in=2, n_draws=4)
    result = fit_run(digits, config)
    content = model_bytes(config, result.fitted, result.info)
    draws = result.fitted.draws
    assert len(draws["components"]) == 4
    for name, value in (
        ("components", draws["components"][:, :, :-1]),
        ("components", draws["components"][:, :1]),
        ("components", draws["components"][0]),
        ("mean", draws["mean"][:2]),
        ("noise_variance", -draws["noise_variance"]),
        ("weights", draws["weights"] * np.nan),
        ("latent_variance", None),
    ):
        with pytest.raises(InputError, match=r"in “f” do not fit together|“f” lacks"):
            read_model("f", altered(content, **{f"draws_{name}": value}))
    none = {f"draws_{name}": None for name in draws}
    assert not read_model("f", altered(content, **none)).model.draws  # a file from before
