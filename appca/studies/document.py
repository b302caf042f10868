"""One page in Markdown with the verdicts and main tables of all experiments; no pictures."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from appca.plots.export.markdown import table
from appca.storage import atomic
from appca.studies.catalogue import STUDIES
from appca.studies.claims import headings
from appca.studies.files import cell, words
from appca.studies.report import heading
from appca.studies.shipped import TIMED, is_current, shipped
from appca.studies.store import Stored
from appca.studies.study import Study
from appca.words.numbers import duration
from appca.words.refusal import OTHER, refusing

HEAD = """# Reproducing the paper

Every table and figure of A. Farooq, Y. P. Raykov, P. Raykov and M. A. Little, *Controlling for
sparsity in sparse factor analysis models: adaptive latent feature sharing for piecewise linear
dimensionality reduction* ([arXiv 2006.12369](https://arxiv.org/abs/2006.12369)), each an
experiment of this package: what the paper claims, what is measured here, and whether the claim
holds.

`{command}`
writes this page from the results that come with the package, and a test fails when the two differ:
no number here is written by hand. `python -m appca paper NAME --ship` computes a result again, and
without NAME all of them; the app's page Paper shows the figures. Sizes are “quick” for a first
look, “default”, and “full” with more data sets and draws. Comparisons of time (`speed`) also depend
on the machine and on what else it was doing. “Took” is the time of the stored result on two cores;
`--quick` takes a fraction of it.
"""


def write_document(file: Path, say: Callable[[str], None]) -> None:
    """Write the page from the results that come with the package, and say so.

    Raises InputError when the disk refuses.
    """
    results = shipped()
    with refusing(f"{file} could not be written", OTHER):
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(file, page(results, file))
    say(f"wrote {file.name}: {len(results)} of {len(STUDIES)} experiments")


def page(results: Mapping[str, Stored], file: Path) -> str:
    """Return the page's Markdown."""
    command = f"python -m appca paper --document {file.parent.name}/{file.name}"
    studies = list(STUDIES.values())
    lines = [_line(study, results.get(study.name)) for study in studies]
    titles = ("Result", "NAME", "Claims that hold", "Size", "Took", "Date")
    parts = [HEAD.format(command=command), table(titles, lines)]
    parts += [_section(study, results[study.name]) for study in studies if study.name in results]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _line(study: Study, result: Stored | None) -> list[str]:
    if result is None:
        return [heading(study), f"`{study.name}`", "not computed", "", "", ""]
    counts = Counter(claim.holds for claim in result.outcome.claims)
    others = [f"{n} {holds}" for holds, n in counts.items() if holds != "yes"]
    verdict = f"{counts['yes']} of {len(result.outcome.claims)}"
    if others:
        verdict += f" ({', '.join(others)})"
    link = f"[{heading(study)}](#{study.name})"
    took = duration(result.seconds)
    return [link, f"`{study.name}`", verdict, _size(study, result), took, _date(result)]


def _section(study: Study, result: Stored) -> str:
    parts = [f'## <a id="{study.name}"></a>{heading(study)}', study.paper]
    titles = headings(result.outcome.claims)
    if titles:
        cells = [[getattr(claim, field) for field in titles] for claim in result.outcome.claims]
        parts.append(table([*titles.values()], cells))
    parts += [result.outcome.text] if result.outcome.text else []
    rows = next(iter(result.outcome.tables.values()), [])
    if rows:
        names = [name for name in study.columns or rows[0] if not name.startswith(TIMED)]
        numbers = [[cell(row[name]) for name in names] for row in rows]
        fold = f"<details><summary>Table of {len(numbers)} rows</summary>"
        parts += [fold, table([name.replace("_", " ") for name in names], numbers), "</details>"]
    return "\n" + "\n\n".join([*parts, _made(study, result)])


def _made(study: Study, result: Stored) -> str:
    named = {name: value for name, value in result.options.items() if value != ""}
    options = "; ".join(f"{name} {words(value)}" for name, value in named.items())
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    facts = f"{_date(result)}; size {_size(study, result)}: {options}. {versions}."
    return f"    {study.command(result.options)}\n\n{facts}"


def _size(study: Study, result: Stored) -> str:
    size = study.size_of(result.options)
    return size if is_current(result) else f"{size}, before a change of the experiment"


def _date(result: Stored) -> str:
    return datetime.fromtimestamp(result.created, UTC).date().isoformat()
