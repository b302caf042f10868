"""Pieces of pages: text, HTML, charts, facts, buttons, progress of jobs."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from appca.analysis.components import DOUBTFUL, explained_shares
from appca.canvas.html import closed_bundle
from appca.data.dataset import Dataset
from appca.jobs.queue import ENDED, JobStatus
from appca.plots.components import NEGATIVE, POSITIVE, ranked_loadings
from appca.plots.data import likelihood
from appca.plots.style import class_colour, described, label_colour
from appca.runs.home import home
from appca.runs.run import RunInfo
from appca.ui import STATIC, fits, services, state
from appca.ui.fits import Shown
from appca.ui.services import by_key
from appca.ui.state import KEYS, guarded
from appca.words import about, capital, counted, duration, nats, percent, shortened, signed, size


def chart(figure: go.Figure, key: str, **options: Any) -> None:
    """Draw a figure without Plotly's bar of tools, its alternative text made from what it shows."""
    bare = {"config": {"displayModeBar": False}}
    st.plotly_chart(figure, alt=described(figure), key=key, **(bare | options))


# places within what Streamlit makes a link, an icon, an arrow or another sign of
_MADE_INTO_OTHERS = re.compile(
    r"(?<=http:|ttps:)(?=//)|(?<=:)(?=material/|streamlit:)|(?<=www)(?=\.)|(?<=\S)(?=@\S)"
    r"|(?<=-)(?=[->])|(?<=<)(?=-)|(?<=[<>~])(?==)",
    re.IGNORECASE,
)


def nats_per_row(info: RunInfo) -> str:
    """Return a run's log-likelihood a row in words."""
    return f"{nats(info.log_likelihood / info.n_rows)} per row"


def markdown(text: str) -> str:
    """Return text whose every character stands for itself where Streamlit reads Markdown.

    Addresses, icons and arrows are looked for when backslashes are gone: a sign that nobody sees
    stands within them.
    """
    apart = _MADE_INTO_OTHERS.sub("\u2060", text)
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+-.!|~$:^&=@" else c for c in apart)


def apart(label: str, of: str) -> str:
    """Return the label of one of several like buttons, as Markdown: "Open" with "of run 3".

    What follows the label is hidden by the style sheet; those who hear the page tell the buttons
    apart by it.
    """
    return f"{label} *{markdown(of)}*"


def tag(name: str, body: str, css: str = "", **attributes: str) -> str:
    """Return an HTML element; `body` must be HTML already, attributes are escaped here."""
    parts = {"class": css, **attributes} if css else attributes
    written = "".join(f' {key}="{escape(value)}"' for key, value in parts.items())
    return f"<{name}{written}>{body}</{name}>"


def words(text: object) -> str:
    """Return data as the body of an HTML element: shown literally, never run."""
    return escape(str(text))


def fact_list(lines: dict[str, str]) -> str:
    """Return names and values as an HTML list; both are data and shown literally."""
    body = "".join(tag("dt", words(key)) + tag("dd", words(value)) for key, value in lines.items())
    return tag("dl", body, "ca-facts")


def table_line(name: object, cells: Iterable[object], **attributes: str) -> str:
    """Return a line of a table as HTML: its name and its cells, all data and shown literally."""
    first = tag("th", words(name), scope="row", **attributes)
    return tag("tr", first + "".join(tag("td", words(cell)) for cell in cells))


def table(heads: Iterable[str], lines: Iterable[str]) -> str:
    """Return a table as HTML; the heads of its columns and its lines must be HTML already."""
    head = tag("tr", "".join(tag("th", text, scope="col") for text in heads))
    inner = tag("thead", head) + tag("tbody", "".join(lines))
    return tag("div", tag("table", inner), "ca-table")


Level = Literal["good", "doubtful", "bad", "unknown"]
SIGNS: dict[Level, str] = {"good": "✓", "doubtful": "◐", "bad": "✕", "unknown": "–"}
MOST_NUMBERS = 3

