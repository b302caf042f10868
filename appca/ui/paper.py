"""The page Paper: results, brain, whitening, and the synthetic laboratory."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from appca.data.dataset import Dataset
from appca.data.sources import DESIGNS, are_here
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
from appca.ui.kit import answer, apart, chart, chip, every, markdown, numbers, press, tag, words
from appca.ui.services import by_key
from appca.ui.state import guarded
from appca.words import about, capital, counted, duration

MOST_SHOWN, MOST_ROWS = 200, 200  # rows of Z; of a table of numbers
EXPLAINED = {
    "sparse": "Most rows use a few factors, and many factors are rare.",
    "dense": "Most rows use every factor.",
    "subspace": "Rows of one class share all factors, and rows of two classes share none.",
    "balanced": "Every row uses exactly L of the K factors; all supports are equally likely.",
    "single": "All rows use the same L factors.",
}


def laboratory() -> None:
    """Draw synthetic data: their design, the supports, and a button to open them."""
    names = {design: design.capitalize() for design in DESIGNS}
    design = kit.one_of("Design of Z", names, "lab_design", "balanced")
    answer(EXPLAINED[design])

    def number(label: str, name: str, value: float, **widget: Any) -> Any:
        widget |= {"key": f"lab_{name}", "persist_state": "session", "width": 115}
        return st.number_input(label, *LIMITS[name], value, **widget)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen: Options = {
            "n_rows": number("Rows N", "n_rows", 1000),
            "n_features": number("Features D", "n_features", 50),
            "n_components": number("Factors K", "n_components", 10),
            "n_active": number("Used per row L", "n_active", 5),
            "noise_sd": number("Noise, sd", "noise_sd", 0.1, step=0.05, format="%.3f"),
            "seed": number("Draw", "seed", 0),
        }
    truth = kit.tried(f"lab-{design}-{chosen}", lambda: drawn(design, chosen), st.error)
    if truth is None:
        return
    n_rows, K = truth.Z.shape
    title = f"Z, the first {min(MOST_SHOWN, n_rows)} of {counted(n_rows, 'row')}"
    chart(indicators({title: truth.Z[:MOST_SHOWN]}), "lab_z")
    facts, signal = described(design, truth.Z), np.square((truth.X * truth.Z) @ truth.W.T).mean()
    told = [
        (f"{facts['per_row']:.1f} of {K}", f"factors per row, sd {facts['per_row_sd']:.1f}"),
        (f"{facts['different_sets']:,}", "different supports"),
        (f"{signal / truth.noise_sd**2:,.0f} ×", "signal variance over noise variance"),
    ]
    st.html(numbers(told))

    def open_data() -> None:
        state.open_dataset(services.datasets().put(dataset_of(design, chosen)))
        state.set_model("aFA")
        n_active = active_for(drawn(design, chosen).Z)
        state.set_parameters(n_components=chosen["n_components"], n_active=n_active)

    now, wanted = state.current_dataset().provenance, {"design": design, **chosen}
    is_open = now.get("source") == "synthetic" and now.get("options") == wanted
    look: Any = {"type": "secondary" if is_open else "primary", "disabled": is_open}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        press("Explore these data", "lab_open", open_data, **look)
        if is_open:
            kit.onward("explore", "Explore it")


LEVELS: dict[Holds, tuple[kit.Level, str]] = {
    "yes": ("good", "Agrees"),
    "partly": ("doubtful", "In part"),
    "no": ("bad", "Does not hold"),
    "not tested": ("unknown", "Not tested"),
}
SIZES = ("default", "quick", "full")
_read = by_key(40)(StudyStore.get)


def _newest_result(study: Study) -> Stored | None:
    sizes = (study.options(size) for size in SIZES)
    outcomes = [_stored(study, options) for options in sizes if _is_of_the_paper(study, options)]
    every = [outcome for outcome in (shipped().get(study.name), *outcomes) if outcome is not None]
    return max(every, key=lambda outcome: outcome.created, default=None)


def _stored(study: Study, options: Options) -> Stored | None:
    name, store = study.id(options), StudyStore(home())
    file = store.folder / name / "config.json"
    return _read(f"{file} {file.stat().st_mtime_ns}", store, name) if file.is_file() else None


def _is_of_the_paper(study: Study, options: Options) -> bool:
    return all(options.get(name) == study.options().get(name) for name in ("data", "recording"))


def _numbers_of(kept: Stored) -> str:
    return numbers([(claim.value, claim.caption) for claim in kept.outcome.claims if claim.value])


def _figures(study: Study, kept: Stored) -> tuple[Figures, go.Figure]:
    here = [are_here(source) for source in ("mnist", "coil20")]
    return _drawn(f"{kept.id} {kept.created} {here}", study, kept)


def ahead() -> Iterator[Callable[[], object]]:
    """Yield functions that draw the cards in advance."""
    for study in STUDIES.values():
        if (kept := _newest_result(study)) is not None:
            yield partial(_figures, study, kept)


@by_key(60)
def _drawn(study: Study, kept: Stored) -> tuple[Figures, go.Figure]:
    figures = study.figures(kept.outcome)
    return figures, thumbnail(next(iter(figures.values())))


def _job_of(study: Study, options: Options) -> tuple[str, str, Options]:
    key = study.id(options)
    return "study", key, {"study": study.name, "options": options, "key": key}


@st.dialog("Why?", width="large")
def _why(study: Study, kept: Stored) -> None:
    outcome, judged = kept.outcome, _is_of_the_paper(study, kept.options)
    st.subheader(study.title, anchor=False)
    if judged:
        st.markdown(markdown(study.paper))
    if outcome.claims:
        titles = headings(outcome.claims)
        if not judged:
            titles = {"claim": "Question", "measured": titles["measured"]}
        rows = [titles.values(), ["---"] * len(titles)]
        for claim in outcome.claims:
            level, word = LEVELS[claim.holds]
            cells = {name: markdown(getattr(claim, name)) for name in titles}
            if judged:
                cells["holds"] = f"{kit.SIGNS[level]} **{word}**"
            rows.append(cells.values())
        st.markdown("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if outcome.text:
        st.markdown("\n\n".join(map(markdown, outcome.text.split("\n\n"))))
    for name, figure in _figures(study, kept)[0].items():
        chart(figure, f"why_{study.name}_{name}")
    first = next(iter(outcome.tables.values()))
    with st.expander("All numbers"):
        lines = [{name: row[name] for name in study.columns or row} for row in first[:MOST_ROWS]]
        st.dataframe(lines, key=f"table_{study.name}", hide_index=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name, every in outcome.tables.items():
            file = f"{name}.csv" if name == study.name else f"{study.name}-{name}.csv"
            save_button(f"Save {name}.csv", partial(csv_text, every), file, key=file)
    when = datetime.fromtimestamp(kept.created).strftime("%d %B %Y")
    took = f" in {duration(kept.seconds)}" if kept.seconds >= 1 else ""
    of = ", ".join(f"{name} {number}" for name, number in kept.versions.items())
    st.code(study.command(kept.options), language="bash")
    st.caption(markdown(f"{when}{took}. {of}."))
    if study.id(kept.options) != kept.id:
        st.caption("The experiment has changed since; compute it again.")
    takes = study.takes.get(study.size_of(kept.options), kept.seconds)
    job, label = _job_of(study, kept.options), f"Recompute, {about(takes)}"
    if st.button(label, key=f"again_{study.name}", on_click=guarded(kit.begin), args=job):
        st.rerun()


def _shown(study: Study, kept: Stored, *names: str) -> None:
    if _is_of_the_paper(study, kept.options):
        level, word = LEVELS[verdict(kept.outcome.claims)]
        answer(f"{word}: {study.title.lower()}", kept.outcome.text, level)
    else:
        answer(study.title, kept.outcome.text)
    drawn, _ = _figures(study, kept)
    for name in names or [next(iter(drawn))]:
        chart(drawn[name], f"{study.name}_{name}_{kept.id}")
    st.html(_numbers_of(kept))
    if st.button("Why?", key=f"why_{kept.id}"):
        _why(study, kept)


def brain() -> None:
    """Draw the newest result, and a link for opening other recordings."""
    if (kept := _newest_result(STUDY)) is not None:
        _shown(STUDY, kept, "maps", "courses")
        with st.popover("Save a map (NIfTI)", icon=":material/download:"):
            for key, title in titles_of(kept.outcome).items():
                file = f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.nii.gz"
                make = partial(map_file, kept.outcome, key)
                save_button(title, make, file, key=f"brain-map-{key}")
    st.page_link("pages/data/data.py", label="Open your own recordings in Explore")


SHIPPED_SIZE, PICTURE = "default", {"displayModeBar": False, "staticPlot": True}


def results() -> None:
    """Draw the verdicts, and a card for each result."""
    newest = {study.name: _newest_result(study) for study in STUDIES.values()}
    there = {name: kept for name, kept in newest.items() if kept is not None}
    by_verdict: dict[Holds, list[str]] = {holds: [] for holds in LEVELS}
    for name, result in there.items():
        by_verdict[verdict(result.outcome.claims)].append(STUDIES[name].title)
    lines = ""
    for holds, titles in by_verdict.items():
        if titles:
            level, word = LEVELS[holds]
            lines += chip(level, f"{word} {len(titles)}") + tag("span", words(" · ".join(titles)))

    def page() -> str:
        entries = ((STUDIES[name], kept.options, kept.outcome, "") for name, kept in there.items())
        return report.page([report.ReportEntry(*parts) for parts in entries])

    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(tag("div", lines, "ca-verdicts"))
        save_button("Report", page, "paper.html", key="report")
    with st.container(key="paper_cards"):
        for study in STUDIES.values():
            with st.container(border=True, key=f"card_{study.name}"):
                _card(study, newest[study.name])


def _card(study: Study, kept: Stored | None) -> None:
    title = tag("div", words(study.title), "ca-paper-title", id=study.name)
    if kept is None:
        st.html(title)
    else:
        chart(_figures(study, kept)[1], f"paper_{study.name}", config=PICTURE)
        said = chip(*LEVELS[verdict(kept.outcome.claims)]) + _numbers_of(kept)
        st.html(title + tag("div", said, "ca-paper-card"))
    job = _job_of(study, study.options(SHIPPED_SIZE) if kept is None else kept.options)
    if kit.follow(job[1], cancel=f"paper_cancel_{study.name}"):
        return
    if kept is None:
        st.caption(f"Not computed yet · {about(study.takes[SHIPPED_SIZE])}")
        press(apart("Compute", study.title), f"paper_run_{study.name}", kit.begin, *job)
        return
    label, key = apart("Why?", study.title), f"paper_why_{study.name}"
    if st.button(label, key=key, type="tertiary", icon=":material/help:"):
        _why(study, kept)


WHITENING_SIZES = (2, 3, 5, 7, 10, 15, 20, 30, 50)
USUAL = (3, 5, 10)
LARGE, FEW_EPOCHS, MANY_EPOCHS = 5000, 40, 100  # rows; passes over large and small data
FOLDS = 5
# Seconds: constant; then per row, epoch, fold and K, without and with a factor per feature.
_START, _STEP, _STEP_A_FEATURE = 4.0, 1.7e-5, 2.5e-8


def whitening(dataset: Dataset) -> None:
    """Draw the paper's result, and the same experiment on the current data."""
    if (kept := _newest_result(WHITENING)) is not None:
        _shown(WHITENING, kept)
    st.subheader(f"On {markdown(dataset.name)}", anchor=False)
    if (options := _whitening_choices(dataset)) is None:
        return
    if (result := _stored(WHITENING, options)) is not None:
        _shown(WHITENING, result)
        return
    job = _job_of(WHITENING, options)
    if kit.follow(job[1], cancel="whitening_cancel"):
        return
    n_rows = min(dataset.n_rows, options["n_rows"])
    steps = n_rows * options["epochs"] * options["folds"] * len(options["components"])
    takes = _START + steps * (_STEP + _STEP_A_FEATURE * dataset.n_features)
    st.caption(f"{counted(n_rows, 'row')}, {counted(options['folds'], 'fold')}.")
    kit.job_button(f"Compare, {about(takes)}", "whitening_run", *job, primary=False)


