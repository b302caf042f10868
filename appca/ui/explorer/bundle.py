"""Join the JavaScript modules of this folder into one text that Streamlit can serve.

A component's script is one text without imports. The modules stay separate files, so that a reader
and node's test runner find one job in each; here their imports and exports are taken out and the
files are put one after the other, each after those it imports.
"""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
IMPORT = re.compile(r"^import\s*\{[^}]*\}\s*from\s*'\./([\w-]+)\.js';\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)

PLOTLY_PART = """
export default function announcePlotly() {
  for (const listener of window.__appca?.listeners ?? []) listener();
}
"""


@cache
def bundle(entry: str) -> str:
    """Join module ``entry`` and all it imports; the entry keeps its default export.

    Raises
    ------
    ValueError
        When modules import each other in a circle, or one has an import of another form.
    """
    texts: list[str] = []
    _visit(entry, [], set(), texts)
    return "\n".join(texts)


@cache
def plotly_script() -> str:
    """Give the installed plotly.js as a component that hands it to the page once."""
    from plotly.offline import get_plotlyjs

    return f"{get_plotlyjs()}\n;\n{PLOTLY_PART}"


def _visit(name: str, path: list[str], done: set[str], texts: list[str]) -> None:
    if name in path:
        message = f"The modules {' -> '.join([*path, name])} import each other; break the circle."
        raise ValueError(message)
    if name in done:
        return
    done.add(name)
    text = (FOLDER / f"{name}.js").read_text(encoding="utf-8")
    for imported in IMPORT.findall(text):
        _visit(imported, [*path, name], done, texts)
    text = EXPORT.sub("", IMPORT.sub("", text))
    if re.search(r"^import\b", text, re.MULTILINE):
        message = f"{name}.js has an import that is not of the form import {{ a }} from './b.js';"
        raise ValueError(message)
    texts.append(f"// ---- {name}.js\n{text}")
