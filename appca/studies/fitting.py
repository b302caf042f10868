"""Shared parts of experiments: parallel work, aPPCA and its subspaces, images.

A piece of work is a function ``module:name`` of (spec, tick) that returns JSON-able rows. Extra
processes run ``python -m appca.studies.fitting``; if the parent is stopped, it kills them at once.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.components import Subspace, principal_scores, ranked, title
from appca.analysis.map_quality import crowding
from appca.data.dataset import Dataset
from appca.data.folders import folder_of_files
from appca.data.sources import are_here, load
from appca.processes import Child, Ended, Pool, Tell, environment, serve
from appca.studies.claims import Claim, checked
from appca.studies.study import Options, Report, Row
from appca.words import InputError, percent

if TYPE_CHECKING:
    from appca.models.loop import Callback, Progress
    from appca.plots.studies import Scatter

Spec = dict[str, Any]  # description of a piece of work, as JSON
COMMAND = (sys.executable, "-m", "appca.studies.fitting")
WAIT = 0.1
CLEARLY = 0.01  # minimum clear difference in accuracy


def work(piece: str, specs: Sequence[Spec], report: Report, processes: int) -> list[Row]:
    """Run all pieces, in this process if `processes` is 1, and return their rows in order.

    `report` receives (stage, fraction of all work); an exception that it raises stops all work.
    Raises InputError if a piece raises it, or a process dies.
    """
    n = len(specs)
    if min(processes, n) < 2:

        def tick(done: int) -> Report:
            return lambda stage, share: report(stage, (done + share) / n)

        function = resolve_name(piece)
        return [row for n_done, spec in enumerate(specs) for row in function(spec, tick(n_done))]
    news, shares = ["starting"], [0.0] * n
    pool = Pool(lambda: Child(COMMAND, environment(1)), min(processes, n))

    def do(place: int) -> Any:
        def hear(told: tuple[str, float]) -> None:
            news[0], shares[place] = told

        with pool.lent() as member:
            try:
                answer = member.ask({"piece": piece, "spec": specs[place]}, hear)
            except Ended:
                msg = "A process of the experiment ended before it was done; start it again."
                raise InputError(msg) from None
        if "refusal" in answer:
            raise InputError(answer["refusal"])
        shares[place] = 1.0
        return answer["rows"]

    with ThreadPoolExecutor(min(processes, n)) as threads:
        try:
            pieces = [threads.submit(do, place) for place in range(n)]
            pending = set(pieces)
            while pending:
                done, pending = wait(pending, WAIT, FIRST_EXCEPTION)
                for future in done:
                    future.result()  # raises exceptions of a piece
                report(news[0], sum(shares) / n)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            pool.end()
    return [row for future in pieces for row in future.result()]


def _answer(task: Spec, tell: Tell) -> dict[str, Any]:
    try:
        return {"rows": resolve_name(task["piece"])(task["spec"], lambda *news: tell(news))}
    except ValueError as error:
        return {"refusal": " ".join(str(error).split())}


def reporting(stage: str, report: Report, start: float = 0.0, end: float = 1.0) -> "Callback":
    """Return a callback that reports iterations between two fractions; exceptions end the fit."""

    def callback(progress: "Progress") -> None:
        share = min(progress.iteration / max(progress.max_iter, 1), 1.0)
        share *= not progress.stage.startswith("screening")  # screening would reset the bar
        report(stage, start + (end - start) * share)

    report(stage, start)
    return callback


class PanelFit(NamedTuple):
    """Scores and components of a fitted model."""

    scores: np.ndarray  # (N, K)
    active: np.ndarray  # (N, K) bool
    components: np.ndarray  # (K, D)

    @property
    def subspaces(self) -> list[Subspace]:
        """The subspaces in use, ordered by their components."""
        return sorted(ranked(self.active), key=lambda subspace: subspace.components)


def fit(
    Y: np.ndarray, options: Options, report: Report, start: float = 0.0, end: float = 1.0
) -> PanelFit:
    """Fit aPPCA by EM to Y (N, D); `report` receives fractions from `start` to `end`."""
    from appca.models.adaptive_ppca import AdaptivePPCA

    callback = reporting("fitting aPPCA", report, start, end)
    sizes = options["n_components"], options["n_active"]
    model = AdaptivePPCA(*sizes, random_state=options["seed"], callback=callback).fit(Y)
    described = model.describe(Y)
    return PanelFit(described.scores, described.active, np.asarray(model.components_))


def panels(
    plots: ModuleType,
    arrays: Mapping[str, np.ndarray],
    codes: np.ndarray,
    named: Callable[[str, int], str],
    whole: str,
    images: np.ndarray | None = None,
) -> "list[Scatter]":
    """Draw each subspace by its first and last component, and all rows by PCA, titled `whole`.

    `named` makes a panel's title from the subspace's name and row count. The arrays are scores and
    active (N, K) and pca (N, 2), `codes` (N,) are classes. Images (N, h, w), if any, are drawn.
    """
    fitted, drawn = PanelFit(arrays["scores"], arrays["active"], np.empty(0)), []
    contents = [
        (named(title(used), len(rows)), rows, "component", fitted.scores, (used[0], used[-1]))
        for used, rows in fitted.subspaces
    ]
    every = np.arange(len(codes)), "principal component", arrays["pca"], (0, 1)
    for name, rows, axis, scores, ends in [*contents, (f"PCA, all {whole}", *every)]:
        points, axes = [scores[rows, k] for k in ends], [f"{axis} {k + 1}" for k in ends]
        pictures = None if images is None else images[rows]
        drawn.append(plots.Scatter(name, *points, codes[rows], *axes, images=pictures))
    return drawn


def crowded_panels(
    Y: np.ndarray, fitted: PanelFit, codes: np.ndarray, names: list[str], **how: int
) -> tuple[list[Row], dict[str, np.ndarray], Claim]:
    """Return a line per panel (k-NN accuracy there, and of its rows in PCA), arrays and a claim.

    `how` are settings of `crowding`; the arrays are those that `panels` draws.
    """
    principal = principal_scores(Y, 2)[0]
    crowdings = crowding(fitted.scores, fitted.active, principal, codes, **how)
    rows: list[Row] = []
    for panel, inside, same, every in sorted(crowdings, key=lambda crowd: crowd[0].components):
        row: Row = {"subspace": title(panel.components), "rows": len(panel.rows)}
        row |= {"classes": len(np.unique(codes[panel.rows]))}
        row |= {"panel_accuracy": inside.value, "panel_error": inside.error}
        row |= {"pca_same_rows": same.value, "pca_all_rows": every.value}
        rows.append(row)
    arrays = {"scores": fitted.scores.astype(np.float32), "active": fitted.active}
    arrays |= {"pca": principal, "codes": codes, "names": np.array(names)}
    return rows, arrays, crowding_claim(rows)


def crowding_claim(rows: list[Row]) -> Claim:
    """Judge whether panels separate classes better than PCA; partly, if only for fewer rows."""
    panel, same, whole = (
        float(np.average([row[name] for row in rows], weights=[row["rows"] for row in rows]))
        for name in ("panel_accuracy", "pca_same_rows", "pca_all_rows")
    )
    measured = f"nearest rows predict {percent(panel, 1)} of classes, in PCA's plot of the same "
    measured += f"rows {percent(same, 1)}, in PCA's plot of all rows {percent(whole, 1)}"
    less = panel > same + CLEARLY
    tests = [less, less or panel > whole + CLEARLY]
    number = (percent(panel), f"read right, PCA {percent(same)}")
    return checked("The subspaces are less crowded than PCA", measured, tests, number=number)


def images_of(source: str, rows: np.ndarray) -> np.ndarray | None:
    """Return images (m, h, w) of rows of "mnist" or "coil20", or None if the data are absent."""
    if not are_here(source):
        return None
    try:
        copy = _opened(source, str(folder_of_files()))
    except InputError:  # damaged files
        return None
    return copy.images(rows) if rows.max(initial=-1) < copy.n_rows else None


@lru_cache(maxsize=2)
def _opened(source: str, folder: str) -> Dataset:
    options: Options = {"n": 10_000} if source == "mnist" else {}
    return load(source, data_folder=folder, **options)


if __name__ == "__main__":
    serve(_answer)
