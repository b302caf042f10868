"""The canvas as a notebook widget."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import anywidget
import numpy as np
import traitlets

from appca.analysis.fitted import FittedModel, FittedRun
from appca.canvas.codes import Codes, codes_of, rows_of_codes, scene_of_codes
from appca.canvas.from_model import GivenRows, map_of, rows_of, run_of, scene_of_rows
from appca.canvas.html import JS, closed_bundle
from appca.canvas.scene import projected
from appca.frames import dense, distinct_names, labels_of, values_of
from appca.runs.numbering import numbered_after
from appca.words import InputError, counted, refuse_if

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

MOST_COMPARED = 200  # maximum number of rows whose scores are compared with stored scores
_MAPS = {"umap": "UMAP", "tsne": "t-SNE", "draw_graph_fa": "ForceAtlas2", "diffmap": "Diffusion"}


class AnnotatedPicture(NamedTuple):
    """Parts of an AnnData for `appca.explore`."""

    model: Any  # a fitted estimator
    X: "pd.DataFrame"
    labels: dict[str, np.ndarray]
    maps: dict[str, np.ndarray]


def is_annotated(value: object) -> bool:
    """Whether this is an AnnData, without importing anndata."""
    return hasattr(value, "obsm") and hasattr(value, "obs_names")


def picture_of(adata: "AnnData", key: str) -> AnnotatedPicture:
    """Restore the fit stored under a key, with its fitted values.

    Raises InputError if there is no fit, or the variables that it needs are missing.
    """
    import pandas as pd

    fit = adata.uns.get(key)
    msg = f"There is no fit in uns[{key!r}]; run appca.tl.appca(adata, key_added={key!r}) first."
    refuse_if(not isinstance(fit, dict) or "model" not in fit, msg)
    params = {
        name: getattr(value, "item", lambda v=value: v)() for name, value in fit["params"].items()
    }
    names, use_rep = np.asarray(fit["features"], dtype=str), params.get("use_rep")
    features = None
    if use_rep is None:
        features = pd.Index(distinct_names(adata.var_names)).get_indexer(names)
        missing = counted(int((features < 0).sum()), "variable")
        msg = f"This AnnData lacks {missing} of the fit in uns[{key!r}]; fit it again."
        refuse_if((features < 0).any(), msg)
    X = values_of(adata, params.get("layer"), use_rep, features)
    model = _restored(params, fit["model"])
    is_exact = params.get("inference", "em") in ("em", "hard")  # other methods average over draws
    if is_exact and f"X_{key}" in adata.obsm:
        stored = dense(adata.obsm[f"X_{key}"][:MOST_COMPARED])
        scores = model.transform(X[:MOST_COMPARED])
        msg = f"The values of this AnnData are not those of the fit in uns[{key!r}]: its "
        msg += "scores in obsm differ. Restore the values, or fit again."
        refuse_if(not np.allclose(scores, stored, rtol=1e-3, atol=1e-3 * np.abs(stored).max()), msg)
    maps = {
        _MAPS[name.removeprefix("X_")]: np.asarray(places)[:, :2]
        for name, places in adata.obsm.items()
        if name.removeprefix("X_") in _MAPS and np.isfinite(np.asarray(places)[:, :2]).all()
    }
    table = pd.DataFrame(X, columns=names, copy=False)
    return AnnotatedPicture(model, table, labels_of(adata.obs), maps)


def _restored(params: dict[str, Any], arrays: dict[str, Any]) -> Any:
    from appca.runs.model_file import behind
    from appca.runs.run import estimator_class

    kind = estimator_class(str(params.get("model", "aPPCA")))
    settings = kind().get_params(deep=False)
    estimator = kind(**{name: params[name] for name in params.keys() & settings.keys()})
    model = FittedModel.from_saved({name: np.asarray(value) for name, value in arrays.items()})
    estimator.restore(model.estimator_arrays())
    estimator.log_likelihoods_ = model.log_likelihoods
    return behind({}, estimator, model)


MOST_SHEET_BYTES = 32 << 20  # maximum size of the sheets sent to the browser, in canvas order
HEIGHT = 600  # default height in pixels


def _bits(selection: np.ndarray, widget: "Explorer") -> bytes:
    mask = np.zeros(widget.rows.dataset.n_rows, bool)
    mask[selection] = True
    return np.packbits(mask, bitorder="little").tobytes()


def _row_numbers(bits: Any, widget: "Explorer") -> np.ndarray:
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return np.flatnonzero(flags[: widget.rows.dataset.n_rows])


class Explorer(anywidget.AnyWidget):
    """A zoomable picture of the rows that a model describes; created by `explore`.

    Attributes
    ----------
    model : fitted estimator of appca, or codes
        If you assign another model, the points move to their new positions; similar components
        keep their numbers and signs.
    selection : ndarray of int
        Row indices of the selection, ascending. Draw a lasso in the picture, or assign indices
        or a mask (N,). `widget.observe(f, "selection")` calls f after every change.
    """

    _esm = closed_bundle(JS / "widget.js")
    _css = "".join((JS / name).read_text("utf-8") for name in ("canvas.css", "bar.css"))

    model = traitlets.Any()
    selection = traitlets.Any().tag(sync=True, to_json=_bits, from_json=_row_numbers)
    _scene = traitlets.Dict().tag(sync=True)  # header, buffers, pictures of the components
    _sheets: traitlets.List[bytes] = traitlets.List().tag(sync=True)  # PNG
    _height = traitlets.Int(HEIGHT).tag(sync=True)

    def __init__(
        self,
        model: Any,
        rows: GivenRows,
        maps: Mapping[str, Any],
        height: int,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.rows = rows
        self.run: FittedRun | None = None  # the model's results for the rows
        self._maps = {title: map_of(title, xy, rows.dataset) for title, xy in maps.items()}
        self._shape = shape  # image shape of the components of codes
        super().__init__(model=model, selection=np.empty(0, np.int64), _height=height)
        self.on_msg(self._answer)

    @traitlets.validate("model")
    def _described(self, proposal: Any) -> Any:
        run = None
        if isinstance(proposal["value"], Codes):
            scene = scene_of_codes(proposal["value"], self.rows, self._maps, self._shape)
        else:
            run = numbered_after(run_of(proposal["value"], self.rows.dataset), self.run)
            scene = scene_of_rows(self.rows, run, self._maps)
        if self.run is None and scene.sheets is not None:
            drawn: list[bytes] = []
            for number in range(scene.sheets.n_sheets):
                if sum(map(len, drawn)) <= MOST_SHEET_BYTES:
                    drawn.append(scene.sheets.png(number))
            self._sheets = drawn
        self.run = run
        self._scene = {
            "meta": scene.meta,
            "buffers": {name: buffer.tobytes() for name, buffer in scene.buffers.items()},
            "components": scene.component_sheet,
        }
        return proposal["value"]

    @traitlets.validate("selection")
    def _checked(self, proposal: Any) -> np.ndarray:
        selection, n_rows = np.asarray(proposal["value"]), self.rows.dataset.n_rows
        if selection.dtype == bool and selection.shape == (n_rows,):
            return np.flatnonzero(selection)
        if not selection.size:
            return np.empty(0, np.int64)
        if (
            selection.ndim != 1
            or selection.dtype.kind not in "iu"
            or not 0 <= selection.min() <= selection.max() < n_rows
        ):
            msg = f"A selection has row numbers from 0 to {n_rows - 1:,}, or True or False for "
            msg += f"each of the {n_rows:,} rows; got {selection.dtype} of shape {selection.shape}."
            raise InputError(msg)
        return np.unique(selection)

    def _answer(self, _: Any, content: Any, buffers: list[Any]) -> None:
        asked = np.frombuffer(buffers[0], "<u4")
        rows, run = asked[asked < self.rows.dataset.n_rows], self.run
        scores = self.model.dense(rows) if run is None else projected(self.rows.dataset, run, rows)
        scores = scores.astype("<f4")
        self.send({"answer": content.get("question")}, [scores.tobytes()])


def explore(  # noqa: PLR0913 (most parts of a picture are optional)
    model: Any = None,
    X: Any = None,
    labels: Any = None,
    images: Any = None,
    *,
    codes: Any = None,
    components: Any = None,
    maps: Mapping[str, Any] | None = None,
    height: int = HEIGHT,
    key: str = "appca",
) -> Explorer:
    """Show rows described by a fitted model, or by any sparse code, in a notebook.

    Parameters
    ----------
    model : fitted estimator of appca, result of `appca.load_model`, or AnnData
        An AnnData with a fit by `appca.tl.appca` needs no further arguments: columns of ``obs``
        become colourings, and ``obs["appca_selected"]`` always equals the selection.
    X : array-like, shape (N, D), optional
        Not needed for an AnnData or codes.
    labels : array-like of shape (N,), mapping or data frame, optional
        Values that colour the points; the first column is shown first.
    images : tuple or ndarray, optional
        The shape (h, w) or (h, w, 3) of rows that are images, or an image for each row,
        (N, h, w) or (N, h, w, 3).
    codes : tuple (indices, values) of arrays (N, L), or matrix (N, K), optional
        Instead of a model: the components that each row uses, counted from 0, and their values,
        such as the strongest features of a sparse autoencoder; or a sparse or dense matrix, such as
        the result of NMF. A row uses at most 128 components.
    components : array-like, shape (K, D), optional
        For codes, the contribution of each component to a row. If contributions have the shape of
        images, components are drawn as images; otherwise their strongest rows represent them.
    maps : mapping of str to array-like of shape (N, 2), optional
        Further views by title, such as {"UMAP": xy}.
    height : int
        Height in pixels.
    key : str
        Key of the fit in an AnnData.

    Returns
    -------
    Explorer
        A cell shows it on its last line. Read or set `selection`; set `model` to compare.

    Raises
    ------
    InputError
        If the parts are inconsistent.
    """
    msg = "explore shows a fitted model or codes; pass one of them, not both."
    refuse_if((model is None) == (codes is None), msg)
    if codes is not None:
        listed = codes_of(codes, components)
        rows = rows_of_codes(listed, X, labels, images)
        by_shape = images is None or isinstance(images, (tuple, list))
        shape = images if by_shape else np.asarray(images).shape[1:]
        return Explorer(listed, rows, maps or {}, height, shape and tuple(shape))
    msg = "X is missing: pass the rows (N, D) that the model describes."
    refuse_if(X is None and not is_annotated(model), msg)
    if not is_annotated(model):
        return Explorer(model, rows_of(X, labels, images), maps or {}, height)
    adata, picture = model, picture_of(model, key)
    rows = rows_of(picture.X, picture.labels if labels is None else labels, images)
    rows = rows._replace(dataset=replace(rows.dataset, ids=np.asarray(adata.obs_names, str)))
    widget = Explorer(picture.model, rows, picture.maps | dict(maps or {}), height)

    def mark(change: Any) -> None:
        adata.obs[f"{key}_selected"] = np.isin(np.arange(adata.n_obs), change["new"])

    widget.observe(mark, "selection")
    return widget
