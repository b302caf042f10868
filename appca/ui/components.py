"""The page Components with Gallery and Meaning, and a row with adjustable scores."""

import base64
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis import association, campaign, components, tables
from appca.analysis.association import ALL, SIGNIFICANT, associated, goes_with, measures_of_rows
from appca.analysis.choose import RECOVERED
from appca.analysis.components import common, extremes, name_of, own_name
from appca.analysis.enrichment import MOST_ROWS, enrichment
from appca.canvas.scene import picture_list
from appca.canvas.sheets import is_ink
from appca.data.brain import blocks, events_of, has_places
from appca.data.dataset import Dataset
from appca.data.readers.process import read_sets_apart
from appca.frames import number_column
from appca.plots import components as plots
from appca.plots.components import COURSE, association_map, data_uri, picture_of, popularity_map
from appca.plots.style import MISSING, NEUTRAL, class_colour
from appca.runs import store
from appca.ui import arrivals, controls, diagnostics, kit, state
from appca.ui.downloads import component_buttons, save_button
from appca.ui.fits import Shown
from appca.ui.kit import Classes, chart, first_of_page, loadings, markdown, one_of, tag, words
from appca.ui.rows import curve, is_dark, strip
from appca.ui.services import kept
from appca.words import InputError, capital, counted, listed, percent, refuse_if, shortened, signed

if TYPE_CHECKING:
    import pandas as pd

MOST_BANDS = 200


def _event_bands(dataset: Dataset) -> tuple[str, str]:
    events = events_of(dataset)
    if dataset.axis is None or not events:
        return "", ""
    times = dataset.axis[0]
    joined = blocks(events, float(times[1]))  # merges events less than one volume apart
    if len(joined) > MOST_BANDS:
        said = f"{counted(len(joined), 'event')}: too many to draw over the time courses."
        return "", tag("div", said, "ca-events")
    types = sorted({event.trial_type for event in joined})
    colours = {name: class_colour(i, len(types)) for i, name in enumerate(types)}
    bands = names = ""
    for event in joined:
        left, right = (100 * min(end / float(times[-1]), 1.0) for end in (event.onset, event.end))
        style = f"left:{left:.2f}%;width:{right - left:.2f}%;background:{colours[event.trial_type]}"
        when = f"{event.trial_type or 'event'}, {event.onset:.0f} to {event.end:.0f} s"
        bands += tag("i", "", style=style, title=when)
    for name, colour in colours.items():
        names += tag("span", tag("i", "", style=f"background:{colour}") + words(name or "event"))
    return bands, tag("div", names, "ca-events")


PAGE = 24
AT_END, NAMED_AT_END, JUDGED = 6, 3, 20  # rows at each end of the scores: images, names, classes
NAMING = 4  # features with the largest weights of a component, which may name it


