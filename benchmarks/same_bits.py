"""Compare fits with a commit: ``python -m benchmarks.same_bits COMMIT --tolerance 1e-10``.

Each tree runs FITS in a separate process, with public names only. All fitted attributes and all
results of queries are compared. The difference of two arrays is the largest |new - old| /
max(1, largest |old|): absolute for small numbers, relative for large ones. Arrays that differ by
more than the tolerance are printed; without a tolerance, all arrays that are not equal bit for bit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
QUERIES: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "transform, all": lambda model, x: model.transform(x, "all"),
    "transform, map": lambda model, x: model.transform(x, "map"),
    "allocate, all": lambda model, x: model.allocate(x, "all"),
    "inverse_transform": lambda model, x: model.inverse_transform(model.transform(x)),
    "sample": lambda model, _x: model.sample(20, 0),
    "score_bands": lambda model, x: model.score_bands(x[:10]),
    "component_bands": lambda model, _x: model.component_bands(),
    "get_covariance": lambda model, _x: model.get_covariance(),
}
OF_ROWS = ("transform", "score_samples", "inclusion_probabilities", "allocate", "predict", "impute")
OF_ROWS += ("allocation_probability", "size_probabilities", "row_scales", "describe", "bic")
OF_ROWS += ("estimate_score_samples",)
for query in OF_ROWS:
    QUERIES[query] = lambda model, x, query=query: getattr(model, query)(x)
SHORT = {"burn_in": 20, "n_draws": 20, "n_chains": 2}


def _digits(rows: int = 600) -> np.ndarray:
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data[:rows])


def _with_gaps() -> np.ndarray:
    x = _digits(300).copy()
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    return x


def _planted() -> np.ndarray:
    """Draw rows that use two of six directions, of varying length, with a few noisy features."""
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(20, 6)))[0]
    Z = rng.random((6000, 6)).argsort(axis=1) < 2
    scale = np.exp(0.5 * rng.normal(size=(6000, 1)))
    signal = scale * (3.0 * Z * rng.normal(size=Z.shape)) @ W.T
    return np.asarray(signal + np.linspace(0.1, 1.0, 20) * rng.normal(size=signal.shape))


def _sparse() -> Any:
    from scipy.sparse import csr_array

    return csr_array(_digits())


def _dask() -> Any:
    import dask.array as da

    return da.from_array(_digits(), chunks=(150, 64))


def _plain(
    model: str,
    *sizes: Any,
    x: Callable[[], Any] = _digits,
    after: Callable[[Any, Any], Any] = lambda estimator, x: estimator.fit(x),
    **settings: Any,
) -> Callable[[], Any]:
    def fit() -> Any:
        import appca

        return after(getattr(appca, model)(*sizes, random_state=0, **settings), x())

    return fit


def _updated(model: Any, x: np.ndarray) -> Any:
    model.fit(x[:300])
    for start in (300, 400, 500):
        model.partial_fit(x[start : start + 100])
    return model


def _weighted(model: Any, x: np.ndarray) -> Any:
    return model.fit(x, sample_weight=np.random.default_rng(0).integers(1, 4, 600).astype(float))


_few = partial(_digits, 300)
_float32 = lambda: _digits().astype(np.float32)  # noqa: E731
_gaps_float32 = lambda: _with_gaps().astype(np.float32)  # noqa: E731
_aPPCA, _aFA = partial(_plain, "AdaptivePPCA"), partial(_plain, "AdaptiveFactorAnalysis")
_GIBBS = {"inference": "gibbs", **SHORT}
_ALL_VARIANTS = {"noise": "feature", "row_scale": "learned", "max_iter": 30}
FITS: dict[str, Callable[[], Any]] = {
    "aPPCA": _aPPCA(5, 2),
    "aPPCA, float32": _aPPCA(5, 2, x=_float32),
    "aPPCA, variance by component": _aPPCA(6, 3, latent_variance="component"),
    "aPPCA, given variance": _aPPCA(5, 2, latent_variance=50.0),
    "aPPCA, mean zero": _aPPCA(5, 2, mean="zero"),
    "aPPCA, mean of the sample": _aPPCA(5, 2, mean="sample"),
    "aPPCA, several starts": _aPPCA(5, 2, n_init=3),
    "aPPCA, random start": _aPPCA(5, 2, init="random", n_init=2),
    "aPPCA, polar steps": _aPPCA(5, 2, w_update="polar", accelerate=False),
    "aPPCA, Pymanopt": _aPPCA(4, 2, w_update="pymanopt", max_iter=5),
    "aPPCA, warm start": _aPPCA(
        5,
        2,
        x=_few,
        max_iter=5,
        warm_start=True,
        after=lambda model, x: model.fit(x).set_params(max_iter=50).fit(x),
    ),
    "aPPCA, whitened": _aPPCA(5, 2, whiten=True),
    "aPPCA, weights": _aPPCA(5, 2, after=_weighted),
    "aPPCA, many components": _aPPCA(40, 3, max_iter=30),
    "aPPCA, L = K": _aPPCA(5, 5),
    "aPPCA, many rows": _aPPCA(6, 2, x=_planted),
    "aPPCA, fewer rows than features": _aPPCA(4, 2, x=lambda: _digits(40)),
    "aPPCA, sparse": _aPPCA(5, 2, x=_sparse),
    "aPPCA, Dask": _aPPCA(5, 2, x=_dask),
    "aPPCA, blocks": _aPPCA(
        5, 2, after=lambda model, x: model.fit_blocks(lambda: iter(np.split(x, 6)))
    ),
    "aPPCA, batches": _aPPCA(5, 2, after=_updated),
    "aPPCA, hard": _aPPCA(5, 2, inference="hard"),
    "aPPCA, hard, float32": _aPPCA(5, 2, inference="hard", x=_float32),
    "aPPCA, gaps": _aPPCA(4, 2, x=_with_gaps),
    "aPPCA, gaps, float32": _aPPCA(4, 2, x=_gaps_float32),
    "aPPCA, gaps, variance by component": _aPPCA(
        4, 2, x=_with_gaps, latent_variance="component", mean="sample"
    ),
    "aPPCA, gaps, many supports": _aPPCA(16, 6, x=_with_gaps, max_iter=5),
    "aPPCA, noise of each feature": _aPPCA(5, 2, noise="feature", max_iter=50),
    "aPPCA, noise of each feature, float32": _aPPCA(5, 2, noise="feature", max_iter=50, x=_float32),
    "aPPCA, noise of each feature, variance by component": _aPPCA(
        5, 2, noise="feature", latent_variance="component", max_iter=50
    ),
    "aPPCA, row scales": _aPPCA(5, 2, row_scale="learned", max_iter=50),
    "aPPCA, row scales, float32": _aPPCA(5, 2, row_scale="learned", max_iter=50, x=_float32),
    "aPPCA, learned sizes": _aPPCA(5, "learned", max_iter=50),
    "aPPCA, learned sizes, row scales": _aPPCA(5, "learned", row_scale="learned", max_iter=50),
    "aPPCA, all variants": _aPPCA(6, "learned", x=_planted, **_ALL_VARIANTS),
    "aPPCA, all variants, float32": _aPPCA(5, "learned", x=_float32, **_ALL_VARIANTS),
    "aPPCA, all variants, weights": _aPPCA(5, "learned", **_ALL_VARIANTS, after=_weighted),
    "aPPCA, Gibbs": _aPPCA(4, 2, **_GIBBS),
    "aPPCA, Gibbs, float32": _aPPCA(4, 2, x=_float32, **_GIBBS),
    "aPPCA, Gibbs as in the paper": _aPPCA(4, 2, w_update="polar", z_update="swap", **_GIBBS),
    "aPPCA, Gibbs, variance by component": _aPPCA(4, 2, latent_variance="component", **_GIBBS),
    "aPPCA, Gibbs, row scales": _aPPCA(4, 2, row_scale="learned", **_GIBBS),
    "aPPCA, Gibbs, learned sizes": _aPPCA(4, "learned", **_GIBBS),
    "aPPCA, Gibbs, learned sizes, row scales": _aPPCA(4, "learned", row_scale="learned", **_GIBBS),
    "PPCA": _plain("PPCA", 5),
    "PPCA, float32": _plain("PPCA", 5, x=_float32),
    "PPCA, gaps": _plain("PPCA", 4, x=_with_gaps),
    "PPCA, gaps, float32": _plain("PPCA", 4, x=_gaps_float32),
    "PPCA, sparse": _plain("PPCA", 5, x=_sparse),
    "PPCA, weights": _plain("PPCA", 5, after=_weighted),
    "aFA": _aFA(5, 2, max_iter=50),
    "aFA, float32": _aFA(5, 2, max_iter=50, x=_float32),
    "aFA, more components than features": _aFA(24, 2, x=lambda: _planted()[:300], max_iter=5),
    "aFA, given variance of loadings": _aFA(5, 2, loading_variance=1.0, max_iter=20),
    "aFA, several starts": _aFA(5, 2, n_init=2, mean="zero", max_iter=20),
    "aFA, best supports": _aFA(8, 3, allocation="best", max_iter=20),
    "aFA, estimated supports": _aFA(20, 6, max_iter=5, x=_few),
    "aFA, weights": _aFA(5, 2, max_iter=20, after=_weighted),
    "aFA, batches": _aFA(5, 2, max_iter=20, after=_updated),
    "aFA, Gibbs": _aFA(4, 2, **_GIBBS),
    "aFA, Gibbs, float32": _aFA(4, 2, x=_float32, **_GIBBS),
    "FSFA": _plain("FiniteSparseFA", 5, **SHORT),
    "FSFA, float32": _plain("FiniteSparseFA", 5, x=_float32, **SHORT),
    "FSFA, given alpha": _plain("FiniteSparseFA", 5, alpha=1.0, init="pca", **SHORT),
    "isFA": _plain("InfiniteSparseFA", **SHORT),
    "isFA, given alpha": _plain("InfiniteSparseFA", alpha=1.0, mean="zero", **SHORT),
    "nonparametric PPCA": _plain("NonparametricPPCA", **SHORT),
    "nonparametric PPCA, float32": _plain("NonparametricPPCA", x=_float32, **SHORT),
    "nonparametric PPCA, finite prior": _plain(
        "NonparametricPPCA", prior="beta-bernoulli", **SHORT
    ),
}


def answers(name: str) -> dict[str, np.ndarray]:
    """Return the fitted arrays and the results of the queries of a fit, by name."""
    model = FITS[name]()
    result = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    result |= {f"stored {k}": v for k, v in model.fitted_arrays().items()}
    rows = _planted()[:50] if model.n_features_in_ == 20 else _digits(50)
    gaps = np.where(np.random.default_rng(0).random(rows.shape) < 0.1, np.nan, rows)
    for kind, some in {"": rows, "gaps ": gaps, "float32 ": rows.astype(np.float32)}.items():
        for query, ask in QUERIES.items():
            with suppress(AttributeError, ValueError):  # not supported
                result[f"{kind}{query}()"] = ask(model, some)
    return dict(_arrays(result))


def _arrays(answers: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of numbers and texts in results, with fields of tuples by name."""
    for key, answer in answers.items():
        if hasattr(answer, "_asdict"):
            yield from _arrays({f"{key}.{k}": v for k, v in answer._asdict().items()})
        elif isinstance(answer, (np.ndarray, np.generic, float, int, str, list)):
            array = np.asarray(answer)
            if array.dtype.kind in "biufU":
                yield key, array


