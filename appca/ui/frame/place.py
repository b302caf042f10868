"""Where fits run, in a line: on this computer, or on the cluster the server was told of."""

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.runs.cluster import scheduler, suits
from appca.runs.configuration import RunConfig
from appca.ui.session import fitting
from appca.words.numbers import duration


def place_of_fits(config: RunConfig, dataset: Dataset) -> str:
    """Say where the fit of a configuration runs; nothing where no cluster is named.

    The address is what the server was told. Whether somebody answers there is asked by the fit:
    a page would wait for it.
    """
    address = scheduler()
    if not address:
        return ""
    options = Preprocessing.from_dict(config.preprocessing)
    n_features = options.most_features(dataset.n_features)
    gaps = dataset.missing is not None
    if suits(config, dataset.n_rows, n_features, gaps=gaps):
        short = duration(fitting.LIVE_SECONDS)
        return f"Fits use the Dask cluster at {address}; those under {short} use this computer"
    return (
        f"This fit uses this computer: the Dask cluster at {address} fits Adaptive PPCA by EM "
        "or hard assignment and Probabilistic PCA, to whole rows, at least as many as features"
    )
