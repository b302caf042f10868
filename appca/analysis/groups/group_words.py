"""What sets a group apart, in one sentence."""

from appca.analysis.groups.group import GroupComparison, GroupDifference
from appca.words.numbers import number, percent
from appca.words.wording import shortened

NAMED = 3  # differences in the sentence


def sentence(comparison: GroupComparison, group: str = "These rows") -> str:
    """Say in a sentence what sets the group apart most: the strongest differences of several kinds.

    `group` is what the sentence calls the group.
    """
    strongest: dict[str, GroupDifference] = {}  # of each kind
    for difference in comparison.differences:
        if difference.matters:
            strongest.setdefault(difference.kind, difference)
    if not strongest:
        return (
            f"{group} and the other {comparison.n_rest:,} do not differ: in "
            f"{comparison.n_tests:,} tests, none exceeds both chance and a negligible size."
        )
    phrases = [_phrase(difference) for difference in strongest.values()][:NAMED]
    listed = " and ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)
    return f"{group} differ{'s' if comparison.n_group == 1 else ''} from the rest most in {listed}."


def _phrase(difference: GroupDifference) -> str:
    name = shortened(difference.name)
    if not difference.is_share:
        way = "higher" if difference.effect > 0 else "lower"
        means = number(difference.group), number(difference.rest)
        return f"{name} ({way}: {means[0]} on average, the rest {means[1]})"
    return f"{name} ({percent(difference.group)} of them, {percent(difference.rest)} of the rest)"


def probability(value: float) -> str:
    """Return a p value as people write it."""
    if value < 1e-300:
        return "< 1e-300"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}".replace("e-0", "e-")