def _write(names: list[str], folder: Path) -> None:
    """Write the results of each fit to a file; the result of a failed fit is its error."""
    for name in names:
        try:
            found = answers(name)
        except Exception as error:
            found = {"error": np.asarray(f"{type(error).__name__}: {error}")}
        np.savez(folder / f"{list(FITS).index(name)}.npz", **found)


def _in_tree(tree: Path, names: list[str], folder: Path) -> None:
    folder.mkdir()
    command = [sys.executable, "-P", "-W", "ignore", __file__, "--write", str(folder)]
    fits = [part for name in names for part in ("--fit", name)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    subprocess.run([*command, *fits], env=environment, cwd=tree, check=True)


def compare(commit: str, names: list[str], tolerance: float) -> int:
    """Print the differences of each fit between the commit and this tree; return their number."""
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        tree, before, now = (Path(folder) / name for name in ("tree", "before", "now"))
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), commit], check=True)
        try:
            _in_tree(tree, names, before)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        _in_tree(ROOT, names, now)
        for name in names:
            old, new = (np.load(at / f"{list(FITS).index(name)}.npz") for at in (before, now))
            lines, largest = _differences(dict(old), dict(new), tolerance)
            different += bool(lines)
            equal = f"within {largest:.2g}" if largest else "equal"
            print(f"{name}: {'; '.join(lines) or equal}", flush=True)
    return different


