"""The rules by which the paper's claims are judged, on made-up numbers on both sides of each."""

import pytest

from appca.analysis.rows import Mixture
from appca.data.sources import DESIGNS
from appca.studies import coil20, digits, lab, planes, table1
from appca.studies.fitting import crowding_claim
from appca.studies.study import CheckedClaim, checked, headings, span


@pytest.mark.parametrize(
    ("tests", "holds"),
    [([True, True], "yes"), ([True, False], "partly"), ([False, False], "no"), ([], "not tested")],
)
def test_a_claim_holds_if_all_its_tests_do(tests, holds):
    assert checked("a", "b", iter(tests), "c") == CheckedClaim("a", "c", "b", holds)


def test_the_paper_s_numbers_have_a_column_where_there_are_any():
    without, own = checked("a", "b", []), checked("a", "b", [], "0.85")
    assert list(headings([without, own])) == ["claim", "paper", "measured", "holds"]
    assert list(headings([without])) == ["claim", "measured", "holds"]


def test_a_span_of_equal_values_is_one_number():
    assert span([3.0, 1.0, 2.0]) == "1.00 to 3.00"
    assert span([2.001, 2.0]) == "2.00"


@pytest.mark.parametrize(
    ("right", "angle", "rest", "holds"),
    [
        (91, 4.9, 0.1, ["yes", "yes"]),
        (90, 4.9, 0.3, ["partly", "no"]),
        (91, 5.1, 0.1, ["partly", "yes"]),
        (90, 5.1, 0.1, ["no", "yes"]),
    ],
)
def test_planes_are_found_by_rows_and_by_angle(right, angle, rest, holds):
    row = {"of_the_plane": right, "rows_of_plane": 100, "angle": angle}
    found = planes.claims([row, {**row, "angle": 0.0}], rest, 0.2)
    assert [claim.holds for claim in found] == holds
    assert f"{right}.0%" in found[0].measured


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, "yes"),
        ({"sparse": {"per_row": 16.0}}, "partly"),
        ({"subspace": {"different_sets": 100}}, "partly"),
        ({"balanced": {"per_row_sd": 0.1}}, "partly"),
        ({"single": {"different_sets": 2}}, "partly"),
    ],
)
def test_designs_are_what_they_are_called(changes, holds):
    usual = {"per_row": 10.0, "per_row_sd": 0.0}
    sets, sizes = {"subspace": 2, "single": 1}, {"sparse": 4.0, "dense": 15.0}
    rows = [
        {**usual, "per_row": sizes.get(name, 10.0), "different_sets": sets.get(name, 100)}
        | changes.get(name, {})
        for name in DESIGNS
    ]
    assert lab.claims(rows)[0].holds == holds


@pytest.mark.parametrize(("afa", "holds"), [(0.09, "yes"), (0.11, "no")])
def test_popularity_is_judged_by_the_nearest_curve_of_a_design(afa, holds):
    def row(design, method, distance):
        return {"design": design, "method": method, "distance": distance}

    dense = [row("dense", "isfa", 0.2), row("dense", "afa_most", 0.3), row("dense", "afa", 0.1)]
    found = table1.popularity_claims(
        [row("sparse", "isfa", 0.1), row("sparse", "afa", afa), *dense]
    )
    assert [claim.holds for claim in found] == [holds, "yes"]
    assert f"aFA, EM {afa:.3f}" in found[0].measured


@pytest.mark.parametrize(
    ("ink", "slants", "holds"),
    [
        (0.51, (0.1, -0.51), ["yes", "yes"]),
        (0.49, (-0.21, 0.0), ["partly", "partly"]),
        (-0.19, (0.0, 0.19), ["no", "no"]),
    ],
)
def test_strokes_are_judged_by_their_largest_effect(ink, slants, holds):
    usual = {"subspace": "{1,2}", "effect_error": 0.03, "effect_within_classes": -0.1}
    measured = {"ink, pixels": ink, "slant, degrees": slants[0], "size of the slant": slants[1]}
    rows = [{**usual, "measure": name, "effect": value} for name, value in measured.items()]
    rows += [{**row, "subspace": "{1,3}", "effect": 0.0} for row in rows]
    found = digits.stroke_claims(rows)
    assert [claim.holds for claim in found] == holds
    assert all("{1,2}" in claim.measured for claim in found)


