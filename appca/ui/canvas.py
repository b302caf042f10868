"""The canvas on a page: its scene, its messages, and the routes of its files."""

import base64
import hashlib
import json
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import streamlit as st
from msgspec import Meta, Struct, field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from appca.analysis.groups import COLOURS
from appca.analysis.umap import Embedding
from appca.canvas.blobs import JSON, RAW, Parcels, publish
from appca.canvas.html import JS, closed_bundle
from appca.canvas.panels import colour_of
from appca.canvas.scene import Map, Scene, axes_map, principal_map, projected, scene_shown, texts_of
from appca.data.brain import has_places, side_by_side
from appca.data.dataset import Dataset
from appca.plots.components import picture_shape
from appca.plots.style import described
from appca.runs.home import home, secret
from appca.runs.run import RunConfig
from appca.storage.schema import FromOne, fitted
from appca.ui import STATIC, controls, fits, services, state, streamlit_internals
from appca.ui.addresses import place
from appca.ui.services import by_key, kept
from appca.ui.state import guarded


class PageScene(NamedTuple):
    """A scene as drawn on a page."""

    scene: Scene
    key: str  # identifies the content, so that answers about rows can be cached
    scores: Callable[[np.ndarray], np.ndarray] | None = None  # maps rows (n,) to scores (n, K)

    @property
    def meta(self) -> dict[str, Any]:
        """The header."""
        return self.scene.meta


def scene_of(
    dataset: Dataset, shown: fits.Shown, colouring: str, embedding: Embedding | None = None
) -> PageScene:
    """Return the scene of a fit with its maps; optional colourings only if `colouring` is one."""
    fitted, maps = shown.fitted, maps_of(dataset, shown)
    if has_places(dataset):
        places = kept(f"slices-{dataset.digest}", lambda: side_by_side(dataset))
        maps["slices"] = Map("Slices", places)
    laid_out, trust, colourings = "", None, {}
    if embedding is not None:
        maps["umap"] = Map("UMAP", embedding.coordinates, embedding.near)
        laid_out = hashlib.blake2b(embedding.coordinates.tobytes()).hexdigest()
        trust = embedding.trust
    if colouring.startswith("feature:") or (colouring in COLOURS and COLOURS[colouring].offered):
        of = f"{shown.key}-{colouring}-{laid_out}-{trust is None}"
        colourings[colouring] = coloured(of, dataset, fitted, colouring, trust)
    axes = maps["features"].axes if "features" in maps else ()
    parts = (shown.key, [*colourings], laid_out, trust is None, axes)
    key = hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()
    scene = _of_fit(key, dataset, fitted, maps, colourings=colourings)
    return PageScene(scene, key, lambda rows: projected(dataset, fitted, rows))


_of_fit, coloured = by_key(16)(scene_shown), by_key(16)(colour_of)
on_axes = by_key(16)(axes_map)


def maps_of(dataset: Dataset, shown: fits.Shown) -> dict[str, Map]:
    """Return the maps of a fit that need no job: by PCA and, of tables, by two features."""
    maps = {"pca": principal_of(dataset, shown.config, shown)}
    if axes := controls.axes_of(dataset, shown.fitted):
        maps["features"] = on_axes(f"{shown.key}-{axes}", dataset, shown.fitted, axes)
    return maps


def principal_of(dataset: Dataset, config: RunConfig, shown: fits.Shown | None = None) -> Map:
    """Return the map of the first two principal components, with gaps filled by the fit shown."""
    before = services.prepared(dataset.digest, config.preprocessing)
    key = f"pca-{dataset.digest}-{json.dumps(config.preprocessing)}"
    key += f"-{shown.key}" if shown and dataset.n_missing else ""
    few, dtype = dataset.n_rows <= MOST_COPIED, np.result_type(dataset.X.dtype, np.float32)
    names = None if picture_shape(dataset) else dataset.feature_names

    def make() -> Map:
        X = shown.fitted.completed(dataset.X, dataset.missing) if shown else dataset.X
        read = partial(before.transform if few else partial(before.blocks, dtype=dtype), X)
        return principal_map(read() if few else read, names)

    return kept(key, make)


