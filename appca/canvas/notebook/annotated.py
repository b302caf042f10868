"""An AnnData with a fit of `appca.tl.appca` on the canvas, and a lasso in its `obs`."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.fitted import FittedModel
from appca.data.annotated import labels_of, values_of
from appca.words.errors import InputError
from appca.words.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

_MAPS = {"umap": "UMAP", "tsne": "t-SNE", "draw_graph_fa": "ForceAtlas2", "diffmap": "Diffusion"}


class AnnotatedPicture(NamedTuple):
    """What `appca.explore` needs of an AnnData."""

    model: Any  # a fitted estimator
    X: "pd.DataFrame"
    labels: dict[str, np.ndarray]
    maps: dict[str, np.ndarray]


def is_annotated(value: object) -> bool:
    """Whether this is an AnnData, without importing anndata."""
    return hasattr(value, "obsm") and hasattr(value, "obs_names")


def picture_of(adata: "AnnData", key: str) -> AnnotatedPicture:
    """Restore the fit under a key, with the values it was fitted to.

    Raises InputError when there is no fit, or variables that it needs are gone.
    """
    import pandas as pd

    fit = adata.uns.get(key)
    if not isinstance(fit, dict) or "model" not in fit:
        msg = (
            f"There is no fit in uns[{key!r}]; run appca.tl.appca(adata, key_added={key!r}) first."
        )
        raise InputError(msg)
    params = {
        name: getattr(value, "item", lambda v=value: v)() for name, value in fit["params"].items()
    }
    names, use_rep = np.asarray(fit["features"], dtype=str), params.get("use_rep")
    features = None
    if use_rep is None:
        features = adata.var_names.get_indexer(names)
        if (features < 0).any():
            missing = counted(int((features < 0).sum()), "variable")
            msg = f"{missing} of the fit in uns[{key!r}] are not in this AnnData; fit it again."
            raise InputError(msg)
    X = values_of(adata, params.get("layer"), use_rep, features)
    maps = {
        _MAPS[name.removeprefix("X_")]: np.asarray(places)[:, :2]
        for name, places in adata.obsm.items()
        if name.removeprefix("X_") in _MAPS and np.isfinite(np.asarray(places)[:, :2]).all()
    }
    table = pd.DataFrame(X, columns=names, copy=False)
    return AnnotatedPicture(_restored(params, fit["model"]), table, labels_of(adata.obs), maps)


def _restored(params: dict[str, Any], arrays: dict[str, Any]) -> Any:
    from appca.runs.configuration import estimator_class
    from appca.runs.model_file import behind

    kind = estimator_class(str(params.get("model", "aPPCA")))
    settings = kind().get_params(deep=False)
    estimator = kind(**{name: params[name] for name in params.keys() & settings.keys()})
    model = FittedModel.from_saved({name: np.asarray(value) for name, value in arrays.items()})
    estimator.restore(model.estimator_arrays())
    estimator.log_likelihoods_ = model.log_likelihoods
    return behind({}, estimator, model)
