"""What is deleted is gone from the disk, and what other work needs stays."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import MODELS
from appca.runs.store import RunStore
from appca.storage.identity import digest_of
from appca.ui.open import Deletion, erase, planned
from tests.homes import contents, copied


@pytest.fixture
def stocked(tmp_path: Path) -> Path:
    """Return a home that holds one of everything."""
    return copied(tmp_path / "home")


def hits(home: Path, dataset: Dataset) -> list[Path]:
    """Return the files, hidden ones too, that hold the data's digest, its ids or its rows."""
    ids = ["\0".join(map(str, dataset.ids[:6])).encode(), np.array(dataset.ids[:6]).tobytes()]
    rows = [row.tobytes() for row in dataset.X[[3, dataset.n_rows // 2]] if row.any()]
    wanted, files = [dataset.digest.encode(), *ids, *rows], filter(Path.is_file, home.rglob("*"))
    return [file for file in files if any(one in file.read_bytes() for one in wanted)]


def all_runs(home: Path, digest: str) -> list[str]:
    return [run.id for run in RunStore(home).list() if run.config.dataset == digest]


def most_fitted(home: Path) -> str:
    """Return the digest of the data set with most kept runs."""
    kept = Counter(run.config.dataset for run in RunStore(home).list() if run.kept)
    return kept.most_common(1)[0][0]


def test_names_of_components_go_with_the_data_and_those_of_other_data_stay(stocked):
    """The registries are named after data and model together, so a search by digest misses them."""
    digest, store = most_fitted(stocked), RunStore(stocked)
    for run in store.list():
        if run.config.model in ("aPPCA", "PPCA", "aFA"):
            ComponentNumbers(stocked).rename(run, 0, "slope")
    registries = stocked / "numbers"
    mine = {digest_of({"dataset": digest, "model": model}) for model in MODELS}
    before = {path.name for path in registries.iterdir()}
    assert before & mine
    assert before - mine
    erase(stocked, planned(stocked, all_runs(stocked, digest)))
    assert {path.name for path in registries.iterdir()} == before - mine


def test_no_byte_of_deleted_data_is_left_and_all_other_data_stay(stocked):
    store, before = DatasetStore(stocked), contents(stocked)
    erase(stocked, Deletion(frozenset(), frozenset(), ()))
    assert contents(stocked) == before, "a deletion of nothing"
    every = [store.get(one.digest) for one in store.list()]
    whole = copied(stocked.with_name("whole"))
    drop = whole / "uploads" / "drop-1" / "0"
    drop.parent.mkdir(parents=True)
    drop.write_bytes(b"a,b\n1,2\n")
    erase(whole)
    assert not any(hits(whole, dataset) for dataset in every)
    assert not drop.exists()
    damaged = all_runs(stocked, most_fitted(stocked))[0]
    (RunStore(stocked).folder / damaged / "arrays.npz").write_bytes(b"broken")
    for one in store.list():
        dataset, before = store.get(one.digest), contents(stocked)
        others = {other.digest for other in store.list()} - {one.digest}
        assert len(hits(stocked, dataset)) > 2
        wanted = planned(stocked, [run for run in all_runs(stocked, one.digest) if run != damaged])
        assert (wanted.data, wanted.shared) == ({one.digest}, ())
        erase(stocked, wanted)
        assert hits(stocked, dataset) == []
        after = contents(stocked)
        assert {key: before["data sets"][key] for key in others} == after["data sets"]
        gone = wanted.runs | {damaged}
        assert {run for run in before["runs"] if run not in gone} == set(after["runs"]) - {damaged}
    assert RunStore(stocked).list() == []
    assert RunStore(stocked).damaged() == {}
    assert {path.parent.name for path in stocked.rglob("registry.npz")} == set()
