"""``appca runs``: the runs that are kept where the app shows them."""

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.store import Run, RunStore
from appca.words.wording import shortened

EXAMPLES = ("python -m appca runs",)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    parsing.command(commands, "runs", "list the stored runs, newest first", EXAMPLES, run)


def run(_options: argparse.Namespace) -> dict[str, Any]:
    """Say of every run its id, when it was made, how good it is, its data and its name."""
    store = RunStore(home())
    names = {item.digest: item.name for item in DatasetStore(home()).list()}
    runs = store.list()
    for item in runs:
        when = datetime.fromtimestamp(item.created).strftime("%Y-%m-%d %H:%M")
        nats = item.info.log_likelihood / item.info.n_rows
        data = shortened(names.get(item.config.dataset, "data not kept"), 24)
        say(f"{item.id}  {when}  {nats:10.4g} nats per row  {data:24}  {item.name}")
    if not runs:
        say("no runs are stored; `fit --store` stores one")
    problems = list(store.problems())
    for sentence in problems:
        say(sentence)
    return {"runs": [_fields(item, names) for item in runs], "problems": problems}


def _fields(run: Run, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "run": run.id,
        "name": run.name,
        "created": datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds"),
        "data": names.get(run.config.dataset),
        "model": run.config.model,
        "parameters": run.config.parameters,
        "rows": run.info.n_rows,
        "features": run.info.n_features,
        "log_likelihood_per_row": run.info.log_likelihood / run.info.n_rows,
    }
