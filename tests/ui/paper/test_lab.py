"""Synthetic lab: Z of a design at once, and its data opened with the true number of factors."""

from appca.studies.catalogue import shipped
from tests.ui.conftest import address, healthy, html, sentences
from tests.ui.paper.test_paper import charts, experiment


def test_z_is_there_at_once_and_its_data_open(start):
    app = experiment(start, "lab")
    assert charts(app) == len(shipped()) + 1
    assert "5.0 of 10" in html(app)
    app.number_input(key="lab_n_active").set_value(11).run()
    assert sentences(app) == ["n_active must be between 1 and n_components=10; got 11."]
    app.number_input(key="lab_n_rows").set_value(90).run()
    app.number_input(key="lab_n_components").set_value(6).run()
    app.number_input(key="lab_n_active").set_value(3).run()
    assert charts(healthy(app)) == len(shipped()) + 1
    app.button(key="lab_open").click().run()
    assert (address(healthy(app))["k"], address(app)["l"]) == ("6", "3")
    assert app.button(key="lab_open").disabled
