"""What another method keeps that a fit loses, on rows that neither has seen."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.check.quality import quality as near_rows
from appca.analysis.check.rivals import Cap
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.jobs.quality import held_out, methods, rows_of, split_of
from appca.runs.home import home
from appca.runs.quality import QualityConfig, QualityStore
from appca.ui.check import compare_choice, quality
from appca.ui.check.compare_choice import sizes
from appca.ui.parts import progress
from appca.ui.parts.answers import answer
from appca.ui.parts.text import markdown, table, tag, words
from appca.ui.parts.widgets import one_of
from appca.ui.rows.pictures import drawn
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown, is_live
from appca.words.errors import InputError
from appca.words.numbers import UNKNOWN, fixed, number, percent
from appca.words.wording import counted

MOST_VALUES = 1_500_000  # of the rows that are compared at once: two seconds
MOST_OF_A_MIXTURE = 150_000
SECONDS = 8.0  # of a method, on a busy machine
ANCHORS, NEAREST = 300, 10  # rows whose nearest rows are looked at, and how many
EXAMPLES = 6
RIVALS = ("ppca_k", "ppca_l", "mixture")
COLUMNS = {  # of the table: heading, and whether less is better
    "mse": ("Squared error", True),
    "log_likelihood": ("Nats per new row", False),
    "kept": ("Neighbours kept", False),
}
Line = dict[str, Any]  # of a method, as `appca.jobs.quality.measured` makes it


class Measured(NamedTuple):
    """What was measured at once."""

    lines: dict[str, Line]
    rows: np.ndarray  # (m,) held out
    errors: dict[str, np.ndarray]  # (m, D) squared, preprocessed
    rebuilt: dict[str, np.ndarray]  # (m, D) in units of the data


NOTHING = Measured({}, np.empty(0, int), {}, {})


def draw(dataset: Dataset, shown: Shown) -> None:
    """Draw question and answer, a table with examples, and what measures methods that take long."""
    config = quality.config_of(dataset, shown)
    made = NOTHING
    try:
        if is_live(shown.config):
            made = _at_once(config.id, dataset, config)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    lines = made.lines | _stored(config)
    rivals = {key: named(lines[key], shown) for key in RIVALS if key in lines}
    if "own" in lines and rivals:
        rival = _chosen(rivals, shown)
        answer(*said(lines, rival, most_of(dataset, made, rival)))
        with st.container(key="compare_numbers"):
            numbers, examples = st.columns([1.6, 1], gap="medium")
        whole = [size.replace(" ", "\u00a0") for size in shown.config.sizes]  # on phones, too
        names = {"own": ", ".join(["This fit", *whole])} | rivals
        numbers.html(_table(lines, names, rival))
        with examples:
            _examples(dataset, made, rival, rivals[rival])
    else:
        answer("How much does this fit lose against PCA?")
    if "mixture" not in lines and not progress.follow(config.id, "compare_measure_cancel"):
        label = "Measure the mixture too" if "own" in lines else "Measure"
        quality.start_button(dataset, config, label)
    st.caption(
        "A fifth of the rows is held out from every method and rebuilt from the posterior mean of "
        "its scores. PCA is probabilistic PCA."
    )


def _chosen(rivals: dict[str, str], shown: Shown) -> str:
    """Draw the question; the answer, the examples and the second picture follow."""
    with st.container(key="compare_question", horizontal=True, vertical_alignment="center"):
        st.markdown("What does", width="content")
        key = f"rival-{shown.config.id}"
        more = {"label_visibility": "collapsed", "width": "content"}
        beside_this = compare_choice.beside_this
        rival = one_of(
            "Compared with", rivals, key, on_change=beside_this, args=(shown, key), **more
        )
        st.markdown("keep that this fit loses?", width="content")
    return rival


def said(lines: dict[str, Line], rival: str, most: str = "") -> tuple[str, str]:
    """Say what another method keeps that a fit loses, as a title and a text."""
    ours, other = lines["own"], lines[rival]
    change = 1 - other["mse"] / ours["mse"]
    title = f"Detail: {percent(change)} less error{most}"
    if change <= 0:
        title = f"No detail: this fit makes {percent(1 - ours['mse'] / other['mse'])} less error"
    parts = []
    if ours.get("kept") and other.get("kept"):
        both = [percent(line["kept"][0]) for line in (other, ours)]
        parts.append(f"It keeps {both[0]} of near rows, not {both[1]}")
    if other["used"] != ours["used"]:
        parts.append(f"with {counted(other['used'], 'number')} per row, not {ours['used']}")
    text = ", ".join(parts) + "." * bool(parts)
    theirs, density = other["log_likelihood"], ours["log_likelihood"]
    if theirs is not None and density is not None:
        text += f" Held-out log-likelihood: {fixed(theirs, 1)} nats a row, not {fixed(density, 1)}."
    return title, text.strip()


def most_of(dataset: Dataset, made: Measured, rival: str) -> str:
    """Say in which classes, or which columns of a table, most is lost."""
    if not {"own", rival} <= set(made.errors):
        return ""
    lost, classes = made.errors["own"] - made.errors[rival], dataset.class_column
    if classes is not None:
        codes, names = classes[1][made.rows], list(classes[0])
        of = lost.mean(axis=1)
        means = [
            of[codes == code].mean() if (codes == code).any() else -1 for code in range(len(names))
        ]
    elif dataset.feature_names is not None:
        names, means = list(dataset.feature_names), list(lost.mean(axis=0))
    else:
        return ""
    first = [str(names[at]) for at in np.argsort(means)[::-1][:2] if means[at] > 0]
    first = [f"{name}s" if name.isdigit() else name for name in first]
    return f", most on {' and '.join(first)}" if first else ""


def named(line: Line, shown: Shown) -> str:
    """Return the name of a method."""
    if line["key"] == "mixture":
        return f"Mixture, {sizes(shown)[0]} of {line['used']}"
    return f"PCA, {line['size']} {'axis' if line['size'] == 1 else 'axes'}"


def _stored(config: QualityConfig) -> dict[str, Line]:
    stored = QualityStore(home()).get(config.id)
    return {line["key"]: line for line in (stored.lines if stored else ()) if _is_whole(line)}


def _is_whole(line: Line) -> bool:
    return line["key"] in ("own", *RIVALS) and line.get("mse") is not None


@by_key(4)
def _at_once(dataset: Dataset, config: QualityConfig) -> Measured:
    """Measure the methods that are quick, on a sample of many rows."""
    few = MOST_VALUES // dataset.n_features
    config = replace(config, rows=few) if few < dataset.n_rows else config
    split, (_, rows) = split_of(dataset, config), rows_of(dataset, config)
    back = Preprocessing.from_dict(split.preprocessing).fit(split.dataset.X).inverse_transform
    made_here = Measured({}, rows, {}, {})
    for method in methods(config):
        heavy = method.key == "mixture" and split.train.size > MOST_OF_A_MIXTURE
        if method.key in ("own", *RIVALS) and not heavy:
            cap = Cap(SECONDS)
            made = method.fit(split, cap, lambda _share: None)
            if cap.over():  # a fit that the clock ends has other numbers the next time
                continue
            facts: Line = {"key": method.key, "size": method.size, "used": method.used}
            facts |= {"log_likelihood": None, "mse": None} | held_out(made, split.test)
            if not _is_whole(facts) or made.reconstruction is None:
                continue
            k = min(NEAREST, (len(split.train) - 1) // 2)
            near = near_rows(split.train, made.scores, n_neighbors=k, n_anchors=ANCHORS)
            made_here.lines[method.key] = facts | {"kept": list(near.kept)}
            made_here.errors[method.key] = np.square(made.reconstruction - split.test)
            made_here.rebuilt[method.key] = np.asarray(back(made.reconstruction), np.float32)
    return made_here


def _table(lines: dict[str, Line], names: dict[str, str], rival: str) -> str:
    """Return a line a method with a bar a measure, the best in bold."""
    body = dict.fromkeys(names, "")
    for column, (_, low) in COLUMNS.items():
        values = {key: _value(lines[key], column) for key in names}
        there = [value for value in values.values() if value is not None] or [0.0]
        least = min(there) - 0.2 * (max(there) - min(there)) if column == "log_likelihood" else 0.0
        for key, value in values.items():
            text, bar = UNKNOWN, ""
            if value is not None:
                share = (value - least) / max(max(there) - least, 1e-12)
                bar = tag("div", tag("div", "", style=f"width:{share:.0%}"), "ca-track")
                text = words(_text(lines[key], column, value))
            best = value == (min(there) if low else max(there))
            body[key] += tag("td", bar + (tag("b", text) if best else text))
    heads = [f"{head}, {'less' if low else 'more'} is better" for head, low in COLUMNS.values()]
    marks = {key: "ca-chosen" if key == rival else "" for key in names}
    every = names.items()
    return table(
        ["", *map(words, heads)],
        [tag("tr", tag("th", words(name), scope="row") + body[k], marks[k]) for k, name in every],
    )


def _value(line: Line, column: str) -> float | None:
    value = line.get(column)
    return value[0] if isinstance(value, list) else value


def _text(line: Line, column: str, value: float) -> str:
    if column == "log_likelihood":  # the error with the same decimal; with more if it is small
        error = line["log_likelihood_error"]
        return f"{fixed(value, 1)} ± {fixed(error, 1) if error >= 0.1 else number(error)}"
    return percent(value) if column == "kept" else number(value)


def _examples(dataset: Dataset, made: Measured, rival: str, name: str) -> None:
    """Draw the images of which most is lost, and what both methods make of them."""
    if dataset.image_shape is None or not {"own", rival} <= set(made.errors):
        return
    lost = (made.errors["own"] - made.errors[rival]).mean(axis=1)
    few = np.argsort(-lost)[:EXAMPLES]
    rebuilt = [dataset.as_images(made.rebuilt[key][few]) for key in (rival, "own")]
    tiles = np.concatenate([dataset.images(made.rows[few]), *rebuilt])
    st.markdown("**Where most is lost**")
    picture = drawn(dataset, tiles, len(few))
    st.image(picture, width="stretch", alt=f"{len(few)} images, and what two methods make of them")
    text = f"From the top: the image, {name.replace(', ', ' with ')}, this fit. "
    st.caption(markdown(f"{text}{len(few)} of {len(made.rows):,} new rows."))
