"""Results of the paper's experiments: those that ship, those made here, those on their way."""

from collections.abc import Callable, Iterator
from functools import partial

import plotly.graph_objects as go

from appca.data.sources.builtin import are_here
from appca.plots.studies import thumbnail
from appca.runs.home import home
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.store import Stored, StudyStore
from appca.studies.study import Figures, Holds, Options, Study, verdict
from appca.ui.parts.answers import Level, Number
from appca.ui.session import services
from appca.ui.session.caching import by_key

LEVELS: dict[Holds, tuple[Level, str]] = {
    "yes": ("good", "Agrees"),
    "partly": ("doubtful", "In part"),
    "no": ("bad", "Does not hold"),
    "not tested": ("unknown", "Not tested"),
}
SIZES = ("default", "quick", "full")


def newest(study: Study) -> Stored | None:
    """Return what was computed here of the paper's data, if newer than what ships."""
    sizes = (study.options(size) for size in SIZES)
    outcomes = [stored(study, options) for options in sizes if is_of_the_paper(study, options)]
    every = [outcome for outcome in (shipped().get(study.name), *outcomes) if outcome is not None]
    return max(every, key=lambda outcome: outcome.created, default=None)


def stored(study: Study, options: Options) -> Stored | None:
    """Return the result with these options that was computed here, if there is one."""
    name, folder = study.id(options), StudyStore(home()).folder
    file = folder / name / "config.json"
    return _read(f"{file} {file.stat().st_mtime_ns}", name) if file.is_file() else None


@by_key(40)
def _read(name: str) -> Stored | None:
    return StudyStore(home()).get(name)


def is_of_the_paper(study: Study, options: Options) -> bool:
    """Whether a result is about the paper's data, so that its claims can be judged by it."""
    usual = study.options()
    return all(options.get(name) == usual.get(name) for name in ("data", "recording"))


def verdict_of(kept: Stored) -> tuple[Level, str]:
    """Return the level and the word of a result's chip."""
    return LEVELS[verdict(kept.outcome.claims)]


def numbers_of(kept: Stored) -> list[Number]:
    """Return the numbers of a result that say most."""
    return [(claim.value, claim.caption) for claim in kept.outcome.claims if claim.value]


def figures(study: Study, kept: Stored) -> Figures:
    """Return the figures of a result, drawn once; with images where the person has them."""
    return _drawn(_key(kept), study, kept)


def card(study: Study, kept: Stored) -> go.Figure:
    """Return the first figure of a result at the size of a card."""
    return _small(_key(kept), study, kept)


def ahead() -> Iterator[Callable[[], object]]:
    """Draw the cards ahead, one a step."""
    for study in STUDIES.values():
        kept = newest(study)
        if kept is not None:
            yield partial(card, study, kept)


def _key(kept: Stored) -> str:
    """Name the figures of a result: with images where the person has them."""
    return f"{kept.id} {kept.created} {[are_here(source) for source in ('mnist', 'coil20')]}"


@by_key(60)
def _drawn(study: Study, kept: Stored) -> Figures:
    return study.figures(kept.outcome)


@by_key(60)
def _small(study: Study, kept: Stored) -> go.Figure:
    return thumbnail(next(iter(figures(study, kept).values())))


def options_of(study: Study) -> Iterator[Options]:
    """Yield the options of the results on their way, then of the stored ones."""
    jobs = services.jobs().active()
    yield from (job.spec["options"] for job in jobs if job.spec.get("study") == study.name)
    yield from (kept.options for kept in StudyStore(home()).list(study.name))


def spec_of(study: Study, options: Options) -> Options:
    """Return what the job needs to know that makes a result."""
    return {"study": study.name, "options": options, "key": study.id(options)}
