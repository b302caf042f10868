"""The page Components, Gallery and Meaning; and a row that is steered."""

import base64
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis import components
from appca.analysis.association import (
    ALL,
    SIGNIFICANT,
    associated,
    goes_with,
    measures_of_rows,
    proposed_names,
    variance_by,
)
from appca.analysis.campaign import sample_of
from appca.analysis.components import (
    Sharing,
    Steering,
    common,
    extremes,
    fullest_pair,
    name_of,
    own_name,
    patterns,
    rarely_used,
    steering,
)
from appca.analysis.enrichment import MOST_ROWS, enrichment
from appca.analysis.subspaces import variance_shares
from appca.analysis.tables import csv_bytes
from appca.canvas.scene import picture_list
from appca.data.brain import Event, blocks, events_of, has_places
from appca.data.dataset import Dataset
from appca.data.readers.process import read_sets_apart
from appca.frames import number_column
from appca.plots.components import (
    COURSE,
    association_map,
    data_uri,
    picture_of,
    picture_shape,
    popularity_bars,
    popularity_map,
    slices_of,
)
from appca.plots.style import MISSING, NEUTRAL, class_colour
from appca.runs import store
from appca.ui import kit, rows, state
from appca.ui.arrivals import scratch
from appca.ui.downloads import component_buttons, save_button
from appca.ui.fits import Shown
from appca.ui.kit import (
    Classes,
    chart,
    first_of_page,
    loadings,
    markdown,
    one_of,
    scripted,
    tag,
    words,
)
from appca.ui.rows import is_dark, strip
from appca.ui.services import kept
from appca.words import InputError, counted, percent, shortened, signed

if TYPE_CHECKING:
    import pandas as pd

MOST_BANDS = 200  # over a course of 96 pixels


class EventBands(NamedTuple):
    """HTML, empty without events."""

    over: str = ""  # a course, which fills the same box
    key: str = ""  # which colour is which trial type


def event_bands(dataset: Dataset) -> EventBands:
    """Draw the events of a recording, joined where less than a volume is between them."""
    times, events = dataset.times, events_of(dataset)
    if times is None or not events:
        return EventBands()
    joined = blocks(events, float(times[1]))
    if len(joined) > MOST_BANDS:
        said = f"{counted(len(joined), 'event')}: too many to be drawn over the courses."
        return EventBands(key=tag("div", said, "ca-events"))
    types = sorted({event.trial_type for event in joined})
    colours = {name: class_colour(i, len(types)) for i, name in enumerate(types)}
    length = float(times[-1])
    bands = (_band(event, length, colours[event.trial_type]) for event in joined)
    names = (
        tag("span", tag("i", "", style=f"background:{colour}") + words(name or "event"))
        for name, colour in colours.items()
    )
    return EventBands("".join(bands), tag("div", "".join(names), "ca-events"))


def _band(event: Event, length: float, colour: str) -> str:
    left, right = (100 * min(end / length, 1.0) for end in (event.onset, event.end))
    return tag(
        "i",
        "",
        style=f"left:{left:.2f}%;width:{right - left:.2f}%;background:{colour}",
        title=f"{event.trial_type or 'event'}, {event.onset:.0f} to {event.end:.0f} s",
    )


PAGE = 24  # components on a page
AT_END = 6  # rows at each end
NAMED_AT_END = 3  # of a table, by their ids


