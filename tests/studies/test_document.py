"""docs/paper.md against the shipped results it is made of."""

from pathlib import Path

from appca import __version__
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.report import document
from appca.studies.store import Stored
from appca.studies.study import CheckedClaim, Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paper.md"
POPULARITY = STUDIES["popularity"]


def of_popularity(size="default", created=0.0):
    options = POPULARITY.options(size)
    claims = [CheckedClaim("p | q", "0.5", "<0.4>", "no"), CheckedClaim("r", "", "1", "yes")]
    row = {"design": "sparse", "title": "aFA", "factors": 3, "true_factors": 3}
    outcome = Outcome({"distance": [row | {"distance": 0.123456}]}, {}, claims, "One text.")
    name = POPULARITY.id(options)
    return Stored(name, "popularity", options, created, 1.0, {"appca": __version__}, outcome)


def test_the_page_is_what_the_shipped_results_say():
    """After new results, or a changed sentence: python -m appca paper --document docs/paper.md."""
    assert PAGE.read_text(encoding="utf-8") == document(shipped(), PAGE)


def test_a_changed_number_is_seen():
    planes = shipped()["planes"]
    rows = planes.outcome.tables["planes"]
    tables = {"planes": [{**rows[0], "angle": 12.5}, *rows[1:]]}
    changed = {**shipped(), "planes": planes._replace(outcome=Outcome(tables, {}, []))}
    assert document(changed, PAGE) != document(shipped(), PAGE)


def test_a_result_from_before_a_change_of_the_experiment_says_so():
    outdated = of_popularity("full")._replace(id="0" * 12)
    text = document({"popularity": outdated}, PAGE)
    assert "| full, before a change of the experiment |" in text


def test_sizes_that_are_the_same_are_called_default():
    assert STUDIES["planes"].size_of(STUDIES["planes"].options("quick")) == "default"
    assert POPULARITY.size_of(POPULARITY.options("quick")) == "quick"
    assert POPULARITY.size_of(POPULARITY.options("quick", seed=9)) == "other options"


def test_the_page_tells_what_holds_how_it_was_made_and_what_is_missing():
    text = document({"popularity": of_popularity("quick", 86_400.0)}, Path("docs/paper.md"))
    assert (
        "| [Figure 4: Popularity of the factors](#popularity) | `popularity` | 1 of 2 (1 no) "
        "| quick | 1 s | 1970-01-02 |"
    ) in text
    assert "| `planes` | not computed |" in text
    assert "| p \\| q | 0.5 | <0.4> | no |" in text
    assert "One text." in text
    assert "| sparse | aFA | 3 | 3 | 0.1235 |" in text
    assert "    python -m appca paper popularity --quick\n" in text
    assert f"appca {__version__}." in text
    assert "`python -m appca paper --document docs/paper.md`" in text
    names = [text.index(f"`{name}`") for name in ("planes", "table1", "popularity", "whitening")]
    assert names == sorted(names)