Number = tuple[str, str]  # the number, and what it is


def chip(level: Level, text: str) -> str:
    """Return a chip as HTML; its sign says what its colour says."""
    sign = tag("span", SIGNS[level], **{"aria-hidden": "true"})
    return tag("span", sign + words(text), f"ca-chip ca-{level}")


def answer(title: str, text: str = "", level: Level | None = None) -> None:
    """Draw the sentence that a tab opens with."""
    body = tag("div", words(title), "ca-answer-title") + tag("div", words(text)) * bool(text)
    css = "ca-answer" if level is None else f"ca-answer ca-{level}"
    st.html(tag("div", body, css, role="status"))


def numbers(pairs: Sequence[Number]) -> str:
    """Return at most three numbers with what they are as HTML."""
    cells = (
        tag("div", tag("b", words(value)) + tag("span", words(what)))
        for value, what in pairs[:MOST_NUMBERS]
    )
    return tag("div", "".join(cells), "ca-figures")


def data_facts(dataset: Dataset) -> dict[str, str]:
    """Return what a data set is, name by name."""
    made, features = dataset.provenance, f"{dataset.n_features:,} columns"
    if dataset.image_shape is not None:
        h, w, *colour = dataset.image_shape
        features = f"{dataset.n_features:,} ({h} × {w} pixels{', colour' if colour else ''})"
    lines = {
        "Rows": f"{dataset.n_rows:,}",
        "Features": features,
        "Labels": ", ".join(dataset.labels) or "none",
        "Values": f"{dataset.X.dtype}, {size(dataset.X.nbytes)}",
    }
    if dataset.missing is not None:
        rows = counted(len(dataset.incomplete_rows), "row")
        share = percent(dataset.n_missing / dataset.X.size, 1)
        cells = f"{counted(dataset.n_missing, 'cell')} ({share})"
        lines["Missing"] = f"{cells} in {rows}, for the model to fill"
    source = str(made.get("citation") or made.get("source") or "")
    if made.get("source") == "file":
        files = list(made.get("files", []))
        source = shortened(files[0]) if len(files) == 1 else counted(len(files), "file")
    return lines | ({"Source": source} if source else {})


def fit_facts(shown: Shown) -> dict[str, str]:
    """Return how the fit went, name by name."""
    info, fitted = shown.info, shown.fitted
    latent = fitted.latent_variance
    spread = f"{latent.min():.3g}" + (f" to {latent.max():.3g}" if np.ptp(latent) > 0 else "")
    lines = {
        "Log-likelihood": nats_per_row(info),
        "Explained": f"{percent(explained_shares(fitted)[1], 1)} of the variance",
        "Doubtful rows": percent(float(np.mean(fitted.membership < DOUBTFUL)), 1),
        "Ended": f"{ending(shown)} in {duration(info.seconds)}",
        "Noise variance": f"{np.mean(fitted.noise_variance):.4g}",
        "Factor variance": spread,
    }
    if fitted.alpha is not None:  # a model that learns the number of components
        used = fitted.active.sum(axis=1)
        lines |= {
            "Components": f"{len(fitted.components)} in the best draw",
            "Used by a row": f"{used.mean():.1f} on average, {used.min()} to {used.max()}",
            "Alpha": f"{fitted.alpha:.3g}",
        }
    if info.likelihood_error:  # not a sum over all supports
        error = info.likelihood_error / info.n_rows
        lines["Likelihood"] = f"{info.likelihood}; ± {error:.2g} nats per row"
    return lines | {"Id": shown.config.id + ", imported" * (shown.config.imported is not None)}


V = TypeVar("V")
MOST = 2**53 - 1  # that a browser can count to