def gallery_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw one card a component, with buttons for its name, its sign and its rows."""
    damage = shown.run and store.damage(shown.run)
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
    kit.acting(
        bands.key + tag("div", cards, "ca-gallery"),
        "gallery",
        {
            "rename": lambda k, text: state.rename(shown.run, _place(shown, k), text),
            "flip": lambda k, _: state.flip(shown.run, _place(shown, k)),
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
    flip = kit.button("⇄", "flip", k, f"Flip the sign of {title}", "ca-act ca-icon")
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
    return kit.name(text, "rename", k, name, f"Rename {title}")


def _pattern(dataset: Dataset, shown: Shown, k: int, bands: str) -> str:
    every = kept(f"patterns-{shown.key}", lambda: patterns(shown.fitted, picture_shape(dataset)))
    pattern = every[k]
    dark, name = is_dark(), name_of(shown.fitted, k)
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
        seen = tag("img", "", src=strip(dataset, rows), alt=f"{title}{mostly}")
    said = tag("small", words(f"{far}{mostly}"))
    return kit.button(seen + said, "select", f"{k} {end}", f"Select {title}")


def _classes(dataset: Dataset, rows: np.ndarray) -> str:
    """Say which classes most of some rows have; nothing without classes."""
    for classes in kit.every(dataset)[:1]:
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
    state.put(dataset, ends.low if end == "low" else ends.high)


class Sets(NamedTuple):
    """Names of features by the name of their set, and the id of the file they came in."""

    features: dict[str, list[str]]
    file: str


def choose(dataset: Dataset) -> Sets:
    """Draw where a file of sets is given; return them, kept while the window is open."""
    key = f"feature_sets-{dataset.digest[:12]}"
    kinds = ["nii", "gz"] if dataset.is_recording else ["gmt", "csv", "nii", "gz"]
    file = st.file_uploader(
        "Regions of an atlas, NIfTI" if dataset.is_recording else "Sets of features, GMT or CSV",
        type=kinds,
        key=f"{key}-file",
        help="GMT, a CSV file with a feature and its set in each line, or a NIfTI atlas on the "
        "grid of the data.",
    )
    if file is not None:
        try:
            read = partial(read_sets_apart, file.name, file, scratch(), dataset.provenance)
            features = kept(f"sets-{file.file_id}", read)
            st.session_state[key] = Sets(features, file.file_id)
        except InputError as error:
            st.error(markdown(str(error)))
    return stored(dataset)


def stored(dataset: Dataset) -> Sets:
    """Return the sets that were given in this window."""
    sets: Sets | None = st.session_state.get(f"feature_sets-{dataset.digest[:12]}")
    return sets or Sets({}, "")


def regions(dataset: Dataset, sets: Sets) -> dict[str, np.ndarray]:
    """Return the region of each voxel of a recording as a column of classes; else nothing."""
    if not dataset.is_recording or not sets.features:
        return {}
    of = {voxel: region for region, voxels in sets.features.items() for voxel in voxels}
    return {"region": np.array([of.get(voxel, "") for voxel in dataset.ids.tolist()])}


def set_columns(dataset: Dataset) -> dict[str, list[int]] | None:
    """Return the columns of sets that do not overlap; None without such sets."""
    place = {name: d for d, name in enumerate(dataset.column_names)}
    parts = {
        name: [place[f] for f in sorted({*of} & {*place})]
        for name, of in stored(dataset).features.items()
    }
    parts = {name: columns for name, columns in parts.items() if columns}
    columns = [column for of in parts.values() for column in of]
    return parts if parts and len(columns) == len(set(columns)) else None


def rows_of_fit(dataset: Dataset, shown: Shown, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return a model that answers like a fitted estimator on some rows, and these rows (n, D')."""
    fitted = shown.fitted
    described = SimpleNamespace(scores=fitted.scores[rows])
    model = SimpleNamespace(
        components_=fitted.components, mean_=fitted.mean, describe=lambda _X: described
    )
    return model, fitted.preprocessing.transform(dataset.with_gaps(rows))


def draw(dataset: Dataset, shown: Shown, sets: Sets) -> None:
    """Draw which sets have large weights on which component, and all tests on demand."""
    if not sets.features or dataset.is_recording:
        return
    if shown.fitted.preprocessing.reduces:
        st.caption("Sets need a fit of the features themselves, without PCA.")
        return

    def tested() -> "pd.DataFrame":
        model, X = rows_of_fit(dataset, shown, sample_of(dataset.n_rows, MOST_ROWS, 0))
        return enrichment(model, X, sets.features, dataset.column_names)

    try:
        tests = kept(f"enriched-{shown.key}-{sets.file}", tested)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    best = tests.iloc[0]
    way = "positive" if best["sign"] == "+" else "negative"
    text = f"{shortened(best['set'])} has {way} weights on "
    text += name_of(shown.fitted, best["component"] - 1)
    verdict = "" if best["q"] < SIGNIFICANT else " No set differs significantly from chance."
    st.markdown(f"**{markdown(text)}**: effect {best['effect']:.1f}, q {best['q']:.2g}.{verdict}")
    st.dataframe(tests, hide_index=True, width="stretch", key="sets_table")
    st.caption(
        f"{counted(tests['set'].nunique(), 'set')}, by component and sign. Effects are in standard "
        "deviations of random directions whose features vary together as the residuals do."
    )
    made = partial(csv_bytes, tests)
    save_button("Save CSV", made, f"sets-{shown.config.id}.csv", key="sets-csv")


