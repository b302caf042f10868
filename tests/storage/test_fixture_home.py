"""Homes written by earlier versions open with everything that is in them."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from appca import load_model
from appca.analysis.check.choose import GridConfig
from appca.analysis.check.choose_stability import StabilityConfig
from appca.analysis.check.masked import MaskedConfig
from appca.analysis.explore.umap import EmbeddingConfig
from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig
from appca.runs.quality import QualityConfig
from appca.runs.session import unpack
from appca.runs.store import RunStore
from appca.studies.catalogue import study_of
from tests.fitted_runs import differing
from tests.fixtures.contents import FIXTURES, contents

FORMATS = sorted(path.name for path in FIXTURES.glob("home_format_*") if path.is_dir())
MOST_BYTES = 1_500_000
CONFIGS = {
    "fit": RunConfig,
    "umap": EmbeddingConfig,
    "quality": QualityConfig,
    "grid": GridConfig,
    "stability": StabilityConfig,
    "masked": MaskedConfig,
}


@pytest.fixture(params=FORMATS)
def told(request: pytest.FixtureRequest) -> dict:
    """What was in a home when it was written."""
    return json.loads((FIXTURES / f"{request.param}.json").read_text(encoding="utf-8"))


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of the home that `told` tells of, as fresh as if it were written just now."""
    name = request.node.callspec.params["told"]
    return Path(shutil.copytree(FIXTURES / name, tmp_path / name, copy_function=shutil.copyfile))


def plain(value: object) -> object:
    """Turn tuples into lists, as JSON does, and NaN into something that equals itself."""
    return json.loads(json.dumps(value), parse_constant=str)


def test_everything_in_it_is_there_with_the_same_numbers(told, home):
    found = plain(contents(home))
    assert found.keys() == told.keys()
    for kind, expected in plain(told).items():
        assert found[kind] == expected, kind
    assert found["damaged"] == []


def test_it_holds_one_of_everything(told):
    runs = told["runs"].values()
    assert {run["config"]["model"] for run in runs} == {
        *("aPPCA", "aFA", "NPPCA", "isFA", "fsFA", "PPCA")
    }
    assert sum(run["partial"] for run in runs) == 1
    assert {run["origin"] for run in runs} == {"fit", "live"}
    assert any(run["named"] for run in runs)
    assert any("".join(run["component names"]) and -1 in run["signs"] for run in runs)
    assert any(run["info"].get("n_missing") for run in runs)
    assert any("pre_basis" in run["arrays"] for run in runs)
    assert sum("posterior_components" in run["arrays"] for run in runs) == 5
    assert all(told[kind] for kind in set(told) - {"damaged"})
    assert all(told["journals"].values())
    assert any(data["selections"] for data in told["data sets"].values())


def test_the_settings_in_it_have_the_ids_under_which_they_were_stored(told, home):
    """What a page asks for today is found, and not fitted again."""
    for run_id, run in told["runs"].items():
        assert RunConfig.from_dict(run["config"]).id == run_id
    asked = dict.fromkeys(CONFIGS, 0)
    for job in told["jobs"].values():
        kind, spec = job["job"]["kind"], job["job"]["spec"]
        if kind in CONFIGS:
            given = spec.get("config") or {name: spec[name] for name in spec if name != "key"}
            assert CONFIGS[kind].from_dict(given).id == job["job"]["key"], kind
            asked[kind] += 1
    assert all(asked.values())
    for study_id, stored in told["studies"].items():
        assert study_of(stored["study"]).id(stored["options"]) == study_id


def test_reading_changes_no_file(told, home):
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    contents(home)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_session_saved_with_it_opens_in_an_empty_home(told, home, tmp_path):
    file = (FIXTURES / home.name).with_suffix(".appca")
    found = unpack(file.name, io.BytesIO(file.read_bytes()), tmp_path / "empty")
    (run_id,) = found.runs
    assert DatasetStore(tmp_path / "empty").get(found.dataset).digest in told["data sets"]
    here = RunStore(tmp_path / "empty").get(run_id)
    there = RunStore(home).get(here.config.of_import(None).id)
    assert differing(here.fitted, there.fitted) == []
    assert set(found.selections) == set(told["data sets"][found.dataset]["selections"])
    assert found.opened == run_id
    places = ((tmp_path / "empty", run_id), (home, there.id))
    both = [plain(contents(place)["runs"][known]) for place, known in places]
    assert both[0]["component names"] == both[1]["component names"]
    assert both[0]["signs"] == both[1]["signs"]


def test_a_model_saved_with_it_answers_as_the_run_did(told, home):
    model = load_model(FIXTURES / f"{home.name}_model.npz")
    run = RunStore(home).get(model.config.id)
    rows = DatasetStore(home).get(model.config.dataset).X
    np.testing.assert_allclose(model.transform(rows), run.fitted.scores, rtol=1e-4, atol=1e-5)


def test_a_home_is_small_and_names_no_machine(told, home):
    files = [path for path in FIXTURES.glob(f"{home.name}*/**/*") if path.is_file()]
    files += FIXTURES.glob(f"{home.name}*.*")
    assert len(files) > 50
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    for file in files:
        content = file.read_bytes()
        assert not any(root in content for root in (b"/home/", b"/tmp/", b"/usr/", b"C:\\")), file
