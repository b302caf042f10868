"""Fits of jobs on the workers of a cluster that `APPCA_SCHEDULER` names."""

import importlib.util
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs import queue
from appca.jobs.progress import Context
from appca.jobs.queue import Jobs, JobStatus
from appca.jobs.worker import work
from appca.runs import cluster
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.runs.store import RunStore
from tests.jobs.waiting import ended, until
from tests.models.synthetic import planted

ROWS, FEATURES = 1500, 8


@pytest.fixture(scope="module")
def here():
    """Return a cluster of two workers in threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as found:
        yield found


@pytest.fixture
def named(here, monkeypatch) -> str:
    monkeypatch.setenv(cluster.SCHEDULER, here.scheduler_address)
    monkeypatch.setattr(cluster, "CHUNK_BYTES", 12_000)
    return here.scheduler_address


@pytest.fixture
def dataset(seed) -> Dataset:
    X = planted(ROWS, FEATURES, 3, 1, seed=seed, noise=0.3, offset=1.0).X
    return Dataset("planted", X, np.arange(ROWS).astype(str))


def config_of(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> RunConfig:
    return RunConfig(
        dataset.digest, {"centre": True, "scale": "global"}, model, {"n_components": 3} | parameters
    )


def done(home: Path, config: RunConfig, dataset: Dataset, **more: object) -> JobStatus:
    """Do a job of a fit in this process."""
    DatasetStore(home).put(dataset)
    spec = {"config": config.to_dict(), "name": None}
    return JobStatus("", "fit", spec, "")._replace(**work("fit", spec, Context(home, **more)))


FITS = {
    "em": ("aPPCA", {"n_active": 1}),
    "hard": ("aPPCA", {"n_active": 2, "inference": "hard"}),
    "ppca": ("PPCA", {}),
}


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        pytest.param(*fit, id=name, marks=[pytest.mark.thorough] * (name == "hard"))
        for name, fit in FITS.items()
    ],
)
def test_a_job_fits_on_the_cluster_what_it_fits_here(model, parameters, dataset, named, tmp_path):
    config = config_of(dataset, model, **parameters)
    state = done(tmp_path, config, dataset)
    assert state.state == "done", state.message
    assert state.result == {"run": config.id}
    run, whole = RunStore(tmp_path).get(config.id), fit_run(dataset, config)
    assert run.info.place == f"the Dask cluster at {named}, 2 workers"
    found, expected = run.fitted.to_arrays(), whole.fitted.to_arrays()
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-6, err_msg=name)
    assert run.info.n_iter == whole.info.n_iter


ELSEWHERE = {
    "a sampler": {"inference": "gibbs", "burn_in": 2, "n_draws": 2, "n_active": 1},
    "gaps": {},
    "few rows": {},
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("reason", ELSEWHERE)
def test_what_a_cluster_cannot_fit_is_fitted_here(reason, dataset, tmp_path, monkeypatch):
    monkeypatch.setenv(cluster.SCHEDULER, "tcp://127.0.0.1:9")  # where nobody answers
    if reason == "gaps":
        missing = np.zeros(dataset.X.shape, dtype=bool)
        missing[3, 4] = True
        dataset = replace(dataset, missing=missing)
    elif reason == "few rows":
        dataset = dataset.take(np.arange(FEATURES - 1))
    config = config_of(dataset, **ELSEWHERE[reason])
    state = done(tmp_path, config, dataset)
    assert state.state == "done", state.message
    assert "place" not in RunStore(tmp_path).get(config.id).info


def test_without_an_address_all_is_fitted_here(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv(cluster.SCHEDULER, "  ")
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    config = config_of(dataset)
    state = done(tmp_path, config, dataset)
    assert state.state == "done", state.message
    assert "place" not in RunStore(tmp_path).get(config.id).info


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "nonsense://x"], ids=["nobody", "no address"]
)
def test_a_cluster_that_is_not_there_fails_the_job_in_one_sentence(
    address, dataset, tmp_path, monkeypatch
):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "WAIT", 0.2)
    monkeypatch.setenv(cluster.SCHEDULER, address)
    state = done(tmp_path, config_of(dataset), dataset)
    assert state.state == "failed"
    assert state.message == (
        f"No scheduler answers at “{address}”, which APPCA_SCHEDULER names; start one with "
        "`dask scheduler`, correct the address, such as tcp://127.0.0.1:8786, or unset "
        "APPCA_SCHEDULER to fit on this computer."
    )
    assert RunStore(tmp_path).list() == []


def test_packages_that_are_missing_fail_the_job_in_one_sentence(dataset, tmp_path, monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setenv(cluster.SCHEDULER, "tcp://127.0.0.1:9")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *_: None if name == "dask" else there(name)
    )
    state = done(tmp_path, config_of(dataset), dataset)
    assert state.state == "failed"
    assert "APPCA_SCHEDULER needs the packages dask and distributed, missing here" in state.message
    assert "pip install 'appca[dask]', or unset APPCA_SCHEDULER" in state.message


def test_a_cluster_without_workers_or_with_others_is_refused(dataset, named, tmp_path, monkeypatch):
    from distributed import Client

    config = config_of(dataset)
    with monkeypatch.context() as patch:
        patch.setattr(Client, "run", lambda *_: {"one": "0.0.9", "two": "0.1.0"})
        said = done(tmp_path, config, dataset).message
        assert "must have appca 0.1.0, as here; they have 0.0.9: install it there" in said

        def none(*_: object) -> dict:
            raise ModuleNotFoundError

        patch.setattr(Client, "run", none)
        assert "they have none" in done(tmp_path, config, dataset).message
        patch.setattr(Client, "nthreads", lambda _: {})
        said = done(tmp_path, config, dataset).message
        assert f"has no workers; start some with `dask worker {named}`" in said


def test_keep_is_obeyed_and_leaves_nothing_with_the_workers(dataset, here, named, tmp_path):
    config = config_of(dataset, tol=0.0, max_iter=1_000_000, init="pca")
    state = done(tmp_path, config, dataset, stops=lambda: True)
    assert state.state == "done", state.message
    (run,) = RunStore(tmp_path).list()
    assert run.partial
    whole = fit_run(dataset, run.config)
    np.testing.assert_allclose(run.fitted.components, whole.fitted.components, atol=1e-6)
    until(lambda: not here.scheduler.tasks, "the workers to forget the rows")


@pytest.mark.thorough
def test_the_rows_are_sent_again_when_they_are_lost(dataset, named, tmp_path, monkeypatch):
    from distributed.client import FutureCancelledError

    lost: list[int] = []
    plainly = cluster.FitPlace._sent

    def sent(self, client, rows):
        if len(lost) < losses:
            lost.append(1)
            raise FutureCancelledError("rows", "lost")
        return plainly(self, client, rows)

    monkeypatch.setattr(cluster.FitPlace, "_sent", sent)
    losses = cluster.ATTEMPTS - 1
    config = config_of(dataset)
    assert done(tmp_path, config, dataset).state == "done"
    assert len(lost) == losses
    RunStore(tmp_path).delete(config.id)
    losses = len(lost) + cluster.ATTEMPTS
    state = done(tmp_path, config, dataset)
    assert state.state == "failed"
    assert f"The cluster at “{named}” was lost during the fit (FutureCancelledError)" in (
        state.message
    )


@pytest.mark.slow  # that a lost cluster is told, and a fit begun anew, is seen without processes
def test_a_fit_begins_anew_with_the_same_bits_when_a_worker_dies_with_its_rows(
    dataset, tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    DatasetStore(tmp_path).put(dataset)
    config = config_of(dataset, tol=0.0, max_iter=40, init="pca")
    passes: list[list] = []
    hear = queue._Job.hear

    def listen(self: queue._Job, news: dict) -> None:
        passes.extend(point[1:] for point in news["points"])
        hear(self, news)

    monkeypatch.setattr(queue._Job, "hear", listen)
    with distributed.LocalCluster(
        n_workers=1,  # in a process of its own, as is the job
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as there:
        monkeypatch.setenv(cluster.SCHEDULER, there.scheduler_address)
        jobs = Jobs(tmp_path, workers=1)
        try:
            job = jobs.submit("fit", {"config": config.to_dict(), "name": None})
            until(lambda: jobs.status(job).curve, "a pass", seconds=60)
            os.kill(there.workers[0].pid, signal.SIGKILL)
            status = ended(jobs, job)
        finally:
            jobs.close()
    assert status.state == "done", status.message
    run, whole = RunStore(tmp_path).get(config.id), fit_run(dataset, config)
    np.testing.assert_allclose(run.fitted.components, whole.fitted.components, atol=1e-6)
    assert passes.count(passes[0]) == 2
