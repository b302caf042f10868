"""The page Compare, other methods: the job that measures them, and what it found."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.jobs.folder import ENDED, JobStatus
from appca.runs.home import home
from appca.runs.quality import MethodComparison, QualityConfig, QualityStore
from appca.storage.wording import counted
from appca.ui.check import compare_tables
from appca.ui.check.compare_choice import sizes
from appca.ui.parts.gaps_note import gaps_note
from appca.ui.parts.text import about, markdown
from appca.ui.session import services, watching
from appca.ui.session.fitting import Shown

MANY = 10_000  # rows above which a sample is compared unless all are asked for
POLL_SECONDS = 1.0
METHODS = 9


def settings(dataset: Dataset, shown: Shown) -> QualityConfig:
    """Draw the choice of rows where there are many, and return what is to be compared."""
    gaps_note(dataset, "All methods here, this model among them,")
    k, active = sizes(shown)
    whole = QualityConfig(shown.config.to_dict(), k, active)
    if dataset.n_rows <= MANY:
        return whole
    choices = {
        rows: QualityConfig(shown.config.to_dict(), k, active, rows or None) for rows in (MANY, 0)
    }
    store = QualityStore(home())
    known = [
        rows
        for rows, config in choices.items()
        if watching.running(config.id) is not None or store.get(config.id) is not None
    ]
    rows = st.segmented_control(
        "Rows compared",
        list(choices),
        default=(known or [MANY])[0],
        format_func=lambda n: f"{n:,} drawn at random" if n else f"all {dataset.n_rows:,}",
        key=f"quality_rows-{whole.id}",
        required=True,
    )
    return choices[rows]


def body(shown: Shown, config: QualityConfig) -> None:
    """Draw the comparison: running, finished, or the button that starts it."""
    job = watching.running(config.id)
    if job is not None:
        _running(job.id, config)
        return
    found = QualityStore(home()).get(config.id)
    if found is None or not found.complete:
        _offer(shown, config, found)
    if found is not None:
        tables(config, found)


def tables(config: QualityConfig, found: MethodComparison) -> None:
    """Draw what has been measured."""
    sentence = compare_tables.in_words(config, found)
    if sentence:
        st.markdown(markdown(sentence))
    st.html(compare_tables.table(config, found))
    st.caption(compare_tables.fairness(config, found))
    if found.panels:
        st.subheader("Crowding: classes in a panel and in one picture", anchor=False)
        st.html(compare_tables.panels_table(config, found))
        st.caption(
            f"How often the class of a row is the most frequent one among its "
            f"{found.facts['n_neighbors']} nearest rows: in the panel of its subspace, which holds "
            "its own rows only; for the same rows as PCA places them; and there among all rows, as "
            "one picture of everything shows them."
        )
    st.download_button(
        "Save the table as CSV",
        data=compare_tables.csv_text(found),
        file_name=f"quality-{config.id}.csv",
        mime="text/csv",
        key="quality_csv",
        on_click="ignore",
        icon=":material/download:",
    )


@st.fragment(run_every=POLL_SECONDS)
def _running(job_id: str, config: QualityConfig) -> None:
    """Follow the job; the table fills as methods come in."""
    job = services.jobs().status(job_id)
    if job is None or job.state in ENDED:
        st.rerun()
    st.progress(min(max(job.fraction, 0.0), 1.0), text=_progress(job))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Cancel", key="quality_cancel", on_click=watching.cancel, args=[job.id])
        st.caption("Methods that have been measured are kept when you cancel.")
    found = QualityStore(home()).get(config.id)
    if found is not None:
        st.html(compare_tables.table(config, found))


def _offer(shown: Shown, config: QualityConfig, found: MethodComparison | None) -> None:
    if found is None:
        n = config.rows or shown.info.n_rows
        st.markdown(
            f"How much of the data does this projection keep, beside others? Up to {METHODS} "
            f"methods are fitted in the background to four fifths of {n:,} rows and judged by "
            f"the fifth held out, each for at most {about(config.seconds).removeprefix('about ')}. "
            "Small tables take a minute, 10,000 images of 784 pixels several."
        )
    else:
        done = len(found.lines)
        have = "has" if done == 1 else "have"
        st.markdown(f"{counted(done, 'method')} {have} been measured before it was ended.")
    label = "Measure" if found is None else "Go on"
    if st.button(label, type="primary", key="quality_start"):
        _start(config)
        st.rerun()


def _start(config: QualityConfig) -> None:
    watching.allow(config.id)
    spec = {"key": config.id, "config": config.to_dict()}
    job = services.jobs().submit("quality", spec, key=config.id)
    watching.add(job, watching.Watched("quality", config.id))


def _progress(job: JobStatus) -> str:
    if job.state == "queued":
        return "Waiting for a free worker"
    return markdown(job.stage) or "starting"
