"""docs/paper.md against the results it is made of, and which results those are."""

import json
from pathlib import Path

import numpy as np
import pytest

from appca import __version__
from appca.storage.errors import InputError
from appca.studies import document
from appca.studies.catalogue import STUDIES
from appca.studies.claims import CheckedClaim
from appca.studies.kept import KeptResult, chosen, kept, read_kept, size_of, write_kept
from appca.studies.store import StudyStore
from appca.studies.study import Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paper.md"
POPULARITY = STUDIES["popularity"]


def of_popularity(size="default", created=0.0, **changes):
    options = POPULARITY.options(size, **changes)
    claims = [CheckedClaim("p | q", "0.5", "<0.4>", "no"), CheckedClaim("r", "", "1", "yes")]
    rows = [{"design": "sparse", "title": "aFA", "factors": 3, "distance": 0.123456}]
    versions = {"appca": __version__}
    name = POPULARITY.id(options)
    return KeptResult("popularity", name, options, created, versions, claims, "One text.", rows)


def test_the_page_is_what_the_kept_results_say():
    """After new results, or a changed sentence: python -m appca paper --document docs/paper.md."""
    results = chosen(read_kept(document.kept_beside(PAGE)))
    assert PAGE.read_text(encoding="utf-8") == document.page(results, PAGE)


def test_a_changed_number_is_seen():
    results = chosen(read_kept(document.kept_beside(PAGE)))
    planes = results["planes"]
    angle = {**planes.rows[0], "angle": 12.5}
    changed = {**results, "planes": planes._replace(rows=[angle, *planes.rows[1:]])}
    assert document.page(changed, PAGE) != document.page(results, PAGE)


def test_every_experiment_of_the_paper_is_kept_and_holds():
    results = chosen(read_kept(document.kept_beside(PAGE)))
    assert set(results) == set(STUDIES)
    assert all("appca" in result.versions for result in results.values())
    assert document.page(results, PAGE).count("before a change") == 0


def test_a_larger_result_wins_then_a_newer_one():
    quick, old, new = (
        of_popularity(size, created)
        for size, created in (("quick", 9.0), ("default", 1.0), ("default", 2.0))
    )
    for results in ([quick, old, new], [new, old, quick]):
        assert chosen(results) == {"popularity": new}
    full = of_popularity("full", 0.0)
    assert chosen([new, full, quick])["popularity"] == full
    changed = of_popularity("default", 9.0, n_rows=7)
    assert chosen([changed, quick])["popularity"] == quick
    assert size_of(POPULARITY, changed.options) == "other options"


def test_a_result_from_before_a_change_of_the_experiment_loses_and_says_so():
    outdated = of_popularity("full")._replace(id="0" * 12)
    quick = of_popularity("quick")
    assert chosen([outdated, quick])["popularity"] == quick
    assert "| full, before a change of the experiment |" in document.page(chosen([outdated]), PAGE)


def test_an_experiment_that_is_gone_is_left_out():
    assert chosen([of_popularity()._replace(study="gone")]) == {}


def test_sizes_that_are_the_same_are_called_default():
    assert size_of(STUDIES["planes"], STUDIES["planes"].options("quick")) == "default"
    assert size_of(POPULARITY, POPULARITY.options("quick")) == "quick"


def test_the_page_tells_what_holds_how_it_was_made_and_what_is_missing():
    text = document.page({"popularity": of_popularity("quick", 86_400.0)}, Path("docs/paper.md"))
    assert (
        "| [Figure 4: Popularity of the factors](#popularity) | `popularity` | 1 of 2 (1 no) "
        "| quick | 1970-01-02 |"
    ) in text
    assert "| `planes` | not computed |" in text
    assert "| p \\| q | 0.5 | <0.4> | no |" in text
    assert "One text." in text
    assert "| sparse | aFA | 3 | 0.1235 |" in text
    assert "    python -m appca paper popularity --quick\n" in text
    assert f"appca {__version__}." in text
    assert "`python -m appca paper --document docs/paper.md`" in text
    assert "`paper_results.json`" in text
    names = [text.index(f"`{name}`") for name in ("planes", "table1", "popularity", "whitening")]
    assert names == sorted(names)


def test_results_are_read_as_they_were_kept(tmp_path):
    file = tmp_path / "new" / "some.json"
    results = [of_popularity("quick", 1.5)]
    assert read_kept(file) == []
    write_kept(file, results)
    assert read_kept(file) == results


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "could not be read"),
        ("{}", "“results” is missing"),
        ('{"results": [{}]}', "could not be read"),
        ('{"format": 99, "results": []}', "newer version"),
    ],
)
def test_kept_results_that_cannot_be_read_are_refused_and_stay(tmp_path, content, words):
    file = tmp_path / "paper_results.json"
    file.write_text(content)
    with pytest.raises(InputError, match=words):
        document.write_document(tmp_path / "paper.md", tmp_path / "home", lambda _line: None)
    assert file.read_text() == content
    assert not (tmp_path / "paper.md").exists()


def test_stored_results_replace_kept_ones_without_arrays_and_seconds(tmp_path):
    study, home, file = STUDIES["table1"], tmp_path / "home", tmp_path / "docs" / "paper.md"
    row = dict.fromkeys(study.columns, 1.5) | {"design": "sparse", "title": "x", "spread": 2.0}
    outcome = Outcome({"table1": [row], "cells": [row]}, {"X": np.ones(3)}, [], "Of two sets.")
    StudyStore(home).save(study, study.options("quick"), outcome, 3.0)
    StudyStore(home).save(study, study.options("full", seeds=1), outcome, 3.0)  # not a size
    write_kept(document.kept_beside(file), [of_popularity(), _older(study)])
    said: list[str] = []
    document.write_document(file, home, said.append)
    assert said == [f"wrote paper.md and paper_results.json: 2 of {len(STUDIES)} experiments"]
    table1, popularity = read_kept(document.kept_beside(file))
    assert popularity == of_popularity()
    assert table1.text == "Of two sets."
    assert set(table1.rows[0]) == set(study.columns) - {"seconds"}
    assert set(json.loads(document.kept_beside(file).read_text())["results"][0]) == {
        *KeptResult._fields
    }
    first = file.read_text("utf-8")
    document.write_document(file, tmp_path / "empty", said.append)
    assert file.read_text("utf-8") == first


def _older(study):
    options = study.options("quick")
    return KeptResult("table1", study.id(options), options, 1.0, {}, [], "Older.", [])


def test_what_is_kept_of_a_stored_result_is_its_first_table(tmp_path):
    study, store = STUDIES["planes"], StudyStore(tmp_path)
    options = study.options()
    name = store.save(study, options, study.run(options, lambda _stage, _share: None, 1), 1.0)
    stored = store.get(name)
    found = kept(stored)
    assert found.claims == list(stored.outcome.claims)
    assert found.rows == stored.outcome.tables["planes"]
    assert list(found.rows[0]) == list(study.columns)
