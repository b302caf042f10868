import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from appca.cli import main
from appca.data.builtin import SOURCES, load
from appca.data.preprocessing import suggest
from appca.data.store import DatasetStore
from appca.runs.config import RunConfig
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.studies.store import StudyStore

ROOT = Path(__file__).resolve().parents[1]


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_help_names_every_command_and_starts_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = subprocess.run(
        [sys.executable, "-m", "appca", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("data", "fit", "project", "paper"):
        assert word in done.stdout


def test_the_list_shows_every_built_in_data_set(capsys):
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SOURCES)


def test_fit_writes_what_the_page_would_compute(tmp_path, capsys):
    out = tmp_path / "wine.npz"
    assert main(["fit", "wine", "-K", "3", "-L", "1", "--seed", "4", "--out", str(out)]) == 0
    wine = load("wine")
    parameters = {"n_components": 3, "n_active": 1, "random_state": 4}
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", parameters)
    expected = fit_run(wine, config)
    found = arrays_of(out)
    for name, values in expected.arrays.items():
        assert found[name].tobytes() == values.tobytes(), name
    np.testing.assert_array_equal(found["ids"], wine.ids)
    assert RunConfig.from_dict(json.loads(str(found["run"]))["config"]) == config
    assert "nats a row" in capsys.readouterr().out


def test_a_model_that_learns_the_number_is_fitted_and_projects(tmp_path, capsys):
    out, rows = tmp_path / "wine.npz", tmp_path / "rows.npz"
    few = [part for name in ("burn_in=5", "n_draws=5") for part in ("--set", name)]
    assert main(["fit", "wine", "--model", "isFA", "-K", "5", *few, "--out", str(out)]) == 0
    assert "made all 10 sweeps" in capsys.readouterr().out
    fitted = arrays_of(out)
    assert fitted["posterior_components"].shape == (2, 5, 5, 13)
    assert main(["project", str(out), "wine", "--out", str(rows)]) == 0
    np.testing.assert_array_equal(arrays_of(rows)["active"], fitted["active"])


def test_project_gives_the_rows_of_the_fit_their_own_scores_again(tmp_path):
    fitted, table = tmp_path / "wine.npz", tmp_path / "rows.csv"
    assert main(["fit", "wine", "-K", "4", "--out", str(fitted)]) == 0
    assert main(["project", str(fitted), "wine", "--out", str(table)]) == 0
    frame = pd.read_csv(table)
    arrays = arrays_of(fitted)
    assert list(frame["id"].astype(str)) == list(arrays["ids"])
    scores = frame[[f"component_{k}" for k in range(1, 5)]].to_numpy()
    np.testing.assert_allclose(scores, arrays["scores"], atol=1e-5)
    as_npz = tmp_path / "rows.npz"
    assert main(["project", str(fitted), "wine", "--out", str(as_npz)]) == 0
    np.testing.assert_allclose(arrays_of(as_npz)["scores"], arrays["scores"], atol=1e-5)


def test_a_stored_run_is_where_the_app_looks_for_it(tmp_path, appca_home):
    out = tmp_path / "rows.csv"
    assert main(["fit", "wine", "--model", "PPCA", "-K", "2", "--store"]) == 0
    (run,) = RunStore(appca_home).list()
    assert run.config.model == "PPCA"
    assert DatasetStore(appca_home).get(run.config.dataset).n_rows == 178
    assert main(["project", run.id, "wine", "--out", str(out)]) == 0
    assert len(pd.read_csv(out)) == 178


def test_a_file_of_ones_own_is_fitted_with_options_settings_and_preprocessing(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "own.npy", rng.standard_normal((60, 5)))
    out = tmp_path / "table.csv"
    arguments = ["-K", "2", "-L", "1", "--set", "max_iter=3", "--set", "init=pca"]
    preprocessing = ["--scale", "global", "--centre", "--pca", "3", "--divide", "2"]
    own = str(tmp_path / "own.npy")
    assert main(["fit", own, *arguments, *preprocessing, "--out", str(out)]) == 0
    assert "reached max_iter=3" in capsys.readouterr().out
    assert len(pd.read_csv(out)) == 60


def test_data_are_written_with_ids_and_labels(tmp_path):
    as_csv, as_npz = tmp_path / "wine.csv", tmp_path / "wine.npz"
    assert main(["data", "wine", "--out", str(as_csv)]) == 0
    assert main(["data", "wine", "--out", str(as_npz)]) == 0
    wine, arrays, frame = load("wine"), arrays_of(as_npz), pd.read_csv(as_csv)
    np.testing.assert_array_equal(arrays["X"], wine.X)
    (label,) = wine.labels
    assert list(arrays["label_names"]) == [label]
    np.testing.assert_array_equal(arrays["label_0"], wine.labels[label])
    np.testing.assert_array_equal(frame[list(wine.feature_names)].to_numpy(), wine.X)
    assert list(frame[label].astype(str)) == list(wine.labels[label].astype(str))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "nothing"], "“nothing” is neither a file nor a built-in data set"),
        (["fit", "wine", "-K", "99"], "n_components must be at most 13"),
        (["fit", "wine", "-K", "2", "-L", "3"], "n_active must be at most"),
        (["fit", "wine", "-L", "0"], "n_active must be"),
        (["fit", "wine", "-K", "four"], "invalid int value: 'four'"),
        (["fit", "wine", "--model", "PCA"], "invalid choice: 'PCA'"),
        (["fit", "wine", "--set", "depth=3"], "aPPCA has the settings"),
        (["fit", "wine", "--set", "depth"], "“depth” must be of the form name=value"),
        (["fit", "wine", "--option", "size=3"], "has no options; got size"),
        (["fit", "wine", "--pca", "0.0"], "pca must be a whole number of dimensions"),
        (["fit", "wine", "--divide", "0"], "divide must be a positive number"),
        (["fit", "wine", "--out", "x.txt"], "must end in .csv or .npz; got “x.txt”"),
        (["fit", "wine", "--out", "no/such/x.csv"], "there is no “no/such”"),
        (["project", "nothing.npz", "wine", "--out", "x.csv"], "neither an .npz file from `fit`"),
        (["project", "wine", "wine"], "--out"),
        (["cook"], "invalid choice: 'cook'"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, arguments, words):
    try:
        code = main(arguments)
    except SystemExit as leaving:  # argparse's own way
        code = leaving.code
    told = capsys.readouterr()
    assert code == 2
    assert words in told.err
    assert told.err.count("\n") == 1
    assert told.err.startswith("appca")
    assert told.out == ""


