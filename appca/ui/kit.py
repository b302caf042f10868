"""Parts of pages: text, HTML, charts, facts, buttons, progress of jobs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
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
from appca.runs.run import MODELS, RunInfo
from appca.ui import STATIC, fits, services, state
from appca.ui.state import KEYS, guarded
from appca.words import about, capital, counted, nats, number, percent, shortened, signed

V = TypeVar("V")


def tried(key: str, make: Callable[[], V], tell: Callable[[str], object] = st.caption) -> V | None:
    """Return `make()`, cached by a key; draw the sentence of an error, and return None."""
    try:
        return services.kept(key, make)
    except state.TOLD as error:
        tell(markdown(str(error)))
        return None


def chart(figure: go.Figure, key: str, **options: Any) -> None:
    """Draw a figure without Plotly's tool bar, with a description as alternative text."""
    bare = {"config": {"displayModeBar": False}}
    st.plotly_chart(figure, alt=described(figure), key=key, **(bare | options))


# positions within text that Streamlit would convert to links, icons, arrows or symbols
_MADE_INTO_OTHERS = re.compile(
    r"(?<=http:|ttps:)(?=//)|(?<=:)(?=material/|streamlit:)|(?<=www)(?=\.)|(?<=\S)(?=@\S)"
    r"|(?<=-)(?=[->])|(?<=<)(?=-)|(?<=[<>~])(?==)",
    re.IGNORECASE,
)


def nats_per_row(info: RunInfo) -> str:
    """Return a run's log-likelihood per row in words."""
    return f"{nats(info.log_likelihood / info.n_rows)} per row"


def markdown(text: str) -> str:
    """Escape text, with an invisible character in what Streamlit converts after backslashes."""
    apart = _MADE_INTO_OTHERS.sub("\u2060", text)
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+-.!|~$:^&=@" else c for c in apart)


def apart(label: str, of: str) -> str:
    """Return a button's label as Markdown, with a part only for screen readers."""
    return f"{label} *{markdown(of)}*"


def tag(name: str, body: str, css: str = "", **attributes: str) -> str:
    """Return an HTML element; `body` must be HTML, attributes are escaped here."""
    parts = {"class": css, **attributes} if css else attributes
    written = "".join(f' {key}="{escape(value)}"' for key, value in parts.items())
    return f"<{name}{written}>{body}</{name}>"


def words(text: object) -> str:
    """Escape data for the body of an HTML element."""
    return escape(str(text))


def fact_list(lines: dict[str, str]) -> str:
    """Return names and values as an HTML list."""
    body = "".join(tag("dt", words(key)) + tag("dd", words(value)) for key, value in lines.items())
    return tag("dl", body, "ca-facts")


def table(heads: Iterable[object], lines: Iterable[Iterable[object]]) -> str:
    """Return data as an HTML table; the first cell of a line is its heading."""
    head, body = "".join(tag("th", words(text), scope="col") for text in heads), ""
    for name, *cells in lines:
        first = tag("th", words(name), scope="row")
        body += tag("tr", first + "".join(tag("td", words(cell)) for cell in cells))
    return tag("div", tag("table", tag("thead", tag("tr", head)) + tag("tbody", body)), "ca-table")


Level = Literal["good", "doubtful", "bad", "unknown"]
SIGNS: dict[Level, str] = {"good": "✓", "doubtful": "◐", "bad": "✕", "unknown": "–"}


def chip(level: Level, text: str) -> str:
    """Return a chip as HTML, with a symbol next to its colour."""
    sign = tag("span", SIGNS[level], **{"aria-hidden": "true"})
    return tag("span", sign + words(text), f"ca-chip ca-{level}")


def answer(title: str, text: str = "", level: Level | None = None) -> None:
    """Draw the sentence that opens a tab."""
    body = tag("div", words(title), "ca-answer-title") + tag("div", words(text)) * bool(text)
    css = "ca-answer" if level is None else f"ca-answer ca-{level}"
    st.html(tag("div", body, css, role="status"))


