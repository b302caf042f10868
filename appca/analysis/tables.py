"""Projections, components and posterior draws as tables and files."""

import io
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.components import own_name, supports
from appca.analysis.fitted import DescribedRows, FittedRun
from appca.storage.packed import write

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.dataset import Dataset

# A spreadsheet runs a cell that starts so as a formula (OWASP, "CSV injection"); the separator it
# reads by, and the blanks it drops, are the user's.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_ENDS = r",;|\t\r\n"
_BLANKS = r"(?:[^\S\t\r\n]|[\"\ufeff])*"  # no ends: from each, the run of them was read again
_FORMULA = re.compile(rf"(?:^|(?<=[{_ENDS}]))(?={_BLANKS}([=+\-@＝＋－＠][^{_ENDS}]*))")


class Columns(NamedTuple):
    """Columns of a table of projections that differ from the usual ones."""

    named: bool = False  # components under the names a person gave them
    inclusion: bool = False  # how sure it is that a row uses each component


USUAL = Columns()
_OTHERS = ("id", "subspace", "membership", "reconstruction_error", "log_likelihood")


def projection_table(
    dataset: "Dataset",
    described: DescribedRows,
    rows: np.ndarray | None = None,
    columns: Columns = USUAL,
) -> "pd.DataFrame":
    """One line for each row, or each of `rows`: its id, its scores, and how well it fits.

    Columns are `id`, the labels, `subspace`, `component_1` and so on, or their names (scores, zero
    where the component is not used), if wanted `inclusion_1` and so on (probability that the row
    uses the component), `membership` (probability of the row's set of components),
    `reconstruction_error` (mean square a feature) and `log_likelihood` (nats).
    """
    import pandas as pd

    rows = np.arange(len(described.scores)) if rows is None else np.asarray(rows)
    codes, names = supports(described.active[rows]) if len(rows) else (rows, [])
    sure = described.inclusion[rows] if columns.inclusion else np.empty((len(rows), 0))
    results = {
        "subspace": np.array(names, dtype=object)[codes],
        **dict(zip(headings(described, columns), described.scores[rows].T, strict=True)),
        **{f"inclusion_{k + 1}": column for k, column in enumerate(sure.T)},
        "membership": described.membership[rows],
        "reconstruction_error": described.error[rows],
        "log_likelihood": described.log_likelihood_rows[rows],
    }
    return pd.DataFrame(front_columns(dataset, rows, results) | results)


def front_columns(
    dataset: "Dataset", rows: np.ndarray, taken: Collection[str]
) -> dict[str, np.ndarray]:
    """Return ids and labels of rows; a label called like a column that is taken is renamed."""
    front: dict[str, np.ndarray] = {"id": dataset.ids[rows].astype(object)}
    for name, values in dataset.labels.items():
        free = name
        while free in front or free in taken:
            free = f"label_{free}"
        front[free] = values[rows].astype(object) if values.dtype.kind in "US" else values[rows]
    return front


def headings(described: DescribedRows, columns: Columns = USUAL) -> list[str]:
    """Return the heading of each component's column; two of one name get their numbers, too."""
    usual = [f"component_{k + 1}" for k in range(described.scores.shape[1])]
    if not columns.named or not isinstance(described, FittedRun):
        return usual
    names = [own_name(described, k) for k in range(len(usual))]
    taken = {*_OTHERS, *usual, *(f"inclusion_{k + 1}" for k in range(len(usual)))}
    pairs = zip(names, usual, strict=True)
    both = [f"{name} ({number})" if name else number for name, number in pairs]
    alone = (name and names.count(name) == 1 and name not in taken for name in names)
    return [names[k] if is_alone else both[k] for k, is_alone in enumerate(alone)]


def csv_bytes(table: "pd.DataFrame") -> bytes:
    """Table as UTF-8 CSV in which no text can act as a spreadsheet formula; numbers are exact."""
    safe = table.rename(columns=neutral)
    for name in safe.columns[[column.kind not in "biuf" for column in safe.dtypes]]:
        safe[name] = [neutral(value) for value in safe[name]]
    # RFC 4180's line ends; a cell that holds either of their characters is then quoted.
    return safe.to_csv(index=False, lineterminator="\r\n").encode()


def npz_bytes(table: "pd.DataFrame", components: np.ndarray, scores: Sequence[str]) -> bytes:
    """Table as NPZ: one array per column, one for all `scores`, and the components; no objects."""
    together = {"scores": table[list(scores)].to_numpy(), "components": components}
    for name, column in table.items():
        # names of all components together must not be columns
        free = f"{name}_" if name in together else str(name)
        together[free] = column.to_numpy(dtype=None if column.dtype.kind in "biuf" else "U")
    return npz_of(together)


def npz_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write what `numpy.savez_compressed` would, but for any name of an array."""
    buffer, members = io.BytesIO(), dict[str, np.ndarray]()
    for name, values in arrays.items():
        safe = "".join(c if c.isalnum() or c in "_-" else "_" for c in name) or "column"
        while f"{safe}.npy" in members:
            safe += "_"
        members[f"{safe}.npy"] = values
    write(buffer, {}, members)
    return buffer.getvalue()


def neutral(text: object) -> str:
    """Text that a spreadsheet will show rather than run; a plain number such as -1 is harmless."""
    plain = str(text)
    safe = _FORMULA.sub(lambda at: "" if _is_number(at[1]) else "'", plain)
    risky = plain.startswith(FORMULA_STARTS) and safe[0] != "'" and not _is_number(plain)
    return f"'{safe}" if risky else safe


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Patterns(NamedTuple):
    """Components and average in units of the data."""

    components: np.ndarray  # (K, D)
    mean: np.ndarray  # (D,)


def component_table(
    dataset: "Dataset", fitted: FittedRun, patterns: Patterns, columns: Columns
) -> "pd.DataFrame":
    """One line per feature: its name, its average and its weight in each component.

    Pixels are called ``row,column``, with a colour where there are colours, all counted from 0.
    """
    import pandas as pd

    table: dict[str, object] = {"feature": _features(dataset), "average": patterns.mean}
    for name, weights in zip(headings(fitted, columns), patterns.components, strict=True):
        table[f"{name} (component)" if name in ("feature", "average") else name] = weights
    return pd.DataFrame(table)


def component_npz(
    dataset: "Dataset", fitted: FittedRun, patterns: Patterns, columns: Columns
) -> bytes:
    """Return an NPZ of `components` (K, D) and `mean` (D,) in units of the data, with names.

    Beside them `features`, `names`, `explained_variance`, `components_of_fit`, `mean_of_fit`.
    """
    arrays = patterns._asdict() | {
        "features": np.array(_features(dataset), dtype="U"),
        "names": np.array(headings(fitted, columns), dtype="U"),
        "explained_variance": fitted.explained_variance,
        "components_of_fit": fitted.components,
        "mean_of_fit": fitted.mean,
    }
    return npz_of(arrays)


def _features(dataset: "Dataset") -> list[str]:
    if dataset.image_shape is None or dataset.feature_names is not None:
        return list(dataset.column_names)
    return [",".join(map(str, place)) for place in np.ndindex(*dataset.image_shape)]
