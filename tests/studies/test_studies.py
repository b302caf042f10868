"""The smaller experiments, the data of the lab, and the files that come out."""

import csv

import numpy as np
import pytest

from appca.data.sources import DESIGNS
from appca.data.store import DatasetStore
from appca.studies.catalogue import STUDIES
from appca.studies.lab import dataset_of, drawn
from appca.studies.report import aligned, write
from appca.studies.table1 import active_for, distance, ordered
from appca.words import InputError

CHOICES = {
    "n_rows": 60,
    "n_features": 8,
    "n_components": 4,
    "n_active": 2,
    "noise_sd": 0.2,
    "seed": 3,
}
SMALL = {"n_rows": 100, "n_components": 4, "n_features": 10, "burn_in": 3, "n_draws": 3}


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture(scope="module")
def popularity():
    study = STUDIES["popularity"]
    return study.run(study.options("quick", **SMALL), silent, 1)


def test_the_matrices_of_the_five_designs_are_what_they_are_called():
    study = STUDIES["z-priors"]
    outcome = study.run(study.options(), silent, 1)
    rows = {row["design"]: row for row in outcome.tables["designs"]}
    assert list(rows) == list(outcome.arrays) == list(DESIGNS)
    assert rows["balanced"]["per_row_sd"] == rows["single"]["per_row_sd"] == 0
    assert rows["single"]["different_sets"] == 1
    assert rows["subspace"]["different_sets"] == 2
    assert rows["dense"]["per_row"] > 2 * rows["sparse"]["per_row"]
    again = study.run(study.options(), silent, 1)
    np.testing.assert_array_equal(outcome.arrays["sparse"], again.arrays["sparse"])


def test_popularity_sorts_shares_and_leaves_unused_factors_out():
    Z = np.array([[1, 0, 0, 1], [1, 0, 1, 1], [1, 0, 0, 0], [1, 0, 0, 1]], dtype=bool)
    assert ordered(Z) == [1.0, 0.75, 0.25]


def test_the_distance_of_two_curves_counts_missing_factors_as_unused():
    row = distance("sparse", "afa", {"truth": [0.5, 0.5], "afa": [0.8, 0.4, 0.2]})
    assert row["distance"] == pytest.approx((0.3 + 0.1 + 0.2) / 3)
    assert (row["factors"], row["true_factors"]) == (3, 2)


def test_popularity_has_the_truth_and_the_models_for_both_designs(popularity):
    rows = popularity.tables["popularity"]
    for design in ("sparse", "dense"):
        names = {row["method"] for row in rows if row["design"] == design}
        assert {"truth", "isfa", "isfa_k", "afa"} <= names
        for name in names:
            curve = [r["share"] for r in rows if (r["design"], r["method"]) == (design, name)]
            assert curve == sorted(curve, reverse=True)
    apart = popularity.tables["distance"]
    for design, claim in zip(("sparse", "dense"), popularity.claims, strict=True):
        nearest = min((r for r in apart if r["design"] == design), key=lambda r: r["distance"])
        assert f": {nearest['title']} {nearest['distance']:.3f}" in claim.measured
        assert claim.holds == ("yes" if nearest["method"].startswith("afa") else "no")


def test_l_is_the_rounded_mean():
    assert active_for(np.zeros((4, 3), dtype=bool)) == 1
    assert active_for(np.array([[1, 1, 1], [1, 1, 0]], dtype=bool)) == 3


def test_the_truth_is_on_record_with_the_data(tmp_path):
    truth, dataset = drawn("subspace", CHOICES), dataset_of("subspace", CHOICES)
    kept = DatasetStore(tmp_path)
    provenance = kept.get(kept.put(dataset)).provenance
    np.testing.assert_array_equal(dataset.X, truth.Y)
    np.testing.assert_array_equal(provenance["truth"]["W"], truth.W)
    bits = [[bit == "1" for bit in row] for row in provenance["truth"]["Z"]]
    np.testing.assert_array_equal(bits, truth.Z)
    assert provenance["options"] == {"design": "subspace", **CHOICES}
    assert set(dataset.labels["true set"]) == {"1,2", "3,4"}
    assert dataset_of("subspace", CHOICES).digest == dataset.digest
    assert dataset_of("subspace", {**CHOICES, "seed": 4}).digest != dataset.digest


def test_many_different_sets_make_no_label():
    many = {**CHOICES, "n_rows": 300, "n_components": 12, "n_active": 6}
    assert dataset_of("balanced", many).labels == {}


@pytest.mark.parametrize(
    ("design", "changes", "words"),
    [
        ("odd", {}, "design must be one of sparse"),
        ("dense", {"n_active": 5}, "n_active must be between 1 and n_components=4; got 5"),
        ("dense", {"n_rows": 3}, "n_rows must lie between 20 and 20,000; got 3"),
        ("dense", {"noise_sd": 0.0}, "noise_sd must lie between"),
        ("dense", {"n_rows": 20_000, "n_features": 1000}, "Rows times features must be at most"),
    ],
)
def test_data_that_cannot_be_drawn_are_refused_in_a_sentence(design, changes, words):
    with pytest.raises(InputError, match=words):
        drawn(design, {**CHOICES, **changes})


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param("popularity", marks=pytest.mark.thorough), "table1"])
def test_tables_and_figures_are_written_for_anybody_to_open(name, popularity, outcome, tmp_path):
    found = popularity if name == "popularity" else outcome
    written = write(STUDIES[name], found, tmp_path / "new" / "folder")
    assert {path.suffix for path in written} == {".csv", ".html", ".txt"}
    for path in written:
        text = path.read_text("utf-8")
        if path.suffix == ".csv":
            table = found.tables[path.stem.removeprefix(f"{name}-")]
            lines = list(csv.DictReader(text.splitlines()))
            assert [line["title"] for line in lines] == [row["title"] for row in table]
        if path.suffix == ".html":
            assert "plotly.js v" in text
            assert "<script src=" not in text  # standalone
        if path.suffix == ".txt":
            for claim in found.claims:
                assert any(line.startswith(claim.holds) for line in text.splitlines())
                assert claim.claim in text


def test_a_folder_that_cannot_be_made_is_one_sentence(popularity, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written"):
        write(STUDIES["popularity"], popularity, tmp_path / "file" / "folder")


def test_a_table_for_the_terminal_has_aligned_columns(outcome):
    lines = aligned(outcome.tables["table1"], STUDIES["table1"].columns)
    assert len(lines) == len(outcome.tables["table1"]) + 1
    assert lines[0].split()[:3] == ["design", "K", "title"]
    at = lines[0].index("title")
    assert all(line[at - 1] == " " and line[at] != " " for line in lines)
    assert aligned([]) == []
