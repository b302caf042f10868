"""One page in Markdown with the verdicts and main tables of all experiments; no pictures."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from appca.plots.export.markdown import table
from appca.storage import atomic
from appca.storage.refusal import OTHER, refusing
from appca.studies.catalogue import STUDIES
from appca.studies.claims import headings
from appca.studies.files import cell
from appca.studies.kept import (
    KeptResult,
    chosen,
    is_current,
    is_usual,
    kept,
    read_kept,
    size_of,
    write_kept,
)
from appca.studies.report import heading, in_order
from appca.studies.store import StudyStore
from appca.studies.study import Study

HEAD = """# The paper, computed anew

Every table and figure of A. Farooq, Y. P. Raykov, P. Raykov and M. A. Little, *Controlling for
sparsity in sparse factor analysis models: adaptive latent feature sharing for piecewise linear
dimensionality reduction* ([arXiv 2006.12369](https://arxiv.org/abs/2006.12369)), each an
experiment of this package: what the paper claims, what is measured here, and whether the claim
holds.

`{command}`
writes this page and `{file}` from stored results, and a test fails when the two differ: no
number here is written by hand. It computes nothing; `python -m appca paper NAME` does, and the
app's page Paper shows the figures. Sizes are “quick” for a first look, “default”, and “full” with
more data sets and draws. Comparisons of time (`speed`) also depend on the machine and on what
else it was doing.
"""


def write_document(file: Path, home: Path, say: Callable[[str], None]) -> None:
    """Write the page, and what it is made of beside it, from kept and stored results.

    Parameters
    ----------
    file : Path
        ``paper.md``; the results are kept in ``paper_results.json``.
    home : Path
        Where results are stored. Those of one of the three sizes replace what is kept of their
        experiment if they are larger, or newer and not smaller.
    say : callable
        Gets the line that is printed.

    Raises
    ------
    InputError
        When kept results cannot be read, or the disk refuses.
    """
    place = kept_beside(file)
    stored = [kept(one) for one in StudyStore(home).list() if is_usual(one)]
    results = chosen([*read_kept(place), *stored])
    ordered = [results[study.name] for study in in_order(STUDIES[name] for name in results)]
    write_kept(place, ordered)
    with refusing(f"{file} could not be written", OTHER):
        atomic.write(file, page(results, file), private=False)
    say(f"wrote {file.name} and {place.name}: {len(results)} of {len(STUDIES)} experiments")


def kept_beside(file: Path) -> Path:
    """Return the file that holds the results of a page."""
    return file.with_name(f"{file.stem}_results.json")


def page(results: Mapping[str, KeptResult], file: Path) -> str:
    """Return the page's Markdown."""
    command = f"python -m appca paper --document {file.parent.name}/{file.name}"
    studies = in_order(STUDIES.values())
    lines = [_line(study, results.get(study.name)) for study in studies]
    titles = ("Result", "NAME", "Claims that hold", "Size", "Date")
    parts = [HEAD.format(command=command, file=kept_beside(file).name), table(titles, lines)]
    parts += [_section(study, results[study.name]) for study in studies if study.name in results]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _line(study: Study, result: KeptResult | None) -> list[str]:
    if result is None:
        return [heading(study), f"`{study.name}`", "not computed", "", ""]
    counts = Counter(claim.holds for claim in result.claims)
    others = [f"{n} {holds}" for holds, n in counts.items() if holds != "yes"]
    verdict = f"{counts['yes']} of {len(result.claims)}"
    if others:
        verdict += f" ({', '.join(others)})"
    link = f"[{heading(study)}](#{study.name})"
    return [link, f"`{study.name}`", verdict, _size(study, result), _date(result)]


def _section(study: Study, result: KeptResult) -> str:
    parts = [f'## <a id="{study.name}"></a>{heading(study)}', study.paper]
    titles = headings(result.claims)
    if titles:
        cells = [[getattr(claim, field) for field in titles] for claim in result.claims]
        parts.append(table([*titles.values()], cells))
    parts += [result.text] if result.text else []
    if result.rows:
        numbers = [[cell(value) for value in row.values()] for row in result.rows]
        fold = f"<details><summary>Table of {len(numbers)} rows</summary>"
        columns = [name.replace("_", " ") for name in result.rows[0]]
        parts += [fold, table(columns, numbers), "</details>"]
    return "\n" + "\n\n".join([*parts, _made(study, result)])


def _made(study: Study, result: KeptResult) -> str:
    size = size_of(study, result.options)
    flag = f" --{size}" if size in {"quick", "full"} else ""
    given = {name: value for name, value in result.options.items() if value != ""}
    options = "; ".join(f"{name} {_words(value)}" for name, value in given.items())
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    facts = f"{_date(result)}; size {_size(study, result)}: {options}. {versions}."
    return f"    python -m appca paper {study.name}{flag}\n\n{facts}"


def _size(study: Study, result: KeptResult) -> str:
    size = size_of(study, result.options)
    return size if is_current(result) else f"{size}, before a change of the experiment"


def _date(result: KeptResult) -> str:
    return datetime.fromtimestamp(result.created, UTC).date().isoformat()


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
