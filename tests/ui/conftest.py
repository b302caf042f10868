"""Fixtures that run the whole app, including its frame, in Streamlit's AppTest."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest, local_script_runner

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs.queue import ENDED, JobStatus
from appca.models import climb
from appca.plots.components import png
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import Run, RunStore
from appca.ui import explore, export, fits, services

APP, SECONDS = Path(__file__).parents[2] / "app.py", 60
_PLACES = "explore data/open data/this data/add components/gallery components/meaning"
_PLACES += " groups/differences groups/unusual check/choose check/trust check/advanced paper export"
PAGES = {place: place.partition("/")[0].capitalize() for place in _PLACES.split()}  # their titles

# Every AppTest searches all installed packages for components, so the result is cached.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

_look_again_and_again = local_script_runner.require_widgets_deltas


def _wait(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
    """Wait for the end of the script, without slowing it down by polling every millisecond."""
    runner._script_thread.join(timeout)
    _look_again_and_again(runner, 0.1)


local_script_runner.require_widgets_deltas = _wait

_fit = fits.fit_run
_fits: dict[str, FitResult] = {}


def fit_once(dataset: Dataset, config: RunConfig, **given: object) -> FitResult:
    """Fit from few starts, or return the result of an earlier test with the same settings."""
    if config.id not in _fits:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(climb, "AUTOMATIC", climb.AUTOMATIC[:3])
            _fits[config.id] = _fit(dataset, config, **given)
    return _fits[config.id]


fits.fit_run = fit_once  # every test starts with the same fit
fits.waits_for_compiler = lambda *_given: False  # as in a warm server
explore.SHORT = dict.fromkeys(explore.SHORT, 0.0)  # nothing is checked unless a test enables it
DOT, preview = png(np.zeros((1, 1), np.uint8)), export.preview
export.preview = lambda _key, _figure: DOT  # saves two seconds per visit of Export


@pytest.fixture
def start() -> Callable[..., AppTest]:
    """Return ``start(place=None, **address)``: the app in a new session; data may be a Dataset."""
    fits.recent.clear()  # fits of earlier tests

    def open_app(place: str | None = None, **address: str | Dataset) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=SECONDS)
        for key, value in address.items():
            is_data = isinstance(value, Dataset)
            app.query_params[key] = DatasetStore(home()).put(value) if is_data else value
        app.run()
        return app if place is None else go(app, place)

    return open_app


def go(app: AppTest, place: str) -> AppTest:
    """Open a page, or one of its tabs by ``page/tab``, in a running session."""
    page, _, tab = place.partition("/")
    app.switch_page(f"pages/{page}/{page}.py")
    if tab:
        app.query_params["tab"] = tab
    return app.run()


def stored_run(
    data: Dataset, model: str = "aPPCA", preprocessing: dict | None = None, **parameters: object
) -> Run:
    """Fit and store a run, like ``python -m appca fit --store``."""
    DatasetStore(home()).put(data)
    config = RunConfig(data.digest, preprocessing or {}, model, parameters)
    return RunStore(home()).save(config, fit_once(data, config))


def run_of(app: AppTest) -> Run:
    return RunStore(home()).get(address(app)["run"])


def click(app: AppTest, key: str) -> AppTest:
    return healthy(app.button(key=key).click().run())


def press(app: AppTest, part: str, act: str, value: object = "", text: object = "") -> AppTest:
    """Press a button in HTML, or choose from a list; see `appca.ui.kit`."""
    ids = [one.proto.id for one in app.get("bidi_component")]
    (place,) = (one for one in ids if one.endswith(f"-{part}_acts"))
    message = {"act": act, "value": str(value), "text": str(text)}
    state = WidgetState(id=_make_trigger_id(place, "events"))
    state.json_trigger_value = json.dumps([{"event": "act", "value": message}])
    states = app._tree.get_widget_states()
    states.widgets.append(state)
    return app._run(states)


def choose(app: AppTest, part: str, label: str, text: str) -> AppTest:
    """Choose a text from the list with a label in a part of the HTML."""
    act, value = re.findall(r'data-act="(.*?)" data-value="(.*?)"', _list(app, label))[0]
    return press(app, part, act, unescape(value), choices(app, label).index(text))


def choices(app: AppTest, label: str) -> list[str]:
    texts = re.findall(r'<option value="\d+"[^>]*>(.*?)</option>', _list(app, label))
    return [unescape(text) for text in texts]


def chosen(app: AppTest, label: str) -> str:
    return unescape(re.findall(r'selected="">(.*?)</option>', _list(app, label))[0])


def _list(app: AppTest, label: str) -> str:
    lists = re.findall(r"<select.*?</select>", html(app))
    (body,) = (one for one in lists if f'aria-label="{label}"' in one)
    return str(body)


def sentences(app: AppTest) -> list[str]:
    return [box.value.replace("\\", "") for box in app.error]


def healthy(app: AppTest) -> AppTest:
    """Check that a page shows neither an exception nor an error box."""
    assert [problem.message for problem in app.exception] == []
    assert sentences(app) == []
    return app


def html(app: AppTest) -> str:
    return "\n".join(item.proto.body for item in app.get("html"))


def told(app: AppTest) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption]).replace("\\", "")


def charts(app: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def keys(app: AppTest) -> set[str]:
    return {one.key or "" for one in app.button}


def address(app: AppTest) -> dict[str, str]:
    params = dict(app.query_params)
    return {key: value[-1] if isinstance(value, list) else value for key, value in params.items()}


class Bar:
    def __init__(self, app: AppTest) -> None:
        places = (one.proto for one in app.get("bidi_component"))
        (place,) = (one for one in places if one.id.endswith("-controls"))
        self._app, self._id = app, place.id
        self.shown = json.loads(place.json)["controls"]
        self.colours = {key: name for key, name, _ in self.shown["colours"]}
        self.views = dict(self.shown["views"])

    def send(self, kind: str, name: str = "", **what: Any) -> AppTest:
        """Send a message: "size", "colour", "view", "beside", "undo" or "redo"."""
        states = self._app._tree.get_widget_states()
        stamp = {"mount": "test", "number": next(_numbers)}
        sent = json.dumps({kind: stamp | (what or {"name": name})})
        states.widgets.append(WidgetState(id=self._id, json_value=sent))
        return self._app._run(states)


class slider:
    def __init__(self, app: AppTest, name: str) -> None:
        self._bar, self.name = Bar(app), name
        self.sizes = self._bar.shown["sizes"]
        self.value = self.sizes[name]

    def set_value(self, value: int, *, moving: bool = False) -> "slider":
        k, active = ({**self.sizes, self.name: value}[name] for name in "kl")
        active = active if isinstance(active, int) else None
        k, pushed = (max(k, active), active) if self.name == "l" else (k, active and min(active, k))
        self._sent = {"k": k, "l": pushed, "moving": moving}
        return self

    def run(self) -> AppTest:
        return self._bar.send("size", **self._sent)


_numbers = count(1)


def find(widgets: Iterable, label: str) -> Any:
    return next(one for one in widgets if one.label == label)


class ScriptedJobs:
    """A stand-in for worker processes: the test sets the state of jobs."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobStatus] = {}
        self.keys: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.pauses: list[float] = []

    def submit(self, kind, spec, key=None, after=0.0, *, asked=True):
        self.pauses.append(after)
        for job, known in self.keys.items():
            if known == key and self.jobs[job].state not in ENDED:
                return job
        job, curve = f"{len(self.jobs):012x}", [(1, -300.0), (2, -200.0)] if kind == "fit" else []
        self.keys[job], at = key, ("running", "fit", 0.4, 2, curve, 8.0)
        self.jobs[job] = JobStatus(job, kind, spec, key, asked, *at)
        return job

    def end(self, job, state, message="", **result):
        self.jobs[job] = self.jobs[job]._replace(state=state, message=message, result=result)

    def finish_fit(self, job, **changes):
        config = RunConfig.from_dict(self.jobs[job].spec["config"] | changes)
        result = fit_once(services.dataset(config.dataset), config)
        self.end(job, "done", run=RunStore(home()).save(config, result).id)

    def status(self, job):
        return self.jobs.get(job)

    def active(self):
        return [job for job in self.jobs.values() if job.state not in ENDED]

    def cancel(self, job):
        self.cancelled.append(job)
        self.end(job, "cancelled")
        return True

    def keep(self, job):
        return job in self.jobs

    def leave(self, job):
        self.cancelled.append(job)
        del self.jobs[job], self.keys[job]


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    """Record jobs instead of running them, so that the test sets their results."""
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted
