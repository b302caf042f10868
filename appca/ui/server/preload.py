"""Code of the widgets of a first page, named with the frame: a browser loads it meanwhile."""

import re
from pathlib import Path

import streamlit as st

from appca.ui.server.base import base

WIDGETS = ("BidiComponent", "Html", "Slider", "NumberInput", "ButtonGroup", "Button", "TextInput")
SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"
MOST = 3000  # characters: by default nginx takes 4 kB of headers
_IMPORTED = re.compile(r"""(?:from|import)\s*["']\./([\w.-]+\.js)["']""")


def links() -> str:
    """Return the header that names the code to the browser, as much as nginx lets through."""
    at = f"{base()}/static/js"
    named = ", ".join(f"<{at}/{name}>; rel=modulepreload" for name in needed())
    return named if len(named) <= MOST else named[:MOST].rpartition(", ")[0]


def needed() -> list[str]:
    """Return the files that the widgets are made of, with all that they import."""
    asked = [file.name for name in WIDGETS for file in SCRIPTS.glob(f"{name}.*.js")]
    found: dict[str, None] = {}
    while asked:
        name = asked.pop(0)  # the widgets, and then what they import
        if name not in found:
            found[name] = None
            asked += _IMPORTED.findall((SCRIPTS / name).read_text(encoding="utf-8"))
    return list(found)
