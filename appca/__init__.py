"""Adaptive probabilistic PCA and its relatives, as scikit-learn estimators, and their files."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from appca import tl as tl
    from appca.analysis.components.association import association
    from appca.analysis.components.enrichment import enrichment
    from appca.analysis.components.variance import variance_by
    from appca.analysis.data.drift import drift
    from appca.analysis.groups.rule import rule
    from appca.canvas.file import save_html
    from appca.canvas.notebook.figures import plot_components, plot_map, plot_subspaces
    from appca.canvas.notebook.widget import explore
    from appca.commands.jupyter import open_app
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis
    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.finite_sparse_fa import FiniteSparseFA
    from appca.models.infinite_sparse_fa import InfiniteSparseFA
    from appca.models.nonparametric_ppca import NonparametricPPCA
    from appca.models.pearson_residuals import PearsonResiduals
    from appca.models.ppca import PPCA
    from appca.runs.model_file import load_model

__all__ = [
    "PPCA",
    "AdaptiveFactorAnalysis",
    "AdaptivePPCA",
    "FiniteSparseFA",
    "InfiniteSparseFA",
    "NonparametricPPCA",
    "PearsonResiduals",
    "association",
    "drift",
    "enrichment",
    "explore",
    "load_model",
    "open_app",
    "plot_components",
    "plot_map",
    "plot_subspaces",
    "rule",
    "save_html",
    "variance_by",
]
__version__ = "0.1.0"

_HOMES = {  # of what is no model
    "association": "appca.analysis.components.association",
    "drift": "appca.analysis.data.drift",
    "explore": "appca.canvas.notebook.widget",
    "plot_components": "appca.canvas.notebook.figures",
    "plot_map": "appca.canvas.notebook.figures",
    "plot_subspaces": "appca.canvas.notebook.figures",
    "save_html": "appca.canvas.file",
    "load_model": "appca.runs.model_file",
    "open_app": "appca.commands.jupyter",
    "enrichment": "appca.analysis.components.enrichment",
    "variance_by": "appca.analysis.components.variance",
    "rule": "appca.analysis.groups.rule",
    "PearsonResiduals": "appca.models.pearson_residuals",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # else every name, also a misspelt one, would be there

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for, so that `import appca` costs nothing.

        What needs an extra is there without it, and says which when it is called.
        """
        from appca.models.settings.table import MODELS

        classes = (spec.estimator.partition(":")[::2] for spec in MODELS.values())
        homes = _HOMES | {"tl": ""} | {kind: module for module, kind in classes}
        if name not in homes:
            msg = f"module 'appca' has no attribute {name!r}; it has {', '.join(__all__)}."
            raise AttributeError(msg)
        from appca.words.errors import MissingExtraError, naming_extra

        if name == "tl":
            return import_module("appca.tl")
        try:
            with naming_extra():
                return getattr(import_module(homes[name]), name)
        except MissingExtraError as error:
            return _refusing(error)


def _refusing(error: Exception) -> object:
    def refuse(*_: object, **__: object) -> None:
        raise error

    return refuse
