"""What sets a group apart, in one sentence."""

from collections.abc import Iterable

from appca.analysis.groups.group import GroupComparison, GroupDifference
from appca.words.numbers import number, percent
from appca.words.wording import shortened

NAMED = 3  # differences in the sentence


def sentence(comparison: GroupComparison, group: str = "These rows") -> str:
    """Say in a sentence what sets the group apart most: the strongest differences of several kinds.

    `group` is what the sentence calls the group.
    """
    told = list(_one_of_each_kind(one for one in comparison.differences if one.matters))
    if not told:
        return (
            f"{group} and the other {comparison.n_rest:,} are alike in everything that was "
            f"compared: no difference is larger than chance and more than negligible "
            f"({comparison.n_tests:,} tests)."
        )
    phrases = [_phrase(one) for one in told[:NAMED]]
    listed = " and ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)
    return f"{group} differ{'s' if comparison.n_group == 1 else ''} from the rest most in {listed}."


def _one_of_each_kind(differences: Iterable[GroupDifference]) -> Iterable[GroupDifference]:
    told = set()
    for one in differences:
        if one.kind not in told:
            told.add(one.kind)
            yield one


def _phrase(one: GroupDifference) -> str:
    name = shortened(one.name)
    if not one.is_share:
        way = "higher" if one.effect > 0 else "lower"
        return f"{name} ({way}: {number(one.group)} on average, the rest {number(one.rest)})"
    return f"{name} ({percent(one.group)} of them, {percent(one.rest)} of the rest)"


def probability(value: float) -> str:
    """Return a p value as people write it."""
    if value < 1e-300:
        return "< 1e-300"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}".replace("e-0", "e-")