MOST_TESTED_ROWS = 2_000  # that are tested, a fair sample
MOST_FEATURES = 200  # of a table, above which only its labels are tested
MOST_LINES = 30  # of the heat map
_SEED = 0


def meaning_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer in a sentence, the heat map, names to take, and all tests on demand."""
    first = st.container()
    with st.expander("Regions of an atlas" if dataset.is_recording else "Sets of features"):
        chosen = choose(dataset)
        draw(dataset, shown, chosen)
    with first:
        _meaning(dataset, shown, regions(dataset, chosen))
    st.subheader("What classes share", anchor=False)
    _sharing(dataset, shown)


def _meaning(dataset: Dataset, shown: Shown, more: dict[str, np.ndarray]) -> None:
    key = f"meaning-{shown.key}-{dataset.digest}-{stored(dataset).file if more else ''}"
    tests = kept(key, lambda: _tests(dataset, shown, more))
    telling = tests[tests["q"] < SIGNIFICANT]
    if not len(telling):
        powerless = tests.attrs["least_q"] >= SIGNIFICANT
        st.markdown(
            "**Nothing can be concluded: with so few rows no association could be significant.**"
            if powerless
            else "**No association was found.** Weak ones may exist."
        )
        st.caption(f"{counted(len(tests), 'test')}; q, corrected for all of them, is above 5%.")
        return
    st.markdown(meaning_sentence(telling, dataset, shown))
    _names(tests, shown)
    named = [name_of(shown.fitted, k) for k in range(len(shown.fitted.components))]
    st.caption(
        "Square: goes with using the component. Ring: goes with the score of the rows that use "
        "it. Red: rises with it. Blue: falls. Purple: classes differ. Pale: a small effect."
    )
    chart(association_map(_ordered(telling, dataset), named), "meaning_map")
    with st.expander(f"All {len(tests):,} tests"):
        tests = tests.drop(columns=["high", "low"])
        st.dataframe(tests, hide_index=True, width="stretch", key="meaning_table")
        sampled = min(dataset.n_rows, MOST_TESTED_ROWS)
        st.caption(
            f"Effects from 0, chance, to 1. p by permutations of {counted(sampled, 'row')}, q "
            "corrected for all tests (Benjamini and Hochberg). Measurements shape the components, "
            "so their p values only confirm that."
        )
        made = partial(csv_bytes, tests)
        save_button("Save CSV", made, f"meaning-{shown.config.id}.csv", key="meaning-csv")


def _tests(dataset: Dataset, shown: Shown, more: dict[str, np.ndarray]) -> "pd.DataFrame":
    rows = sample_of(dataset.n_rows, MOST_TESTED_ROWS, _SEED)
    X = dataset.with_gaps(rows)
    measures = measures_of_rows(X)
    table = {name: values[rows] for name, values in (dataset.labels | more).items()}
    if dataset.image_shape is None and dataset.n_features <= MOST_FEATURES:
        numbers = map(number_column, dataset.column_names, X.T)
        table = {column.name: column for column in numbers} | table
    scores, active = shown.fitted.scores[rows], shown.fitted.active[rows]
    tests = associated(scores, active, measures | table, technical=measures, random_state=_SEED)
    inside = tests["column"].isin(list(set(table) - set(dataset.labels | more)))
    tests.loc[inside, "technical"] = ""  # a sum of columns follows its largest ones
    return tests


def _ordered(tests: "pd.DataFrame", dataset: Dataset) -> "pd.DataFrame":
    """Return the tests of the first columns: labels, then technical ones, then features."""
    technical = tests["technical"] != ""
    place = np.where(technical, 1, np.where(tests["column"].isin(dataset.labels), 0, 2))
    named = tests.assign(column=tests["column"] + np.where(technical, " (technical)", ""))
    ordered = named.iloc[np.argsort(place, kind="stable")]
    lines = list(dict.fromkeys(ordered["column"]))[:MOST_LINES]
    return ordered[ordered["column"].isin(lines)]


def meaning_sentence(tests: "pd.DataFrame", dataset: Dataset, shown: Shown) -> str:
    """Say as Markdown what goes most with a component, and which measurement goes with that."""
    sound = tests[tests["technical"] == ""]
    labels = sound[sound["column"].isin(dataset.labels)]
    first = next(part.iloc[0] for part in (labels, sound, tests) if len(part))
    text = f"**{_said(first, shown)}**"
    same = (sound["component"] == first["component"]) & (sound["part"] == first["part"])
    others = sound[same & ~sound["column"].isin([*dataset.labels, first["column"]])]
    if len(others) and first["column"] in dataset.labels:
        other = others.iloc[0]
        text += f" Of the measurements, {markdown(shortened(other['column']))} goes most with it, "
        text += f"too: it {other['direction']}."
    if first["technical"]:
        text += f" It {first['technical']}, so it may stem from the measurement."
    return text


def _said(test: "pd.Series[Any]", shown: Shown) -> str:
    component = name_of(shown.fitted, test["component"] - 1)
    what = "the score on" if test["part"] == "score" else "the use of"
    ends = {"high": test["high"], "low": test["low"]}
    way = ", ".join(f"{end} for {', '.join(names)}" for end, names in ends.items() if names)
    way = way or f"it {test['direction']} with it"
    column = shortened(test["column"])
    return markdown(f"{column[:1].upper() + column[1:]} goes most with {what} {component}: {way}.")


def _names(tests: "pd.DataFrame", shown: Shown) -> None:
    """Offer a name for each component without its own, taken with one click."""
    proposed = {k: name for k, name in proposed_names(tests).items() if shown.run is not None}
    free = {k: name for k, name in proposed.items() if not own_name(shown.fitted, k - 1)}
    if not free:
        return
    st.caption("Click a name to give it to its component")
    buttons = "".join(
        kit.button(
            tag("b", str(k)) + " " + words(shortened(name)),
            "name",
            k,
            f"Name component {k} “{name}”",
            "ca-act ca-offer",
        )
        for k, name in sorted(free.items())
    )

    def take(k: str, _: str) -> None:
        if k.isdecimal() and int(k) in free:
            state.rename(shown.run, int(k) - 1, free[int(k)])

    kit.acting(tag("div", buttons, "ca-offers"), "meaning-names", {"name": take})


MOST_SHARING_ROWS = 20_000  # whose variance is split, a fair sample
NEAR = 2 / 3  # L of K from which two rows share most of their components whatever the data
ALIKE = 0.1  # numbers that differ by less than so much of the largest say little
LEAST_USED = 0.1  # of the rows of both classes, from which on they are said to share a component


def _sharing(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer in a sentence and the share of each class that uses each component."""
    fitted = shown.fitted
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classes = kit.choose(dataset, "sharing")
        choices = {"rows": "Rows that use it", "variance": "Variance it explains"}
        what = one_of("Share of", choices, "sharing_of")
        some = what == "variance" and bool(state.get(dataset).any())
        inside = some and one_of("Rows", {False: "All", True: "Selected"}, "sharing_rows")
    if what == "variance":
        _variance(dataset, shown, classes, state.get(dataset) if inside else None)
        return
    active = fitted.active
    named = [name_of(fitted, k) for k in range(active.shape[1])]
    if classes is None:
        used = components.popularity(active)
        most = int(used.argmax())
        st.markdown(
            f"**{markdown(named[most].capitalize())} is used most: by {percent(used[most])} of "
            "rows.** With a column of classes this shows what they share."
        )
        chart(popularity_bars(used, named), "sharing_bars")
        return
    shares = components.popularity_by_class(active, classes.codes, len(classes.names))
    shared = components.sharing(active, classes.codes, len(classes.names))
    st.markdown(sharing_sentence(shown, shared, shares, named, classes))
    chart(popularity_map(shares, classes.names, named), "sharing_map")
    st.caption("Colour: the share of each class that uses the component.")


