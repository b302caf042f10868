"""Windows of a served app over its websocket, without a browser."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig, defaults
from appca.runs.fit import fit_run
from appca.runs.store import RunStore
from benchmarks.visitors import Served, serving, visited
from benchmarks.window import Window

pytestmark = pytest.mark.slow
SECONDS = 120


def states(home: Path, jobs: set[str]) -> dict[str, str]:
    """What has become of jobs."""
    files = {job: home / "jobs" / job / "status.json" for job in jobs}
    return {
        job: json.loads(file.read_text())["state"] for job, file in files.items() if file.exists()
    }


def jobs_of(window: Window) -> set[str]:
    return set(filter(None, window.address.get("job", "").split(",")))


def listed(window: Window) -> set[str]:
    names = (key for key in window.widgets if key.startswith("cancel-"))
    return {key.removeprefix("cancel-") for key in names}


async def act(rng: random.Random, window: Window) -> str:
    """Do something that a person may do, wait until the page has been drawn, and say what it was.

    A page without sliders is a fault: the widgets are there under every key they may have.
    """
    runs = window.runs
    kind = rng.choice(["slider", "slider", "slider", "fit", "cancel", "look"])
    if kind == "slider":
        await window.move(*rng.choice([("k", rng.randint(2, 8)), ("l", rng.randint(1, 3))]))
    elif kind == "fit" and "refine" in window.widgets:
        await window.press("refine")
    elif kind == "cancel" and listed(window):
        await window.press(f"cancel-{rng.choice(sorted(listed(window)))}")
    else:
        kind = "look"
        await window.send()
    await window.until(lambda: window.runs > runs)
    return kind


def long_fit(server: Served) -> str:
    """Store a fit of so many starts that every other K and L is fitted by a job; return its id."""
    dataset = DatasetStore(server.home).get(server.digest)
    config = RunConfig(server.digest, {}, "aPPCA", defaults("aPPCA") | {"n_init": 20})
    return RunStore(server.home).save(config, fit_run(dataset, config), origin="fit").id


async def two_windows(rng: random.Random, url: str, run: str, home: Path) -> Counter[str]:
    """Let two windows act at random; count what they did, and the jobs that the other had then."""
    counts: Counter[str] = Counter()
    async with Window(url, run=run) as ann, Window(url, run=run) as bob:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            one, other = rng.sample([ann, bob], 2)
            for _ in range(rng.randint(1, 4)):
                settings = {key: other.address[key] for key in ("data", "run", "k", "l")}
                jobs = jobs_of(other)
                before = dict(one.address)
                kind = await act(rng, one)
                moved = any(before[key] != one.address[key] for key in ("k", "l"))
                counts.update({kind: 1, "moved": moved, "jobs": len(jobs)})
                ended = states(home, jobs)
                assert not {"cancelled", "failed"} & set(ended.values()), ended
                assert settings.items() <= other.address.items()
                assert not listed(one) & (jobs_of(other) - jobs_of(one)), "only one's own"
            await asyncio.sleep(rng.uniform(0.0, 2.0))
        assert ann.faults == bob.faults == []
    return counts


def apart(what: Coroutine) -> Any:
    """Run in a thread, since a browser test before leaves its event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, what).result()


def test_two_windows_at_random_neither_end_nor_change_what_is_the_others(seed):
    with serving() as server:
        counts = apart(two_windows(random.Random(seed), server.url, long_fit(server), server.home))
    assert counts["jobs"] > 10, "there was something to end"
    assert min(counts[kind] for kind in ("fit", "cancel", "look")) > 0, counts
    assert counts["moved"] > counts["slider"] / 2 > 0, "some moves are to where the slider is"


def test_twenty_visitors_meet_no_error_and_the_memory_stays_flat():
    with serving() as server:
        seen = apart(visited(server, 20, 6))
    assert seen.faults == []
    half = len(seen.rss_mb) // 2
    assert max(seen.rss_mb[half:]) < 1.25 * max(seen.rss_mb[:half])
