"""A model in a file: the same bits on new rows, for every model, and no harm from a bad file."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from appca import AdaptivePPCA, load_model
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources import load
from appca.runs.fit import fit_run, prepared
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import RunConfig, estimator_class
from appca.words import InputError
from tests.data.file_makers import packed, stored

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
    before = estimator_class(model)(**config.parameters).fit(fitted.transform(digits.X))
    result = fit_run(digits, config)
    path = tmp_path / "model.npz"
    path.write_bytes(model_bytes(config, result.fitted, result.info))
    after = load_model(path)
    assert type(after.estimator_) is type(before)
    assert after.estimator_.get_params() == before.get_params()
    assert (after.config, after.estimator_.stop_reason_) == (config, before.stop_reason_)
    new = load("digits").X[400:460]
    after.save(tmp_path / "again.npz")
    again, rows = load_model(tmp_path / "again.npz"), prepared(config, fitted, new)
    for query in QUERIES:
        expected = getattr(before, query)(rows).tobytes()
        assert {getattr(one, query)(new).tobytes() for one in (after, again)} == {expected}, query
    assert after.sample(3).tobytes() == fitted.inverse_transform(before.sample(3)).tobytes()
    scores = after.describe(digits.X).scores.astype(np.float32)
    np.testing.assert_allclose(scores, result.fitted.scores, rtol=1e-5, atol=1e-6)
    likelihoods = after.score_samples(digits.X)
    np.testing.assert_allclose(likelihoods, result.fitted.log_likelihood_rows, rtol=1e-10)
    rebuilt = scores @ after.components_ + after.mean_
    np.testing.assert_allclose(after.inverse_transform(scores, "map"), rebuilt, atol=1e-3)


def test_a_loaded_model_is_a_scikit_learn_estimator(tmp_path):
    wine = load("wine")
    wine = replace(wine, missing=(np.arange(178) % 9 == 0)[:, None] & (np.arange(13) == 3))
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", {"n_components": 3})
    result = fit_run(wine, config)
    file = tmp_path / "wine.npz"  # as the page Export gives it
    file.write_bytes(model_bytes(config, result.fitted, result.info, wine.feature_names))
    table, model = pandas.DataFrame(wine.X, columns=list(wine.feature_names)), load_model(file)
    scores = model.transform(table)
    framed = clone(model).set_output(transform="pandas").fit_transform(table)
    assert list(framed.columns) == [f"adaptiveppca{k}" for k in range(3)]
    chain = make_pipeline(clone(model), KNeighborsClassifier()).fit(table, wine.labels["cultivar"])
    assert chain.score(table, wine.labels["cultivar"]) > 0.8
    search = GridSearchCV(model, {"estimator__n_components": [2, 3]}, cv=2).fit(table)
    assert search.best_params_ == {"estimator__n_components": 3}
    with pytest.raises(NotFittedError):
        clone(model).transform(table)
    assert not hasattr(clone(model), "components_")
    alone = model.estimator_.predict(model.prepared(table))
    np.testing.assert_array_equal(model.predict(table), alone)
    # Names: the order is that of the fit, and without them a warning.
    assert list(model.feature_names_in_) == list(wine.feature_names)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.transform(wine.X), scores)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.score(table[table.columns[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.transform(table.rename(columns={"ash": "dust"}))
    # Gaps are filled in units of the data.
    gappy = pandas.DataFrame(wine.with_gaps(), columns=list(wine.feature_names))
    filled = model.impute(gappy)
    np.testing.assert_allclose(filled[wine.missing], result.fitted.imputed, rtol=1e-12)
    np.testing.assert_array_equal(filled[~wine.missing], wine.X[~wine.missing])
    np.testing.assert_array_equal(clone(model).fit(gappy).transform(gappy), model.transform(gappy))


@pytest.mark.default_cases(4)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": "Pickle"}, "which estimator"),
        ({"parameters": {"n_components": "x"}}, "which estimator"),
        ({"parameters": {"n_components": 3, "evil": 1}}, "which estimator"),
        ({"format": 99}, "newer version"),
    ],
)
def test_a_start_comes_along_and_a_changed_file_of_an_estimator_is_refused(
    tmp_path, change, message
):
    X, start = np.random.default_rng(0).standard_normal((50, 5)), np.eye(5)[:3]
    model = AdaptivePPCA(3, 2, init=start, random_state=np.random.default_rng(1), callback=print)
    model.fit(X).save(tmp_path / "model.npz")
    after = load_model(tmp_path / "model.npz")
    assert (after.random_state, after.callback) == (None, None), "no number or word"
    np.testing.assert_array_equal(after.init, start)
    np.testing.assert_array_equal(after.fit(X).components_, model.components_)
    with zipfile.ZipFile(tmp_path / "model.npz") as old:
        members = {name: old.read(name) for name in old.namelist()}
    members["estimator.json"] = json.dumps(json.loads(members["estimator.json"]) | change).encode()
    (tmp_path / "other.npz").write_bytes(packed(members))
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "other.npz")


def altered(content: bytes, **changes: np.ndarray | None) -> io.BytesIO:
    """Return an NPZ with other arrays in it; None takes one away."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    kept = {name: value for name, value in arrays.items() if value is not None}
    return io.BytesIO(stored(np.savez, **kept))


def test_a_file_that_is_no_model_is_refused_in_a_sentence_and_nothing_is_unpickled(digits):
    config = config_of(digits, "isFA", max_components=3, n_chains=1, burn_in=2, n_draws=4)
    result = fit_run(digits, config)
    content = model_bytes(config, result.fitted, result.info)
    draws = result.fitted.draws
    assert len(draws["components"]) == 4
    unfit = r"The arrays in “given.npz” do not fit together|“given.npz” lacks"
    for changes, sentence in (
        ({"run": None}, "“given.npz” is not a model file"),
        ({"mean": None}, "“given.npz” lacks mean"),
        ({"mean": np.zeros(3)}, unfit),
        ({"components": np.zeros(12)}, unfit),
        ({"mean": np.full(12, np.nan)}, unfit),
        ({"pre_scale": np.ones(2)}, unfit),
        ({"run": np.array("[1]")}, "does not say which model"),
        ({"run": np.array('{"config": {"model": "os"}}')}, "does not say which model"),
        ({"mean": np.array([print], dtype=object)}, r"holds a damaged “mean\.npy”"),
        ({"draws_components": draws["components"][:, :, :-1]}, unfit),
        ({"draws_components": draws["components"][:, :1]}, unfit),
        ({"draws_components": draws["components"][0]}, unfit),
        ({"draws_mean": draws["mean"][:2]}, unfit),
        ({"draws_noise_variance": -draws["noise_variance"]}, unfit),
        ({"draws_weights": draws["weights"] * np.nan}, unfit),
        ({"draws_latent_variance": None}, unfit),
    ):
        with pytest.raises(InputError, match=sentence):
            read_model("given.npz", altered(content, **changes))
    none = {f"draws_{name}": None for name in draws}
    assert not read_model("f", altered(content, **none)).model.draws  # a file from before
