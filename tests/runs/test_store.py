"""Runs on disk: bit for bit, named, pruned, and damaged ones left out in one sentence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appca.runs import store as store_module
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import Labels, RunStore, labels, put
from appca.words import InputError
from tests.fitted_runs import differing, fitted_run, info_of

CONFIG = RunConfig("d" * 64, {}, "aPPCA", {"n_components": 4, "n_active": 2})


def seeded(seed: int) -> RunConfig:
    return replace(CONFIG, parameters={"random_state": seed})


def result_of(seed: int = 0) -> FitResult:
    rng = np.random.default_rng(seed)
    given = {"scores": rng.standard_normal((30, 4)).astype(np.float32)}
    given |= {"log_likelihoods": np.array([-np.inf, np.nan, -0.0, 5e-324])}
    given |= {"noise_variance": 0.1 + seed}
    given |= {"components": rng.standard_normal((4, 7)), "mean": rng.standard_normal(7)}
    return FitResult(fitted_run(rng.random((30, 4)) > 0.5, **given), info_of())


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path)


def test_a_run_comes_back_bit_for_bit_in_another_store(store, tmp_path):
    saved = store.save(CONFIG, result_of(), name="  my\n run ")
    found = RunStore(tmp_path).get(CONFIG.id)
    assert found.id == saved.id == CONFIG.id
    assert found.config == CONFIG
    assert found.info == result_of().info
    assert (found.name, found.custom_name, found.origin) == ("my run", "my run", "fit")
    assert differing(found.fitted, result_of().fitted) == []
    for values in found.fitted.to_arrays().values():
        assert values.ndim == 0 or not values.flags.writeable, "sessions share the arrays"
    assert files(store.folder / found.id) == {"config.json", "arrays.npz"}
    assert files(store.folder) == {found.id}


def test_runs_are_listed_newest_first_under_names_made_of_their_settings(store):
    first = store.save(CONFIG, result_of(), name="kept")
    for seed in (1, 2):
        store.save(seeded(seed), result_of(seed))
    store.save(replace(seeded(3), stopped_at=12), result_of(3))
    names = [
        *("aPPCA, K = 4, L = 2, seed 3, stopped at step 12", "aPPCA, K = 4, L = 2, seed 2"),
        *("aPPCA, K = 4, L = 2, seed 1", "kept"),
    ]
    assert [run.name for run in store.list()] == names
    assert [run.config.stopped_at for run in store.list()] == [12, None, None, None]
    again = store.save(CONFIG, result_of(9), origin="live")  # keeps its arrays, and is the newest
    assert again.fitted.mean.tobytes() == first.fitted.mean.tobytes()
    assert (again.name, again.origin, store.list()[0].id) == ("kept", "fit", CONFIG.id)
    assert store.rename(CONFIG.id, " ").name == "aPPCA, K = 4, L = 2"
    assert len(store.rename(CONFIG.id, "x" * 1000).name) == 120
    with pytest.raises(InputError, match="no fit “000000000000” to rename"):
        store.rename("0" * 12, "x")
    for name in ("../" + "a" * 9, "", None, "A" * 12, "a" * 13, "/etc/passwd00"):  # no path
        assert store.get(name) is None
        store.delete(name)
    assert len(store.list()) == 4


def test_a_name_given_while_old_runs_go_is_not_lost(store, monkeypatch):
    monkeypatch.setattr(store_module, "LIVE_RUNS_KEPT", 1)
    old = store.save(CONFIG, result_of(), origin="live")
    found = store.list()
    with monkeypatch.context() as slow:
        slow.setattr(RunStore, "list", lambda _: [*found, *found])
        store.rename(old.id, "mine")
        store.save(seeded(1), result_of(1), origin="live")
    assert store.get(old.id).name == "mine"


def test_names_that_were_given_outlive_damaged_arrays(store):
    run = store.save(CONFIG, result_of(), name="hours of work")
    K = len(run.fitted.components)
    put(run, Labels(("left stroke", *[""] * (K - 1)), (1,) * K))
    (run.path / "arrays.npz").write_bytes(b"x" * (run.path / "arrays.npz").stat().st_size)
    store.drop_arrays(run.id)
    assert store.get(run.id) is None
    again = store.save(CONFIG, result_of())
    assert again.name == "hours of work"
    assert labels(again).names[0] == "left stroke"


def test_live_runs_beyond_the_newest_are_pruned_unless_named_or_asked_for(store, monkeypatch):
    monkeypatch.setattr(store_module, "LIVE_RUNS_KEPT", 3)
    named = store.save(seeded(0), result_of(), name="mine", origin="live")
    asked = store.save(seeded(1), result_of(), origin="fit")
    live = [store.save(seeded(seed), result_of(), origin="live") for seed in range(2, 7)]
    store.renew(live[2].id, origin="live")  # looked at again: the newest now
    store.save(seeded(7), result_of(), origin="live")
    kept = {run.id for run in store.list()}
    assert kept == {named.id, asked.id, live[2].id, live[4].id, seeded(7).id}
    assert store.renew(live[0].id) is None
    for seed in range(8, 12):  # named runs take no places of others
        store.save(seeded(seed), result_of(), name=f"mine {seed}", origin="live")
    assert kept < {run.id for run in store.list()}
