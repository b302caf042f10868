"""The page Paper: results, brain, whitening, the synthetic laboratory."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from appca.data.dataset import Dataset
from appca.data.sources import DESIGNS, Synthetic, are_here
from appca.plots.studies import indicators, thumbnail
from appca.runs.home import home
from appca.studies import report
from appca.studies.brain import STUDY, map_file, titles_of
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.claims import Holds, headings, verdict
from appca.studies.store import Stored, StudyStore, csv_text
from appca.studies.study import Figures, Options, Study
from appca.studies.synthetic import LIMITS, dataset_of, described, drawn
from appca.studies.table1 import active_for
from appca.studies.whitening import STUDY as WHITENING
from appca.ui import kit, services, state
from appca.ui.downloads import save_button
from appca.ui.kit import (
    SIGNS,
    Level,
    answer,
    apart,
    chart,
    chip,
    every,
    markdown,
    numbers,
    one_of,
    onward,
    tag,
    words,
)
from appca.ui.services import by_key, kept
from appca.ui.state import guarded
from appca.words import InputError, about, capital, counted, duration

MOST_SHOWN = 200  # rows of Z in the picture
EXPLAINED = {
    "sparse": "Most rows use a few factors, and many factors are rare.",
    "dense": "Most rows use every factor.",
    "subspace": "Rows of a class share all of their factors, rows of two classes none.",
    "balanced": "Every row uses exactly L of the K factors, all choices alike.",
    "single": "All rows use the same L factors.",
}


def laboratory() -> None:
    """Draw the choice of a design, and what comes out or why nothing can."""
    design, chosen = _design_choices()
    try:
        truth = kept(f"lab-{design}-{chosen}", lambda: drawn(design, chosen))
    except InputError as error:
        st.error(markdown(str(error)))
        return
    _picture(design, truth)
    _opening(design, chosen)


def _design_choices() -> tuple[str, Options]:
    """Draw the choice of design and sizes; return it."""
    names = {design: design.capitalize() for design in DESIGNS}
    design = one_of("Design of Z", names, "lab_design", "balanced")
    answer(EXPLAINED[design])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen: Options = {
            "n_rows": _number("Rows N", "n_rows", 1000),
            "n_features": _number("Features D", "n_features", 50),
            "n_components": _number("Factors K", "n_components", 10),
            "n_active": _number("Used per row L", "n_active", 5),
            "noise_sd": _number("Noise, sd", "noise_sd", 0.1, step=0.05, format="%.3f"),
            "seed": _number("Draw", "seed", 0),
        }
    return design, chosen


def _number(label: str, name: str, value: float, **widget: Any) -> float:
    widget |= {"key": f"lab_{name}", "persist_state": "session", "width": 115}
    chosen: float = st.number_input(label, *LIMITS[name], value, **widget)
    return chosen


def _picture(design: str, truth: Synthetic) -> None:
    """Draw the indicator matrix and three numbers about it."""
    n_rows, K = truth.Z.shape
    title = f"Z, the first {min(MOST_SHOWN, n_rows)} of {counted(n_rows, 'row')}"
    chart(indicators({title: truth.Z[:MOST_SHOWN]}), "lab_z")
    facts = described(design, truth.Z)
    signal = np.square((truth.X * truth.Z) @ truth.W.T).mean()
    numbers_shown = [
        (f"{facts['per_row']:.1f} of {K}", f"factors per row, sd {facts['per_row_sd']:.1f}"),
        (f"{facts['different_sets']:,}", "different choices of factors"),
        (f"{signal / truth.noise_sd**2:,.0f} ×", "signal over noise, variances"),
    ]
    st.html(numbers(numbers_shown))


def _opening(design: str, chosen: Options) -> None:
    """Draw the button that makes this the data set on screen, and the way on from there."""
    now, wanted = state.current_dataset().provenance, {"design": design, **chosen}
    is_open = now.get("source") == "synthetic" and now.get("options") == wanted
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Explore these data",
            key="lab_open",
            type="secondary" if is_open else "primary",
            disabled=is_open,
            on_click=_open,
            args=[design, chosen],
        )
        if is_open:
            onward("explore", "Explore it")


@guarded
def _open(design: str, chosen: Options) -> None:
    """Store the data and look at them, with aFA of the same K and the mean number of factors."""
    state.open_dataset(services.datasets().put(dataset_of(design, chosen)))
    n_active = active_for(drawn(design, chosen).Z)
    state.set_model("aFA")
    state.set_parameters(n_components=chosen["n_components"], n_active=n_active)


LEVELS: dict[Holds, tuple[Level, str]] = {
    "yes": ("good", "Agrees"),
    "partly": ("doubtful", "In part"),
    "no": ("bad", "Does not hold"),
    "not tested": ("unknown", "Not tested"),
}
SIZES = ("default", "quick", "full")


def newest_result(study: Study) -> Stored | None:
    """Return what was computed here of the paper's data, if newer than what ships."""
    sizes = (study.options(size) for size in SIZES)
    outcomes = [stored(study, options) for options in sizes if is_of_the_paper(study, options)]
    every = [outcome for outcome in (shipped().get(study.name), *outcomes) if outcome is not None]
    return max(every, key=lambda outcome: outcome.created, default=None)


