"""Events of a recording over the courses of its components: a band each, and their key."""

from typing import NamedTuple

from appca.data.brain.events import Event, blocks, events_of
from appca.data.dataset import Dataset
from appca.plots.palette import class_colour
from appca.ui.parts.text import tag, words
from appca.words.wording import counted

MOST_BANDS = 200  # over a course of 96 pixels


class EventBands(NamedTuple):
    """HTML, empty without events."""

    over: str = ""  # a course, which fills the same box
    key: str = ""  # which colour is which trial type


def event_bands(dataset: Dataset) -> EventBands:
    """Draw the events of a recording, joined where less than a volume is between them."""
    times, events = dataset.times, events_of(dataset)
    if times is None or not events:
        return EventBands()
    joined = blocks(events, float(times[1]))
    if len(joined) > MOST_BANDS:
        said = f"{counted(len(joined), 'event')}: too many to be drawn over the courses."
        return EventBands(key=tag("div", said, "ca-events"))
    types = sorted({event.trial_type for event in joined})
    colours = {name: class_colour(i, len(types)) for i, name in enumerate(types)}
    length = float(times[-1])
    bands = (_band(event, length, colours[event.trial_type]) for event in joined)
    names = (
        tag("span", tag("i", "", style=f"background:{colour}") + words(name or "event"))
        for name, colour in colours.items()
    )
    return EventBands("".join(bands), tag("div", "".join(names), "ca-events"))


def _band(event: Event, length: float, colour: str) -> str:
    left, right = (100 * min(end / length, 1.0) for end in (event.onset, event.end))
    return tag(
        "i",
        "",
        style=f"left:{left:.2f}%;width:{right - left:.2f}%;background:{colour}",
        title=f"{event.trial_type or 'event'}, {event.onset:.0f} to {event.end:.0f} s",
    )
