"""Windows of a served app over its websocket, without a browser."""

import asyncio
import json
import random
import time
from pathlib import Path

import pytest

from benchmarks.visitors import serving, visited
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


async def act(rng: random.Random, window: Window) -> None:
    """Do something that a person may do, and wait until the page has been drawn."""
    runs = window.runs
    kind = rng.choice(["slider", "slider", "slider", "fit", "cancel", "look"])
    if kind == "slider" and {"k", "l"} <= window.widgets.keys():
        await window.move(*rng.choice([("k", rng.randint(2, 8)), ("l", rng.randint(1, 3))]))
    elif kind == "fit" and "refine" in window.widgets:
        await window.press("refine")
    elif kind == "cancel" and listed(window):
        await window.press(f"cancel-{rng.choice(sorted(listed(window)))}")
    else:
        await window.send()
    await window.until(lambda: window.runs > runs)


async def two_windows(rng: random.Random, url: str, digest: str, home: Path) -> int:
    """Let two windows act at random; return how many jobs the one at rest had meanwhile."""
    watched = 0
    async with (
        Window(url, data=digest, k="4", l="2") as ann,
        Window(url, data=digest, k="6", l="2") as bob,
    ):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            one, other = rng.sample([ann, bob], 2)
            for _ in range(rng.randint(1, 4)):
                settings = {key: other.address[key] for key in ("data", "run", "k", "l")}
                jobs = jobs_of(other)
                watched += len(jobs)
                await act(rng, one)
                ended = states(home, jobs)
                assert not {"cancelled", "failed"} & set(ended.values()), ended
                assert settings.items() <= other.address.items()
                assert not listed(one) & (jobs_of(other) - jobs_of(one)), "only one's own"
            await asyncio.sleep(rng.uniform(0.0, 2.0))
        assert ann.faults == bob.faults == []
    return watched


def test_two_windows_at_random_neither_end_nor_change_what_is_the_others(seed):
    with serving() as server:
        watched = asyncio.run(
            two_windows(random.Random(seed), server.url, server.digest, server.home)
        )
    assert watched > 10, "there was something to end"


def test_twenty_visitors_meet_no_error_and_the_memory_stays_flat():
    with serving() as server:
        seen = asyncio.run(visited(server, 20, 6))
    assert seen.faults == []
    half = len(seen.rss_mb) // 2
    assert max(seen.rss_mb[half:]) < 1.25 * max(seen.rss_mb[:half])
