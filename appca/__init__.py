"""Adaptive probabilistic PCA and related models as scikit-learn estimators; file functions."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from appca import tl as tl
    from appca.analysis.association import association, variance_by
    from appca.analysis.enrichment import enrichment
    from appca.analysis.new_rows import drift
    from appca.analysis.rule import rule
    from appca.canvas.figure import plot_components, plot_map, plot_subspaces
    from appca.canvas.html import save_html
    from appca.canvas.widget import explore
    from appca.commands.jupyter import open_app
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis
    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.pearson_residuals import PearsonResiduals
    from appca.models.ppca import PPCA
    from appca.models.sampled_models import FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
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

_HOMES = {  # public names that are not models
    "association": "appca.analysis.association",
    "drift": "appca.analysis.new_rows",
    "explore": "appca.canvas.widget",
    "plot_components": "appca.canvas.figure",
    "plot_map": "appca.canvas.figure",
    "plot_subspaces": "appca.canvas.figure",
    "save_html": "appca.canvas.html",
    "load_model": "appca.runs.model_file",
    "open_app": "appca.commands.jupyter",
    "enrichment": "appca.analysis.enrichment",
    "variance_by": "appca.analysis.association",
    "rule": "appca.analysis.rule",
    "PearsonResiduals": "appca.models.pearson_residuals",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # otherwise type checkers would accept misspelt names

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used, so that `import appca` is fast.

        A function that needs an extra exists without it, and names the extra when it is called.
        """
        from appca.models.settings import MODELS

        classes = (spec.estimator.partition(":")[::2] for spec in MODELS.values())
        homes = _HOMES | {"tl": ""} | {kind: module for module, kind in classes}
        if name not in homes:
            msg = f"module 'appca' has no attribute {name!r}; it has {', '.join(__all__)}."
            raise AttributeError(msg)
        from appca.words import MissingExtraError, naming_extra

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
