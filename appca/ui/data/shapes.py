"""Rows as images: plausible shapes to press, height, width and order, and nine samples."""

from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st

from appca.canvas.sprites import resized, style_of, tile_of
from appca.data.dataset import Dataset
from appca.data.pixels import Judged, PixelShape, pixel_order
from appca.plots.components.components import data_uri
from appca.ui.arrivals.image_shape import KINDS, judged, shape_of, with_shape
from appca.ui.arrivals.opening import Opened, Reading
from appca.ui.parts.acts import acting, button, choice
from appca.ui.parts.text import tag, words
from appca.ui.rows.pictures import is_dark
from appca.ui.session.callbacks import guarded

CARDS, SAMPLES = 4, 9
MOST_SIDE = 4096
ORDERS = ("Row by row", "Column by column")
CHANNELS = ("1 grey", "3 colour")


class _Rows(NamedTuple):
    """Rows that may be images."""

    opened: Opened
    data: Dataset  # as values
    now: PixelShape | None

    def use(self, shape: PixelShape | None) -> None:
        """Read them as images of a shape, or as values."""
        self.opened.draft = with_shape(self.opened.kind, self.opened.draft, shape)


def shapes(opened: Opened, reading: Reading) -> bool:
    """Draw the choice where rows can be images; return whether height and width are in order."""
    if opened.kind not in KINDS:
        return True
    now = shape_of(opened.kind, opened.draft)
    if now is None and opened.kind == "csv" and reading.report.get("image_shape"):
        now = PixelShape(*reading.report["image_shape"])  # squares of whole numbers
    data = opened.read(with_shape(opened.kind, opened.draft, None)).dataset
    if data is None or data.image_shape is not None:
        return True
    offered = judged(opened.kind, data)
    is_likely = now is not None or (bool(offered) and offered[0].is_likely)
    if reading.head and not is_likely:
        return True
    rows = _Rows(opened, data, now)
    with st.expander("Rows as images", expanded=is_likely, key="image_shapes"):
        left, right = st.columns([1.6, 1], gap="large")
        with left:
            _cards(rows, offered)
            fits = _sides(rows, offered)
        if now is not None and fits:
            with right:
                _samples(rows, now)
    return fits


def _cards(rows: _Rows, offered: list[Judged]) -> None:
    """Draw the most plausible shapes as pictures of one row; the chosen one is among them."""
    data, now = rows.data, rows.now
    first = [each.shape for each in offered[:CARDS]]
    listed = [now, *first[:-1]] if now is not None and now not in first else first
    row = int(np.argmax(np.var(data.X[:SAMPLES], axis=1)))
    cards = [
        button(
            tag("span", tag("img", "", src=data_uri(picture), alt=""))
            + tag("b", f"{shape.height} × {shape.width}")
            + tag("small", words(_order(shape))),
            "shape",
            i,
            css="ca-shape",
            pressed=shape == now,
        )
        for i, shape in enumerate(listed)
        for picture in _pictures(data, np.array([row]), shape)
    ]
    cards.append(button(tag("b", "No images"), "shape", -1, css="ca-shape", pressed=now is None))

    def use(place: str, _text: str) -> None:
        rows.use(listed[int(place)] if place in map(str, range(len(listed))) else None)

    acting(tag("div", "".join(cards), "ca-shapes"), "shape_cards", {"shape": use})


def _order(shape: PixelShape) -> str:
    colour = ", colour" if shape.channels == 3 else ""
    return ORDERS[shape.by_column].lower() + colour


def _sides(rows: _Rows, offered: list[Judged]) -> bool:
    """Draw height, width, channels and order; return whether they make a row's length."""
    now, n_values = rows.now, rows.data.n_features
    channels = now.channels if now else 1
    base = f"{rows.opened.key}-{now}"  # other widgets show another shape
    keys = [f"height-{base}", f"width-{base}"]
    columns = st.columns(2)
    for place, key, label, value in zip(
        columns, keys, ("Height", "Width"), now[:2] if now else (None, None), strict=True
    ):
        place.number_input(
            label,
            min_value=1,
            max_value=MOST_SIDE,
            value=value,
            key=key,
            placeholder="no",
            on_change=guarded(partial(_resized, rows, keys, place is columns[0])),
        )
    h, w = (st.session_state[key] for key in keys)
    total = (h or 0) * (w or 0) * channels
    if h and w and total != n_values:
        st.warning(f"{h} × {w}{' × 3' * (channels == 3)} = {total:,}, not {n_values:,}.")
        return False
    if now is None:
        return True
    chips = choice(ORDERS, "order", "", int(now.by_column), "Order of the pixels")
    if n_values % 3 == 0:
        chips += choice(CHANNELS, "channels", "", int(channels == 3), "Channels")

    def order(_value: str, place: str) -> None:
        rows.use(now._replace(by_column=place == "1"))

    def colours(_value: str, place: str) -> None:
        wanted = 3 if place == "1" else 1
        fitting = (each.shape for each in offered if each.shape.channels == wanted)
        rows.use(next(fitting, now))

    acting(tag("div", chips, "ca-steps"), "shape_order", {"order": order, "channels": colours})
    return True


def _resized(rows: _Rows, keys: list[str], is_height: bool) -> None:
    """Take a height or a width; the other follows where it can and was not typed yet."""
    now, n_values = rows.now, rows.data.n_features
    channels = now.channels if now else 1
    h, w = (st.session_state[key] or 0 for key in keys)
    typed, other = (h, w) if is_height else (w, h)
    if typed and n_values % (typed * channels) == 0 and (now is not None or not other):
        other = n_values // (typed * channels)
        h, w = (typed, other) if is_height else (other, typed)
    if h * w * channels == n_values:
        by_column = now.by_column if now else rows.opened.kind == "mat"
        rows.use(PixelShape(h, w, channels, by_column))


def _samples(rows: _Rows, shape: PixelShape) -> None:
    """Draw nine rows as images, with their classes."""
    data, turn = rows.data, f"samples-{rows.opened.key}"
    places = np.random.default_rng(st.session_state.get(turn, 0)).permutation(data.n_rows)[:SAMPLES]
    labels = next(iter(data.labels.values()), data.ids)
    figures = [
        tag(
            "figure",
            tag("img", "", src=data_uri(picture), alt=f"Row {row + 1}")
            + tag("figcaption", words(labels[row])),
        )
        for row, picture in zip(places.tolist(), _pictures(data, places, shape), strict=True)
    ]
    head = tag("b", f"Nine of {data.n_rows:,}") if len(places) == SAMPLES else ""
    head += button("Show others", "others", "", css="ca-act ca-push")

    def others(_value: str, _text: str) -> None:
        st.session_state[turn] = st.session_state.get(turn, 0) + 1

    body = tag("div", head, "ca-steps") + tag("div", "".join(figures), "ca-nine")
    acting(body, "nine_samples", {"others": others})


def _pictures(data: Dataset, rows: np.ndarray, shape: PixelShape) -> np.ndarray:
    """Return rows as images, uint8; strokes are dark on a light page."""
    values = np.asarray(data.X[rows], np.float64)[:, pixel_order(shape)]
    some = np.asarray(data.X[:: max(1, data.n_rows // 200)], np.float64)
    low, high = float(some.min()), float(some.max())
    levels = np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255
    images = resized(levels.astype(np.uint8).reshape(-1, *shape.sides), tile_of(shape.sides))
    return 255 - images if style_of(images) == "ink" and not is_dark() else images
