"""Tables in Markdown, as GitHub shows them."""

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table; what is given as text is shown literally, but for line ends."""
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(value: object) -> str:
    text = " ".join(str(value).split())
    return text.replace("\\", "\\\\").replace("|", "\\|")
