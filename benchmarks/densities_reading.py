"""What `benchmarks.densities` has written, as a table of the page and the advice of another."""

from collections.abc import Sequence
from typing import NamedTuple

from appca.plots.export.markdown import table
from benchmarks.numbers import columns, number
from benchmarks.results import Row

__all__ = ["lines", "reading", "sentences", "summary", "verdicts"]

PAPER = "aPPCA"
OURS = ("V + A + B", "V + A + B + C")
SHARED = ("A + B", "A + B + C")  # the same with one variance for all components
ASKED = ("PPCA, K", "factor analysis, K", "mixture of PPCA, K of L")
SHOWN = (*SHARED, *OURS, *ASKED)
CLEAR = 2.0  # standard errors
EVERY = "With every feature but those that vary in hardly more than one training row"
HEADINGS = {
    "case": "data (rows x features)",
    "method": "method",
    "parameters": "parameters",
    "nats": "nats a row",
    "beyond_paper": "beyond aPPCA",
    "certainty": "certainty",
    "used": "components a row",
    "fit_s": "processor s",
}


class Verdict(NamedTuple):
    """How the extended models do on a data set."""

    data: str
    beyond: dict[str, dict[str, tuple[float, float]]]  # model -> rival -> nats beyond it, error
    strongest: Row  # rival of the highest likelihood
    certain: bool  # supports at least as certain as those of the paper's model

    def clear(self, model: str) -> bool:
        """Whether the model is clearly above all rivals that it must be above."""
        return all(ahead(*self.beyond[model][rival]) for rival in ASKED)


def ahead(mean: float, error: float) -> bool:
    """Whether a mean difference is clearly positive."""
    return mean > CLEAR * error


