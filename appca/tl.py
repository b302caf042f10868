"""Tools for annotated data (AnnData), with the conventions of scanpy."""

from typing import TYPE_CHECKING, Any

import numpy as np

from appca.frames import HIGHLY_VARIABLE, distinct_names, features_of, values_of
from appca.words import naming_extra

if TYPE_CHECKING:
    from anndata import AnnData


@naming_extra()
def appca(  # noqa: PLR0913 (the arguments of scanpy.pp.pca and those of a fit)
    adata: "AnnData",
    n_components: int = 20,
    n_active: int = 3,
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: "str | np.ndarray | None" = HIGHLY_VARIABLE,
    key_added: str = "appca",
    sparse: bool = False,
    random_state: int = 0,
    copy: bool = False,
    **parameters: Any,
) -> "AnnData | None":
    """Fit adaptive PPCA to the observations: each uses `n_active` of `n_components` components.

    Parameters
    ----------
    adata : AnnData, shape (n_obs, n_vars)
        Usually normalized and log-transformed. Values are centred but not scaled.
    n_components : int
        Number of available components, K.
    n_active : int
        Number of components that each observation uses, L.
    layer : str, optional
        Fit this layer instead of ``X``.
    use_rep : str, optional
        Fit this key of ``obsm`` instead, such as "X_pca".
    mask_var : str or ndarray of bool, shape (n_vars,), optional
        Variables to fit: a column of ``var``, or a mask. By default, the highly variable ones if
        they are marked, as in `scanpy.pp.pca`. None takes all.
    key_added : str
        Key of the results; see below.
    sparse : bool
        Store the scores as a sparse matrix; most of them are zero.
    random_state : int
        Seed.
    copy : bool
        Return a changed copy, and leave `adata` unchanged.
    **parameters
        Further settings of `appca.AdaptivePPCA`, such as ``noise="feature"``.

    Returns
    -------
    AnnData or None
        The copy if `copy` is True. These fields are set:

        ``obsm["X_appca"]`` : ndarray or csr_matrix, shape (n_obs, n_components)
            Scores; zero if an observation does not use a component.
        ``varm["appca"]`` : ndarray, shape (n_vars, n_components)
            Loadings; zero for variables that are not fitted; not set with `use_rep`.
        ``obs["appca_support"]`` : Categorical
            Support: the components that each observation uses, such as "{1,3}".
        ``obs["appca_probability"]`` : float32
            Posterior probability of that support.
        ``uns["appca"]`` : dict
            ``params``, ``variance`` and ``variance_ratio`` of the components, and the ``features``
            and arrays of the ``model``, from which `appca.explore` restores it.

    Raises
    ------
    InputError
        If a layer, key or column does not exist, or values are not finite numbers.

    Examples
    --------
    >>> import appca, scanpy as sc  # doctest: +SKIP
    >>> adata = sc.datasets.pbmc68k_reduced()  # doctest: +SKIP
    >>> appca.tl.appca(adata, n_components=12, n_active=3)  # doctest: +SKIP
    >>> sc.pl.embedding(adata, "X_appca", color="appca_support")  # doctest: +SKIP
    """
    from appca.analysis.fitted import DescribedRows, FittedModel
    from appca.data.preprocessing import Fitted
    from appca.models.adaptive_ppca import AdaptivePPCA

    adata = adata.copy() if copy else adata
    features = None if use_rep is not None else features_of(adata, mask_var)
    by_em = parameters.get("inference", "em") in ("em", "hard")  # EM accepts sparse matrices
    X = values_of(adata, layer, use_rep, features, sparse=by_em)
    model = AdaptivePPCA(n_components, n_active, random_state=random_state, **parameters).fit(X)
    D = X.shape[1]
    fitted = FittedModel.from_estimator(model, Fitted(1.0, np.zeros(D), np.ones(D), None))
    rows = DescribedRows.from_description(model.describe(X))
    places = {"layer": layer, "use_rep": use_rep, "sparse": sparse}
    params = {"mask_var": mask_var} | places | model.get_params(deep=False)
    names = np.array([f"{use_rep} {j + 1}" for j in range(D)])
    if features is not None:
        names = distinct_names(adata.var_names)[features].astype(str)
    ratio = np.asarray(model.explained_variance_ratio_)
    _add(adata, key_added, (fitted, rows, ratio, params, features, names), sparse=sparse)
    return adata if copy else None


def _add(adata: "AnnData", key: str, fit: tuple[Any, ...], *, sparse: bool) -> None:
    import pandas as pd
    from scipy.sparse import csr_matrix

    from appca.analysis.components import Supports
    from appca.annotated_file import additions

    added = additions(key, *fit)
    for name, scores in added["obsm"].items():
        adata.obsm[name] = csr_matrix(scores) if sparse else np.array(scores)
    for name, loadings in added["varm"].items():
        adata.varm[name] = loadings
    if key not in added["varm"] and key in adata.varm:  # of an earlier fit
        del adata.varm[key]
    adata.uns.update(added["uns"])
    for name, column in added["obs"].items():
        if isinstance(column, Supports):
            adata.obs[name] = pd.Categorical.from_codes(column.codes, pd.Index(column.names))
        else:
            adata.obs[name] = np.array(column)
