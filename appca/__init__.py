"""Adaptive probabilistic PCA and its relatives, as scikit-learn estimators, and their files."""

from importlib import import_module

__all__ = [
    "PPCA",
    "AdaptiveFactorAnalysis",
    "AdaptivePPCA",
    "FiniteSparseFA",
    "InfiniteSparseFA",
    "NonparametricPPCA",
    "explore",
    "load_model",
    "plot_components",
    "plot_map",
    "plot_subspaces",
]
__version__ = "0.1.0"

_HOMES = {
    "AdaptiveFactorAnalysis": "appca.models.adaptive_fa",
    "AdaptivePPCA": "appca.models.adaptive_ppca",
    "FiniteSparseFA": "appca.models.finite_sparse_fa",
    "InfiniteSparseFA": "appca.models.infinite_sparse_fa",
    "NonparametricPPCA": "appca.models.nonparametric_ppca",
    "PPCA": "appca.models.ppca",
    "explore": "appca.notebook.widget",
    "plot_components": "appca.notebook.figures",
    "plot_map": "appca.notebook.figures",
    "plot_subspaces": "appca.notebook.figures",
    "load_model": "appca.runs.model_file",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, so that `import appca` costs nothing."""
    if name not in _HOMES:
        msg = f"module 'appca' has no attribute {name!r}; it has {', '.join(__all__)}."
        raise AttributeError(msg)
    home = _HOMES[name]
    if not home.startswith("appca.notebook"):
        return getattr(import_module(home), name)
    from appca.storage.errors import naming_extra

    with naming_extra():
        return getattr(import_module(home), name)