PREFIX, HOST = "/canvas", STATIC / "host.js"
SCRIPT = f"{hashlib.sha256(closed_bundle(HOST).encode()).hexdigest()[:16]}.js"
LOADER = (STATIC / "loader.js").read_text(encoding="utf-8").replace("NAME", SCRIPT)
KEY_HEADER, MOST_ROWS = "x-appca-key", 4096
MOST_COPIED = 100_000  # maximum number of rows that PCA reads from a copy in memory
MOST_QUESTIONS = 32  # maximum number of scenes with answers, in addition to those on screen
LOOPBACK, _NAME = frozenset({"127.0.0.1", "localhost", "::1"}), re.compile(r"[0-9a-f]{32}")
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Encoding": "identity",  # compressing 19 MB takes longer than sending it
}
_FOR_GOOD = {"Cache-Control": "private, max-age=31536000, immutable"}
_NOT_KEPT = {"Cache-Control": "no-store"}


class RowQuestions(NamedTuple):
    """Answers about rows of large data: "texts" of the hover card, and "scores" (n, K)."""

    n_rows: int
    answers: Mapping[str, Callable[[np.ndarray], Any]]

    def answer(self, what: str, rows: np.ndarray) -> tuple[str | bytes, str]:
        """Return an answer about rows (n,) and its media type."""
        said = self.answers[what](rows)
        if isinstance(said, np.ndarray):
            return said.astype("<f4").tobytes(), RAW
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")), JSON


