"""Many files become one zip in the browser; what comes one by one all the same is refused."""

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from appca.data.readers import read
from appca.ui.parts import packing
from tests.data.readers.images.test_images import encoded, noise
from tests.ui.conftest import healthy, sentences
from tests.ui.data.test_uploads import give

SCRIPT = Path(packing.__file__).with_suffix(".js")
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
PACK = """
import { zipped, title } from './packing.mjs';
import { readFileSync, writeFileSync } from 'node:fs';
const given = JSON.parse(readFileSync('given.json', 'utf8'));
const entries = given.map(([path, bytes]) => ({ path, file: new Blob([new Uint8Array(bytes)]) }));
const steps = [];
const zip = await zipped(entries, (done) => steps.push(done));
writeFileSync('packed.zip', new Uint8Array(await zip.arrayBuffer()));
console.log(JSON.stringify([title(given.map(([path]) => path)), steps]));
"""


def packed(folder: Path, files: dict[str, bytes]) -> tuple[Path, str, list[int]]:
    """Pack files by the browser's script under node; return the zip, its title and the steps."""
    shutil.copy(SCRIPT, folder / "packing.mjs")
    (folder / "pack.mjs").write_text(PACK, encoding="utf-8")
    given = [[path, list(data)] for path, data in files.items()]
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    done = subprocess.run(
        [str(NODE), "pack.mjs"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "packed.zip", *json.loads(done.stdout)


@needs_node
def test_a_zip_of_the_browser_holds_every_file_byte_for_byte(tmp_path, seed):
    rng = np.random.default_rng(seed)
    files = {f"möbel/{i}/s.bin": rng.bytes(int(rng.integers(0, 300))) for i in range(40)}
    files["möbel/leer.txt"] = b""
    archive, title, steps = packed(tmp_path, files)
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None  # which recomputes the checksums
        assert {name: opened.read(name) for name in opened.namelist()} == files
    assert title == "möbel"
    assert steps == [16, 32, 41]


@needs_node
@pytest.mark.slow
def test_more_files_than_a_plain_zip_can_count_are_all_listed(tmp_path):
    files = {f"{i}.png": b"" for i in range(65_537)}
    archive, title, _ = packed(tmp_path, files)
    with zipfile.ZipFile(archive) as opened:
        assert opened.namelist() == list(files)
    assert title == "65537 files"


@needs_node
def test_images_packed_by_the_browser_are_read_as_a_data_set(tmp_path):
    files = {f"set/{'ab'[i % 2]}/{i}.png": encoded(noise(i, 4, 4)) for i in range(6)}
    archive, title, _ = packed(tmp_path, files)
    dataset = read(f"{title}.zip", archive)
    assert dataset.name == "set"
    assert dataset.n_rows == 6
    ((_, classes),) = dataset.labels.items()
    assert sorted(classes.tolist()) == list("aaabbb")


def test_many_files_that_come_one_by_one_are_refused_in_one_sentence(start):
    picture = encoded(noise(0, 4, 4))
    app = give(start("data/open"), *[(f"{i}.png", picture) for i in range(packing.MOST + 1)])
    (sentence,) = sentences(app)
    assert "101 files came one by one" in sentence
    healthy(give(app, *[(f"{i}.png", encoded(noise(i, 4, 4))) for i in range(packing.MOST)]))
