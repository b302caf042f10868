"""The results in the paper's order, on one page and on the command line."""

import pytest

from appca.studies import report
from appca.studies.catalogue import PLACES, STUDIES
from appca.studies.store import StudyStore
from appca.studies.study import CheckedClaim, Outcome
from appca.words import InputError


def silent(_stage: str, _share: float) -> None:
    pass


def test_experiments_are_in_the_papers_order_and_named_by_their_place_there():
    assert list(STUDIES) == list(PLACES)
    assert report.heading(STUDIES["table1"]) == STUDIES["table1"].title  # it begins so
    assert report.heading(STUDIES["planes"]) == f"Figure 1: {STUDIES['planes'].title}"


def test_the_page_holds_every_figure_and_shows_texts_literally():
    study = STUDIES["z-priors"]
    options = study.options(n_rows=30)
    claim = CheckedClaim("A <b>", "0.<5", "6 & 7", "partly")
    outcome = study.run(options, silent, 1)._replace(claims=[claim], text="B <i>\n\nC.")
    missing = report.ReportEntry(STUDIES["table1"], {"seeds": 2}, None, "No <file>.")
    html = report.page([missing, report.ReportEntry(study, options, outcome, "Now.")])
    assert html.count('class="plotly-graph-div"') == 1
    assert "<td>A &lt;b&gt;</td><td>0.&lt;5</td><td>6 &amp; 7</td><td>partly</td>" in html
    assert "<p>B &lt;i&gt;</p><p>C.</p>" in html
    assert "No &lt;file&gt;." in html
    assert html.index('id="table1"') < html.index('id="z-priors"')
    assert "src=" not in html.split("</script>")[-1]


def test_a_result_without_its_data_does_not_keep_the_others_back(tmp_path, monkeypatch):
    def refuse(*_given) -> Outcome:
        msg = "The file x is missing."
        raise InputError(msg)

    lame = STUDIES["popularity"]._replace(run=refuse)
    monkeypatch.setitem(STUDIES, "popularity", lame)
    monkeypatch.setattr(report, "write", lambda *_given: [])
    said: list[str] = []
    store = StudyStore(tmp_path)
    names = ["popularity", "z-priors"]
    with pytest.raises(InputError, match=r"1 of 2 results .* popularity: The file x is missing"):
        report.paper(
            names, "quick", {}, StudyStore(tmp_path), tmp_path / "out", said.append, silent
        )
    html = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "The file x is missing." in html
    assert any("stored as" in line for line in said)
    with pytest.raises(InputError, match=r"^The file x is missing\.$"):
        report.paper(["popularity"], "quick", {}, store, None, said.append, silent)
