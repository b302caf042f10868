"""What was found in an uploaded file, as a list of facts."""

from appca.data.wording import counted
from appca.ui.text import fact_list

MOST_NAMES = 5
ROLES = {"id": "Row names", "label": "Labels", "ignored": "Ignored"}


def facts(report: dict) -> str:
    """
    Return the facts as HTML.

    Parameters
    ----------
    report : dict
        As the readers make it; of a file that was refused only what was found until then.
    """
    return fact_list(_size(report) | _roles(report) | _missing(report) | _oddities(report))


def _size(report: dict) -> dict[str, str]:
    lines = {}
    if report.get("files"):
        lines["Files"] = f"{report['files']:,}"
    if report.get("rows"):
        lines["Found"] = f"{counted(report['rows'], 'row')} × {report.get('columns', 0):,}"
    if report.get("image_shape"):
        lines["Images of"] = " × ".join(str(side) for side in report["image_shape"]) + " pixels"
    return lines


def _roles(report: dict) -> dict[str, str]:
    given = report.get("roles", {})
    named = {
        label: [name for name, role in given.items() if role == wanted]
        for wanted, label in ROLES.items()
    }
    return {label: _few(names) for label, names in named.items() if names}


def _missing(report: dict) -> dict[str, str]:
    if "missing" not in report:
        return {}
    cells = report["missing"]
    if not cells:
        return {"Missing": "none"}
    columns = _few([f"{name} ({count:,})" for name, count in cells.items()])
    lines = {"Missing": f"{counted(sum(cells.values()), 'cell')}: {columns}"}
    if report.get("filled"):
        lines["Done about it"] = f"{counted(report['filled'], 'cell')} filled"
    if report.get("dropped"):
        lines["Done about it"] = f"{counted(report['dropped'], 'row')} left out"
    return lines


def _oddities(report: dict) -> dict[str, str]:
    lines = {}
    for key, label in (("constant", "Constant features"), ("skipped", "Files left out")):
        if report.get(key):
            lines[label] = f"{len(report[key]):,}: {_few(report[key])}"
    if report.get("duplicates"):
        lines["Repeated rows"] = f"{report['duplicates']:,}"
    return lines


def _few(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")