def tabs(names: Mapping[str, str]) -> str:
    """Draw the tabs of a page, key to name; return the key of the one that is to be drawn.

    The address names it as `tab`, and wins; a page that is left keeps its own.
    """
    key = f"tab-{'-'.join(names)}"
    asked, kept = st.query_params.get("tab"), st.session_state.get(key)
    now = next(tab for tab in (asked, kept, *names) if tab is not None and tab in names)
    if kept != now:
        st.session_state[key] = now
    one_of(
        "Part of this page", names, key, label_visibility="collapsed", on_change=_turned, args=[key]
    )
    st.session_state[KEYS.tab] = now
    return now


@guarded
def _turned(key: str) -> None:
    st.query_params["tab"] = st.session_state[key]


def one_of(
    label: str,
    names: Mapping[V, str],
    key: str,
    default: V | None = None,
    help_text: str | None = None,
    **more: Any,
) -> V:
    """Draw choices, by their names, as buttons of which one is always pressed; return that one."""
    first = next(iter(names)) if default is None else default
    if st.session_state.get(key) not in names:  # Streamlit warns of a default beside a state
        st.session_state[key] = first
    chosen = st.segmented_control(
        label,
        list(names),
        format_func=lambda value: names[value],
        key=key,
        required=True,
        persist_state="session",
        help=help_text,
        **more,
    )
    return first if chosen is None else chosen


