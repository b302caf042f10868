"""The paragraph below table 1: where measurement and paper agree, said in measured numbers."""

import math
from collections.abc import Callable, Sequence

from appca.data.numbers import percent
from appca.studies.parts import paper_table
from appca.studies.parts.methods import METHODS, MOST_BEYOND
from appca.studies.study import Row

SAME_SIZE = ("fa_k", "fsfa", "isfa_k", "afa_gibbs", "afa")  # one for each row of the paper's table
BY_EM = ("afa", "afa_most", "afa_paper")
NEAR = 1.2  # times the oracle's squared error still counts as reaching it

Cell = dict[str, Row]  # the rows of one design and K by method


def paragraph(table: Sequence[Row], options: dict) -> str:
    """Say what came out, a short paragraph for each question, the verdict last."""
    cells: dict[tuple[str, int], Cell] = {}
    for row in table:
        cells.setdefault((str(row["design"]), int(row["K"])), {})[str(row["method"])] = row
    parts = (
        _setting,
        _floor,
        _in_sample,
        _balanced,
        _free_counts,
        _counts,
        _inference,
        _heldout,
        _verdict,
    )
    return "\n\n".join(filter(None, (part(cells, options) for part in parts)))


def _setting(cells: dict, options: dict) -> str:
    del cells
    return (
        f"Each number is a mean over {_counted(options['seeds'])} of {options['n_rows']:,} rows "
        f"and {options['n_features']} features with noise of standard deviation "
        f"{options['noise_sd']:g}; the paper gives neither the number of features, nor L, nor the "
        "laws of Z. Here aFA is given as many factors a row as a row uses on average. Sampled "
        f"models had {options['burn_in']} sweeps of burn-in and {options['n_draws']} draws of one "
        "chain."
    )


def _floor(cells: dict, options: dict) -> str:
    floor = options["noise_sd"] * math.sqrt(2 / math.pi)
    printed = [value for row in paper_table.PRINTED.values() for value in row]
    below = sum(value < floor for value in printed)
    lowest = min(_numbers(cells, "mae", lambda key: key in METHODS), default=math.nan)
    text = (
        f"The noise alone has a mean absolute size of {floor:.3f}, and the lowest error measured "
        f"here is {lowest:.3f}; {below} of the paper's {len(printed)} numbers lie below the noise, "
        "so they cannot be mean absolute errors of such data, and only their order can be "
        "compared."
    )
    slips = [
        f" Its {value:.3f} for {method} ({design}, K = {K}) is ten times all its neighbours and "
        f"is read as {meant:.3f}."
        for (method, design, K), meant in paper_table.READ_AS.items()
        if (design, K) in cells and (value := paper_table.printed(method, design, K)) is not None
    ]
    return text + "".join(slips)


def _in_sample(cells: dict, options: dict) -> str:
    """Who reconstructs best, among the five methods of the paper."""
    del options
    known = {place: cell for place, cell in cells.items() if place in paper_table.COLUMNS}
    if not known:
        return ""
    paper, here = _wins(known, _paper_best), _wins(known, _measured_best)
    told = ", ".join(f"{name} in {count}" for name, count in sorted(here.items()))
    return (
        f"In the paper aFA by EM has the lowest error, alone or level, in {paper.get('aFA EM', 0)} "
        f"of {len(known)} columns. Measured in-sample, the lowest of the five methods is {told} of "
        f"{len(known)}; FA may use all K factors for every row, which makes its in-sample error "
        "low whatever Z is."
    )


def _balanced(cells: dict, options: dict) -> str:
    del options
    parts = []
    for (design, K), cell in cells.items():
        if design == "balanced" and {"afa", "afa_paper", "oracle_s"} <= set(cell):
            best, own, start = (_of(cell[key], "mse") for key in ("oracle_s", "afa", "afa_paper"))
            parts.append(
                f"at K = {K} aFA by EM has {own / best:.2f} times the squared error of somebody "
                f"who knows W ({own:.4f} against {best:.4f}), finds the columns with |cos| "
                f"{_of(cell['afa'], 'cosine'):.3f} (worst {_of(cell['afa'], 'cosine_least'):.3f}) "
                f"and {percent(_of(cell['afa'], 'z_right'), 1)} of Z, while the paper's own start "
                f"ends at {start / best:.1f} times"
            )
    if not parts:
        return ""
    return f"On the balanced design {'; '.join(parts)}."


def _free_counts(cells: dict, options: dict) -> str:
    """Say what a fixed L costs where rows use different numbers of factors."""
    del options
    own, full = [], []
    for cell in cells.values():
        if {"afa", "afa_most", "oracle_s"} <= set(cell):
            own.append(_of(cell["afa"], "mse") / _of(cell["oracle_s"], "mse"))
            full.append(_of(cell["afa_most"], "mse") / _of(cell["oracle_s"], "mse"))
    if not own:
        return ""
    reached = "with" if max(full) <= NEAR else "not even with"
    return (
        "Where rows use different numbers of factors (sparse, dense), aFA with the average number "
        f"has {_span(own)} times the oracle's squared error, and with the number of the fullest "
        f"row, on dense data nearly or all of K, {_span(full)} times: it “performs well across all "
        f"settings”, as the paper has it, {reached} that choice."
    )


