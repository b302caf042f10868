"""Join JavaScript modules into one text that a page can load.

A script in a page is one text without imports. The modules stay separate files, so that a reader
and node's test runner find one job in each. `closed_bundle` puts the files one after the other,
each after those it imports, and makes a function of each, so that modules may use the same names
inside.
"""

import re
from functools import cache
from pathlib import Path

JS = Path(__file__).parent / "js"
PACKAGE = Path(__file__).parents[1]
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
FROM = re.compile(r"^import \{([^}]*)\} from '(\.[^']*)';\n", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)


@cache
def closed_bundle(entry: Path) -> str:
    """Join a module and all it imports, from any folder; the entry keeps its default export.

    Raises ValueError when modules import each other in a circle.
    """
    texts: dict[Path, str] = {}
    _close(entry.resolve(), (), texts)
    return "\n".join(texts.values())


def _close(file: Path, path: tuple[Path, ...], texts: dict[Path, str]) -> str:
    """Add a module after those it imports; return the name of what it exports."""
    if file in path:
        names = " -> ".join(module.stem for module in (*path, file))
        message = f"The modules {names} import each other; break the circle."
        raise ValueError(message)
    name = "_".join(re.sub(r"\W", "_", part) for part in file.relative_to(PACKAGE).parts)
    if file in texts:
        return name
    text = file.read_text(encoding="utf-8")

    def imported(statement: re.Match[str]) -> str:
        other = _close((file.parent / statement[2]).resolve(), (*path, file), texts)
        names = re.sub(r"\s+as\s+", ": ", statement[1].strip())
        return f"const {{ {names} }} = {other};\n"

    body, exports = FROM.sub(imported, text), ", ".join(EXPORTED.findall(text))
    if path:
        body = EXPORT.sub("", body)
        body = f"const {name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"
    texts[file] = f"// ---- {file.name}\n{body}"
    return name