def stored(study: Study, options: Options) -> Stored | None:
    """Return the result with these options that was computed here, if there is one."""
    name, folder = study.id(options), StudyStore(home()).folder
    file = folder / name / "config.json"
    return _read(f"{file} {file.stat().st_mtime_ns}", name) if file.is_file() else None


@by_key(40)
def _read(name: str) -> Stored | None:
    return StudyStore(home()).get(name)


def is_of_the_paper(study: Study, options: Options) -> bool:
    """Whether a result is about the paper's data, so that its claims can be judged by it."""
    usual = study.options()
    return all(options.get(name) == usual.get(name) for name in ("data", "recording"))


def numbers_of(kept: Stored) -> str:
    """Draw the numbers of a result that say most."""
    return numbers([(claim.value, claim.caption) for claim in kept.outcome.claims if claim.value])


def figures(study: Study, kept: Stored) -> Figures:
    """Return the figures of a result, drawn once; with images where the person has them."""
    return _drawn(_key(kept), study, kept)


def card(study: Study, kept: Stored) -> go.Figure:
    """Return the first figure of a result at the size of a card."""
    return _small(_key(kept), study, kept)


def ahead() -> Iterator[Callable[[], object]]:
    """Draw the cards ahead, one a step."""
    for study in STUDIES.values():
        kept = newest_result(study)
        if kept is not None:
            yield partial(card, study, kept)


def _key(kept: Stored) -> str:
    return f"{kept.id} {kept.created} {[are_here(source) for source in ('mnist', 'coil20')]}"


@by_key(60)
def _drawn(study: Study, kept: Stored) -> Figures:
    return study.figures(kept.outcome)


@by_key(60)
def _small(study: Study, kept: Stored) -> go.Figure:
    return thumbnail(next(iter(figures(study, kept).values())))


def job_of(study: Study, options: Options) -> tuple[str, str, Options]:
    """Return the job that makes a result: its kind, its key and its settings."""
    key = study.id(options)
    return "study", key, {"study": study.name, "options": options, "key": key}


MOST_ROWS = 200  # of a table on the page


@st.dialog("Why?", width="large")
def why(study: Study, kept: Stored) -> None:
    """Open what stands behind a verdict."""
    st.subheader(study.title, anchor=False)
    if is_of_the_paper(study, kept.options):
        st.markdown(markdown(study.paper))
    claims_table(study, kept)
    for name, figure in figures(study, kept).items():
        chart(figure, f"why_{study.name}_{name}")
    tables(study, kept)
    stamp(study, kept)


def shown(study: Study, kept: Stored, *names: str) -> None:
    """Draw a result as a tab has it: figures of these names or the first, numbers, why.

    Results on the paper's data have their verdict above them.
    """
    if is_of_the_paper(study, kept.options):
        level, word = LEVELS[verdict(kept.outcome.claims)]
        answer(f"{word}: {study.title.lower()}", kept.outcome.text, level)
    else:
        answer(study.title, kept.outcome.text)
    drawn = figures(study, kept)
    for name in names or [next(iter(drawn))]:
        chart(drawn[name], f"{study.name}_{name}_{kept.id}")
    st.html(numbers_of(kept))
    if st.button("Why?", key=f"why_{kept.id}"):
        why(study, kept)


