"""Tests of exported scripts: they reproduce a run bit for bit in a new process."""

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
from appca.runs.run import MODELS, RunConfig
from tests.data.file_makers import encoded, idx, noise, npz

ROOT, SCALED = Path(__file__).parents[2], {"centre": True, "scale": "feature"}
COMPARED = (
    *("components", "mean", "scores", "active", "log_likelihood_rows", "inclusion", "error"),
    "log_likelihoods",
)
SAVE = """
import numpy as np

np.savez(
    {target!r}, components=components, mean=mean, scores=scores, active=active,
    log_likelihood_rows=fitted.log_likelihood_rows, inclusion=fitted.inclusion,
    error=fitted.error, log_likelihoods=fitted.log_likelihoods,
)
"""


def recipe_of(config: RunConfig, likelihood: float = -1.5, **shown: object) -> Recipe:
    title = MODELS[config.model].title
    return Recipe(config.id, title, config.to_dict(), threads(), likelihood, **shown)


def executed(texts: list[str], folder: Path) -> list[tuple[dict[str, np.ndarray], str]]:
    """Arrays that each script makes, and what it prints, in one process of their own."""
    targets = [folder / f"arrays {number}.npz" for number in range(len(texts))]
    whole = [text + SAVE.format(target=str(at)) for text, at in zip(texts, targets, strict=True)]
    environment = {key: value for key, value in os.environ.items() if "_NUM_THREADS" not in key}
    quiet = ("error", "ignore:max_components", "ignore:EM ended at max_iter")
    options = [part for warning in quiet for part in ("-W", warning)]
    done = subprocess.run(
        [sys.executable, *options, "-c", "\n".join(f"exec({text!r}, {{}})" for text in whole)],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = [dict(np.load(target)) for target in targets]
    return list(zip(made, done.stdout.splitlines(), strict=True))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


PLAIN, TURNED = Numbering((), (), ()), Numbering((3, 0, 2, 1), (1, -1, -1, 1), ("", "", "", ""))
SHORT = {"max_components": 4, "n_chains": 2, "burn_in": 5, "n_draws": 6}
RUNS = {
    "aFA": ("wine", SCALED, {"n_components": 4, "init": "pca"}, None, TURNED),
    "isFA": ("wine", SCALED, SHORT, None, PLAIN),
    "aPPCA stopped": ("wine", SCALED, {"random_state": 3}, 7, PLAIN),
}


def test_the_script_makes_the_arrays_of_the_run(tmp_path):
    texts, results = [], []
    for name, (source, options, parameters, stopped_at, shown) in RUNS.items():
        dataset = load(source)
        of = dataset.digest, options, name.split()[0], parameters
        config = RunConfig(*of, stopped_at=stopped_at)
        result = fit_run(dataset, config, callback=lambda progress: None)
        assert result.info.stopped_at == stopped_at
        as_shown = {"order": shown.order, "signs": shown.signs}
        texts.append(script(dataset, recipe_of(config, result.info.log_likelihood, **as_shown)))
        fitted = result.fitted if shown is PLAIN else numbered(result.fitted, shown)
        results.append((fitted, result.info.log_likelihood))
    made = executed(texts, tmp_path)
    for (fitted, likelihood), (arrays, printed) in zip(results, made, strict=True):
        assert [n for n in COMPARED if not same_bits(arrays[n], getattr(fitted, n))] == []
        assert [float(one) for one in printed.split(" nats; the fit had ")] == [likelihood] * 2


def test_an_uploaded_table_is_read_from_the_path_that_is_filled_in_if_it_is_the_same(
    tmp_path, monkeypatch
):
    rng, lines = np.random.default_rng(4), ["who,kind,a,b,c"]
    for row in range(60):
        a, b, c = rng.normal(size=3)
        lines.append(f"item {row},{'xy'[row % 2]},{a:.5f},{'' if row == 7 else f'{b:.5f}'},{c:.5f}")
    table = "\n".join(lines).encode()
    dataset = read("own 'table'.csv", io.BytesIO(table), missing="mean")
    config = RunConfig(dataset.digest, SCALED, "PPCA", {"n_components": 2})
    text = script(dataset, recipe_of(config))
    assert "the folder of the files" in text
    (tmp_path / "own 'table'.csv").write_bytes(table)
    made: dict = {}
    monkeypatch.chdir(tmp_path)
    exec(text, made)
    assert same_bits(made["scores"], fit_run(dataset, config).fitted.scores)
    (tmp_path / "own 'table'.csv").write_bytes(table.replace(b"item 3,", b"item three,"))
    with pytest.raises(AssertionError, match="the fit used other data"):
        exec(text, {})


@pytest.mark.parametrize(
    ("provenance", "statement"),
    [
        (
            {"source": "mnist", "options": {"n": 10_000, "per_class": None, "classes": ["1", "3"]}},
            "load('mnist', classes=['1', '3'])",
        ),
        ({"source": "coil20", "options": {"size": 32}}, "load('coil20')"),
        ({}, "DatasetStore(home()).get({digest!r})"),
        ({"source": "file", "files": ["cells.zarr"]}, "DatasetStore(home()).get({digest!r})"),
    ],
)
def test_built_in_data_are_loaded_and_unknown_ones_taken_from_the_home(provenance, statement):
    X = np.random.default_rng(0).normal(size=(12, 3))
    dataset = Dataset("a", X, np.arange(12).astype(str), provenance=provenance)
    text = script(dataset, recipe_of(RunConfig(dataset.digest, {}, "PPCA", {"n_components": 2})))
    assert f"\ndataset = {statement.format(digest=dataset.digest)}\n" in text


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (
            {f"pets/{'ab'[i % 2]}_{i}.png": encoded(noise(i, 6, 5)) for i in range(9)},
            {"classes": "none", "size": (4, 4)},
        ),
        ({"x-images.idx": idx(noise(0, 6, 3, 3)), "x-labels.idx": idx(noise(1, 6))}, {}),
        ({"x.npz": npz(a=noise(0, 5, 6), b=noise(1, 5, 6))}, {"array": "b", "image_shape": (2, 3)}),
        (
            {"x.csv": b"7,a,5,1\n2,b,6,1\n3,b,8,2\n4,a,5,2\n"},
            {"separator": ",", "roles": {"column 2": "ignored"}},
        ),
    ],
    ids=["folder", "pair", "array", "table"],
)
def test_the_script_reads_the_files_as_they_were_read(files, options, tmp_path, monkeypatch):
    pairs = [(name, tmp_path / "files" / name) for name in files]
    for name, path in pairs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
    dataset = read_many(pairs, **options) if len(pairs) > 1 else read(*pairs[0], **options)
    kept, names = DatasetStore(tmp_path / "home"), {"Path": Path}
    monkeypatch.chdir(tmp_path / "files")
    exec("\n".join(_loading(kept.get(kept.put(dataset)))), names)
    assert names["dataset"].digest == dataset.digest
