"""What a data set is and how a fit went, as names and values."""

import numpy as np

from appca.analysis.components.components import DOUBTFUL
from appca.analysis.explore.projection import explained_share
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.runs.run import RunInfo
from appca.ui.frame.status import ending
from appca.ui.parts.text import nats_per_row
from appca.ui.session.fitting import Shown
from appca.words.numbers import duration, percent, size
from appca.words.wording import counted, shortened


def data_facts(dataset: Dataset) -> dict[str, str]:
    """Return what a data set is, name by name."""
    lines = {
        "Rows": _rows(dataset),
        "Features": _features(dataset),
        "Labels": ", ".join(dataset.labels) or "none",
        "Values": f"{dataset.X.dtype}, {size(dataset.X.nbytes)}",
        **_missing(dataset),
    }
    source = _source(dataset)
    return lines | ({"Source": source} if source else {})


def _rows(dataset: Dataset) -> str:
    total = dataset.provenance.get("sample", {}).get("of")
    return f"{dataset.n_rows:,}" + (f" of {total:,}, drawn at random" if total else "")


def _source(dataset: Dataset) -> str:
    """Return where the data come from: what to cite, the file, or the maker's name."""
    provenance = dataset.provenance
    if provenance.get("source") != "file":
        return str(provenance.get("citation") or provenance.get("source") or "")
    files = list(provenance.get("files", []))
    return shortened(files[0]) if len(files) == 1 else counted(len(files), "file")


def _missing(dataset: Dataset) -> dict[str, str]:
    """Say how many cells wait for a model to fill them; nothing of whole data."""
    if dataset.missing is None:
        return {}
    rows = counted(len(dataset.incomplete_rows), "row")
    share = dataset.n_missing / dataset.X.size
    cells = f"{counted(dataset.n_missing, 'cell')} ({percent(share, 1)})"
    return {"Missing": f"{cells} in {rows}, for the model to fill"}


def _features(dataset: Dataset) -> str:
    if dataset.image_shape is None:
        return f"{dataset.n_features:,} columns"
    h, w, *colour = dataset.image_shape
    return f"{dataset.n_features:,} ({h} × {w} pixels{', colour' if colour else ''})"


def fit_facts(shown: Shown) -> dict[str, str]:
    """Return how the fit went, name by name."""
    info, fitted = shown.info, shown.fitted
    latent = fitted.latent_variance
    spread = f"{latent.min():.3g}" + (f" to {latent.max():.3g}" if np.ptp(latent) > 0 else "")
    return {
        "Log-likelihood": nats_per_row(info),
        "Explained": f"{percent(explained_share(fitted), 1)} of the variance",
        "Doubtful rows": percent(float(np.mean(fitted.membership < DOUBTFUL)), 1),
        "Ended": f"{ending(shown)} in {duration(info.seconds)}",
        "Noise variance": f"{np.mean(fitted.noise_variance):.4g}",
        "Factor variance": spread,
        **_learned(fitted),
        **_estimated(info),
        "Id": shown.config.id + (", imported" if shown.config.imported is not None else ""),
    }


def _learned(fitted: FittedRun) -> dict[str, str]:
    """Say what a model without a fixed number of components has found about it."""
    if fitted.alpha is None:
        return {}
    used = fitted.active.sum(axis=1)
    return {
        "Components": f"{len(fitted.components)} in the best draw",
        "Used by a row": f"{used.mean():.1f} on average, {used.min()} to {used.max()}",
        "Alpha": f"{fitted.alpha:.3g}",
    }


def _estimated(info: RunInfo) -> dict[str, str]:
    """Say how exact the log-likelihood is where it is not a sum over all choices."""
    error = info.likelihood_error / info.n_rows
    return {"Likelihood": f"{info.likelihood}; ± {error:.2g} nats per row"} if error else {}