def claims_table(study: Study, kept: Stored) -> None:
    """Draw what was measured, and on the paper's data whether its claims hold."""
    outcome, judged = kept.outcome, is_of_the_paper(study, kept.options)
    if outcome.claims:
        titles = headings(outcome.claims)
        if not judged:
            titles = {"claim": "Question", "measured": titles["measured"]}
        lines = []
        for claim in outcome.claims:
            level, word = LEVELS[claim.holds]
            cells = {name: markdown(getattr(claim, name)) for name in titles}
            if judged:
                cells["holds"] = f"{SIGNS[level]} **{word}**"
            lines.append(cells.values())
        rows = [titles.values(), ["---"] * len(titles), *lines]
        st.markdown("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if outcome.text:
        st.markdown("\n\n".join(map(markdown, outcome.text.split("\n\n"))))


def tables(study: Study, kept: Stored) -> None:
    """Draw the first table, folded, and one button for each."""
    first = next(iter(kept.outcome.tables.values()))
    with st.expander("All numbers"):
        rows = [{name: row[name] for name in study.columns or row} for row in first[:MOST_ROWS]]
        st.dataframe(rows, key=f"table_{study.name}", hide_index=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name, every in kept.outcome.tables.items():
            file = f"{name}.csv" if name == study.name else f"{study.name}-{name}.csv"
            save_button(f"Save {name}.csv", partial(csv_text, every), file, key=file)


def stamp(study: Study, kept: Stored) -> None:
    """Draw what made a result and when, and the button that computes it again."""
    when = datetime.fromtimestamp(kept.created).strftime("%d %B %Y")
    took = f" in {duration(kept.seconds)}" if kept.seconds >= 1 else ""
    of = ", ".join(f"{name} {number}" for name, number in kept.versions.items())
    st.code(study.command(kept.options), language="bash")
    st.caption(markdown(f"{when}{took}. {of}."))
    if study.id(kept.options) != kept.id:
        st.caption("The experiment has changed since; compute it again.")
    takes = study.takes.get(study.size_of(kept.options), kept.seconds)
    job, label = job_of(study, kept.options), f"Recompute, {about(takes)}"
    if st.button(label, key=f"again_{study.name}", on_click=guarded(kit.begin), args=job):
        st.rerun()  # close the dialog: the card shows how far it is


def brain() -> None:
    """Draw the newest result, and where other recordings are opened."""
    kept = newest_result(STUDY)
    if kept is not None:
        shown(STUDY, kept, "maps", "courses")
        _save(kept)
    st.page_link("pages/data/data.py", label="Recordings of your own open in Explore")


def _save(kept: Stored) -> None:
    """Draw what saves the map of each model."""
    with st.popover("Save a map (NIfTI)", icon=":material/download:"):
        for key, title in titles_of(kept.outcome).items():
            save_button(
                title,
                partial(map_file, kept.outcome, key),
                f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.nii.gz",
                key=f"brain-map-{key}",
            )


SHIPPED_SIZE = "default"  # of a result that is not there yet
PICTURE = {"displayModeBar": False, "staticPlot": True}


def results() -> None:
    """Draw the verdicts as a small table, and a card for each result."""
    newest = {study.name: newest_result(study) for study in STUDIES.values()}
    there = {name: kept for name, kept in newest.items() if kept is not None}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(_verdicts(there))
        save_button("Report", lambda: _report(there), "paper.html", key="report")
    with st.container(key="paper_cards"):
        for study in STUDIES.values():
            with st.container(border=True, key=f"card_{study.name}"):
                _card(study, newest[study.name])


def _verdicts(there: dict[str, Stored]) -> str:
    by_verdict: dict[Holds, list[str]] = {holds: [] for holds in LEVELS}
    for name, result in there.items():
        by_verdict[verdict(result.outcome.claims)].append(STUDIES[name].title)
    lines = (
        chip(LEVELS[holds][0], f"{LEVELS[holds][1]} {len(titles)}")
        + tag("span", words(" · ".join(titles)))
        for holds, titles in by_verdict.items()
        if titles
    )
    return tag("div", "".join(lines), "ca-verdicts")


def _card(study: Study, kept: Stored | None) -> None:
    """Draw figure, title, verdict and numbers; or, while it is computed, how far that is."""
    title = tag("div", words(study.title), "ca-paper-title", id=study.name)
    if kept is None:
        st.html(title)
    else:
        chart(card(study, kept), f"paper_{study.name}", config=PICTURE)
        said = chip(*LEVELS[verdict(kept.outcome.claims)]) + numbers_of(kept)
        st.html(title + tag("div", said, "ca-paper-card"))
    job = job_of(study, study.options(SHIPPED_SIZE) if kept is None else kept.options)
    if kit.follow(job[1], cancel=f"paper_cancel_{study.name}"):
        return
    if kept is None:
        st.caption(f"Not computed yet · {about(study.takes[SHIPPED_SIZE])}")
        label, key = apart("Compute", study.title), f"paper_run_{study.name}"
        st.button(label, key=key, on_click=guarded(kit.begin), args=job)
        return
    label, key = apart("Why?", study.title), f"paper_why_{study.name}"
    if st.button(label, key=key, type="tertiary", icon=":material/help:"):
        why(study, kept)


def _report(there: dict[str, Stored]) -> str:
    entry = report.ReportEntry
    return report.page(
        [entry(STUDIES[name], kept.options, kept.outcome, "") for name, kept in there.items()]
    )


WHITENING_SIZES = (2, 3, 5, 7, 10, 15, 20, 30, 50)
USUAL = (3, 5, 10)
LARGE, FEW_EPOCHS, MANY_EPOCHS = 5000, 40, 100  # rows; small data need more passes
FOLDS = 5
# Seconds on two idle cores, measured: in all; and a row, epoch, fold and K, without and by feature.
_START, _STEP, _STEP_A_FEATURE = 4.0, 1.7e-5, 2.5e-8


def whitening(dataset: Dataset) -> None:
    """Draw the paper's result, and the same on the data in use."""
    kept = newest_result(WHITENING)
    if kept is not None:
        shown(WHITENING, kept)
    st.subheader(f"On {markdown(dataset.name)}", anchor=False)
    options = _whitening_choices(dataset)
    if options is None:
        return
    if (result := stored(WHITENING, options)) is not None:
        shown(WHITENING, result)
        return
    job = job_of(WHITENING, options)
    if kit.follow(job[1], cancel="whitening_cancel"):
        return
    n_rows = min(dataset.n_rows, options["n_rows"])
    steps = n_rows * options["epochs"] * options["folds"] * len(options["components"])
    takes = _START + steps * (_STEP + _STEP_A_FEATURE * dataset.n_features)
    st.caption(f"{counted(n_rows, 'row')}, {counted(options['folds'], 'fold')}.")
    kit.job_button(f"Compare, {about(takes)}", "whitening_run", *job, primary=False)


def _whitening_choices(dataset: Dataset) -> Options | None:
    """Draw the settings; return the options of the experiment, or None if it cannot be made."""
    there, digest = [classes.title for classes in every(dataset)], dataset.digest
    if not there:
        st.info("This needs data with a column that names the class of each row.")
        return None
    jobs = services.jobs().active()
    earlier = [job.spec["options"] for job in jobs if job.spec.get("study") == WHITENING.name]
    earlier += [kept.options for kept in StudyStore(home()).list(WHITENING.name)]
    usual: Options = {"label": there[0], "components": USUAL}
    last = next((options for options in earlier if options["data"] == digest), usual)
    # training rows and features there are for K
    n_rows = min(dataset.n_rows, WHITENING.options("default")["n_rows"])
    most = min(n_rows * (FOLDS - 1) // FOLDS - 1, dataset.n_features)
    sizes = [size for size in WHITENING_SIZES if size <= most]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = st.selectbox(
            "Classes",
            there,
            index=there.index(last["label"]) if last["label"] in there else 0,
            format_func=capital,
            key=f"whitening_label_{digest[:8]}",
            persist_state="session",
            width=180,
        )
        components: Any = st.pills(
            "Components K",
            sizes,
            default=[size for size in last["components"] if size in sizes] or sizes,
            selection_mode="multi",
            key=f"whitening_k_{digest[:8]}",
            persist_state="session",
        )
    if not components:
        st.caption("Choose at least one K.")
        return None
    return WHITENING.options(
        "default",
        data=digest,
        label=label,
        components=sorted(components),
        folds=FOLDS,
        folds_done=FOLDS,
        epochs=FEW_EPOCHS if dataset.n_rows >= LARGE else MANY_EPOCHS,
    )
