"""Recent work is deleted for good: no byte of it stays in the home, but for what others need."""

from pathlib import Path

import numpy as np

from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.run import FitResult
from appca.runs.store import RunStore
from tests.ui import conftest
from tests.ui.arrivals.test_uploads import give
from tests.ui.conftest import address, go, healthy, html

SECRET = "Zyxwvut"


def table(word: str) -> tuple[str, bytes]:
    """Return a CSV file whose ids hold a word that is nowhere else."""
    rng = np.random.default_rng(len(word))
    lines = [
        f"{word}{i},{a:.4f},{b:.4f},{c:.4f}" for i, (a, b, c) in enumerate(rng.random((40, 3)))
    ]
    return f"{word}.csv", "\n".join(["name,a,b,c", *lines]).encode()


def holding(word: str) -> list[Path]:
    """Return the files of the home, hidden ones too, in which a word is."""
    wide = np.array(word).tobytes()
    files = [path for path in home().rglob("*") if path.is_file()]
    texts = ((file, file.read_bytes()) for file in files)
    return [file for file, text in texts if word.encode() in text or wide in text]


def test_deleted_work_is_gone_from_the_disk_with_its_earlier_readings(start):
    app = give(start("data/open"), table(SECRET))
    conftest.choose(go(app, "data/this"), "preview", "Role of c", "Ignored")
    app.button(key="upload_use").click().run()
    assert len([one for one in DatasetStore(home()).list() if one.name == SECRET]) == 2
    assert len(holding(SECRET)) > 3
    last = address(healthy(app))["run"]
    go(app, "data/open").button(key=f"delete-{last}").click().run()
    assert holding(SECRET) == []
    assert not [one for one in RunStore(home()).list() if one.config.dataset not in digests()]
    assert address(healthy(app))["data"] in digests()
    healthy(go(app, "explore"))


def digests() -> set[str]:
    return {one.digest for one in DatasetStore(home()).list()}


def test_data_that_other_work_needs_stay_and_this_is_said(start):
    app = give(start("data/open"), table(SECRET))
    first = RunStore(home()).get(address(app)["run"])
    RunStore(home()).rename(first.id, "first")
    second = RunStore(home()).save(
        first.config.to_be_fitted(parameters=first.config.parameters | {"random_state": 7}),
        FitResult(first.fitted, first.info),
        name="second",
    )
    said = "The data “Zyxwvut” stay: 1 other work needs them."
    go(app, "data/open").button(key=f"delete-{second.id}").click().run()
    assert said in [one.value.replace("\\", "") for one in healthy(app).info]
    assert RunStore(home()).get(second.id) is None
    assert RunStore(home()).get(first.id) is not None
    assert first.config.dataset in digests()


def test_all_my_data_are_deleted_at_one_place(start):
    app = give(start("data/open"), table(SECRET))
    RunStore(home()).rename(address(app)["run"], SECRET)
    go(app, "data/open").button(key="recent_all_really").click().run()
    assert holding(SECRET) == []
    assert [one.name for one in DatasetStore(home()).list()] == ["Handwritten digits, 8 × 8"]
    assert SECRET not in html(healthy(app))