@pytest.mark.parametrize(
    ("panel", "same", "whole", "holds"),
    [
        (0.72, 0.7, 0.6, "yes"),
        (0.72, 0.7, 0.9, "yes"),
        (0.705, 0.7, 0.6, "partly"),  # only because a panel shows fewer rows
        (0.705, 0.7, 0.7, "no"),
    ],
)
def test_crowding_is_judged_by_the_same_rows(panel, same, whole, holds):
    row = {"rows": 50, "panel_accuracy": panel, "pca_same_rows": same, "pca_all_rows": whole}
    empty = {"rows": 0, "panel_accuracy": 1.0, "pca_same_rows": 0.0, "pca_all_rows": 0.0}
    assert crowding_claim([row, empty]).holds == holds


@pytest.mark.parametrize(
    ("first", "second", "holds"),
    [(0.1, -0.31, "yes"), (0.9, 0.31, "yes"), (-0.9, 0.29, "partly"), (0.29, None, "no")],
)
def test_the_width_is_looked_for_on_component_2(first, second, holds):
    rows = [
        {"component": k + 1, "rows": 9, "objects": 3, "correlation": r, "correlation_of_objects": r}
        for k, r in enumerate((first, second))
    ]
    assert coil20.width_claim(rows).holds == holds


@pytest.mark.parametrize(
    ("differs", "right", "holds"),
    [
        (6, (5, 4, 4), ["yes", "yes"]),
        (5, (5, 5, 4), ["no", "partly"]),
        (0, (4, 5, 5), ["no", "no"]),
    ],
)
def test_likeness_left_out_by_umap_is_counted_by_object(differs, right, holds):
    rows = [
        {"appca": "a", "umap": "b" if n < differs else "a", "pca": "a", "pixels": "c"}
        for n in range(20)
    ]
    found = coil20.umap_claims(rows)
    assert found[0].holds == holds[0]
    named = [
        {key: "x" if n < m else key for key, m in zip(("appca", "umap", "pca"), right, strict=True)}
        for n in range(20)
    ]
    assert coil20.umap_claims([{**row, "pixels": "x"} for row in named])[1].holds == holds[1]


@pytest.mark.parametrize(("deviation", "rank", "holds"), [(3.1, 2, "yes"), (3.1, 3, "no")])
def test_pairs_that_share_much_are_high_and_far_from_chance(deviation, rank, holds):
    def row(digit, other, shared):
        return {"digit": digit, "other": other, "shared": shared, "deviation": deviation}

    rows = [row("1", "1", 3.0), row("1", "7", 2.0), row("7", "7", 1.5)]
    ranks = [("3", "5")] * 3
    ranks[rank:rank] = [("1", "7")]
    own, pair = digits.sharing_claims(rows, ranks, 1.0)
    assert (own.holds, pair.holds) == ("partly", holds)  # 7 shares more with 1 than with 7
    by_chance = [{**one, "deviation": 2.9} for one in rows]
    assert digits.sharing_claims(by_chance, ranks, 1.0)[1].holds == "no"


def test_objects_fall_together_where_a_group_joins_them():
    names = ["1", "2", "4", "8"]
    alone, cats = Mixture(None, 1.0, (2,)), Mixture(None, 2.0, (2, 3))
    found = coil20.similar_claims([alone, cats], names)
    assert [claim.holds for claim in found] == ["yes", "yes", "no"]
    assert found[1].measured == "in 1 of 2 groups"
    assert {claim.holds for claim in coil20.similar_claims([alone], names)} == {"no"}
