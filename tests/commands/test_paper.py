import pandas as pd
import pytest

from appca.cli import main
from appca.runs.home import home
from appca.studies.catalogue import shipped
from appca.studies.store import StudyStore


def test_the_paper_s_experiments_are_printed_stored_and_written(tmp_path, capsys):
    out = tmp_path / "paper"
    assert main(["paper", "z-priors", "--quick", "--set", "n_rows=30", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "\ufffd" not in told
    assert "n_rows 30; n_components 20" in told
    table = pd.read_csv(out / "z-priors-designs.csv")
    assert list(table["design"]) == ["sparse", "dense", "subspace", "balanced", "single"]
    assert f"balanced  {table['per_row'][3]:.0f}" in told
    assert "plotly" in (out / "z-priors-designs.html").read_text("utf-8")
    (kept,) = StudyStore(home()).list("z-priors")
    assert kept.options["n_rows"] == 30


def test_results_ship_and_become_a_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("appca.studies.store.FOLDER", tmp_path / "results")
    assert main(["paper", "z-priors", "--ship"]) == 0
    assert not StudyStore(home()).list()
    shipped.cache_clear()
    file = tmp_path / "docs" / "paper.md"
    assert main(["paper", "--document", str(file)]) == 0
    shipped.cache_clear()
    assert "wrote paper.md: 1 of" in capsys.readouterr().out
    page = file.read_text("utf-8")
    assert "(#z-priors) | `z-priors` | 1 of 1 | default |" in page
    assert "`planes` | not computed" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the arguments NAME --all --ship --document is required"),
        (["table9"], "There is no experiment “table9”; the nearest is “table1”"),
        (["table1", "--all"], "not allowed with argument"),
        (["table1", "--quick", "--full"], "not allowed with argument"),
        (["table1", "--set", "depth=3"], "There is no option “depth” of table1; there are"),
        (["table1", "--set", "n_rows=0"], "n_rows must be a whole number above 0; got 0"),
        (["--all", "--set", "seeds=1"], "There is no option “seeds” of planes"),
        (["z-priors", "--out", __file__], "must be a folder"),
        (["z-priors", "--document", "x.md"], "not allowed with argument"),
        (["--document", "x.md", "--quick"], "--document computes nothing"),
        (["--document", "x.md", "--set", "seeds=1"], "--document computes nothing"),
        (["--document", __file__ + "/x.md"], "could not be written"),
    ],
)
def test_a_wrong_wish_for_an_experiment_is_one_sentence_and_its_exit_code(capsys, arguments, words):
    try:
        code = main(["paper", *arguments])
    except SystemExit as leaving:
        code = leaving.code
    told = capsys.readouterr()
    usage = "not allowed" in words or "computes nothing" in words or "required" in told.err
    assert code == (2 if usage else 1)
    assert words in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""