def numbers(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the first three numbers, with their meanings, as HTML."""
    cells = (tag("div", tag("b", words(n)) + tag("span", words(of))) for n, of in pairs[:3])
    return tag("div", "".join(cells), "ca-figures")


def shares(dataset: Dataset, shown: fits.Shown) -> tuple[np.ndarray, float]:
    """Return the shares of variance of the components and of all, computed once."""
    return services.kept(f"shares-{shown.key}", partial(explained_shares, shown.fitted, dataset))


def fit_facts(dataset: Dataset, shown: fits.Shown) -> dict[str, str]:
    """Return facts about a fit by name."""
    info, fitted, latent = shown.info, shown.fitted, shown.fitted.latent_variance
    lines = {
        "Log-likelihood": f"{nats_per_row(info)}, all rows",
        "Explained": f"{percent(shares(dataset, shown)[1], 1)} of variance",
        "Doubtful rows": percent(float(np.mean(fitted.membership < DOUBTFUL)), 1),
        "Ended": f"{ending(shown)} in {about(info.seconds)}",
        "Noise variance": number(float(np.mean(fitted.noise_variance)), 4),
        "Factor variance": " to ".join(f"{v:.3g}" for v in sorted({latent.min(), latent.max()})),
    }
    if fitted.alpha is not None:  # models that learn the number of components
        used = fitted.active.sum(axis=1)
        lines["Components"] = f"{len(fitted.components)} in the best draw"
        lines["Used by a row"] = f"{used.mean():.1f} on average, {used.min()} to {used.max()}"
        lines["Alpha"] = f"{fitted.alpha:.3g}"
    if info.likelihood_error:  # estimated, not summed over all supports
        error = info.likelihood_error / info.n_rows
        lines["Likelihood"] = f"{info.likelihood}; ± {error:.2g} nats per row"
    return lines | {"Id": shown.config.id + ", imported" * (shown.config.imported is not None)}


def tabs(names: Mapping[str, str]) -> str:
    """Draw the tabs of a page, key to name; return the key selected by address, click or memory."""
    key = f"tab-{'-'.join(names)}"
    wanted = (st.query_params.get("tab"), st.session_state.get(key), *names)
    now = next(tab for tab in wanted if tab is not None and tab in names)
    if wanted[1] != now:
        st.session_state[key] = now
    look: Any = {"label_visibility": "collapsed", "on_change": state.pass_value}
    look["args"] = [key, lambda tab: st.query_params.update(tab=tab)]
    one_of("Part of this page", names, key, **look)
    st.session_state[KEYS.tab] = now
    return now


def one_of(
    label: str, names: Mapping[V, str], key: str, default: V | None = None, **more: Any
) -> V:
    """Draw choices, value to name, as buttons; return the value of the selected button."""
    first = next(iter(names)) if default is None else default
    if st.session_state.get(key) not in names:  # Streamlit warns if a default and a state exist
        st.session_state[key] = first
    look: Any = {"format_func": names.__getitem__, "required": True, "persist_state": "session"}
    chosen = st.segmented_control(label, list(names), key=key, **look, **more)
    return first if chosen is None else chosen


def first_of_page(total: int, size: int, key: str) -> int:
    """Draw page numbers if there are several pages; return the first item on the page."""
    pages = -(-total // size)
    if pages < 2:
        return 0
    width = 120 + 48 * min(pages, 7)
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    return (st.pagination(pages, key=key, persist_state="session", width=width) - 1) * size


def onward(place: str, label: str, icon: str = ":material/arrow_forward:") -> None:
    """Draw a link to another page, or with ``page/tab`` to one of its tabs."""
    page, _, tab = place.partition("/")
    query, file = {"tab": tab} if tab else None, f"pages/{page}/{page}.py"
    st.page_link(file, label=label, icon=icon, width="content", query_params=query)


def scripted(name: str, html: str | None = None) -> Any:
    """Return the component of a script in `STATIC`, with its style."""
    script, style = (STATIC / f"{name}{kind}" for kind in (".js", ".css"))
    css = style.read_text(encoding="utf-8") if style.is_file() else None
    look: Any = {"html": html, "js": closed_bundle(script), "css": css, "isolate_styles": False}
    return st.components.v2.component(f"appca_{script.stem}", **look)


def around(limits: tuple[float, float], value: float) -> tuple[float, float]:
    """Widen a widget's limits to include the value of a run, which Streamlit would change."""
    most = type(value)(2**53 - 1)  # exact in browsers; Streamlit refuses mixed types
    return min(limits[0], value), max(limits[1], min(value, most))


def press(label: str, key: str, act: Callable[..., object], *args: Any, **look: Any) -> None:
    """Draw a button that calls `act` with `args`; its errors become notices."""
    st.button(label, key, on_click=guarded(act), args=args, **look)


Act = Callable[[str, str], object]  # receives the button's value and the typed text
_listener = scripted("acts")


def acting(html: str, key: str, acts: Mapping[str, Act]) -> None:
    """Draw escaped HTML whose buttons call the `acts` of their kinds; see `button` and `name`."""
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
    """Return a button with a `body` of HTML; `act` is a key of `acting`'s acts."""
    more = {"title": label} if label else {}
    if pressed is not None:
        more["aria-pressed"] = str(pressed).lower()
    shared = {"type": "button", "data-act": act, "data-value": str(value)}
    return tag("button", body, css, **shared, **more)


def choice(
    texts: Sequence[str], act: str, value: object, now: int, label: str, css: str = "ca-choice"
) -> str:
    """Return a list as HTML; its act gets the selected index, initially `now` (-1: none)."""
    options = [tag("option", "choose one", value="", selected="")] if now < 0 else []
    for i, text in enumerate(texts):
        chosen = {"selected": ""} if i == now else {}
        options.append(tag("option", words(text), value=str(i), **chosen))
    shared = {"data-act": act, "data-value": str(value), "aria-label": label}
    return tag("select", "".join(options), css, **shared)


def name(body: str, act: str, value: object, now: str, label: str) -> str:
    """Return a name, initially `now`, as a button that becomes a text field."""
    shared = {"type": "button", "data-act": act, "data-value": str(value), "data-name": now}
    return tag("button", words(body), "ca-act ca-named", title=label, **shared)


@guarded
def _answer(key: str, acts: Mapping[str, Act]) -> None:
    message = st.session_state[f"{key}_acts"].get("act")
    if isinstance(message, Mapping) and message.get("act") in acts:  # else not from our script
        value, text = (str(message.get(part, ""))[:1000] for part in ("value", "text"))
        acts[message["act"]](value, text)


WEIGHTS, MOST_WEIGHTS = 4, 24  # number of weights per component of a table: initially, and expanded
MOST_CLASSES = 60
SURE = 2.0  # distance from 0, in standard deviations, at which a weight's sign is certain


def loadings(x: np.ndarray, names: tuple[str, ...] | None, spread: np.ndarray | None = None) -> str:
    """Return the largest weights (D,) as bars, hollow if within `SURE` times `spread` of 0."""
    lines, items = [], ranked_loadings(x, names, MOST_WEIGHTS)
    short = [shortened(item.name, 16) for item in items]
    if len({*short}) < len(short):  # they differ in what was cut
        short = [item.name if len(item.name) <= 16 else f"…{item.name[-15:]}" for item in items]
    for item, name in zip(items, short, strict=True):
        colour, value = f"rgb{POSITIVE if item.value > 0 else NEGATIVE}", signed(item.value)
        look = f"background:{colour}"
        if spread is not None:
            value += f" ± {spread[item.place]:.2g}"
            if abs(item.value) < SURE * spread[item.place]:
                look = f"box-shadow:inset 0 0 0 1px {colour};background:none"
        bar = tag("div", tag("div", "", style=f"width:{item.share:.0%};{look}"), "ca-track")
        text = tag("span", words(name), title=f"{item.name}: {value}")
        lines.append(tag("div", text + bar + tag("small", words(value)), "ca-loading"))
    n = WEIGHTS if len(lines) > WEIGHTS + 2 else len(lines)
    more = tag("summary", "more", "ca-quiet") + "".join(lines[n:])
    return "".join(lines[:n]) + tag("details", more) * (len(lines) > n)


class Classes(NamedTuple):
    """The classes of all rows."""

    title: str
    names: tuple[str, ...]
    codes: np.ndarray  # (N,) negative for rows without a class

    @property
    def colours(self) -> list[str]:
        """The colour of each class."""
        return [class_colour(code, len(self.names)) for code in range(len(self.names))]


def related(dataset: Dataset) -> str:
    """Say that rows of one unit, if known, are not independent."""
    of = f"; rows of one {markdown(shortened(dataset.related))} are related: p and q are too small"
    return of * bool(dataset.related)


def every(dataset: Dataset) -> list[Classes]:
    """Return the classes of each label with 2 to `MOST_CLASSES` classes."""
    labelled = []
    for name in dataset.labels:
        key = f"{dataset.digest}-{name}-{dataset.class_order(name)}"
        colour = _label_colour(key, dataset, name)
        if colour.kind == "category" and 2 <= len(colour.names) <= MOST_CLASSES:
            labelled.append(Classes(name, colour.names, np.asarray(colour.values)))
    return labelled


def choose(dataset: Dataset, page: str) -> Classes | None:
    """Draw a menu of labels; return the classes of the chosen label, or None without classes."""
    if not (choices := {classes.title: classes for classes in every(dataset)}):
        return None
    look: Any = {"key": f"classes-{page}-{dataset.digest[:8]}", "width": 180}
    look["help"] = f"Columns of labels with 2 to {MOST_CLASSES} classes."
    chosen = st.selectbox("Classes", choices, format_func=capital, persist_state="session", **look)
    return choices[chosen]


_label_colour, POLL_SECONDS = services.by_key(64)(label_colour), 0.5


def shown(find: Callable[[], fits.Shown | None] = fits.shown) -> fits.Shown | None:
    """Return the fit to draw, if `find` has one; otherwise draw its job's progress, or offer it."""
    now, place = state.config(), None
    is_new = services.runs().get(now.id) is None
    if is_new and fits.needs_complete_rows(now):
        data, title = state.current_dataset(), MODELS[now.model].title
        st.markdown(f"{counted(data.n_missing, 'missing cell')}: {title} needs complete rows.")
        press("Fill with column means", "fill_gaps", state.fill_gaps, data, type="primary")
        return None
    if is_new and fits.running(now.id) is None:
        with (place := st.session_state[NOTE].empty()).container(**LINE, key="fitting"):
            st.html(tag("div", words(f"Fitting {', '.join(now.sizes)} …"), role="status"))
            press("Stop", "stop_fit", fits.stop, type="tertiary")
    try:
        result = find()
    finally:
        if place is not None:
            place.empty()
    if result is None and not follow(state.config().id):
        st.markdown(f"This has not been fitted yet. The fit takes {about(fits.seconds())}.")
        press("Start the fit", "start_fit", fits.start_fit, type="primary")
    return result


def follow(
    key: str, cancel: str = "job_cancel", caption: str = "", arrived: Callable[[], object] = bool
) -> bool:
    """Draw the running job for `key`, with partial results by `arrived`; False if there is none."""
    if (job := fits.running(key)) is not None:
        _follow(job.id, cancel, caption, arrived)
    return job is not None


def begin(kind: str, key: str, spec: dict[str, Any]) -> None:
    """Start the job for `key`, even if it was cancelled before, and wait for it."""
    fits.start_job(kind, spec, fits.Watched(kind, key))


def job_button(
    label: str, widget: str, kind: str, key: str, spec: dict[str, Any], *, primary: bool = True
) -> None:
    """Draw a button, with the key `widget`, that starts a job; see `begin`."""
    # A callback would miss a number that is still being typed.
    if st.button(label, type="primary" if primary else "secondary", key=widget):
        begin(kind, key, spec)
        st.rerun()


@st.fragment(run_every=POLL_SECONDS)
def _follow(job_id: str, cancel: str, caption: str, arrived: Callable[[], object]) -> None:
    job = services.jobs().status(job_id)
    if job is None or job.state in ENDED:
        st.rerun()
    st.progress(min(max(job.fraction, 0.0), 1.0), text=_line(job))
    with st.container(horizontal=True, vertical_alignment="center"):
        press("Cancel", cancel, fits.cancel, job.id)
        if job.kind == "fit":
            about_it = "End the fit now and keep its current state, marked as stopped by hand."
            look: Any = {"disabled": not job.curve, "help": about_it}
            press("Stop here and keep", "fit_keep", services.jobs().keep, job.id, **look)
        if caption:
            st.caption(caption)
    arrived()
    if job.curve:
        curve = np.array(job.curve, dtype=float)
        n_rows = services.dataset(state.config().dataset).n_rows
        sampled = job.kind == "fit" and state.config().is_sampled
        chart(likelihood(curve[:, 0], curve[:, 1], n_rows, sampled), "fit_curve")


def _line(job: JobStatus) -> str:
    if job.state == "queued":
        return capital(waits_for())
    parts = [markdown(job.stage) or "starting"]
    if job.iteration:
        sweeping = job.stage in ("burn-in", "draws")
        parts.append(f"{'sweep' if sweeping else 'iteration'} {job.iteration:,}")
    if job.seconds_left:
        parts.append(f"{about(job.seconds_left)} left")
    return " · ".join(parts)


def preview_note(shown: fits.Shown) -> bool:
    """Mark a fit that is unfinished or imported; return whether it was marked."""
    config, mark = shown.config, partial(st.badge, color="orange")
    if shown.is_refused:
        text = "The disk is full or read-only, so this fit is only in memory. Free some space in "
        text += f"{markdown(str(home()))}, and open the fit again; or save it on the page Export."
        mark("not stored", color="red", help=text)
    if config.imported is not None:
        text = "This fit is from a session file. Fit here to check that its settings give these "
        mark("imported", help=f"{text}numbers.")
        press("Fit here", "fit_here", state.open_config, config.to_be_fitted(), type="tertiary")
    elif config.stopped_at is not None:
        work = counted(shown.info.n_iter, "sweep" if config.is_sampled else "iteration")
        mark(f"stopped by hand after {work}", help="This fit was kept before it had converged.")
    elif shown.is_preview:
        text = "A short fit to at most 5,000 of the rows, with all rows drawn on it. The full fit "
        mark("first look", help=f"{text}replaces it here as soon as it is done.")
        if fits.running(state.config().id) is None:
            press(f"Fit fully ({about(fits.seconds())})", "refine", fits.start_fit, type="tertiary")
    else:
        return False
    return True


def gaps_note(dataset: Dataset, whose: str) -> None:
    """State that `whose` fits read the column mean in missing cells, if there are any."""
    if dataset.missing is None:
        return
    verb = "is" if dataset.n_missing == 1 else "are"
    cells = f":material/info: {counted(dataset.n_missing, 'cell')} of these data {verb} missing."
    st.caption(f"{cells} {whose} use column means there: compare them only with each other.")


LINE: Any = {"horizontal": True, "vertical_alignment": "center", "gap": "small"}
NOTE = "status_note"  # in `st.session_state`: a page's text for the status line
JOB_TITLES = {
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


def ending(shown: fits.Shown) -> str:
    """Show how a fit ended."""
    info, config = shown.info, shown.config
    n = counted(info.n_iter, "sweep" if config.is_sampled else "iteration")
    if config.stopped_at is not None:
        return f"Stopped by hand after {n}"
    if still_improves(shown):
        return f"Still improving after {n}"
    if "floor" in info.stop_reason:
        return "Noise at its floor"
    if info.stop_reason == "closed form":
        return "Solved directly"
    return n if config.is_sampled else f"Converged after {n}"


def still_improves(shown: fits.Shown) -> bool:
    """Whether a fit ended at its maximum number of iterations."""
    ran_out = shown.info.stop_reason.startswith("reached max_iter")
    return ran_out and "max_iter" in shown.config.parameters


def waits_for() -> str:
    """Show why a queued job waits."""
    running = (job for job in services.jobs().active() if job.state == "running")
    ahead = [JOB_TITLES.get(job.kind, "other work").lower() for job in running]
    return f"waits for: {ahead[0]}" if ahead else "waiting"
