"""Compare fits with those of a commit, to the bit: ``python -m benchmarks.same_bits COMMIT``.

Each fit of FITS runs in a process of its tree. Every fitted attribute and every answer of a query
is compared. A difference is printed with the attribute and its largest size.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
QUERIES: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "transform": lambda model, x: model.transform(x),
    "transform, all": lambda model, x: model.transform(x, "all"),
    "transform, map": lambda model, x: model.transform(x, "map"),
    "score_samples": lambda model, x: model.score_samples(x),
    "inclusion_probabilities": lambda model, x: model.inclusion_probabilities(x),
    "allocate": lambda model, x: model.allocate(x),
    "allocate, all": lambda model, x: model.allocate(x, "all"),
    "allocation_probability": lambda model, x: model.allocation_probability(x),
    "inverse_transform": lambda model, x: model.inverse_transform(model.transform(x)),
    "sample": lambda model, _x: model.sample(20, 0),
    "score_bands": lambda model, x: model.score_bands(x[:10]),
    "component_bands": lambda model, _x: model.component_bands(),
    "predict": lambda model, x: model.predict(x),
    "size_probabilities": lambda model, x: model.size_probabilities(x),
    "row_scales": lambda model, x: model.row_scales(x),
}
SHORT = {"burn_in": 20, "n_draws": 20, "n_chains": 2}


def _digits(rows: int = 600) -> np.ndarray:
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data[:rows])


def _with_gaps() -> np.ndarray:
    x = _digits(300).copy()
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    return x


def _streamed() -> Any:
    from appca import AdaptivePPCA

    model = AdaptivePPCA(5, 2, random_state=0).fit(_digits()[:300])
    for start in (300, 400, 500):
        model.partial_fit(_digits()[start : start + 100])
    return model


def _weighted() -> Any:
    from appca import AdaptivePPCA

    weights = np.random.default_rng(0).integers(1, 4, 600).astype(float)
    return AdaptivePPCA(5, 2, random_state=0).fit(_digits(), sample_weight=weights)


def _plain(model: str, *sizes: int, x: Callable[[], np.ndarray] = _digits, **settings: Any) -> Any:
    def fit() -> Any:
        import appca

        return getattr(appca, model)(*sizes, random_state=0, **settings).fit(x())

    return fit


FITS: dict[str, Callable[[], Any]] = {
    "aPPCA": _plain("AdaptivePPCA", 5, 2),
    "aPPCA, variance by component": _plain("AdaptivePPCA", 6, 3, latent_variance="component"),
    "aPPCA, hard": _plain("AdaptivePPCA", 5, 2, inference="hard"),
    "aPPCA, Gibbs": _plain("AdaptivePPCA", 4, 2, inference="gibbs", **SHORT),
    "aPPCA, Gibbs as in the paper": _plain(
        "AdaptivePPCA", 4, 2, inference="gibbs", w_update="polar", z_update="swap", **SHORT
    ),
    "aPPCA, gaps": _plain("AdaptivePPCA", 4, 2, x=_with_gaps),
    "aPPCA, many components": _plain("AdaptivePPCA", 40, 3, max_iter=30),
    "aPPCA, L = K": _plain("AdaptivePPCA", 5, 5),
    "aPPCA, float32": _plain("AdaptivePPCA", 5, 2, x=lambda: _digits().astype(np.float32)),
    "aPPCA, weights": _weighted,
    "aPPCA, whitened": _plain("AdaptivePPCA", 5, 2, whiten=True),
    "aPPCA, noise of each feature": _plain("AdaptivePPCA", 5, 2, noise="feature", max_iter=50),
    "aPPCA, row scales": _plain("AdaptivePPCA", 5, 2, row_scale="learned", max_iter=50),
    "aPPCA, learned sizes": _plain("AdaptivePPCA", 5, "learned", max_iter=50),
    "aPPCA, blocks": _streamed,
    "PPCA": _plain("PPCA", 5),
    "PPCA, gaps": _plain("PPCA", 4, x=_with_gaps),
    "aFA": _plain("AdaptiveFactorAnalysis", 5, 2, max_iter=50),
    "aFA, best supports": _plain("AdaptiveFactorAnalysis", 8, 3, allocation="best", max_iter=20),
    "aFA, Gibbs": _plain("AdaptiveFactorAnalysis", 4, 2, inference="gibbs", **SHORT),
    "FSFA": _plain("FiniteSparseFA", 5, **SHORT),
    "isFA": _plain("InfiniteSparseFA", **SHORT),
    "nonparametric PPCA": _plain("NonparametricPPCA", **SHORT),
}


def answers(name: str) -> dict[str, np.ndarray]:
    """Return the fitted arrays and the answers of the queries of a fit, by name."""
    model = FITS[name]()
    result = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    result |= {f"stored {k}": v for k, v in model.fitted_arrays().items()}
    for kind, rows in {"": _digits(50), "gaps ": _with_gaps()[:50]}.items():
        result |= _asked(model, rows, kind)
    plain = (np.ndarray, np.generic, float, int)
    arrays = {k: np.asarray(v) for k, v in result.items() if isinstance(v, plain)}
    return {k: v for k, v in arrays.items() if v.dtype.kind in "biuf"}


def _asked(model: Any, rows: np.ndarray, kind: str) -> dict[str, Any]:
    """Return what a model answers about rows; queries that it has not are left out."""
    result = {}
    for query, ask in QUERIES.items():
        with suppress(AttributeError, ValueError):  # not for this model, or not for gaps
            result[f"{kind}{query}()"] = ask(model, rows)
    with suppress(ValueError):
        described = model.describe(rows)._asdict()
        result |= {f"{kind}describe().{k}": v for k, v in described.items()}
    return result


def _in_tree(tree: Path, name: str, file: Path) -> None:
    command = [sys.executable, "-P", "-W", "ignore", __file__, "--write", str(file), "--fit", name]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tree)}, cwd=tree, check=True)


def compare(commit: str, names: list[str]) -> int:
    """Print each fit with what differs between the commit and this tree; return how many differ."""
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(before), commit], check=True)
        try:
            for name in names:
                old, new = Path(folder) / "old.npz", Path(folder) / "new.npz"
                _in_tree(before, name, old)
                _in_tree(ROOT, name, new)
                lines = _differences(dict(np.load(old)), dict(np.load(new)))
                different += bool(lines)
                print(f"{name}: {'; '.join(lines) or 'equal'}", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    return different


def _differences(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> list[str]:
    lines = [f"{key} only before" for key in old.keys() - new.keys()]
    for key in sorted(old.keys() & new.keys()):
        if old[key].shape != new[key].shape:
            lines.append(f"{key} {old[key].shape} -> {new[key].shape}")
        elif not np.array_equal(old[key], new[key], equal_nan=True):
            gap = np.nanmax(np.abs(new[key].astype(float) - old[key].astype(float)))
            lines.append(f"{key} by {gap:.2g}")
    return lines


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--fit", action="append", choices=list(FITS))
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        np.savez(options.write, **answers(options.fit[0]))
        return 0
    return compare(options.commit, options.fit or list(FITS))


if __name__ == "__main__":
    sys.exit(main())
