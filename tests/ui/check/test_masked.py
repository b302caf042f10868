"""Hidden cells: offered with its time, measured in the background, told as it came out."""

import numpy as np
import pytest

from appca.analysis.compare import MaskedConfig
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.ui.choose import level, verdict
from tests.ui.conftest import go, healthy, html
from tests.ui.explore.test_missing import gappy, jobs, text_of  # noqa: F401 - fixtures

PAGE = "check/advanced"


@pytest.mark.thorough
def test_hidden_cells_are_compared_in_a_job_that_can_be_cancelled(start, gappy, jobs):  # noqa: F811
    app = start(PAGE, data=DatasetStore(home()).put(gappy))
    healthy(app.toggle(key="check_hidden").set_value(True).run())
    assert "Can it predict hidden cells?" in html(app)
    app.button(key="masked_start").click().run()
    (status,) = jobs.jobs.values()
    assert status.kind == "masked"
    healthy(app).button(key="masked_cancel").click().run()
    assert jobs.cancelled == [status.id]
    config = MaskedConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert tuple(config.methods) == ("own", "ppca_l", "ppca_k", "ridge", "near", "means")
    config.complete(gappy, home())
    app = healthy(app.run())
    assert "predict" in html(app) or "Better at" in html(app)
    assert len(app.get("plotly_chart")) == 1
    assert "masked_start" not in [one.key for one in app.button]
    downloads = [one.proto.label for one in app.get("download_button")]
    assert downloads == ["Save the data, filled by the model"]
    healthy(go(start(), PAGE))  # whole data are asked, too


def config_of(n_active=2):
    return MaskedConfig("0" * 64, {}, "aPPCA", {"n_components": 4, "n_active": n_active})


@pytest.mark.parametrize(
    ("errors", "said", "how"),
    [
        ({"own": 1, "ppca_l": 2, "means": 4}, "The model predicts hidden cells best", "good"),
        (
            {"own": 2, "ridge": 1, "means": 4},
            "Better at hidden cells than the model: r",
            "doubtful",
        ),
        ({"own": 3, "near": 4, "means": 1}, "Nothing predicts hidden cells better", "bad"),
        ({"own": 1, "near": 1.01}, "2 of 4 and Nearest rows predict hidden cells equally", "good"),
    ],
)
def test_the_answer_says_where_the_model_is_not_the_best(errors, said, how):
    bumps = {"own": [0.0, 0.5], "near": [0.1, 0.4]}
    found = {key: error + np.array(bumps.get(key, [0.0, 0.5])) for key, error in errors.items()}
    assert said in verdict(config_of(), found)
    assert level(found) == how