def lines(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Write a line a data set, features and method."""
    shown = []
    for row in rows:
        every = " that vary" if row["features"] != "5%" else ""
        case = f"{row['data']} ({row['rows']:,} x {row['D']:,}{every})"
        beyond = row["beyond"][PAPER]
        gain = "" if row["method"] == PAPER else plus_minus(beyond["mean"], beyond["error"])
        shown.append(row | {"case": case, "beyond_paper": gain})
    return columns(shown, HEADINGS)


def reading(rows: Sequence[Row]) -> list[str]:
    """Count for both choices of features."""
    if all(row["features"] == "5%" for row in rows):
        return sentences(rows)
    return [*sentences(rows), f"{EVERY}:", *sentences(rows, "varying")]


def verdicts(rows: Sequence[Row], features: str = "5%") -> list[Verdict]:
    """Judge the extended models on each data set."""
    found = []
    own = [row for row in rows if row["features"] == features]
    for data in dict.fromkeys(row["data"] for row in own):
        kinds = {row["method"]: row for row in own if row["data"] == data}
        rivals = {name: row for name, row in kinds.items() if row["certainty"] is None}
        beyond = {
            model: {
                name: (-row["beyond"][model]["mean"], row["beyond"][model]["error"])
                for name, row in rivals.items()
            }
            for model in (*SHARED, *OURS)
        }
        strongest = max(rivals.values(), key=lambda row: row["nats"])
        certain = kinds[SHARED[0]]["certainty"] >= kinds[PAPER]["certainty"]
        found.append(Verdict(data, beyond, strongest, certain))
    return found


def sentences(rows: Sequence[Row], features: str = "5%") -> list[str]:
    """Count where the extended models are above their rivals."""
    judged = verdicts(rows, features)
    n = len(judged)
    counts = {model: [v.data for v in judged if v.clear(model)] for model in (*SHARED, *OURS)}
    either = [v for v in judged if any(v.clear(model) for model in OURS)]
    others = [v.data for v in judged if v not in either]
    best = [v for v in judged if any(ahead(*v.beyond[m][v.strongest["method"]]) for m in OURS)]
    return [
        "Above PPCA with K, factor analysis with K and a mixture of PPCA with K pieces, each by "
        f"two standard errors: {listed(counts)} data sets of {n}; V + A + B or V + A + B + C on "
        f"{len(either)} of {n}, all but {', '.join(others) or 'none'}.",
        f"One of the two is above every method of the table by two standard errors on {len(best)} "
        f"of {n}" + (f" ({', '.join(v.data for v in best)})." if best else "."),
        "Supports are at least as certain with A + B as in the paper's model on "
        f"{sum(v.certain for v in judged)} of {n}.",
    ]


def listed(counts: dict[str, list[str]]) -> str:
    """Write how many data sets each model has."""
    return ", ".join(f"{model} on {len(some)}" for model, some in counts.items())


def summary(rows: Sequence[Row]) -> str:
    """Return the tables of docs/when-to-use.md: a line a data set."""
    parts = [likelihoods(rows, "5%"), differences(rows, "5%")]
    if any(row["features"] != "5%" for row in rows):
        parts += [
            f"{EVERY}:",
            likelihoods(rows, "varying"),
            differences(rows, "varying"),
        ]
    return "\n\n".join(parts)


def likelihoods(rows: Sequence[Row], features: str) -> str:
    """Return nats beyond the paper's model."""
    names = {
        "A + B": "A + B",
        "A + B + C": "A + B + C",
        "V + A + B": "V + A + B",
        "V + A + B + C": "V + A + B + C",
        "PPCA, K": "PPCA, K",
        "factor analysis, K": "factor analysis, K",
        "mixture of PPCA, K of L": "mixture of PPCA, K of L",
        "mixture of PPCA, K of L, noise by feature": "the same, noise by feature",
        "common loadings, K": "common loadings",
        "common loadings, K, noise by feature": "the same, noise by feature ",
        "Gaussian mixture, K, full": "Gaussian mixture, full",
        "Gaussian mixture, K, diag": "Gaussian mixture, diagonal",
    }
    cells = []
    for data, kinds in by_data(rows, features).items():
        case = next(iter(kinds.values()))
        top = max(kinds[name]["nats"] for name in names if name in kinds)
        line = [f"{data} ({case['K']}, {case['L']})"]
        for name in names:
            row = kinds.get(name)
            text = "" if row is None else signed(row["beyond"][PAPER]["mean"])
            line.append(f"**{text}**" if row is not None and row["nats"] == top else text)
        cells.append(line)
    return table(["data (K, L)", *names.values()], cells)


def differences(rows: Sequence[Row], features: str) -> str:
    """Return how far the better extended model is beyond its rivals, with standard errors."""
    cells = []
    kinds = by_data(rows, features)
    for v in verdicts(rows, features):
        model = max(OURS, key=lambda name: kinds[v.data][name]["nats"])
        own = kinds[v.data]
        row, strongest = own[model], v.strongest
        certainty = (f"{own[name]['certainty']:.3f}" for name in (PAPER, SHARED[0], OURS[0]))
        cells.append(
            [
                v.data,
                model,
                *(plus_minus(*v.beyond[model][rival]) for rival in ASKED),
                f"{strongest['method']}: {plus_minus(*v.beyond[model][strongest['method']])}",
                f"{row['parameters']:,}, {strongest['parameters']:,}",
                f"{number(row['fit_s'], 2)}, {number(strongest['fit_s'], 2)}",
                ", ".join(certainty),
                number(own[OURS[1]]["used"], 2),
            ]
        )
    headings = [
        "data",
        "higher of the two",
        "beyond PPCA, K",
        "beyond factor analysis, K",
        "beyond mixture of PPCA, K of L",
        "beyond the strongest rival",
        "parameters: ours, its",
        "processor s: ours, its",
        "certainty: aPPCA, A + B, V + A + B",
        "components a row, V + A + B + C",
    ]
    return table(headings, cells)


def by_data(rows: Sequence[Row], features: str) -> dict[str, dict[str, Row]]:
    """Rows by data set and method."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["features"] == features:
            found.setdefault(row["data"], {})[row["method"]] = row
    return found


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return f"{'+' if value > 0 else '−'}{number(abs(value), 3)}"


def plus_minus(mean: float, error: float) -> str:
    """Write a difference with its sign and standard error."""
    return f"{signed(mean)} ± {number(error, 2)}"
