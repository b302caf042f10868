"""Names and signs that a person gave the components of a run: a small file in the run's folder."""

from typing import NamedTuple

from appca.runs.home import home
from appca.runs.store import LABELS, Run, changeable
from appca.storage.files import read_json, write_json
from appca.words.refusal import reason, storing

FILE = LABELS
NAME_LENGTH = 40


class Labels(NamedTuple):
    """What a person said of each component."""

    names: tuple[str, ...]  # (K,) empty where none was given
    signs: tuple[int, ...]  # (K,) 1 as fitted, -1 turned round


def labels(run: Run) -> Labels:
    """Return the names and signs of a run's components; a damaged file counts as none."""
    k = len(run.fitted.components)
    try:
        return _read(run, k)
    except Exception:  # a damaged file fails in as many ways as there are types
        return Labels(("",) * k, (1,) * k)


def damage(run: Run) -> str | None:
    """Say in one sentence why the names that were given cannot be read; None where all is well."""
    try:
        _read(run, len(run.fitted.components))
    except FileNotFoundError:
        return None
    except Exception as error:  # as above
        return (
            f"{_words(run)} are damaged ({reason(error)}) and left out; name a component again, "
            "which replaces the file."
        )
    return None


def put(run: Run, labels: Labels) -> Labels:
    """Keep names and signs with a `changeable` run. Raises InputError when the disk refuses."""
    run = changeable(run, home() / "runs")
    remedy = "free some space, or fit again if it was deleted"
    with storing(_words(run), run.path.parent, remedy):
        write_json(run.path / FILE, labels._asdict(), _words(run))  # see `Run.kept`
    return labels


def _read(run: Run, k: int) -> Labels:
    kept = read_json(run.path / FILE, _words(run))
    names = tuple(_tidy(name) for name in kept["names"])
    signs = tuple(-1 if sign == -1 else 1 for sign in kept["signs"])
    if not len(names) == len(signs) == k:
        msg = f"they are not those of {k} components"
        raise ValueError(msg)
    return Labels(names, signs)


def _words(run: Run) -> str:
    return f"The names of fit {run.id}"


def _tidy(name: object) -> str:
    return " ".join(str(name).split())[:NAME_LENGTH]