def _variance(
    dataset: Dataset, shown: Shown, classes: Classes | None, mask: np.ndarray | None
) -> None:
    """Draw the share of variance by component, class and set of features; each line is 100%."""
    fitted = shown.fitted
    every = np.arange(dataset.n_rows) if mask is None else np.flatnonzero(mask)
    rows = every[sample_of(len(every), MOST_SHARING_ROWS, 0)]
    blocks = None if fitted.preprocessing.reduces else set_columns(dataset)
    names = np.array([*(classes.names if classes else ()), "all rows"])
    codes = classes.codes[rows] if classes else np.full(len(rows), -1)
    classed = codes >= 0 if classes else codes < 0

    def split() -> "pd.DataFrame":
        model, X = rows_of_fit(dataset, shown, rows[classed])
        return variance_by(model, X, classes=names[codes[classed]], blocks=blocks)

    key = f"variance-{shown.key}-{classes and classes.title}-{state.token(dataset)}"
    parts = kept(f"{key}-{mask is None}-{stored(dataset).file}", split)
    if not len(parts):
        st.caption("None of the selected rows has a class.")
        return
    shares = parts.pivot_table(index=["class", "block"], columns="component", values="share")
    lines = [name if block == ALL else f"{name}, {block}" for name, block in shares.index]
    values = shares.to_numpy()
    named = [name_of(fitted, k) for k in range(values.shape[1] - 1)]
    line, most = np.unravel_index(values[:, 1:].argmax(), values[:, 1:].shape)
    text = f"{named[most].capitalize()} explains {percent(values[line, 1 + most])} of the variance"
    st.markdown(f"**{markdown(f'{text} of {shortened(lines[line])}, the largest share.')}**")
    of = ("explains", "variance", "none")
    chart(popularity_map(np.roll(values, -1, 1), lines, [*named, "no component"], of), "variance")
    st.caption(
        f"{counted(len(rows), 'row')}. Each line adds up to 100%; the last column is what no "
        "component explains. Variance is the squared distance from the model's mean. A share is "
        "below 0 where a component moves rows away from the data."
    )


