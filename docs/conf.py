"""How Sphinx builds the site; `docs/build` calls it."""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import appca

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from appca.ui.frame import ICON  # noqa: E402
from docs import pages_made, reference  # noqa: E402 - found by the line above

os.environ["COLUMNS"] = "100"  # of the help of commands
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
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "_demo", "_sources"]
templates_path = ["_templates"]
shutil.copytree(
    ROOT / "examples", ROOT / "docs/examples", dirs_exist_ok=True
)  # built with the rest
pages_made.write_sources(ROOT / "docs/_sources/source")
(ROOT / "docs/_static/icon.svg").write_text(ICON, encoding="utf-8")
suppress_warnings = ["myst.xref_missing"]  # links are followed in the built pages, by a test
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_html_meta = {"description": _project["description"]}
nb_execution_mode = os.environ.get("DOCS_NOTEBOOKS", "force")  # "cache" while you write
nb_execution_cache_path = str(ROOT / "docs/_build/notebooks")
nb_execution_timeout = 600  # seconds a cell, also on a busy machine
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # would be loaded from other hosts
autosummary_generate = True
_homes = {f"appca.{name}": f"{getattr(appca, name).__module__}.{name}" for name in appca.__all__}
autosummary_context = {"pages": reference.pages(), "homes": _homes}  # `viewcode` links to homes
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "appca"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = html_logo = "_static/icon.svg"
html_extra_path = ["_demo", "_sources"]  # pages of several fits, see docs/build; source code
html_sidebars = {"**": ["site_navigation.html"], "index": []}
mathjax_path = (
    "mathjax/tex-chtml.js"  # from npm, see docs/build: readers fetch nothing from outside
)
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "appca"},
    "show_prev_next": True,
    "navbar_center": [],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "github_url": _project["urls"].get("Repository", ""),
    "secondary_sidebar_items": ["page-toc"],
}

# ``name_`` and |x| are meant as they are; in reStructuredText they would be references.
_NAME = re.compile(r"(?<![`\w])(\w+)_(?![\w`])")
_FIELD = re.compile(r"\s*[\w, ]+ : ")


def _with_sections(_app, what, name, _object, _options, lines):
    """Add to a method's docstring the sections that methods share."""
    owner, _, member = name.rpartition(".")
    kinds = {f"{kind.__module__}.{kind.__name__}": kind for kind in reference.CLASSES}
    kinds |= {f"appca.{kind.__name__}": kind for kind in reference.MODELS}
    if what == "method" and owner in kinds:
        lines += reference.sections(kinds[owner], member)
    elif what == "function" and owner == "appca" and member in reference.FUNCTIONS:
        lines += reference.sections_of_function(member)


def _as_text(_app, _what, _name, _object, _options, lines):
    """Keep names of attributes and norms from being read as markup, before numpydoc sees them."""
    for i, line in enumerate(lines):
        if line.count("``") == 0 and not line.lstrip().startswith((">>> ", "... ")):
            head = match[0] if (match := _FIELD.match(line)) else ""
            lines[i] = head + _NAME.sub(r"\1\\_", line[len(head) :].replace("|", r"\|"))


def _within_the_site(_app, name, source):
    """Let links to files beside docs/ lead to their copies in the site; add what is made."""
    text = source[0].replace("../CONTRIBUTING.md", "contributing.md")
    text = re.sub(r"(\.\./)?\.\./examples/", r"\1examples/", text)
    text = re.sub(r'^(#+) <a id="([\w-]+)"></a>', r"(\2)=\n\1 ", text, flags=re.M)
    if name == "command_line":
        text += pages_made.commands()
    if name == "mathematics":
        text = pages_made.linked(text)
    source[0] = pages_made.in_both_themes(text, ROOT / "docs" / f"{name}.md")


def setup(app):
    """Connect the functions above."""
    app.connect("autodoc-process-docstring", _with_sections, priority=50)
    app.connect("autodoc-process-docstring", _as_text, priority=100)
    app.connect("source-read", _within_the_site)
