"""Projections, components and posterior draws as tables and files."""

import io
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.components import own_name, supports
from appca.analysis.fitted import DescribedRows, FittedRun
from appca.analysis.groups import types_of
from appca.storage.packed import write

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.dataset import Dataset

# A spreadsheet runs a cell that starts like this as a formula (OWASP, "CSV injection"). Which
# separators and blanks it recognizes depends on the user's settings.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_ENDS = r",;|\t\r\n"
_BLANKS = r"(?:[^\S\t\r\n]|[\"\ufeff])*"  # no anchors, which made matching quadratic
_FORMULA = re.compile(rf"(?:^|(?<=[{_ENDS}]))(?={_BLANKS}([=+\-@＝＋－＠][^{_ENDS}]*))")


class Columns(NamedTuple):
    """Optional columns of a table of projections."""

    named: bool = False  # use the users' names of components
    inclusion: bool = False  # P(row uses component), for each component
    types: bool = False  # the type of each row of a fit, see `groups.types_of`


USUAL = Columns()
_OTHERS = ("id", "type", "subspace", "membership", "reconstruction_error", "log_likelihood")


def projection_table(
    dataset: "Dataset",
    described: DescribedRows,
    rows: np.ndarray | None = None,
    columns: Columns = USUAL,
) -> "pd.DataFrame":
    """Return a table of all rows, or of `rows`: ids, scores, and goodness of fit.

    Columns are `id`, the labels, optionally `type`, `subspace`, scores `component_1` and so on, or
    their names, optionally `inclusion_1` and so on (probabilities of use), `membership` (of the
    support), `reconstruction_error` (mean squared, per feature) and `log_likelihood` (nats).
    """
    import pandas as pd

    rows = np.arange(len(described.scores)) if rows is None else np.asarray(rows)
    codes, names = supports(described.active[rows]) if len(rows) else (rows, [])
    sure, results = described.inclusion[rows] if columns.inclusion else np.empty((len(rows), 0)), {}
    if columns.types and isinstance(described, FittedRun):
        of_rows, called = types_of(dataset, described)
        results["type"] = np.array(called, dtype=object)[of_rows[rows]]
    results |= {
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
    """Return ids and labels of rows; a label is renamed if its name is taken."""
    front: dict[str, np.ndarray] = {"id": dataset.ids[rows].astype(object)}
    for name, values in dataset.labels.items():
        free = name
        while free in front or free in taken:
            free = f"label_{free}"
        front[free] = values[rows].astype(object) if values.dtype.kind in "US" else values[rows]
    return front


def headings(described: DescribedRows, columns: Columns = USUAL) -> list[str]:
    """Return each component's column heading; components with equal names also get numbers."""
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
    """Write UTF-8 CSV with exact numbers and no text that a spreadsheet runs as a formula."""
    safe = table.rename(columns=neutral)
    for name in safe.columns[[column.kind not in "biuf" for column in safe.dtypes]]:
        safe[name] = [neutral(value) for value in safe[name]]
    # With RFC 4180's line ends, pandas quotes cells that contain either character.
    return safe.to_csv(index=False, lineterminator="\r\n").encode()


def npz_bytes(table: "pd.DataFrame", components: np.ndarray, scores: Sequence[str]) -> bytes:
    """Write NPZ without pickle: an array per column, one of all `scores`, and the components."""
    together = {"scores": table[list(scores)].to_numpy(), "components": components}
    for name, column in table.items():
        # arrays must not have the same name as a column
        free = f"{name}_" if name in together else str(name)
        together[free] = column.to_numpy(dtype=None if column.dtype.kind in "biuf" else "U")
    return npz_of(together)


def npz_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write NPZ like `numpy.savez_compressed`, but allow any array name."""
    buffer, members = io.BytesIO(), dict[str, np.ndarray]()
    for name, values in arrays.items():
        safe = "".join(c if c.isalnum() or c in "_-" else "_" for c in name) or "column"
        while f"{safe}.npy" in members:
            safe += "_"
        members[f"{safe}.npy"] = values
    write(buffer, {}, members)
    return buffer.getvalue()


def neutral(text: object) -> str:
    """Return text that a spreadsheet does not run as a formula; numbers such as -1 stay as is."""
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
    """Return one line per feature (a pixel is ``row,column``, from 0): average and weights."""
    import pandas as pd

    table: dict[str, object] = {"feature": _features(dataset), "centre": patterns.mean}
    names = [f"{name} (component)" if name in table else name for name in headings(fitted, columns)]
    weights = dict(zip(names, patterns.components, strict=True))
    unit = fitted.preprocessing.scale * fitted.preprocessing.divide
    scaled = {f"{name} (scaled)": of / unit for name, of in weights.items() if np.ptp(unit)}
    return pd.DataFrame(table | weights | scaled | weights)  # a user's name comes first


def component_npz(
    dataset: "Dataset", fitted: FittedRun, patterns: Patterns, columns: Columns
) -> bytes:
    """Return an NPZ of components (K, D), mean (D,), names, in data units and those of the fit."""
    arrays = patterns._asdict() | {
        "features": np.array(_features(dataset), dtype="U"),
        "names": np.array(headings(fitted, columns), dtype="U"),
        "explained_variance": fitted.explained_variance,
        "components_of_fit": fitted.components,
        "mean_of_fit": fitted.mean,
    }
    return npz_of(arrays)


def filled_csv(dataset: "Dataset", imputed: np.ndarray) -> bytes:
    """Return the data as CSV with the model's values (m,) in the missing cells."""
    import pandas as pd

    X = dataset.with_gaps()
    X[dataset.missing] = imputed
    names = dataset.feature_names or [f"feature_{j + 1}" for j in range(dataset.n_features)]
    front = pd.DataFrame(front_columns(dataset, np.arange(dataset.n_rows), names))
    return csv_bytes(pd.concat([front, pd.DataFrame(X, columns=list(names))], axis=1))


def far_fills(dataset: "Dataset", imputed: np.ndarray) -> int:
    """Count the values (m,) in missing cells that lie outside of all values of their column."""
    X = dataset.with_gaps()
    column = np.nonzero(np.isnan(X))[1]
    low, high = np.nanmin(X, axis=0)[column], np.nanmax(X, axis=0)[column]
    return int(((imputed < low) | (imputed > high)).sum())


def _features(dataset: "Dataset") -> list[str]:
    if dataset.image_shape is None or dataset.feature_names is not None:
        return list(dataset.column_names)
    return [",".join(map(str, place)) for place in np.ndindex(*dataset.image_shape)]
