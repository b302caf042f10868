"""A trained autoencoder: how its training went, what it keeps, and what it draws by itself."""

import numpy as np
import streamlit as st

from appca.canvas.sprites import resized, sample, tile_of, tiles_of
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
from appca.data.vae.autoencoder import Autoencoder
from appca.plots.curves import loss
from appca.ui.parts.chart import chart
from appca.ui.rows.pictures import drawn
from appca.ui.session.caching import by_key
from appca.words.numbers import fixed, percent
from appca.words.wording import counted

COLUMNS = 16  # images side by side
MOST_ROWS = 5000  # for the share of variance kept


def view(dataset: Dataset, fitted: Fitted, encoder: Autoencoder, key: str) -> None:
    """Draw the loss curve, the share of variance kept, and decoded pictures.

    `encoder` is that of `fitted` and was trained on `dataset`; `key` names it.
    """
    kept, rows = _kept(f"{dataset.digest}-{key}", dataset, fitted, encoder)
    ends = encoder.losses
    sample = "" if rows == dataset.n_rows else f", measured on {counted(rows, 'row')}"
    st.markdown(
        f"{dataset.n_features:,} features became {fitted.n_features}, which keep {percent(kept)} "
        f"of the variance{sample}. The loss fell from {fixed(ends[0])} to {fixed(ends[-1])} nats a "
        f"row in {counted(len(ends), 'epoch')}; where the curve still falls, more epochs help."
    )
    chart(loss(ends), f"vae-loss-{key}")
    if dataset.image_shape is not None:
        _pictures(dataset, fitted)


def kept_share(dataset: Dataset, fitted: Fitted, encoder: Autoencoder) -> tuple[float, int]:
    """Return the share of the variance that survives encoding and decoding, and of how many rows.

    In the units before the encoder, so that the scales of a table count as they did in training.
    Of more than 5,000 rows, of a sample that is always the same.
    """
    n = dataset.n_rows
    rows = np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])
    before = fitted._replace(vae=None).transform(dataset.X[rows]).astype(np.float64)
    after = encoder.decode(encoder.encode(before))
    total = np.square(before - before.mean(axis=0)).sum()
    lost = np.square(before - after).sum()
    return 1.0 - float(lost / max(total, np.finfo(float).tiny)), len(rows)


_kept = by_key(16)(kept_share)


def _pictures(dataset: Dataset, fitted: Fitted) -> None:
    rows = sample(dataset.n_rows, COLUMNS)
    again = fitted.inverse_transform(fitted.transform(dataset.X[rows]))
    codes = np.random.default_rng(0).standard_normal((2 * COLUMNS, fitted.n_features))
    invented = fitted.inverse_transform(codes.astype(np.float32))
    pairs = np.concatenate([tiles_of(dataset, rows), _tiles(dataset, again)])
    with st.container(key="vae-pictures"):
        alt = f"{COLUMNS} rows of the data above what their codes are decoded to"
        st.image(drawn(dataset, pairs, COLUMNS), width="stretch", alt=alt)
        st.caption("Rows of the data, and below each what its code is decoded to.")
        sheet = drawn(dataset, _tiles(dataset, invented), COLUMNS)
        alt = f"{len(codes)} pictures decoded from codes drawn at random"
        st.image(sheet, width="stretch", alt=alt)
        st.caption("Pictures of no row: decoded from codes drawn at random.")


def _tiles(dataset: Dataset, values: np.ndarray) -> np.ndarray:
    return resized(dataset.as_images(values), tile_of(dataset.image_shape or ()))
