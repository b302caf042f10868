import pytest

from appca.words import unknown
from tests.sentences import faults_of


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        ("hight", ["height", "a"], "column “hight”; the nearest is “height”, and there are “heig"),
        ("HEIGHT", ["height"], "column “HEIGHT”; the nearest is “height”."),
        ("zz", list("abcdefgh"), "column “zz”; there are “a”, “b”, “c”, “d”, “e”, “f” and 2 more."),
        ("zz", [], "column “zz”; there are none to choose from."),
        ("ab1", ["ab2", "ab3"], "column “ab1”; the nearest are “ab3”, “ab2”."),
    ],
)
def test_a_name_that_is_not_there_is_told_with_those_near_it(given, known, said):
    refusal = str(unknown("column", given, known))
    assert refusal.startswith(f"There is no {said}")
    assert faults_of(refusal, given) == ""
