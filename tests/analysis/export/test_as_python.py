"""The text is executed in a process of its own, and what it makes is compared bit for bit."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.as_python import Recipe, _loading, script
from appca.data.dataset import Dataset
from appca.data.readers import read, read_many
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import threads
from appca.runs.numbering import Numbering, numbered
from appca.runs.run import MODELS, FitResult, RunConfig
from tests.data.file_makers import encoded, idx, noise
from tests.fitted_runs import differing, fitted_run, info_of

ROOT = Path(__file__).parents[3]
DIVIDED, SCALED = {"divide": 16.0}, {"centre": True, "scale": "feature"}
SHORT = {"n_chains": 2, "burn_in": 5, "n_draws": 6}
COMPARED = ("components", "mean", "scores", "active", "log_likelihood_rows", "inclusion", "error")
SAVE = """
import numpy as np

np.savez(
    {target!r}, components=components, mean=mean, scores=scores, active=active,
    log_likelihood_rows=fitted.log_likelihood_rows, inclusion=fitted.inclusion,
    error=fitted.error, log_likelihoods=fitted.log_likelihoods,
)
"""

AS_FITTED = Numbering((), (), ())
SHOWN = {"aFA": Numbering((3, 0, 2, 1), (1, -1, -1, 1), ("", "", "", ""))}

NO_RUN = FitResult(fitted_run(np.ones((1, 1), dtype=bool)), info_of())


def recipe_of(config: RunConfig, result: FitResult, shown=AS_FITTED) -> Recipe:
    return Recipe(
        run=config.id,
        title=MODELS[config.model].title,
        settings=config.to_dict(),
        threads=threads(),
        log_likelihood=result.info.log_likelihood,
        order=shown.order,
        signs=shown.signs,
    )


def as_shown(name: str, result: FitResult) -> FitResult:
    known = SHOWN.get(name)
    return result if known is None else result._replace(fitted=numbered(result.fitted, known))


def executed(texts: list[str], folder: Path) -> list[tuple[dict[str, np.ndarray], str]]:
    """Arrays that each script makes, and what it prints, in one process of their own."""
    targets = [folder / f"arrays {number}.npz" for number in range(len(texts))]
    whole = [text + SAVE.format(target=str(at)) for text, at in zip(texts, targets, strict=True)]
    environment = {key: value for key, value in os.environ.items() if "_NUM_THREADS" not in key}
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore:max_components",
            "-W",
            "ignore:EM ended at max_iter",
            "-c",
            "\n".join(f"exec({text!r}, {{}})" for text in whole),
        ],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = []
    for target in targets:
        with np.load(target) as file:
            made.append(dict(file))
    return list(zip(made, done.stdout.splitlines(), strict=True))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


STOPPED = {"random_state": 3}
RUNS = {
    "aPPCA": ("digits", DIVIDED, "aPPCA", {"n_components": 4, "n_active": 2}, None),
    "aFA": ("wine", SCALED, "aFA", {"n_components": 4, "n_active": 2}, None),
    "isFA": ("wine", SCALED, "isFA", {"max_components": 4, **SHORT}, None),
    "stopped": ("wine", SCALED, "aPPCA", STOPPED, 7),
}


@pytest.fixture(scope="module")
def results():
    """Every run, with its data and settings."""
    found = {}
    for name, (source, options, model, parameters, stopped_at) in RUNS.items():
        dataset = load(source)
        config = RunConfig(dataset.digest, options, model, parameters, stopped_at=stopped_at)
        result = as_shown(name, fit_run(dataset, config, callback=lambda progress: None))
        found[name] = dataset, config, result
    return found


@pytest.fixture(scope="module")
def made(results, tmp_path_factory):
    """What the script of every run makes and prints; one start of Python for all."""
    texts = [
        script(data, recipe_of(config, result, *filter(None, [SHOWN.get(name)])))
        for name, (data, config, result) in results.items()
    ]
    return dict(zip(results, executed(texts, tmp_path_factory.mktemp("scripts")), strict=True))


@pytest.mark.parametrize("name", RUNS)
def test_the_script_makes_the_arrays_of_the_run(results, made, name):
    dataset, config, result = results[name]
    arrays, printed = made[name]
    for field in (*COMPARED, "log_likelihoods"):
        assert same_bits(arrays[field], getattr(result.fitted, field)), field
    first, last = printed.split(" nats; the fit had ")
    assert float(first) == float(last) == result.info.log_likelihood
    again = as_shown(name, fit_run(dataset, config))
    assert differing(again.fitted, result.fitted) == []


def test_a_run_stopped_by_hand_stops_in_the_script_too(results, made):
    dataset, _, result = results["stopped"]
    assert result.info.stopped_at == 7
    longer = fit_run(dataset, RunConfig(dataset.digest, SCALED, "aPPCA", STOPPED))
    assert not same_bits(made["stopped"][0]["scores"], longer.fitted.scores)


def table() -> bytes:
    rng = np.random.default_rng(4)
    lines = ["who,kind,a,b,c"]
    for row in range(60):
        a, b, c = rng.normal(size=3)
        lines.append(f"item {row},{'xy'[row % 2]},{a:.5f},{'' if row == 7 else f'{b:.5f}'},{c:.5f}")
    return "\n".join(lines).encode()


def test_an_uploaded_table_is_read_from_the_path_that_is_filled_in(tmp_path):
    dataset = read("own 'table'.csv", io.BytesIO(table()), missing="mean")
    config = RunConfig(dataset.digest, SCALED, "PPCA", {"n_components": 2})
    result = fit_run(dataset, config)
    text = script(dataset, recipe_of(config, result))
    assert "write here where the files are" in text
    (tmp_path / "own 'table'.csv").write_bytes(table())
    ((made, _),) = executed([text], tmp_path)
    assert same_bits(made["scores"], result.fitted.scores)


def test_other_data_are_refused_by_the_script(tmp_path):
    dataset = read("own.csv", io.BytesIO(table()), missing="drop")
    config = RunConfig(dataset.digest, SCALED, "PPCA", {"n_components": 2})
    text = script(dataset, recipe_of(config, fit_run(dataset, config)))
    (tmp_path / "own.csv").write_bytes(table().replace(b"item 3,", b"item three,"))
    with pytest.raises(AssertionError, match="these are not the data of the fit"):
        executed([text], tmp_path)


def small(**provenance: object) -> Dataset:
    X = np.random.default_rng(0).normal(size=(12, 3))
    ids = np.arange(12).astype(str)
    return Dataset("a\nprint('no comment')", X, ids, provenance=dict(provenance))


def bare(dataset: Dataset) -> str:
    config = RunConfig(dataset.digest, {}, "PPCA", {"n_components": 2})
    return script(dataset, recipe_of(config, NO_RUN))


def test_options_of_a_built_in_source_that_are_not_the_usual_ones_are_written():
    options = {"n": 10_000, "per_class": None, "classes": ["1", "3"]}
    text = bare(small(source="mnist", options=options))
    assert "dataset = load('mnist', classes=['1', '3'])" in text
    assert "dataset = load('coil20')" in bare(small(source="coil20", options={"size": 32}))
    for unknown in (small(), small(source="file", files=["cells.zarr"])):
        assert f"DatasetStore(home()).get({unknown.digest!r})" in bare(unknown)


def test_a_name_from_a_file_stays_inside_the_comment():
    lines = bare(small()).splitlines()
    assert lines[0].startswith("# ")
    assert lines[0].endswith("print('no comment').")
    assert not any(line.startswith("print('no") for line in lines)


def read_again(dataset, home, folder, monkeypatch):
    """Execute what reads the data set, from what the store remembers of it."""
    kept = DatasetStore(home)
    imports, lines = _loading(kept.get(kept.put(dataset)))
    monkeypatch.chdir(folder)
    names = {"Path": Path}
    exec("\n".join([imports, *lines]), names)
    return names["dataset"]


def given(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [(name, folder / name) for name in files]


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (
            {f"pets/{'ab'[i % 2]}_{i}.png": encoded(noise(i, 6, 5)) for i in range(9)},
            {"classes": "name", "size": (4, 4)},
        ),
        (
            {"x-images.idx": idx(noise(0, 6, 3, 3)), "x-labels.idx": idx(noise(1, 6))},
            {},
        ),
        ({"x.npz": npz(a=noise(0, 5, 6), b=noise(1, 5, 6))}, {"array": "b", "image_shape": (2, 3)}),
        (
            {"x.csv": b"7,a,5,1\n2,b,6,1\n3,b,8,2\n4,a,5,2\n"},
            {"separator": ",", "roles": {"column 2": "ignored"}},
        ),
    ],
    ids=["folder", "pair", "array", "table"],
)
def test_the_script_reads_the_files_as_they_were_read(files, options, tmp_path, monkeypatch):
    folder = tmp_path / "files"
    pairs = given(folder, files)
    dataset = read_many(pairs, **options) if len(pairs) > 1 else read(*pairs[0], **options)
    again = read_again(dataset, tmp_path / "home", folder, monkeypatch)
    assert again.digest == dataset.digest