def _differences(
    old: dict[str, np.ndarray], new: dict[str, np.ndarray], tolerance: float
) -> tuple[list[str], float]:
    """Return a line for each array that differs, and the largest tolerated difference."""
    lines = [f"{key} only before" for key in old.keys() - new.keys()]
    lines += [f"{key} only now" for key in new.keys() - old.keys()]
    largest = 0.0
    for key in sorted(old.keys() & new.keys()):
        was, now = old[key], new[key]
        if was.shape != now.shape or was.dtype != now.dtype:
            lines.append(f"{key} {was.dtype} {was.shape} -> {now.dtype} {now.shape}")
        elif was.dtype.kind == "U":
            lines += [] if np.array_equal(was, now) else [f"{key} {was} -> {now}"]
        elif not np.array_equal(was, now, equal_nan=was.dtype.kind == "f"):
            gap = difference(was.astype(float), now.astype(float))
            if gap > tolerance:
                lines.append(f"{key} by {gap:.2g}")
            else:
                largest = max(largest, gap)
    return lines, largest


def difference(old: np.ndarray, new: np.ndarray) -> float:
    """Return the largest |new - old| / max(1, largest |old|); inf if a number is not finite."""
    alike = (old == new) | (np.isnan(old) & np.isnan(new))
    if not np.isfinite(old[~alike]).all() or not np.isfinite(new[~alike]).all():
        return np.inf
    size = np.abs(old[np.isfinite(old)]).max(initial=1.0)
    return float(np.abs(new[~alike] - old[~alike]).max(initial=0.0) / size)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--fit", action="append", choices=list(FITS))
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        _write(options.fit, options.write)
        return 0
    return compare(options.commit, options.fit or list(FITS), options.tolerance)


if __name__ == "__main__":
    sys.exit(main())