def _whitening_choices(dataset: Dataset) -> Options | None:
    there, digest = [classes.title for classes in every(dataset)], dataset.digest
    if not there:
        st.info("This needs data with a column that names the class of each row.")
        return None
    jobs = services.jobs().active()
    earlier = [job.spec["options"] for job in jobs if job.spec.get("study") == WHITENING.name]
    earlier += [kept.options for kept in StudyStore(home()).list(WHITENING.name)]
    usual: Options = {"label": there[0], "components": USUAL}
    last = next((options for options in earlier if options["data"] == digest), usual)
    n_rows = min(dataset.n_rows, WHITENING.options("default")["n_rows"])
    most = min(n_rows * (FOLDS - 1) // FOLDS - 1, dataset.n_features)
    sizes = [size for size in WHITENING_SIZES if size <= most]
    look: Any = {"key": f"whitening_label_{digest[:8]}", "width": 180, "persist_state": "session"}
    look["index"] = there.index(last["label"]) if last["label"] in there else 0
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = st.selectbox("Classes", there, format_func=capital, **look)
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
    epochs = FEW_EPOCHS if dataset.n_rows >= LARGE else MANY_EPOCHS
    asked = {"data": digest, "label": label, "components": sorted(components), "epochs": epochs}
    return WHITENING.options("default", **asked, folds=FOLDS, folds_done=FOLDS)