def _counts(cells: dict, options: dict) -> str:
    """Whether isFA takes more factors than there are."""
    del options
    more = [
        _of(cell["isfa_k"], "n_used") / _of(cell["oracle_z"], "n_used")
        for cell in cells.values()
        if {"isfa_k", "oracle_z"} <= set(cell)
    ]
    if not more:
        return ""
    over = sum(ratio > 1.05 for ratio in more)
    seen = "as the paper says of it" if over else "which the paper says of it"
    return (
        f"isFA with alpha set for K uses more factors than the data have in {over} of {len(more)} "
        f"columns ({_span(more)} times as many, at most K + {MOST_BEYOND} being allowed), {seen}."
    )


def _inference(cells: dict, options: dict) -> str:
    del options
    ratios = [
        _of(cell["afa_gibbs"], "mse") / _of(cell["afa"], "mse")
        for cell in cells.values()
        if {"afa_gibbs", "afa"} <= set(cell)
    ]
    if not ratios:
        return ""
    worse = sum(ratio > 1 for ratio in ratios)
    better = (
        " Where it is smaller, the sampler has left the optimum that EM stops at."
        if worse < len(ratios)
        else ""
    )
    return (
        f"aFA by Gibbs has a larger squared error than by EM in {worse} of {len(ratios)} columns "
        f"({_span(ratios)} times); in the paper it is larger in all of its columns. A draw from a "
        f"posterior is not its maximum, so a little more is to be expected.{better}"
    )


def _heldout(cells: dict, options: dict) -> str:
    """Who predicts fresh rows best, against the oracle."""
    del options
    if not cells:
        return ""
    best: dict[str, list[str]] = {}
    for (design, K), cell in cells.items():
        winner = _predicts_best(cell)
        best.setdefault(METHODS[winner].title, []).append(f"{design} {K}")
    told = "; ".join(f"{title}: {', '.join(where)}" for title, where in best.items())
    rotated = {"subspace", "single"} & {design for design, _ in cells}
    warning = (
        f" Factors that are always used together ({', '.join(sorted(rotated))}) can be told only "
        "up to a rotation, so their |cos| is low for every method."
        if rotated
        else ""
    )
    return f"The likelihood of fresh rows, the fairer judge, is highest for: {told}.{warning}"


def _verdict(cells: dict, options: dict) -> str:
    """Where aFA by EM is best, as the paper finds it everywhere: in the sample and on new rows."""
    del options
    new = [place for place, cell in cells.items() if _predicts_best(cell) in BY_EM]
    at = f" ({', '.join(f'{design} {K}' for design, K in new)})" if new else ""
    told = f"aFA by EM predicts new rows best in {len(new)} of {len(cells)} columns{at}"
    known = {place: cell for place, cell in cells.items() if place in paper_table.COLUMNS}
    if not known:
        return f"The paper has no numbers for these K; {told}."
    paper = _wins(known, _paper_best).get("aFA EM", 0)
    here = _wins(known, _measured_best).get("aFA EM", 0)
    if here >= paper:
        return f"It agrees: aFA by EM has the lowest error in {here} of {len(known)} columns."
    start = "It agrees in part" if new or here else "It does not agree"
    return (
        f"{start}: {told}, and has the lowest in-sample error in {here}, where the paper has it "
        f"in {paper}."
    )


def _predicts_best(cell: Cell) -> str:
    """Return the method under which fresh rows are likeliest."""
    found = {key: _of(row, "heldout") for key, row in cell.items() if key in METHODS}
    return max(found, key=lambda key: found[key])


def _wins(cells: dict, best: Callable[[str, int, Cell], set[str]]) -> dict[str, int]:
    count: dict[str, int] = {}
    for (design, K), cell in cells.items():
        for name in best(design, K, cell):
            count[name] = count.get(name, 0) + 1
    return count


def _paper_best(design: str, K: int, cell: Cell) -> set[str]:
    del cell
    found = {name: paper_table.read(name, design, K) for name in paper_table.PRINTED}
    known = {name: value for name, value in found.items() if value is not None}
    return {name for name, value in known.items() if value == min(known.values())}


def _measured_best(design: str, K: int, cell: Cell) -> set[str]:
    del design, K
    found = {str(METHODS[key].paper): _of(cell[key], "mae") for key in SAME_SIZE if key in cell}
    return {min(found, key=lambda name: found[name])} if found else set()


def _numbers(cells: dict, measure: str, wanted: Callable[[str], bool]) -> list[float]:
    return [
        _of(row, measure) for cell in cells.values() for key, row in cell.items() if wanted(key)
    ]


def _of(row: Row, measure: str) -> float:
    value = row[measure]
    return math.nan if value is None else float(value)  # type: ignore[arg-type]


def _counted(n: int) -> str:
    return "1 data set" if n == 1 else f"{n} data sets"


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