class Delivery:
    """The routes of scenes, with access control."""

    def __init__(
        self,
        parcels: Parcels,
        is_alive: Callable[[str], bool],
        hosts: Callable[[], Iterable[str]] = lambda: (),
    ) -> None:
        self.parcels, self.is_alive, self._hosts = parcels, is_alive, hosts
        self._questions: OrderedDict[str, RowQuestions] = OrderedDict()
        self._shown: dict[tuple[str, str], str] = {}  # (session, canvas) -> the name of its scene
        self._lock = threading.Lock()

    def ask(self, what: str, questions: RowQuestions, canvas: tuple[str, str] | None = None) -> str:
        """Answer questions about a scene, at least while the `canvas` shows it; return a name."""
        name = self.parcels.name(f"rows {what}".encode())
        with self._lock:
            self._questions[name] = questions
            self._questions.move_to_end(name)
            if canvas is not None:
                self._shown[canvas] = name
            for other in [of for of in self._shown if of != canvas and not self.is_alive(of[0])]:
                del self._shown[other]
            shown = set(self._shown.values())
            spare = [place for place in self._questions if place not in shown]
            for old in spare[:-MOST_QUESTIONS]:
                del self._questions[old]
        return name

    def key_of(self, session: str) -> str:
        """Return the signed id of a session, for its own page."""
        return f"{session}.{self.parcels.name(session.encode(), b'session')}"

    def routes(self, base: str = "") -> list[Route]:
        """Return the routes, below the base path of the server."""
        at = f"{base}{PREFIX}/{{name}}"
        return [Route(at, self._parcel), Route(f"{at}/{{what}}", self._answer, methods=["POST"])]

    async def _parcel(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == SCRIPT:
            headers = _ALWAYS | _FOR_GOOD
            return Response(closed_bundle(HOST), headers=headers, media_type="text/javascript")
        if self.session_of(request) is None:
            return _refusal(403)
        parcel = self.parcels.at_hand(name)
        if parcel is None and _NAME.fullmatch(name):
            parcel = await run_in_threadpool(self.parcels.get, name)
        if parcel is None:
            return _refusal(404)
        return Response(parcel.content, headers=_ALWAYS | _FOR_GOOD, media_type=parcel.kind)

    async def _answer(self, request: Request) -> Response:
        if self.session_of(request) is None:
            return _refusal(403)
        asked, what = self._questions.get(request.path_params["name"]), request.path_params["what"]
        if asked is None or what not in asked.answers:
            return _refusal(404)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > 4 * MOST_ROWS:
                return _refusal(400)
        rows = np.frombuffer(bytes(body[: len(body) // 4 * 4]), "<u4").astype(np.int64)
        if len(body) % 4 or not 0 <= rows.max(initial=-1) < asked.n_rows:
            return _refusal(400)
        content, kind = await run_in_threadpool(asked.answer, what, rows)
        return Response(content, headers=_ALWAYS | _NOT_KEPT, media_type=kind)

    def session_of(self, request: Request) -> str | None:
        """Return the session of a request; None unless it is open on this server."""
        headers = request.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        hosts, ours = LOOPBACK.union(self._hosts()), place(f"http://{host}")
        if "*" not in hosts and (ours is None or ours[1].rstrip(".") not in hosts):
            return None
        origins = (None, f"http://{host}".lower(), f"https://{host}".lower())
        if (origin and origin.lower()) not in origins:
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return None
        key = headers.get(KEY_HEADER, "")
        session = key.rpartition(".")[0]
        signed = secrets.compare_digest(key.encode(), self.key_of(session).encode())
        return session if signed and self.is_alive(session) else None


def _refusal(status: int) -> Response:
    return Response(status_code=status, headers=_ALWAYS | _NOT_KEPT)


@cache
def delivery() -> Delivery:
    """Return the routes of this server's scenes."""
    try:
        key = secret(home())
    except OSError:
        key = secrets.token_bytes(32)

    def hosts() -> set[str]:
        addresses = [st.get_option("server.address"), st.get_option("browser.serverAddress")]
        named = [*addresses, *(st.get_option("server.allowedHosts") or ())]
        return {str(name).strip().lower().rstrip(".") for name in named if name}

    return Delivery(Parcels(key), streamlit_internals.is_connected, hosts)


def address(scene: PageScene, dataset: Dataset, canvas: str = "canvas") -> dict[str, Any]:
    """Publish a scene to the session; return the addresses that its canvas needs."""
    here, session = delivery(), streamlit_internals.session()
    answers: dict[str, Callable[[np.ndarray], Any]]
    answers = {"texts": partial(texts_of, dataset.ids, scene.scene.lines)}
    answers |= {} if scene.scores is None else {"scores": scene.scores}
    questions = RowQuestions(dataset.n_rows, answers)
    return publish(scene.scene, dataset.digest, here.parcels) | {
        "at": f"{streamlit_internals.base()}{PREFIX}/",
        "questions": here.ask(f"{dataset.digest} {scene.key}", questions, (session, canvas)),
        "key": here.key_of(session),
    }


BOTH = "both"  # subspaces and pairs side by side
VIEWS = (BOTH, "subspaces", "pairs", "pca", "features", "slices", "umap")
_styles = [(JS / name).read_text(encoding="utf-8") for name in ("canvas.css", "bar.css")]
_part = partial(st.components.v2.component, js=LOADER, isolate_styles=False)
_canvas = _part("appca_canvas", html="<div class='appca-canvas-box'></div>", css=_styles[0])
_bar = _part("appca_bar", css=_styles[1])
FLAT = "without_webgl"  # set if this browser cannot draw the canvas
SENT_S = 0.06  # in which a browser fetches a scene of 10,000 rows
log = logging.getLogger(__name__)
M = TypeVar("M", bound="_Message")
Acts = Mapping[str, Callable[[str], object]]  # actions by name


def draw(  # noqa: PLR0913 - all but four have defaults
    dataset: Dataset,
    scene: PageScene,
    layout: str,
    colouring: str,
    *,
    key: str = "canvas",
    height: int | str | None = None,
    options: Mapping[str, Any] | None = None,
    selected: np.ndarray | None = None,
    on_select: Callable[[np.ndarray], None] | None = None,
    on_point: Callable[[int | None], None] | None = None,
    acts: Acts | None = None,
) -> None:
    """Draw a scene; a lasso selects rows on all pages.

    The layout and the colouring are keys of the scene, or "component:" and a number; for `options`
    see `js/types.d.ts`. `selected` (N,) replaces the selection of all pages, and `on_select` then
    receives the lasso's rows. `on_point` gets the row that a click focuses, or None. Keys of
    `acts`: "view", "named", "colour", "class" (JSON of a label, old and new name), "leave_out".
    """

    def selected_rows(message: SelectionMessage) -> None:
        try:
            mask = read_selection(message.bits, dataset.n_rows)
        except ValueError as error:
            log.warning("The browser sent a selection that is ignored: %s", error)
        else:
            (on_select or partial(state.put, dataset))(mask)

    def pointed(message: PointMessage) -> None:
        if on_point is not None and message.row < dataset.n_rows:
            on_point(None if message.row < 0 else message.row)

    select = partial(_take, key, "selection", SelectionMessage, selected_rows)
    flat, chosen = st.session_state.get(FLAT), state.get(dataset) if selected is None else selected
    bits = np.packbits(chosen, bitorder="little").tobytes()
    _canvas(
        key=key,
        data={
            "scene": address(scene, dataset, key),
            "options": {"layout": layout, "colouring": colouring} | dict(options or {}),
            "height": "auto" if flat else f"{height}px" if isinstance(height, int) else height,
            "selected": base64.b64encode(bits).decode() if chosen.any() else None,
            "seen": st.session_state.get(f"{key}-selection"),
            "holds": on_point is not None,
        },
        on_selection_change=guarded(select),
        on_point_change=guarded(partial(_take, key, "point", PointMessage, pointed)),
        on_lost_change=lambda: None,  # Streamlit returns only state with a callback
        on_flat_change=guarded(partial(st.session_state.update, {FLAT: True})),
        **_on_acts(key, acts or {}, select),
    )
    if flat:
        from appca.canvas.figure import panels_without_webgl

        with st.container(key=f"{key}-flat"):
            st.caption("The fullest panels, with a random sample of the rows if there are many.")
            figure = panels_without_webgl(scene.scene, layout, colouring)
            st.plotly_chart(figure, alt=described(figure), key=f"{key}-panels")
    if st.session_state.get(f"{key}-shown") != scene.key:
        st.session_state[f"{key}-shown"] = scene.key
        time.sleep(SENT_S)  # sent before the rest of the page, which keeps the browser busy


def draw_bar(
    controls: Mapping[str, Any], acts: Acts, on_size: Callable[["SizeMessage"], None]
) -> None:
    """Draw the controls of a canvas; `controls` are declared in `js/types.d.ts`."""
    taken = (st.session_state.get(f"controls-{kind}") for kind in ("size", *acts))
    _bar(
        key="controls",
        data={
            "scene": {"at": f"{streamlit_internals.base()}{PREFIX}/"},
            "controls": controls,
            "seen": [stamp for stamp in taken if stamp],
        },
        on_size_change=guarded(partial(_take, "controls", "size", SizeMessage, on_size)),
        **_on_acts("controls", acts),
    )


# Messages from the browser, validated before use


class _Message(Struct):
    """A message of the canvas with a stamp, because Streamlit repeats messages in later runs."""

    mount: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,40}\Z")]
    number: FromOne


class SelectionMessage(_Message):
    """A selection: one bit per row, lowest bit first; None without rows."""

    bits: bytes | None = None


class PointMessage(_Message):
    """The row focused by a click, counted from 0; -1 if none."""

    row: Annotated[int, Meta(ge=-1)]


class ActMessage(_Message):
    """A choice: a colour, a view, a named selection, or a renamed class."""

    name: Annotated[str, Meta(max_length=1000)]


class SizeMessage(_Message):
    """K and L, final or during a slider's move; L is None if it is learned."""

    k: FromOne
    active: FromOne | None = field(name="l")
    moving: bool


def read_selection(bits: bytes | None, n_rows: int) -> np.ndarray:
    """Return the selected rows (n_rows,), bool; ValueError unless there is one bit per row."""
    if bits is None:
        return np.zeros(n_rows, bool)
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(bool)
    if len(bits) != -(-n_rows // 8) or flags[n_rows:].any():
        message = f"It has {len(bits):,} bytes for {n_rows:,} rows, or rows beyond the last."
        raise ValueError(message)
    return flags[:n_rows]


def _on_acts(key: str, acts: Acts, first: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Return the callbacks of acts; `first` handles earlier messages that arrive with them."""

    def taken(name: str) -> None:
        first()
        _take(key, name, ActMessage, lambda said: acts[name](said.name))

    return {f"on_{name}_change": guarded(partial(taken, name)) for name in acts}


def _take(key: str, name: str, kind: type[M], act: Callable[[M], object]) -> None:
    """Execute a browser message once, if it is valid."""
    sent = st.session_state.get(key)
    message = sent.get(name) if isinstance(sent, Mapping) else None
    if message is None:
        return
    try:
        checked: M = fitted(kind, dict(message))
    except (TypeError, ValueError) as error:
        log.warning("The browser sent a %s that is ignored: %s", name, error)
    else:
        mount, number = st.session_state.get(f"{key}-{name}", ("", 0))
        if mount != checked.mount or number < checked.number:
            st.session_state[f"{key}-{name}"] = checked.mount, checked.number
            act(checked)
