"""Names and signs that people give to components: kept beside the run, and nothing but that."""

import numpy as np
import pytest

from appca.data.sources import load
from appca.runs import store
from appca.runs.fit import fit_run, project
from appca.runs.numbering import ComponentNumbers, Numbering, numbered
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.words import InputError


@pytest.fixture
def run(tmp_path):
    dataset = load("wine")
    sizes = {"n_components": 3, "n_active": 2}
    config = RunConfig(dataset.digest, {"scale": "feature", "centre": True}, "aPPCA", sizes)
    return RunStore(tmp_path).save(config, fit_run(dataset, config))


def test_turning_a_component_turns_its_scores_and_keeps_every_reconstruction(run):
    before = run.fitted
    after = numbered(before, Numbering((0, 1, 2), (1, -1, 1), ("", "", "")))
    np.testing.assert_array_equal(after.components[1], -before.components[1])
    np.testing.assert_array_equal(after.scores[:, [0, 2]], before.scores[:, [0, 2]])
    assert np.abs(after.scores[:, 1] - before.scores[:, 1]).max() > 1
    np.testing.assert_array_equal(
        after.scores @ after.components, before.scores @ before.components
    )
    again = project(run.config, after, load("wine").X)  # new rows follow the sign
    np.testing.assert_allclose(again.scores, after.scores, atol=1e-5)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"names": ["a"], "signs": [1]}', "null"])
def test_a_damaged_or_foreign_file_counts_as_no_labels(run, text):
    (run.path / store.LABELS).write_text(text, encoding="utf-8")
    assert store.labels(run) == store.Labels(("", "", ""), (1, 1, 1))


def test_a_name_for_a_run_that_is_gone_is_refused_in_a_sentence(run, tmp_path):
    fitted = run.fitted  # still in the cache
    assert len(fitted.components) == 3
    kept = run.path / "arrays.npz"
    RunStore(tmp_path).delete(run.id)
    with pytest.raises(InputError, match="cannot be read"):
        ComponentNumbers(tmp_path).rename(run, 0, "a")
    assert not kept.exists()