def gallery_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw a card for each component."""
    damage = shown.run and store.damage(shown.run)
    if damage:
        st.warning(markdown(damage))
    if rare := components.rarely_used(shown.fitted):
        numbers = f"component{'s' * (len(rare) > 1)} {', '.join(map(str, rare))}"
        st.warning(f"Under 1% of rows use {numbers}. Lower K, or try another start.")
    shares, whole = kit.shares(dataset, shown)
    total = len(shares)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        said = f"{counted(total, 'component')} explain{'s' * (total == 1)} {percent(whole, 1)}"
        how = "Click a name to change it, or an end to select its rows."
        st.markdown(f"**{said} of the variance.** {how}", width="content")
        with st.popover("Save", icon=":material/download:", key="save-components"):
            component_buttons(dataset, shown)
    first = first_of_page(total, PAGE, f"components-{shown.config.id}")
    bands, legend = _event_bands(dataset)
    places = range(first, min(first + PAGE, total))
    cards = "".join(_card(dataset, shown, k, float(shares[k]), bands) for k in places)
    kit.acting(legend + tag("div", cards, "ca-gallery"), "gallery", _acts(dataset, shown))


def listing(dataset: Dataset, shown: Shown) -> None:
    """Draw the components as narrow cards without rows."""
    shares, whole = kit.shares(dataset, shown)
    total = len(shares)
    st.caption(f"{counted(total, 'component')}, {percent(whole, 1)} of the variance")
    first, cards = first_of_page(total, PAGE, f"drawer-components-{shown.config.id}"), ""
    halves, ours = diagnostics.halves_here(dataset, shown)
    cosines = np.median(halves.cosines, axis=0).tolist() if halves and ours else [1.0] * total
    for k in range(first, min(first + PAGE, total)):
        picture, weights = _look(dataset, shown, k)
        top = _top(shown, k, float(shares[k]))
        top += tag("div", "Halves of the rows differ in it", "ca-doubt") * (cosines[k] < RECOVERED)
        body = tag("div", picture, "ca-look") * bool(picture) + tag("div", top + weights)
        columns = "50px minmax(0, 1fr)" if picture else "minmax(0, 1fr)"
        style = f"grid-template-columns:{columns};padding:12px"
        cards += tag("section", body, "ca-piece", style=style)
    kit.acting(tag("div", cards, "ca-gallery"), "drawer_components", _acts(dataset, shown))


def _acts(dataset: Dataset, shown: Shown) -> dict[str, kit.Act]:
    return {
        "rename": lambda k, text: state.rename(shown.run, _place(shown, k), text),
        "flip": lambda k, _: state.flip(shown.run, _place(shown, k)),
        "select": lambda which, _: _select(dataset, shown, which),
        "users": lambda k, _: _put(dataset, shown.fitted.active[:, _place(shown, k)]),
    }


def _place(shown: Shown, text: str) -> int:
    k, K = int(text), len(shown.fitted.components)
    refuse_if(not 0 <= k < K, f"There are {K} components; got number {k}.")
    return k


def _select(dataset: Dataset, shown: Shown, which: str) -> None:
    k, _, end = which.partition(" ")
    low, high = _ends(dataset, shown, _place(shown, k))
    _put(dataset, low if end == "low" else high)


def _ends(dataset: Dataset, shown: Shown, k: int) -> tuple[np.ndarray, np.ndarray]:
    n = AT_END if dataset.image_shape else NAMED_AT_END
    return extremes(shown.fitted, k, n, dataset.missing)


def _put(dataset: Dataset, rows: np.ndarray) -> None:
    state.put(dataset, rows)
    state.notify("info", f"{counted(int(state.get(dataset).sum()), 'row')} selected.")


def _look(dataset: Dataset, shown: Shown, k: int) -> tuple[str, str]:
    made = partial(components.patterns, shown.fitted, plots.picture_shape(dataset))
    every = kept(f"patterns-{shown.key}", made)
    if dataset.is_ordered:
        return curve(dataset, {capital(name_of(shown.fitted, k)): every[k]}), ""
    picture = picture_of(every[k], dataset, dark=is_dark())
    if picture is None:
        return "", loadings(every[k], dataset.feature_names)
    return tag("img", "", src=data_uri(picture), alt=f"Component {k + 1}"), ""


def _top(shown: Shown, k: int, share: float, meant: str | None = None) -> str:
    title, named = name_of(shown.fitted, k), own_name(shown.fitted, k)
    text = named or f"Component {k + 1}"
    name, flip = tag("b", words(text)), ""
    if shown.run is not None:
        name = kit.name(text, "rename", k, named, f"Rename {title}")
        flip = kit.button("⇄", "flip", k, f"Flip the sign of {title}", "ca-act ca-icon")
    told = tag("div", (tag("span", str(k + 1), "ca-number") if named else "") + name, "ca-title")
    used = f"used by {percent(shown.fitted.active[:, k].mean())} of rows"
    users = tag("div", kit.button(used, "users", k, f"Select the rows that use {title}"))
    numbers, right = tag("b", percent(share, 1)) + " of variance" + users, ""
    if meant is None:
        told += tag("div", numbers, "ca-quiet")
    else:
        told += tag("div", words(meant), "ca-quiet")
        right = tag("div", numbers, "ca-quiet ca-right")
    return tag("div", tag("div", told, "ca-told") + right + flip, "ca-top")


def _card(dataset: Dataset, shown: Shown, k: int, share: float, bands: str) -> str:
    fitted, dark = shown.fitted, is_dark()
    meant = kept(f"meant-{shown.key}", lambda: goes_with(dataset, fitted))[k]
    look = "".join(_look(dataset, shown, k))
    if has_places(dataset):
        made = partial(plots.slices_of, dataset, fitted.scores, COURSE, dark=dark)
        slices = kept(f"slices-{shown.key}-{dark}", made)
        alt = f"The slice with most of {name_of(fitted, k)}"
        where = tag("img", "", src=data_uri(slices[k]), alt=alt)
        look = tag("div", bands + look, "ca-course") + where
    low, high = _ends(dataset, shown, k)
    tails = tag("div", "No row uses this component.", "ca-quiet")
    if len(high):
        ends = _end(dataset, shown, k, low, "low") + tag("span", "…", "ca-quiet")
        tails = tag("div", ends + _end(dataset, shown, k, high[::-1], "high"), "ca-tails")
    rest = tag("div", _top(shown, k, share, meant) + tails, "ca-rest")
    return tag("section", tag("div", look, "ca-look") + rest, "ca-piece")


def _end(dataset: Dataset, shown: Shown, k: int, rows: np.ndarray, end: str) -> str:
    if not len(rows):
        return tag("span", "")
    is_low, mostly = end == "low", ""
    for classes in controls.classes(dataset):
        codes = classes.codes[extremes(shown.fitted, k, JUDGED, dataset.missing)[not is_low]]
        most = [a for a, part in common(list(classes.names), codes[codes >= 0], 2) if part >= 0.5]
        named = ", ".join(shortened(name, 16) for name in most)
        mostly = f" · of {len(codes)} mostly {named}" * bool(most)
    title = f"the {len(rows)} rows with the most {'negative' if is_low else 'positive'} scores"
    if dataset.image_shape is None:
        seen = ", ".join(tag("span", words(shortened(name, 14))) for name in dataset.ids[rows])
    else:
        seen = tag("img", "", src=strip(dataset, rows), alt=f"{title}{mostly}")
    far = signed(float(shown.fitted.scores[rows[0 if is_low else -1], k]))
    said = tag("small", words(f"{far}{mostly}"))
    return kit.button(seen + said, "select", f"{k} {end}", f"Select {title}")


class Sets(NamedTuple):
    """Sets of features by name, and the id of their file."""

    features: dict[str, list[str]]
    file: str


def regions(dataset: Dataset, sets: Sets) -> dict[str, np.ndarray]:
    """Return the region of each voxel of a recording as a column of classes."""
    if not dataset.is_recording or not sets.features:
        return {}
    of = {voxel: region for region, voxels in sets.features.items() for voxel in voxels}
    return {"region": np.array([of.get(voxel, "") for voxel in dataset.ids.tolist()])}


def _rows_of_fit(dataset: Dataset, shown: Shown, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return an object with a fitted estimator's interface, and some of its rows (n, D')."""
    fitted = shown.fitted
    model = SimpleNamespace(components_=fitted.components, mean_=fitted.mean)
    model.describe = lambda _X: SimpleNamespace(scores=fitted.scores[rows])
    return model, fitted.preprocessing.transform(dataset.with_gaps(rows))