def first_of_page(total: int, size: int, key: str) -> int:
    """Draw page numbers where there is more than one page; return the first item of the page."""
    pages = -(-total // size)
    if pages < 2:
        return 0
    width = 120 + 48 * min(pages, 7)
    return (st.pagination(pages, key=key, persist_state="session", width=width) - 1) * size


def onward(place: str, label: str, icon: str = ":material/arrow_forward:") -> None:
    """Draw a link to another page, or as ``page/tab`` to one of its tabs."""
    page, _, tab = place.partition("/")
    query = {"tab": tab} if tab else None
    file = f"pages/{page}/{page}.py"
    st.page_link(file, label=label, icon=icon, width="content", query_params=query)


def scripted(name: str, html: str | None = None) -> Any:
    """Return the part of a page that a script of `STATIC` makes, with its style."""
    script, style = (STATIC / f"{name}{kind}" for kind in (".js", ".css"))
    return st.components.v2.component(
        f"appca_{script.stem}",
        html=html,
        js=closed_bundle(script),
        css=style.read_text(encoding="utf-8") if style.is_file() else None,
        isolate_styles=False,
    )


def around(limits: tuple[float, float], value: float) -> tuple[float, float]:
    """Return limits of a widget with the value of a run inside, which may be the command line's.

    Streamlit shows its least number in place of one outside, and the next change would fit with it.
    """
    most = type(value)(MOST)  # Streamlit refuses whole numbers beside others
    return min(limits[0], value), max(limits[1], min(value, most))


Act = Callable[[str, str], object]  # is given the button's value, and the text that was typed
_listener = scripted("acts")


def acting(html: str, key: str, acts: Mapping[str, Act]) -> None:
    """Draw HTML, and answer its buttons; see `button` and `name`.

    Data in the HTML must be escaped, as everywhere. `key` differs from all others on the page;
    `acts` says what each kind of button does.
    """
    with st.container(key=key):
        st.html(html)
        _listener(key=f"{key}_acts", data={"of": key}, on_act_change=lambda: _answer(key, acts))


def button(
    body: str,
    act: str,
    value: object,
    label: str = "",
    css: str = "ca-act",
    pressed: bool | None = None,
) -> str:
    """Return a button as HTML; `body` must be HTML already.

    `act` is a key of `acting`'s acts, which is given `value` as text; `label` says what the button
    does where the body does not, and `pressed` is of one that stays pressed.
    """
    more = {"title": label} if label else {}
    if pressed is not None:
        more["aria-pressed"] = str(pressed).lower()
    shared = {"type": "button", "data-act": act, "data-value": str(value)}
    return tag("button", body, css, **shared, **more)


def choice(
    texts: Sequence[str], act: str, value: object, now: int, label: str, css: str = "ca-choice"
) -> str:
    """Return a list to choose from as HTML; its act is given the place of the chosen text.

    `now` is the place of the present one; -1 asks for one.
    """
    first = [tag("option", "choose one", value="", selected="")] if now < 0 else []
    rest = [
        tag("option", words(text), value=str(i), **({"selected": ""} if i == now else {}))
        for i, text in enumerate(texts)
    ]
    shared = {"data-act": act, "data-value": str(value), "aria-label": label}
    return tag("select", "".join(first + rest), css, **shared)


def name(body: str, act: str, value: object, now: str, label: str) -> str:
    """Return a name that can be clicked and typed over; it is `now` until then."""
    shared = {"type": "button", "data-act": act, "data-value": str(value), "data-name": now}
    return tag("button", words(body), "ca-act ca-named", title=label, **shared)


@guarded
def _answer(key: str, acts: Mapping[str, Act]) -> None:
    """Do what a button asks for; the browser's words are those of a stranger."""
    message = st.session_state[f"{key}_acts"].get("act")
    if isinstance(message, Mapping) and message.get("act") in acts:
        value, text = (str(message.get(part, ""))[:1000] for part in ("value", "text"))
        acts[message["act"]](value, text)


SURE = 2.0  # standard deviations from 0 from which on the sign of a weight is sure


def loadings(
    pattern: np.ndarray, names: tuple[str, ...] | None, spread: np.ndarray | None = None
) -> str:
    """Return the largest weights of a component (D,) of a table as HTML bars.

    With `spread` (D,), the standard deviations of all weights, both stand beside the names, and the
    bar of a weight that is less than `SURE` of them from 0 is hollow: its sign is not sure.
    """
    lines = []
    for item in ranked_loadings(pattern, names):
        colour = f"rgb{POSITIVE if item.value > 0 else NEGATIVE}"
        unsure = spread is not None and abs(item.value) < SURE * spread[item.place]
        look = f"box-shadow:inset 0 0 0 1px {colour};background:none" if unsure else ""
        look = look or f"background:{colour}"
        bar = tag("div", "", style=f"width:{item.share:.0%};{look}")
        value = signed(item.value)
        value += "" if spread is None else f" ± {spread[item.place]:.2g}"
        shown = item.name if spread is None else f"{item.name} {value}"
        text = tag("span", words(shown), title=f"{item.name}: {value}")
        lines.append(tag("div", text + tag("div", bar, "ca-track"), "ca-loading"))
    return "".join(lines)


MOST_CLASSES = 60


class Classes(NamedTuple):
    """The classes of all rows."""

    title: str
    names: tuple[str, ...]
    codes: np.ndarray  # (N,) negative where a row has none

    @property
    def colours(self) -> list[str]:
        """The colour of each class, as on every page."""
        return [class_colour(code, len(self.names)) for code in range(len(self.names))]


def every(dataset: Dataset) -> list[Classes]:
    """Return the classes of all columns of labels that have 2 to `MOST_CLASSES`."""
    candidates = (
        _classes(f"{dataset.digest}-{name}-{dataset.class_order(name)}", dataset, name)
        for name in dataset.labels
    )
    return [classes for classes in candidates if classes is not None]


def choose(dataset: Dataset, page: str) -> Classes | None:
    """Draw the choice where there is one, and return the classes; None where there are none."""
    choices = {classes.title: classes for classes in every(dataset)}
    if not choices:
        return None
    chosen = st.selectbox(
        "Classes",
        choices,
        format_func=capital,
        key=f"classes-{page}-{dataset.digest[:8]}",
        persist_state="session",
        width=180,
        help=f"Columns of labels with 2 to {MOST_CLASSES} classes.",
    )
    return choices[chosen]


@by_key(64)
def _classes(dataset: Dataset, name: str) -> Classes | None:
    colour = label_colour(dataset, name)
    if colour.kind != "category" or not 2 <= len(colour.names) <= MOST_CLASSES:
        return None
    return Classes(name, colour.names, np.asarray(colour.values))


POLL_SECONDS = 0.5


def finished() -> Shown | None:
    """Return the fit of the present settings; without one draw how far it is, or offer it."""
    return _or_wait(fits.finished)


def shown() -> Shown | None:
    """Return what there is to draw, be it a preview; without it do as `finished` does."""
    return _or_wait(fits.shown)


def _or_wait(find: Callable[[], Shown | None]) -> Shown | None:
    with fitting_now():
        result = find()
    if result is None and not follow(state.config().id):
        takes = about(fits.seconds())
        st.markdown(f"This has not been fitted yet. The fit takes {takes}.")
        st.button("Start the fit", type="primary", key="start_fit", on_click=start)
    return result


def follow(
    key: str,
    cancel: str = "job_cancel",
    caption: str = "",
    arrived: Callable[[], None] | None = None,
) -> bool:
    """Draw the running job that makes this, `cancel` its button; False when there is none.

    `arrived` draws below it what there is already, and `caption` stands beside the button.
    """
    job = fits.running(key)
    if job is not None:
        _follow(job.id, cancel, caption, arrived)
    return job is not None


def begin(kind: str, key: str, spec: dict[str, Any]) -> None:
    """Start the job that makes `key`, also when that was cancelled before, and wait for it."""
    fits.allow(key)
    fits.start_job(kind, spec, fits.Watched(kind, key))


def job_button(
    label: str, widget: str, kind: str, key: str, spec: dict[str, Any], *, primary: bool = True
) -> None:
    """Draw the button with the key `widget` that starts the job; see `begin`."""
    # Not a callback: that would start what the numbers were before one was typed just now.
    if st.button(label, type="primary" if primary else "secondary", key=widget):
        begin(kind, key, spec)
        st.rerun()


@guarded
def start() -> None:
    """Fit the present settings, also when that was cancelled before."""
    fits.allow(state.config().id)
    fits.start_fit()


@st.fragment(run_every=POLL_SECONDS)
def _follow(job_id: str, cancel: str, caption: str, arrived: Callable[[], None] | None) -> None:
    job = services.jobs().status(job_id)
    if job is None or job.state in ENDED:
        st.rerun()
    st.progress(min(max(job.fraction, 0.0), 1.0), text=line(job))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Cancel", key=cancel, on_click=guarded(fits.cancel), args=[job.id])
        if job.kind == "fit":
            st.button(
                "Stop here and keep",
                key="fit_keep",
                on_click=guarded(services.jobs().keep),
                args=[job.id],
                disabled=not job.curve,
                help="End the fit now and keep what it has; it is marked as stopped by hand.",
            )
        if caption:
            st.caption(caption)
    if arrived is not None:
        arrived()
    if job.curve:
        curve = np.array(job.curve, dtype=float)
        n_rows = services.dataset(state.config().dataset).n_rows
        sampled = job.kind == "fit" and state.config().is_sampled
        chart(likelihood(curve[:, 0], curve[:, 1], n_rows, sampled), "fit_curve")


def line(job: JobStatus) -> str:
    """Say how far a job is and how long it will take."""
    if job.state == "queued":
        return capital(waits_for())
    parts = [markdown(job.stage) or "starting"]
    if job.iteration:
        sweeping = job.stage in ("burn-in", "draws")
        parts.append(f"{'sweep' if sweeping else 'iteration'} {job.iteration:,}")
    if job.seconds_left:
        parts.append(f"{about(job.seconds_left)} left")
    return " · ".join(parts)


def preview_note(shown: Shown) -> bool:
    """Draw the marks; False for a finished fit of this machine."""
    if shown.is_refused:
        st.badge(
            "not stored",
            color="red",
            help=f"The disk is full or read-only, so this fit is in memory alone. Free some space "
            f"in {markdown(str(home()))}, or make it writable: the fit is stored when you look at "
            "it again. Until then, Export keeps it.",
        )
    if shown.config.imported is not None:
        st.badge(
            "imported",
            color="orange",
            help="This fit came in a session file. Fit here to check that its settings give these "
            "numbers.",
        )
        st.button(
            "Fit here",
            "fit_here",
            type="tertiary",
            on_click=guarded(state.open_config),
            args=[shown.config.to_be_fitted()],
        )
        return True
    if shown.config.stopped_at is not None:
        work = counted(shown.info.n_iter, "sweep" if shown.config.is_sampled else "iteration")
        help_text = "This fit was kept before it had converged."
        st.badge(f"stopped by hand after {work}", color="orange", help=help_text)
        return True
    if not shown.is_preview:
        return False
    st.badge(
        "first look",
        color="orange",
        help="A short fit to at most 5,000 of the rows, with all rows drawn on it. The full fit "
        "replaces it here as soon as it is done.",
    )
    if fits.running(state.config().id) is None:
        label = f"Fit fully ({about(fits.seconds())})"
        st.button(label, key="refine", type="tertiary", on_click=start)
    return True


def gaps_note(dataset: Dataset, whose: str) -> None:
    """Say that `whose` fits ("The fits of the grid") read placeholders; nothing of whole data."""
    if dataset.missing is None:
        return
    verb = "is" if dataset.n_missing == 1 else "are"
    st.caption(
        f":material/info: {counted(dataset.n_missing, 'cell')} of these data {verb} missing. "
        f"{whose} use the column's mean there, while the fit on screen leaves them out: compare "
        "these numbers only with each other."
    )


LINE: Any = {"horizontal": True, "vertical_alignment": "center", "gap": "small"}
NOTE = "status_note"  # in `st.session_state`: the place where a page adds something to the line
JOB_TITLES = {  # of jobs: what is going on
    "fit": "Fitting",
    "umap": "Mapping rows",
    "download": "Loading data",
    "grid": "Trying each K and L",
    "stability": "Fitting again",
    "models": "Comparing models",
    "quality": "Comparing methods",
    "study": "Computing the experiment",
    "project": "Placing new rows",
    "masked": "Predicting hidden cells",
}


@contextmanager
def fitting_now() -> Iterator[None]:
    """Say that the present settings are being fitted, while the page waits for that."""
    now = state.config()
    if services.runs().get(now.id) is not None or fits.running(now.id) is not None:
        yield
        return
    place = st.session_state[NOTE].empty()
    with place.container(**LINE, key="fitting"):
        st.html(tag("div", words(f"Fitting {', '.join(now.sizes)} …"), role="status"))
        st.button("Stop", "stop_fit", type="tertiary", on_click=guarded(fits.stop))
    try:
        yield
    finally:
        place.empty()


def ending(shown: Shown) -> str:
    """Say how a fit ended."""
    info, config = shown.info, shown.config
    n = counted(info.n_iter, "sweep" if config.is_sampled else "iteration")
    if config.stopped_at is not None:
        return f"Stopped by hand after {n}"
    if still_improves(shown):
        return f"Still improving after {n}"
    if info.stop_reason == "closed form":
        return "Solved directly"
    return n if config.is_sampled else f"Converged after {n}"


def still_improves(shown: Shown) -> bool:
    """Whether a fit ended because it had no more iterations."""
    return bool(re.match("reached max_iter", shown.info.stop_reason)) and (
        "max_iter" in shown.config.parameters
    )


def waits_for() -> str:
    """Say what a job in the queue waits for."""
    running = (job for job in services.jobs().active() if job.state == "running")
    ahead = [JOB_TITLES.get(job.kind, "other work").lower() for job in running]
    return f"waits for: {ahead[0]}" if ahead else "waiting"
