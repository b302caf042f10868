"""The workers of a cluster before a fit: who may not fit is told in one sentence."""

from concurrent.futures import CancelledError

import pytest

from appca.runs import cluster
from appca.storage.errors import InputError


@pytest.fixture(scope="module")
def address():
    """Return the address of a cluster of a worker in a thread of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as found:
        yield found.scheduler_address


def refused(address: str) -> str:
    with pytest.raises(InputError) as caught, cluster.connected(address):
        pass
    return str(caught.value)


def test_a_cluster_without_workers_or_with_others_is_refused(address, monkeypatch):
    from distributed import Client

    with cluster.connected(address) as client:
        assert len(client.nthreads()) == 1
    monkeypatch.setattr(Client, "run", lambda *_: {"one": "0.0.9", "two": "0.1.0"})
    said = refused(address)
    assert "must have appca 0.1.0, as here; they have 0.0.9: install it there, or name" in said

    def none(*_: object) -> dict:
        raise ModuleNotFoundError

    monkeypatch.setattr(Client, "run", none)
    assert "they have none" in refused(address)
    monkeypatch.setattr(Client, "nthreads", lambda _: {})
    assert f"has no workers; start some with `dask worker {address}`" in refused(address)


def test_a_cluster_that_is_lost_is_told_in_one_sentence():
    pytest.importorskip("distributed")
    said = "“tcp://there” was lost during the fit .CancelledError.; .*, or name threads instead"
    with pytest.raises(InputError, match=said), cluster.losses("tcp://there"):
        raise CancelledError