def _sets(dataset: Dataset, shown: Shown) -> Sets:
    key = f"feature_sets-{dataset.digest[:12]}"
    what, kinds = "Sets of features, GMT or CSV", ["gmt", "csv", "nii", "gz"]
    if dataset.is_recording:
        what, kinds = "Regions of an atlas, NIfTI", kinds[2:]
    about = "GMT, a CSV file with a feature and its set in each line, or a NIfTI atlas on the grid."
    file = st.file_uploader(what, type=kinds, key=f"{key}-file", help=about)
    if file is not None:
        try:
            read = partial(read_sets_apart, file.name, file, arrivals.scratch(), dataset.provenance)
            st.session_state[key] = Sets(kept(f"sets-{file.file_id}", read), file.file_id)
        except InputError as error:
            st.error(markdown(str(error)))
    sets: Sets = st.session_state.get(key) or Sets({}, "")
    if not sets.features or dataset.is_recording:
        return sets
    if shown.fitted.preprocessing.reduces:
        st.caption("Sets need a fit of the features themselves, without PCA.")
        return sets

    def tested() -> "pd.DataFrame":
        model, X = _rows_of_fit(dataset, shown, campaign.sample_of(dataset.n_rows, MOST_ROWS, 0))
        return enrichment(model, X, sets.features, dataset.column_names)

    if (tests := kit.tried(f"enriched-{shown.key}-{sets.file}", tested, st.error)) is None:
        return sets
    if out := tests.attrs["left_out"]:
        st.warning(f"Not tested, with too few or all features: {markdown(listed(out))}.")
    best = tests.iloc[0]
    way = "positive" if best["sign"] == "+" else "negative"
    text = f"{shortened(best['set'])} has {way} weights on "
    text += name_of(shown.fitted, best["component"] - 1)
    verdict = "" if best["q"] < SIGNIFICANT else " No set differs significantly from chance."
    text = f"**{markdown(text)}**: effect {best['effect']:.1f}, q {best['q']:.2g}, "
    st.markdown(f"{text}{best['n']} of {best['listed']} features found.{verdict}")
    st.dataframe(tests, hide_index=True, width="stretch", key="sets_table")
    st.caption(
        f"{counted(tests['set'].nunique(), 'set')}, by component and sign. Effects are in standard "
        "deviations of random directions whose features vary together as the residuals do."
    )
    content = partial(tables.csv_bytes, tests)
    save_button("Save CSV", content, f"sets-{shown.config.id}.csv", key="sets-csv")
    return sets