def sharing_sentence(
    shown: Shown, shares_of_pairs: Sharing, shares: np.ndarray, named: list[str], classes: Classes
) -> str:
    """Say as Markdown which classes share most, and what of; or why nothing can be made of it."""
    caution = _caution(shown, shares_of_pairs)
    pairs = components.closest_pairs(shares_of_pairs)
    if caution or not pairs:
        return caution or "There is one class with rows, so nothing to compare."
    first = pairs[0]
    name, other = (markdown(shortened(classes.names[c])) for c in (first.first, first.second))
    both = np.minimum(shares[first.first], shares[first.second])
    common = [k for k in np.argsort(-both, kind="stable")[:2] if both[k] >= LEAST_USED]
    of = " and ".join(markdown(shortened(named[k])) for k in common)
    more = first.shared / shares_of_pairs.overall - 1 if shares_of_pairs.overall else 0.0
    than = f", {percent(more)} more than two rows do on average" if more >= 0.005 else ""
    return f"**{name} and {other} share most: {first.shared:.2f} components a row{than}.**" + (
        f" Both use {of}." if of else ""
    )


def _caution(shown: Shown, shares: Sharing) -> str:
    """Return what keeps the comparison from saying anything; empty where nothing does."""
    k, active = len(shown.fitted.components), shown.config.n_active
    if active is not None and active >= k:
        return (
            "Every row uses all components, so all classes share all of them. Choose a smaller L."
        )
    if active is not None and active >= NEAR * k:
        least = counted(components.least_shared(k, active), "component")
        return f"Any two rows share at least {least}, whatever the data. A smaller L tells more."
    largest = float(np.nanmax(shares.shared, initial=0.0))
    if largest - float(np.nanmin(shares.shared, initial=largest)) < ALIKE * largest:
        return "All classes share about equally much: what a row uses says little about its class."
    return ""