def test_files_that_are_not_what_they_say_are_one_sentence(tmp_path, capsys):
    broken, foreign, empty = (tmp_path / name for name in ("broken.npz", "foreign.npz", "no.csv"))
    broken.write_bytes(b"PK\x03\x04 and no more")
    np.savez(foreign, components=np.eye(3))
    empty.write_bytes(b"")
    out = str(tmp_path / "x.csv")
    assert main(["project", str(broken), "wine", "--out", out]) == 2
    assert "cannot be read as an .npz file from `fit`" in capsys.readouterr().err
    assert main(["project", str(foreign), "wine", "--out", out]) == 2
    assert "lacks mean, pre_divide, run" in capsys.readouterr().err
    assert main(["fit", str(empty)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_new_rows_with_other_features_are_refused(tmp_path, capsys):
    fitted = tmp_path / "wine.npz"
    main(["fit", "wine", "-K", "2", "-L", "1", "--out", str(fitted)])
    capsys.readouterr()
    assert main(["project", str(fitted), "planes", "--out", str(tmp_path / "x.csv")]) == 2
    assert "13 features" in capsys.readouterr().err


def test_the_pass_is_shown_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["fit", "wine", "-K", "3", "-L", "1"]) == 0
    assert "fit, pass 1: " in terminal.getvalue()


def test_the_paper_s_experiments_are_printed_stored_and_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("appca.studies.files._draw", lambda _pictures: [])
    out = tmp_path / "paper"
    assert main(["paper", "z-priors", "--quick", "--set", "n_rows=30", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "n_rows 30; n_components 20" in told
    assert "PNG and SVG need the package kaleido" in told
    table = pd.read_csv(out / "z-priors-designs.csv")
    assert list(table["design"]) == ["sparse", "dense", "subspace", "balanced", "single"]
    assert f"balanced  {table['per_row'][3]:.0f}" in told
    assert "plotly" in (out / "z-priors-designs.html").read_text("utf-8")
    (kept,) = StudyStore(home()).list("z-priors")
    assert kept.options["n_rows"] == 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the arguments NAME --all is required"),
        (["table9"], "There is no experiment “table9”; choose among z-priors"),
        (["table1", "--all"], "not allowed with argument"),
        (["table1", "--quick", "--full"], "not allowed with argument"),
        (["table1", "--set", "depth=3"], "table1 has the options designs"),
        (["table1", "--set", "n_rows=0"], "n_rows must be a whole number above 0; got 0"),
        (["--all", "--set", "seeds=1"], "z-priors has the options"),
        (["z-priors", "--out", __file__], "must be a folder"),
    ],
)
def test_a_wrong_wish_for_an_experiment_is_one_sentence_and_exit_code_2(capsys, arguments, words):
    try:
        code = main(["paper", *arguments])
    except SystemExit as leaving:
        code = leaving.code
    told = capsys.readouterr()
    assert code == 2
    assert words in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""
