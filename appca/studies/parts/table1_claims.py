"""What the paper says of table 1, judged by the measured table."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from appca.studies.claims import CheckedClaim, checked, span
from appca.studies.parts import paper_table
from appca.studies.parts.methods import METHODS, MOST_BEYOND
from appca.studies.study import Options, Row
from appca.words.numbers import percent

SAME_SIZE = ("fa_k", "fsfa", "isfa_k", "afa_gibbs", "afa")  # one for each row of the paper's table
BY_EM = ("afa", "afa_most", "afa_paper")
NEAR = 1.2  # times the oracle's squared error still counts as reaching it
ALIKE = 2.0  # times the printed error, or a part of it, is the same measure
MORE = 1.05  # times the factors of the data are more than there are

Cells = dict[tuple[str, int], dict[str, Row]]  # by design and K, the rows by method


def claims(table: Sequence[Row], options: Options) -> list[CheckedClaim]:
    """Judge all claims, each by the columns (design and K) that have the methods it is about."""
    cells: Cells = {}
    for row in table:
        cells.setdefault((row["design"], row["K"]), {})[row["method"]] = row
    return [
        _lowest(cells),
        _fresh(cells),
        _everywhere(cells),
        _optima(cells),
        _gibbs(cells),
        _surplus(cells),
        _printed(table, options),
        _squared(cells),
    ]


def _lowest(cells: Cells) -> CheckedClaim:
    """Among the five methods of the paper, as often as in the paper; level errors count there."""
    columns = [place for place in cells if place in paper_table.COLUMNS]
    claim = "aFA by EM has the lowest error of the five methods"
    if not columns:
        return checked(claim, "the paper has no numbers for these K", [])
    paper = 0
    for place in columns:
        printed = {name: paper_table.read(name, *place) or math.inf for name in paper_table.PRINTED}
        paper += printed["aFA EM"] == min(printed.values())
    here = Counter(
        str(METHODS[_best(cells[place], "mae", SAME_SIZE, least=True)].paper) for place in columns
    )
    wins = here["aFA EM"]
    n = len(columns)
    measured = f"in {wins} of {n}; {_counted(here)}. FA may use all K factors for any row"
    tests, number = [wins >= paper, wins > 0], (f"{wins} of {n}", "least error")
    return checked(claim, measured, tests, f"{paper} of {n} columns", number)


def _fresh(cells: Cells) -> CheckedClaim:
    """By the likelihood of rows not fitted to, which many factors do not flatter."""
    best = [_best(cell, "heldout", METHODS) for cell in cells.values()]
    won = [method in BY_EM for method in best]
    told = _counted(Counter(METHODS[method].title for method in best))
    measured = f"in {sum(won)} of {len(won)} columns; {told}"
    number = (f"{sum(won)} of {len(won)}", "best on new rows")
    return checked("It describes new rows best, too", measured, won, number=number)


def _everywhere(cells: Cells) -> CheckedClaim:
    ratios, full = (_ratios(cells, method, "oracle_s") for method in ("afa", "afa_most"))
    most = f", {span(full)} with the number of the fullest row" if full else ""
    measured = f"{span(ratios)} times the squared error of an oracle that knows W{most}"
    return checked("aFA performs well across all settings", measured, [r <= NEAR for r in ratios])


def _optima(cells: Cells) -> CheckedClaim:
    """On balanced data, of which aFA is the true model: from our start and from the paper's."""
    balanced = {place: cell for place, cell in cells.items() if place[0] == "balanced"}
    ratios, start = (_ratios(balanced, method, "oracle_s") for method in ("afa", "afa_paper"))
    claim = "EM converges to good local optima (balanced data)"
    if not ratios:
        return checked(claim, "no balanced data", [])
    worst, right = (
        min(cell["afa"][name] for cell in balanced.values()) for name in ("cosine_least", "z_right")
    )
    measured = (
        f"{span(ratios)} times the squared error of an oracle that knows W, from the paper's start "
        f"{span(start)} times; worst |cos| of a column {worst:.3f}, Z right {percent(right, 1)}"
    )
    return checked(claim, measured, [ratio <= NEAR for ratio in ratios + start])


def _gibbs(cells: Cells) -> CheckedClaim:
    ratios = _ratios(cells, "afa_gibbs", "afa")
    worse = [ratio > 1 for ratio in ratios]
    measured = f"by Gibbs {span(ratios)} times the squared error, more in {_share(worse)} columns"
    claim, number = "aFA by EM has a lower error than by Gibbs", (_share(worse), "below Gibbs")
    return checked(claim, measured, worse, "all columns", number)


def _surplus(cells: Cells) -> CheckedClaim:
    ratios = _ratios(cells, "isfa_k", "oracle_z", "n_used")
    more = [ratio > MORE for ratio in ratios]
    measured = f"in {_share(more)} columns, {span(ratios)} times as many, at most K + {MOST_BEYOND}"
    return checked("isFA uses more factors than there are", measured, more)


def _printed(table: Sequence[Row], options: Options) -> CheckedClaim:
    """Mean absolute errors cannot lie below the noise, unless rows are fitted by many factors."""
    floor = options["noise_sd"] * math.sqrt(2 / math.pi)
    printed = [value for row in paper_table.PRINTED.values() for value in row]
    least = min(row["mae"] for row in table if row["method"] in METHODS)
    measured = (
        f"{sum(value < floor for value in printed)} of {len(printed)} numbers lie below "
        f"{floor:.3f}, the noise alone; the least here is {least:.3f}"
    )
    tests = [min(printed) >= min(floor, least)]
    return checked("The errors are mean absolute errors", measured, tests, span(printed, ".3f"))


def _squared(cells: Cells) -> CheckedClaim:
    """Try the other reading: squared errors, to which noise of variance 0.01 adds 0.01."""
    columns = [place for place in cells if place in paper_table.COLUMNS]
    tests, told = [], []
    for name, places in {
        "on balanced data": [place for place in columns if place[0] == "balanced"],
        "on the other designs": [place for place in columns if place[0] != "balanced"],
    }.items():
        near = {
            measure: [
                1 / ALIKE < cells[place][method][measure] / printed < ALIKE
                for place in places
                for method in SAME_SIZE
                if (printed := paper_table.read(METHODS[method].paper, *place))
            ]
            for measure in ("mse", "mae")
        }
        if places:
            squared, absolute = sum(near["mse"]), sum(near["mae"])
            tests.append(squared > absolute)
            told.append(
                f"{name} {squared} of {len(near['mse'])} are within a factor of {ALIKE:g} of the "
                f"squared errors here, {absolute} of the absolute ones"
            )
    measured = "; ".join(told) or "the paper has no numbers for these K"
    return checked("Or they are mean squared errors", measured, tests)


def _best(
    cell: dict[str, Row], measure: str, methods: Iterable[str], *, least: bool = False
) -> str:
    values = {method: cell[method][measure] for method in methods if method in cell}
    return (min if least else max)(values, key=lambda method: values[method])


def _ratios(cells: Cells, method: str, other: str, measure: str = "mse") -> list[float]:
    return [
        cell[method][measure] / cell[other][measure]
        for cell in cells.values()
        if method in cell and other in cell
    ]


def _counted(times: Counter[str]) -> str:
    return "; ".join(f"{name} in {n}" for name, n in times.most_common())


def _share(tests: Sequence[bool]) -> str:
    return f"{sum(tests)} of {len(tests)}"