MOST_COLUMNS = 16  # of a table, as bars
MOST_DOTS = 2500  # rows in the panel, a fair sample
_steer = scripted("steer", "<div class='ca-steer'></div>")


def steer(dataset: Dataset, shown: Shown, row: int) -> None:
    """Draw a row with the scores that a hand moves."""
    st.caption("Drag the point or a slider and watch the row change.")
    fixed = kept(f"steer-{shown.key}-{rows.is_dark()}", lambda: _fixed(dataset, shown))
    _steer(key="steer", data=fixed | _start(dataset, shown, row))


def _fixed(dataset: Dataset, shown: Shown) -> dict[str, Any]:
    """Return what the browser needs of a fit, whatever row is started from."""
    fitted = shown.fitted
    steered = steering(fitted, None if dataset.image_shape else MOST_COLUMNS)
    drawn = picture_list(fitted, dataset, dark=rows.is_dark()) if dataset.image_shape else []
    parts = [
        {
            "number": k + 1,
            "name": own_name(fitted, k),
            "picture": data_uri(drawn[k]) if drawn else None,
            "reach": float(steered.reach[k]),
        }
        for k in range(len(fitted.components))
    ]
    return {
        "parts": parts,
        "average": _packed(steered.average),
        "patterns": _packed(steered.patterns),
        "image": _image(dataset),
        "columns": [] if dataset.image_shape else _columns(dataset, steered),
        "pair": list(map(int, fullest_pair(fitted.active)))[::-1],  # across and up as in Explore
        "cloud": _cloud(dataset, shown),
    }


def _start(dataset: Dataset, shown: Shown, row: int) -> dict[str, Any]:
    fitted = shown.fitted
    start = np.where(fitted.active[row], fitted.scores[row], 0.0).tolist()
    image = rows.strip(dataset, np.array([row])) if dataset.image_shape else None
    name = str(dataset.ids[row])
    said = {"id": f"{shown.key} {row}", "start": start, "from": name, "given": image}
    used = np.flatnonzero(fitted.active[row]).tolist()
    return said | ({"pair": used[1::-1]} if len(used) > 1 else {})


def _image(dataset: Dataset) -> dict[str, Any] | None:
    """Return how values become grey levels, as `Dataset.as_images` makes them."""
    if dataset.image_shape is None:
        return None
    height, width, *channels = dataset.image_shape
    low, high = dataset.image_range
    return {
        "width": width,
        "height": height,
        "channels": channels[0] if channels else 1,
        "low": low,
        "factor": 255.0 / ((high - low) or 1.0),
        "ink": rows.is_ink(dataset),
    }


def _columns(dataset: Dataset, steered: Steering) -> list[dict[str, Any]]:
    names, X = dataset.column_names, dataset.X[:, steered.columns].astype(np.float64)
    reached = np.abs(steered.patterns * steered.reach[:, None]).max(axis=0)
    low = np.minimum(X.min(axis=0), steered.average - reached)
    high = np.maximum(X.max(axis=0), steered.average + reached)
    return [
        {"name": names[j], "low": float(low[i]), "high": float(high[i])}
        for i, j in enumerate(steered.columns.tolist())
    ]


def _cloud(dataset: Dataset, shown: Shown) -> dict[str, Any]:
    """Return the scores of a fair sample of rows, zero where a component is not used."""
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_DOTS]
    scores = np.where(shown.fitted.active[rows], shown.fitted.scores[rows], 0.0)
    classes = dataset.class_column
    codes = np.zeros(len(rows), np.uint8)
    colours = [NEUTRAL]
    if classes is not None and (count := len(classes[0])) < 255:
        codes = np.where(classes[1][rows] < 0, count, classes[1][rows]).astype(np.uint8)
        colours = [*(class_colour(code, count) for code in range(count)), MISSING]
    packed = base64.b64encode(codes.tobytes()).decode()
    return {"scores": _packed(scores), "codes": packed, "colours": colours, "count": len(rows)}


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()
