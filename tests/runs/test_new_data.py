"""The job that describes new rows: what it keeps, and what it says when something is gone."""

import numpy as np
import pytest

from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.jobs.tasks import Context, project
from appca.runs.fit import fit_run, is_quick, keep_rows, key_of, stored
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.words import InputError

WINE = load("wine")


@pytest.fixture(scope="module")
def fitted():
    config = RunConfig(WINE.digest, suggest(WINE).to_dict(), "aFA", {"max_iter": 5})
    return config, fit_run(WINE, config)


def test_rows_are_described_once_and_kept_under_run_and_rows(tmp_path, fitted):
    config, result = fitted
    RunStore(tmp_path).save(config, result)
    key = key_of(config.id, WINE.digest)
    assert key != key_of(config.id, "0" * 64) != key_of("0" * 12, WINE.digest)
    assert stored(tmp_path, key) is None
    keep_rows(tmp_path, key, WINE.X)
    spec = {"key": key, "run": config.id}
    assert project(spec, Context(tmp_path)) == {"key": key}
    found = stored(tmp_path, key)
    for name in ("scores", "active", "membership", "error", "log_likelihood_rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(result.fitted, name))
    (kept,) = (tmp_path / "projections").iterdir()  # the rows themselves are gone
    RunStore(tmp_path).delete(config.id)
    assert project(spec, Context(tmp_path)) == {"key": key}  # known: nothing is needed any more
    kept.unlink()
    with pytest.raises(InputError, match="not there any more; open both again"):
        project(spec, Context(tmp_path))


def test_rows_that_cannot_be_put_down_are_one_sentence(tmp_path):
    (tmp_path / "projections").write_text("a file where the folder would be")
    with pytest.raises(InputError, match=r"^The new rows could not be stored in .*; free some"):
        keep_rows(tmp_path, "k", WINE.X)


def test_only_short_work_without_a_compiler_is_done_by_the_page():
    config = RunConfig(WINE.digest, {}, "aPPCA", {"n_components": 10, "n_active": 3})
    assert is_quick(10_000, 784, config, 1.0)
    assert not is_quick(200_000, 784, config, 1.0)
    assert not is_quick(10, 13, RunConfig(WINE.digest, {}, "aFA", {}), 1.0)
