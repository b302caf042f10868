"""How Sphinx builds the site; `docs/build` calls it."""

import re
import shutil
import tomllib
from pathlib import Path

import appca

ROOT = Path(__file__).resolve().parents[1]
_project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _project["name"]
version = release = appca.__version__
author = "the appca developers"
project_copyright = "the appca developers"
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "_demo"]
shutil.copytree(
    ROOT / "examples", ROOT / "docs/examples", dirs_exist_ok=True
)  # built with the rest
suppress_warnings = ["myst.xref_missing"]  # links are followed in the built pages, by a test
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_ipywidgets_js = {}  # would be loaded from other hosts
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "appca"
html_static_path = ["_static"]
html_extra_path = ["_demo"]  # pages of several fits, see docs/build
mathjax_path = (
    "mathjax/tex-chtml.js"  # from npm, see docs/build: readers fetch nothing from outside
)
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "github_url": _project["urls"].get("Repository", ""),
    "secondary_sidebar_items": ["page-toc"],
}

# ``name_`` and |x| are meant as they stand; in reStructuredText they would be references.
_NAME = re.compile(r"(?<![`\w])(\w+)_(?![\w`])")
_FIELD = re.compile(r"\s*[\w, ]+ : ")


def _as_text(_app, _what, _name, _object, _options, lines):
    """Keep names of attributes and norms from being read as markup, before numpydoc sees them."""
    for i, line in enumerate(lines):
        if line.count("``") == 0:
            head = found[0] if (found := _FIELD.match(line)) else ""
            lines[i] = head + _NAME.sub(r"\1\\_", line[len(head) :].replace("|", r"\|"))


def _within_the_site(_app, _name, source):
    """Let links to files beside docs/ lead to their copies in the site."""
    source[0] = source[0].replace("../CONTRIBUTING.md", "contributing.md")
    source[0] = re.sub(r"(\.\./)?\.\./examples/", r"\1examples/", source[0])
    source[0] = re.sub(r'^(#+) <a id="([\w-]+)"></a>', r"(\2)=\n\1 ", source[0], flags=re.M)


def setup(app):
    """Connect what stands above."""
    app.connect("autodoc-process-docstring", _as_text, priority=100)
    app.connect("source-read", _within_the_site)
