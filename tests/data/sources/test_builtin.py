import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from appca.data.folders import folder_of_files
from appca.data.sources import SOURCES, load
from appca.words import InputError

DIGESTS = {
    "digits": "3d84e84960959a95",
    "turntable": "2aa410a97e063a0f",
    "planes": "d9eafbb963302739",
    "brain": "5ba92ecda04d8ea3",
    "wine": "fcddfcc083f13b9f",
    "breast_cancer": "08d1741c226b5f82",
}


@pytest.mark.parametrize("source", [s for s in SOURCES.values() if s.offline], ids=lambda s: s.key)
def test_offline_sets_are_the_same_in_every_release(source):
    dataset = load(source.key)
    assert dataset.X.shape == (source.rows, source.features)
    assert dataset.digest.startswith(DIGESTS[source.key])
    provenance = dataset.provenance
    assert json.loads(json.dumps(provenance)) == provenance
    assert provenance["source"] == source.key
    if source.key == "digits":
        expected = load_digits()
        np.testing.assert_array_equal(dataset.X, expected.data)
        np.testing.assert_array_equal(dataset.labels["digit"], expected.target.astype(str))


def test_the_first_picture_waits_for_no_heavy_import():
    code = (
        "import sys; from appca.data.sources import load; "
        "from appca.data.preprocessing import suggest; suggest(load('digits')); "
        "print(*{'pandas', 'sklearn', 'scipy', 'PIL', 'pooch', 'requests'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("key", "options", "words"),
    [
        ("iris", {}, "no built-in data set 'iris'; choose one of digits, "),
        ("digits", {"n": 5}, "has no options; got n"),
        ("coil20", {"views": 5}, "has the options classes, n, per_class, size; got views"),
        ("coil20", {"size": 64}, "size of COIL-20 must be 32 or 128; got 64"),
        ("coil20", {"n": 1441}, "n of COIL-20 must be a whole number from 2 to 1,440; got 1441"),
        ("mnist", {"n": 1}, "n of MNIST must be a whole number from 2 to 70,000; got 1"),
        ("mnist", {"n": "many"}, "got 'many'"),
        ("mnist", {"n": 2.5}, "got 2.5"),
        ("mnist", {"per_class": 0}, "per_class of MNIST must be a whole number from 1 to 6,313"),
        ("mnist", {"classes": [1, 10]}, r"must be a list of some of 0, 1, .*; got \[1, 10\]"),
        ("mnist", {"classes": []}, r"got \[\]"),
        ("mnist", {"classes": 3}, "got 3"),
        ("mnist", {"classes": "13"}, "got '13'"),
    ],
)
def test_options_without_meaning_are_refused_before_anything_is_fetched(key, options, words):
    with pytest.raises(InputError, match=words):
        load(key, **options)


def test_files_are_looked_for_where_they_were_said_to_be(monkeypatch, tmp_path, appca_home):
    monkeypatch.delenv("APPCA_DATA", raising=False)
    assert folder_of_files() == appca_home / "data"
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))
    assert folder_of_files() == tmp_path
    assert folder_of_files("elsewhere").name == "elsewhere"
    monkeypatch.delenv("APPCA_DATA")
    monkeypatch.delenv("APPCA_HOME")
    assert folder_of_files().parts[-2:] == ("appca", "data")
