"""The explorer's JavaScript: its logic under node, its bundle as one module."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from appca.ui.explorer import bundle

HERE = Path(__file__).parent
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def node(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(NODE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@needs_node
def test_the_logic_under_node():
    done = node("--test", "--test-reporter=tap", *sorted(HERE.glob("*.test.js")))
    assert done.returncode == 0, done.stdout[-4000:]
    passed = int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1])
    assert passed >= 50


@needs_node
@pytest.mark.parametrize("entry", ["explorer", "parcel"])
def test_the_bundle_is_one_valid_module_with_one_default_export(entry, tmp_path):
    text = bundle.bundle(entry)
    file = tmp_path / "bundle.mjs"
    file.write_text(text, encoding="utf-8")
    checked = node("--check", file)
    assert checked.returncode == 0, checked.stderr
    assert len(re.findall(r"^export default ", text, re.MULTILINE)) == 1
    assert not re.search(r"^(import|export (?!default))", text, re.MULTILINE)


@needs_node
def test_the_check_of_the_bundle_notices_a_name_used_twice(tmp_path):
    file = tmp_path / "bundle.mjs"
    file.write_text(bundle.bundle("explorer") + "\nfunction drawOverlay() {}\n", encoding="utf-8")
    assert node("--check", file).returncode != 0


def test_every_module_comes_after_those_it_imports():
    text = bundle.bundle("explorer")
    places = {name: text.index(f"// ---- {name}.js") for name in module_names(text)}
    for name, place in places.items():
        source = (bundle.FOLDER / f"{name}.js").read_text(encoding="utf-8")
        assert all(places[imported] < place for imported in bundle.IMPORT.findall(source))


def test_every_module_is_in_a_bundle():
    bundled = {*module_names(bundle.bundle("explorer")), *module_names(bundle.bundle("parcel"))}
    assert bundled == {file.stem for file in bundle.FOLDER.glob("*.js")}


def module_names(text: str) -> list[str]:
    return re.findall(r"^// ---- ([\w-]+)\.js$", text, re.MULTILINE)


def test_a_circle_of_imports_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.js").write_text("import { b } from './b.js';\n")
    (tmp_path / "b.js").write_text("import { a } from './a.js';\n")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"a -> b -> a import each other"):
        bundle.bundle.__wrapped__("a")


def test_an_import_of_another_form_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.js").write_text("import * as b from './b.js';\n")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"a\.js has an import that is not of the form"):
        bundle.bundle.__wrapped__("a")


def test_no_script_sets_markup_or_reaches_out():
    for file in bundle.FOLDER.glob("*.js"):
        text = file.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "fetch(", "https:"):
            assert word not in text, f"{file.name} has {word}"


def test_the_plotly_part_is_the_installed_plotly_and_tells_the_page():
    text = bundle.plotly_script()
    assert len(text) > 1_000_000
    assert text.rstrip().endswith("}")
    assert "export default function announcePlotly" in text


def modules(folder, **texts):
    """Write modules below the folder of the bundles and return the entry."""
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "entry.js"


@needs_node
def test_modules_of_a_closed_bundle_may_use_the_same_names_inside(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "FOLDER", tmp_path)
    one = "const size = 1;\nexport function first() { return size; }\n"
    two = "const size = 2;\nexport class Second { size = size; }\n"
    text = (
        "import { first as one } from './one.js';\nimport { Second } from './two.js';\n"
        "export default () => one() + new Second().size;\n"
    )
    entry = modules(tmp_path, one=one, two=two, entry=text)
    joined = tmp_path / "joined.mjs"
    joined.write_text(bundle.closed_bundle(entry), encoding="utf-8")
    ask = f"import add from {joined.as_uri()!r}; console.log(add())"
    done = node("--input-type=module", "-e", ask)
    assert (done.stdout.strip(), done.stderr) == ("3", "")


def test_a_circle_of_modules_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "FOLDER", tmp_path)
    entry = modules(
        tmp_path, one="import { b } from './entry.js';\n", entry="import { a } from './one.js';\n"
    )
    with pytest.raises(ValueError, match="entry -> one -> entry"):
        bundle.closed_bundle(entry)