MOST_TESTED_ROWS = 2_000
MOST_FEATURES = 200  # maximum number of table columns to test; for wider tables, only labels
MEANING = "meaning"  # among the findings of this window, for the report
ADJUSTED = "Rows are compared within classes; ranks are first regressed on the ranks of numbers."


def meaning_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw the associations of components with columns and classes."""
    first = st.container()
    with st.expander("Regions of an atlas" if dataset.is_recording else "Sets of features"):
        sets = _sets(dataset, shown)
    with first:
        _meaning(dataset, shown, sets)
    st.subheader("Components that classes share", anchor=False)
    _sharing(dataset, shown, sets)


def _meaning(dataset: Dataset, shown: Shown, sets: Sets) -> None:
    more = regions(dataset, sets)
    is_narrow = dataset.image_shape is None and dataset.n_features <= MOST_FEATURES
    tested = dataset.column_names if is_narrow else ()
    names = list(dict.fromkeys([*dataset.labels, *tested]))
    look: Any = {"placeholder": "nothing", "persist_state": "session", "width": 420}
    look |= {"help": ADJUSTED, "key": f"adjusted-{dataset.digest}"}
    adjusted = st.multiselect("Adjusted for", names, **look) if names else []
    key = f"meaning-{shown.key}-{dataset.digest}-{sets.file if more else ''}-{adjusted}"
    tests = kit.tried(key, lambda: _tests(dataset, shown, more, adjusted, tested))
    if tests is None:
        return
    st.session_state.setdefault(state.KEYS.findings, {})[shown.key, MEANING] = tests
    telling = tests[tests["q"] < SIGNIFICANT]
    if not len(telling):
        text = "**No association was found.** Weak associations may exist."
        if tests.attrs["least_q"] >= SIGNIFICANT:
            text = "**Nothing can be concluded: so few rows allow no significant association.**"
        st.markdown(text)
        st.caption(f"{counted(len(tests), 'test')}; q, the corrected p, is above 5% in all.")
        return
    text = _meaning_sentence(telling, dataset, shown)
    st.markdown(text + f" Adjusted for {markdown(listed(adjusted))}." * bool(adjusted))
    _names(tests, dataset, shown)
    st.caption(
        "Square: association with the use of the component. Ring: with the score of rows that use "
        "it. Red: both rise. Blue: one falls. Purple: classes differ. Pale: a small effect"
        + kit.related(dataset)
    )
    lines = association.ordered(telling, dataset.labels)
    chart(association_map(lines, _named(shown)), "meaning_map")
    with st.expander(f"All {len(tests):,} tests"):
        tests = tests.drop(columns=["high", "low"])
        st.dataframe(tests, hide_index=True, width="stretch", key="meaning_table")
        sampled = min(dataset.n_rows, MOST_TESTED_ROWS)
        st.caption(
            f"{sampled:,} of {dataset.n_rows:,} rows are tested; for scores, those that use the "
            "component. n is the number of values. Effects: 0 (chance) to 1. p: 999 to 9,999 "
            "permutations; smaller p, from 10⁻⁷, are extrapolated by a Pareto tail. q: corrected "
            "(Benjamini and Hochberg), labels apart from features, which shape the fit."
        )
        content = partial(tables.csv_bytes, tests)
        save_button("Save CSV", content, f"meaning-{shown.config.id}.csv", key="meaning-csv")


def _named(shown: Shown) -> list[str]:
    return [name_of(shown.fitted, k) for k in range(len(shown.fitted.components))]


def _tests(
    dataset: Dataset, shown: Shown, more: dict[str, np.ndarray], adjusted: list[str], tested: Any
) -> "pd.DataFrame":
    import pandas as pd

    rows = campaign.sample_of(dataset.n_rows, MOST_TESTED_ROWS, 0)
    X, classes = dataset.with_gaps(rows), dataset.labels | more
    measures, table = measures_of_rows(X), {name: values[rows] for name, values in classes.items()}
    before = shown.fitted.preprocessing.prepare
    seen = X if before is None else before.apply(X)  # as the fit sees them
    features = {name: number_column(name, x) for name, x in zip(tested, seen.T, strict=False)}
    features = {name: column for name, column in features.items() if name not in table}
    # each family is corrected for its own tests
    families: list[dict[str, Any]] = [measures | table, *filter(None, [features])]
    covariates = {name: (table | features)[name] for name in adjusted}
    of, how = (shown.fitted.scores[rows], shown.fitted.active[rows]), (adjusted, measures)
    parts = [associated(*of, part | covariates, *how, random_state=0) for part in families]
    parts[1:] = [part.assign(technical="") for part in parts[1:]]  # a sum resembles its parts
    tests = pd.concat(parts).sort_values(["q", "effect"], ascending=[True, False], kind="stable")
    tests = tests.assign(**{"adjusted_for": ", ".join(adjusted)} if adjusted else {})
    tests.attrs["least_q"] = min(part.attrs["least_q"] for part in parts)
    return tests


def _meaning_sentence(tests: "pd.DataFrame", dataset: Dataset, shown: Shown) -> str:
    tests = tests.iloc[np.lexsort((-tests["effect"], tests["q"] >= SIGNIFICANT))]
    sound = tests[tests["technical"] == ""]
    labels = sound[sound["column"].isin(dataset.labels) & (sound["effect"] >= association.LEAST)]
    first = next(part.iloc[0] for part in (labels, sound, tests) if len(part))
    component, column = name_of(shown.fitted, first["component"] - 1), shortened(first["column"])
    what = "the score on" if first["part"] == "score" else "the use of"
    way = "; ".join(end.replace(": ", " for ", 1) for end in first["direction"].split("; "))
    way = way if first["kind"] == "class" else f"it {way} with it"
    text = f"**{markdown(f'“{column}” goes most with {what} {component}: {way}.')}**"
    same = (sound["component"] == first["component"]) & (sound["part"] == first["part"])
    others = sound[same & ~sound["column"].isin([*dataset.labels, first["column"]])]
    if len(others) and first["column"] in dataset.labels:
        other = others.iloc[0]
        text += f" Of the measurements, {markdown(shortened(other['column']))} goes most with "
        text += f"this component, and {other['direction']} with it."
    if first["technical"]:
        text += f" {capital(first['technical'])}, so it may stem from the measurement."
    is_sorted = tests["technical"] == association.SORTED
    for name in tests["column"][is_sorted & (tests["effect"] > first["effect"])][:1]:
        text += f" “{markdown(shortened(name))}” has a larger effect, but {association.SORTED}."
    return text


def _names(tests: "pd.DataFrame", dataset: Dataset, shown: Shown) -> None:
    names, every = dataset.column_names, components.patterns(shown.fitted, None)
    heavy = {(k + 1, names[j]) for k, w in enumerate(every) for j in np.argsort(-abs(w))[:NAMING]}
    told = zip(tests["component"], tests["column"], strict=True)
    tests = tests[[x in heavy or x[1] not in (*names, dataset.related) for x in told]]
    rows = campaign.sample_of(dataset.n_rows, MOST_TESTED_ROWS, 0)
    of = tests, np.array(dataset.column_names)[(dataset.X[rows] == 0).mean(axis=0) > 0.5]
    proposed = {} if shown.run is None else association.proposed_names(*of)
    free = {k: name for k, name in proposed.items() if not own_name(shown.fitted, k - 1)}
    if not free:
        return
    st.caption("Click a name to use it for its component")
    buttons = ""
    for k, name in sorted(free.items()):
        offer = tag("b", str(k)) + " " + words(shortened(name))
        buttons += kit.button(offer, "name", k, f"Name component {k} “{name}”", "ca-act ca-offer")

    def take(k: str, _: str) -> None:
        if k.isdecimal() and int(k) in free:
            state.rename(shown.run, int(k) - 1, free[int(k)])

    kit.acting(tag("div", buttons, "ca-offers"), "meaning-names", {"name": take})


MOST_SHARING_ROWS = 20_000


def _sharing(dataset: Dataset, shown: Shown, sets: Sets) -> None:
    active, named = shown.fitted.active, _named(shown)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classes = kit.choose(dataset, "sharing")
        choices = {"rows": "Rows that use it", "variance": "Variance it explains"}
        what = one_of("Share of", choices, "sharing_of")
    if what == "variance":
        _variance(dataset, shown, classes, sets)
        return
    if classes is None:
        st.caption("A column of classes shows which components they share.")
        return
    between = components.sharing(active, classes.codes, len(classes.names))
    chart(popularity_map(between.uses, classes.names, named), "sharing_map")
    st.caption("Colour: the share of each class that uses the component.")


def _variance(dataset: Dataset, shown: Shown, classes: Classes | None, sets: Sets) -> None:
    rows, blocks = campaign.sample_of(dataset.n_rows, MOST_SHARING_ROWS, 0), None
    at = {name: d for d, name in enumerate(dataset.column_names)}
    parts = {name: [at[f] for f in sorted({*of} & {*at})] for name, of in sets.features.items()}
    columns = [column for of in parts.values() for column in of]
    if columns and len(columns) == len(set(columns)) and not shown.fitted.preprocessing.reduces:
        blocks = {name: of for name, of in parts.items() if of}  # sets without overlaps
    names = np.array([*(classes.names if classes else ()), "all rows"])
    codes = classes.codes[rows] if classes else np.full(len(rows), -1)
    classed = codes >= 0 if classes else codes < 0

    def split() -> "pd.DataFrame":
        model, X = _rows_of_fit(dataset, shown, rows[classed])
        return association.variance_by(model, X, classes=names[codes[classed]], blocks=blocks)

    table = kept(f"variance-{shown.key}-{classes and classes.title}-{sets.file}", split)
    if not len(table):
        st.caption("No row has a class.")
        return
    shares = table.pivot_table(index=["class", "block"], columns="component", values="share")
    lines = [name if block == ALL else f"{name}, {block}" for name, block in shares.index]
    values, named = shares.to_numpy(), _named(shown)
    line, most = np.unravel_index(values[:, 1:].argmax(), values[:, 1:].shape)
    text = f"{named[most].capitalize()} explains {percent(values[line, 1 + most])} of the variance"
    st.markdown(f"**{markdown(f'{text} of {shortened(lines[line])}, the largest share.')}**")
    of = ("explains", "variance", "none")
    chart(popularity_map(np.roll(values, -1, 1), lines, [*named, "no component"], of), "variance")
    st.caption(
        f"{counted(len(rows), 'row')}. Each line adds up to 100%. A share is below 0 where a "
        "component moves rows away from the data."
    )


MOST_COLUMNS, MOST_DOTS = 16, 2500
_steer = kit.scripted("steer", "<div class='ca-steer'></div>")


def steer(dataset: Dataset, shown: Shown, row: int) -> None:
    """Draw a row with adjustable scores."""
    st.caption("Drag the point or a slider and watch the row change.")
    data = kept(f"steer-{shown.key}-{is_dark()}", lambda: _fixed(dataset, shown))
    active, scores = shown.fitted.active[row], shown.fitted.scores[row]
    used = np.flatnonzero(active).tolist()
    data = data | {"id": f"{shown.key} {row}", "from": str(dataset.ids[row])}
    data["start"] = np.where(active, scores, 0.0).tolist()
    data["given"] = strip(dataset, np.array([row])) if dataset.image_shape else None
    _steer(key="steer", data=data | ({"pair": used[1::-1]} if len(used) > 1 else {}))


def _fixed(dataset: Dataset, shown: Shown) -> dict[str, Any]:
    fitted, shape = shown.fitted, dataset.image_shape
    steered = components.steering(fitted, None if shape else MOST_COLUMNS)
    image, columns, drawn = None, [], list[np.ndarray]()
    if shape is not None:
        drawn = picture_list(fitted, dataset, dark=is_dark())
        low, high = dataset.image_range
        size = {"width": shape[1], "height": shape[0], "channels": shape[2] if shape[2:] else 1}
        image = size | {"low": low, "factor": 255 / ((high - low) or 1), "ink": is_ink(dataset)}
    else:
        X, prepare = dataset.X, fitted.preprocessing.prepare
        X = X if prepare is None else prepare.apply(X.astype(np.float64))
        X = X[:, steered.columns].astype(np.float64)
        reached = np.abs(steered.patterns * steered.reach[:, None]).max(axis=0)
        lows = np.minimum(X.min(axis=0), steered.average - reached).tolist()
        highs = np.maximum(X.max(axis=0), steered.average + reached).tolist()
        names = [dataset.column_names[j] for j in steered.columns.tolist()]
        ends = zip(names, lows, highs, strict=True)
        columns = [{"name": name, "low": low, "high": high} for name, low, high in ends]
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_DOTS]
    pairs, K = components.pair_counts(fitted.active), len(fitted.components)
    classes, codes, colours = dataset.class_column, np.zeros(len(rows), np.uint8), [NEUTRAL]
    if classes is not None and (count := len(classes[0])) < 255:
        codes = np.where(classes[1][rows] < 0, count, classes[1][rows]).astype(np.uint8)
        colours = [*(class_colour(code, count) for code in range(count)), MISSING]
    pictures: list[str | None] = [*map(data_uri, drawn)] or [None] * K
    parts = [
        {"number": k + 1, "name": own_name(fitted, k), "picture": pictures[k], "reach": reach}
        for k, reach in enumerate(steered.reach.tolist())
    ]
    scores = np.where(fitted.active[rows], fitted.scores[rows], 0.0)
    cloud = {"scores": _packed(scores, "<f4"), "codes": _packed(codes, "u1")}
    return {
        "parts": parts,
        "average": _packed(steered.average, "<f4"),
        "patterns": _packed(steered.patterns, "<f4"),
        "image": image,
        "columns": columns,
        "pair": pairs[0][0][::-1] if pairs else (min(1, K - 1), 0),  # across and up, as in Explore
        "cloud": cloud | {"colours": colours, "count": len(rows)},
    }


def _packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()
