"""Events during a recording: what was shown or done, and when."""

import csv
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, file_bytes
from appca.words import InputError, shortened

_MOST_EVENTS = 100_000
LONGEST_TYPE = 40  # characters of a trial type


class Event(NamedTuple):
    """Something shown or done, in seconds from the first volume."""

    onset: float
    duration: float
    trial_type: str = ""

    @property
    def end(self) -> float:
        """When it is over."""
        return self.onset + self.duration


def read_events(name: str, file: File) -> tuple[Event, ...]:
    """Read a table of events: tab- or comma-separated, with columns onset and duration in seconds.

    A column trial_type, if there is one, says what was shown or done.
    Raises InputError when a column is missing or a time is none.
    """
    text = file_bytes(name, file, LIMITS).decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    tab = "\t" if lines and "\t" in lines[0] else ","
    reader = csv.DictReader(io.StringIO("\n".join(lines)), delimiter=tab)
    missing = {"onset", "duration"} - set(reader.fieldnames or ())
    if missing:
        msg = (
            f"“{shortened(name)}” needs the columns onset and duration, in seconds; "
            f"{' and '.join(sorted(missing))} is missing."
        )
        raise InputError(msg)
    events = [_event(name, row, place) for place, row in enumerate(reader, start=2)]
    if not 0 < len(events) <= _MOST_EVENTS:
        msg = f"“{shortened(name)}” holds {len(events):,} events; give 1 to {_MOST_EVENTS:,}."
        raise InputError(msg)
    return tuple(events)


def _event(name: str, row: dict[str, str], line: int) -> Event:
    try:
        kind = shortened((row.get("trial_type") or "").strip(), LONGEST_TYPE)
        event = Event(float(row["onset"]), float(row["duration"]), kind)
    except (TypeError, ValueError):
        event = Event(math.nan, math.nan)
    if not (math.isfinite(event.onset) and 0 <= event.duration < math.inf):
        msg = (
            f"Line {line} of “{shortened(name)}” has the onset "
            f"“{shortened(row['onset'])}” and the duration “{shortened(row['duration'])}”; both "
            "must be numbers of seconds, the duration not below 0."
        )
        raise InputError(msg)
    return event


def check_events(events: Sequence[Event], n_volumes: int, repetition: float) -> None:
    """Raise InputError for events that lie outside the recording."""
    length = n_volumes * repetition
    outside = [event for event in events if not 0 <= event.onset < length]
    if outside:
        msg = (
            f"{len(outside):,} of {len(events):,} events lie outside the recording, which lasts "
            f"{length:g} s (first: {outside[0].onset:g} s); give onsets in seconds from its first "
            "volume."
        )
        raise InputError(msg)


def events_of(dataset: Dataset) -> tuple[Event, ...]:
    """Return the events that came with a recording, or were added to it; often none."""
    return tuple(
        Event(event["onset"], event["duration"], event.get("trial_type", ""))
        for event in dataset.provenance.get("events", [])
    )


def blocks(events: Sequence[Event], gap: float) -> list[Event]:
    """Return events of the same trial type that follow each other within `gap` seconds as one."""
    joined: list[Event] = []
    for event in sorted(events):
        last = joined[-1] if joined else None
        if last and last.trial_type == event.trial_type and event.onset - last.end <= gap:
            end = max(last.end, event.end)
            joined[-1] = last._replace(duration=end - last.onset)
        else:
            joined.append(event)
    return joined
