"""The tab Gallery: what each component looks like, which rows lie at its ends, and its name."""

import numpy as np
import streamlit as st

from appca.analysis.components.components import (
    common,
    extremes,
    name_of,
    own_name,
    patterns,
    rarely_used,
)
from appca.analysis.components.meaning import goes_with
from appca.analysis.explore.projection import variance_shares
from appca.data.brain.places import has_places
from appca.data.dataset import Dataset
from appca.plots.components.components import COURSE, data_uri, picture_of, picture_shape
from appca.plots.components.slices import slices_of
from appca.runs import labels
from appca.ui.components.events import event_bands
from appca.ui.parts import acts, class_choice
from appca.ui.parts.component_list import loadings
from appca.ui.parts.downloads import component_buttons
from appca.ui.parts.text import markdown, tag, words
from appca.ui.parts.widgets import first_of_page
from appca.ui.rows import pictures
from appca.ui.session import names, selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent, signed
from appca.words.wording import counted, shortened

PAGE = 24  # components on a page
AT_END = 6  # rows at each end
NAMED_AT_END = 3  # of a table, by their ids


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw one card a component, with buttons for its name, its sign and its rows."""
    damage = shown.run and labels.damage(shown.run)
    if damage:
        st.warning(markdown(damage))
    fitted = shown.fitted
    if rare := rarely_used(fitted):
        st.warning(
            f"Under 0.1% of rows use {'component' if len(rare) == 1 else 'components'} "
            f"{', '.join(map(str, rare))}. Lower K, or try another start."
        )
    total = len(fitted.components)
    shares = kept(f"shares-{shown.key}", lambda: variance_shares(fitted))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(
            f"**{counted(total, 'component')} explain{'s' if total == 1 else ''} "
            f"{percent(float(shares.sum()))} of the variance.** Click a name to change it, or an "
            "end to select its rows.",
            width="content",
        )
        with st.popover("Save", icon=":material/download:", key="save-components"):
            component_buttons(dataset, shown)
    first = first_of_page(total, PAGE, f"components-{shown.config.id}")
    bands, last = event_bands(dataset), min(first + PAGE, total)
    cards = "".join(_card(dataset, shown, k, bands.over) for k in range(first, last))
    acts.acting(
        bands.key + tag("div", cards, "ca-gallery"),
        "gallery",
        {
            "rename": lambda k, text: names.rename(shown.run, _place(shown, k), text),
            "flip": lambda k, _: names.flip(shown.run, _place(shown, k)),
            "select": lambda which, _: _select(dataset, shown, which),
        },
    )


def _card(dataset: Dataset, shown: Shown, k: int, bands: str) -> str:
    fitted = shown.fitted
    number, title = k + 1, name_of(fitted, k)
    shares = kept(f"shares-{shown.key}", lambda: variance_shares(fitted))
    meant = kept(f"meant-{shown.key}", lambda: goes_with(dataset, fitted))[k]
    numbers = tag("b", percent(shares[k], 1)) + " of variance"
    users = f"used by {percent(fitted.active[:, k].mean())} of rows"
    name = _name(shown, k, number, title)
    flip = acts.button("⇄", "flip", k, f"Flip the sign of {title}", "ca-act ca-icon")
    beside = tag("span", str(number), "ca-number") if own_name(fitted, k) else ""
    told = tag("div", beside + name, "ca-title")
    told += tag("div", words(meant), "ca-quiet")
    facts = tag("div", numbers + tag("div", users), "ca-quiet ca-right")
    head = tag("div", told, "ca-told") + facts + (flip if shown.run else "")
    return tag(
        "section",
        tag("div", _pattern(dataset, shown, k, bands), "ca-look")
        + tag("div", tag("div", head, "ca-top") + _ends(dataset, shown, k), "ca-rest"),
        "ca-piece",
    )


def _name(shown: Shown, k: int, number: int, title: str) -> str:
    name = own_name(shown.fitted, k)
    text = name or f"Component {number}"
    if shown.run is None:
        return tag("b", words(text))
    return acts.name(text, "rename", k, name, f"Rename {title}")


def _pattern(dataset: Dataset, shown: Shown, k: int, bands: str) -> str:
    every = kept(f"patterns-{shown.key}", lambda: patterns(shown.fitted, picture_shape(dataset)))
    pattern = every[k]
    dark, name = pictures.is_dark(), name_of(shown.fitted, k)
    picture = picture_of(pattern, dataset, dark=dark)
    if picture is None:
        return loadings(pattern, dataset.feature_names)
    image = tag("img", "", src=data_uri(picture), alt=name)
    if not has_places(dataset):
        return image
    scores = shown.fitted.scores
    slices = kept(
        f"slices-{shown.key}-{dark}", lambda: slices_of(dataset, scores, COURSE, dark=dark)
    )
    slice_image = tag("img", "", src=data_uri(slices[k]), alt=f"The slice with most of {name}")
    return tag("div", bands + image, "ca-course") + slice_image


def _ends(dataset: Dataset, shown: Shown, k: int) -> str:
    ends = extremes(shown.fitted, k, AT_END)
    low = _end(dataset, shown, k, ends.low, "low")
    high = _end(dataset, shown, k, ends.high[::-1], "high")
    if not len(ends.high):
        return tag("div", "No row uses this component.", "ca-quiet")
    return tag("div", low + tag("span", "…", "ca-quiet") + high, "ca-tails")


def _end(dataset: Dataset, shown: Shown, k: int, rows: np.ndarray, end: str) -> str:
    """Return the rows at one end as a button, from the lowest score to the highest."""
    if not len(rows):
        return tag("span", "")
    scores = shown.fitted.scores[rows, k]
    far = signed(float(scores[0] if end == "low" else scores[-1]))
    mostly = _classes(dataset, rows)
    title = (
        f"the {len(rows)} rows with the most {'negative' if end == 'low' else 'positive'} scores"
    )
    if dataset.image_shape is None:
        at_end = rows[:NAMED_AT_END] if end == "low" else rows[-NAMED_AT_END:]
        seen = ", ".join(tag("span", words(shortened(name, 14))) for name in dataset.ids[at_end])
    else:
        seen = tag("img", "", src=pictures.strip(dataset, rows), alt=f"{title}{mostly}")
    said = tag("small", words(f"{far}{mostly}"))
    return acts.button(seen + said, "select", f"{k} {end}", f"Select {title}")


def _classes(dataset: Dataset, rows: np.ndarray) -> str:
    """Say which classes most of some rows have; nothing without classes."""
    for classes in class_choice.every(dataset)[:1]:
        codes = classes.codes[rows]
        most = common(list(classes.names), codes[codes >= 0], 2)
        return f" · {', '.join(shortened(name, 16) for name, _ in most)}" if most else ""
    return ""


def _place(shown: Shown, text: str) -> int:
    """Return a component's place from what the browser sent."""
    place = int(text)
    if not 0 <= place < len(shown.fitted.components):
        msg = f"There are {len(shown.fitted.components)} components; got number {place}."
        raise ValueError(msg)
    return place


def _select(dataset: Dataset, shown: Shown, which: str) -> None:
    k, _, end = which.partition(" ")
    ends = extremes(shown.fitted, _place(shown, k), AT_END)
    selection.put(dataset, ends.low if end == "low" else ends.high)
