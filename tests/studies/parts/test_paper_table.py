"""The paper's table 1, pinned by hand from its text."""

import pytest

from appca.studies.experiments.table1 import COLUMNS, PRINTED, printed, read

BY_HAND = {
    "FA": ".012 .014 .012 .014 .012 .015 .088 .099 .012 .014",
    "fsFA": ".014 .018 .015 .018 .016 .018 .090 .101 .014 .019",
    "isFA": ".023 .042 .021 .042 .024 .046 .073 .970 .045 .075",
    "aFA Gibbs": ".014 .019 .012 .019 .013 .021 .047 .056 .015 .019",
    "aFA EM": ".011 .013 .011 .013 .012 .014 .034 .044 .012 .014",
}


def test_the_printed_numbers_are_those_of_the_paper():
    assert {name: [f"{v:.3f}"[1:] for v in row] for name, row in PRINTED.items()} == {
        name: line.split() for name, line in BY_HAND.items()
    }
    assert COLUMNS[6] == ("balanced", 10)


@pytest.mark.parametrize(
    ("method", "design", "K", "value"),
    [
        ("FA", "subspace", 20, 0.015),
        ("fsFA", "balanced", 20, 0.101),
        ("aFA Gibbs", "balanced", 10, 0.047),
        ("aFA EM", "single", 20, 0.014),
        ("aFA EM", "sparse", 10, 0.011),
        ("isFA", "balanced", 20, 0.970),
        ("FA", "sparse", 4, None),
        (None, "sparse", 10, None),
    ],
)
def test_a_number_is_found_by_method_design_and_k(method, design, K, value):
    assert printed(method, design, K) == value


def test_the_slip_is_read_as_a_tenth_and_nothing_else_is_changed():
    assert read("isFA", "balanced", 20) == 0.097
    changed = [
        (name, place)
        for name in PRINTED
        for place in COLUMNS
        if read(name, *place) != printed(name, *place)
    ]
    assert changed == [("isFA", ("balanced", 20))]
    assert read(None, "balanced", 20) is None
