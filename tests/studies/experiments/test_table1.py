"""Table 1 on tiny data: what is forced whatever the numbers are, and that they can be had again."""

import numpy as np
import pytest

from appca.data.sources.designs import DESIGNS
from appca.storage.errors import InputError
from appca.studies.experiments import table1
from appca.studies.experiments.table1 import MEASURES, REFERENCES, STUDY, summary
from appca.studies.parts.methods import METHODS, Task
from appca.studies.parts.table1_text import paragraph


def cells(outcome, design: str) -> dict[str, dict]:
    return {row["method"]: row for row in outcome.tables["table1"] if row["design"] == design}


def test_every_method_and_reference_has_a_row_for_every_design(outcome):
    for design in DESIGNS:
        missing = set(METHODS) | set(REFERENCES)
        missing -= set(cells(outcome, design))
        assert missing <= {"afa_most"}
        assert (missing == set()) or design in {"subspace", "balanced", "single"}


@pytest.mark.parametrize("design", DESIGNS)
def test_who_knows_the_truth_is_not_beaten_where_that_is_impossible(outcome, design):
    told = cells(outcome, design)
    assert told["oracle_z"]["z_right"] == told["oracle_z"]["cosine"] == 1.0
    for key in METHODS:
        if key in told:
            assert told[key]["heldout"] < told["oracle_s"]["heldout"] + 0.1
            assert told[key]["z_right"] <= 1.0
    assert told["oracle_z"]["mse"] < told["noise"]["mse"]  # some of the noise lies in the factors


@pytest.mark.parametrize("design", DESIGNS)
def test_factor_analysis_with_all_factors_reconstructs_best_of_those_with_k(outcome, design):
    told = cells(outcome, design)
    others = ("fa_l", "fsfa", "afa", "afa_paper", "afa_gibbs")
    # Its scores are shrunk means and not least squares, hence the last percents.
    assert told["fa_k"]["mse"] < 1.03 * min(told[key]["mse"] for key in others)


def test_adaptive_factor_analysis_recovers_the_balanced_design(outcome):
    told = cells(outcome, "balanced")
    assert told["afa"]["mse"] < 1.2 * told["oracle_s"]["mse"]
    assert told["afa"]["cosine"] > 0.99
    assert told["afa"]["per_row"] == told["afa"]["L"] == 2
    assert told["noise"]["mae"] == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.05)


def test_the_same_options_give_the_same_numbers_on_one_process_and_on_two(tiny):
    options = {**tiny, "designs": ["balanced", "sparse"]}
    one = STUDY.run(options, lambda _stage, _share: None, 1)
    two = STUDY.run(options, lambda _stage, _share: None, 2)

    def without_time(rows):
        return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows]

    assert without_time(one.tables["cells"]) == without_time(two.tables["cells"])
    assert one.text == two.text


def test_every_data_set_is_another_one(tiny):
    def drawn(**changes):
        spec = {"design": "dense", "K": 4, "seed": 0, "options": tiny} | changes
        return table1.draw(spec)[0].Y

    np.testing.assert_array_equal(drawn(), drawn())
    for changes in ({"seed": 1}, {"design": "sparse"}):
        assert np.abs(drawn(**changes) - drawn()).max() > 0.1


def test_mean_and_spread_are_taken_over_the_data_sets(outcome):
    first = next(row for row in outcome.tables["cells"] if row["method"] == "afa")
    second = {**first, "seed": 1, "mse": first["mse"] + 0.5, "heldout": None}
    (row,) = summary([first, second])
    assert row["mse"] == pytest.approx(first["mse"] + 0.25)
    assert row["mse_sd"] == pytest.approx(0.5 / np.sqrt(2))
    assert row["heldout"] == first["heldout"]
    assert row["heldout_sd"] is None
    assert row["seeds"] == 2
    assert set(MEASURES) < set(row)


def test_the_paper_s_number_stands_beside_the_method_it_belongs_to(outcome):
    rows = [{**row, "K": 10} for row in outcome.tables["cells"] if row["design"] == "balanced"]
    beside = {row["method"]: row["paper_mae"] for row in summary(rows)}
    assert beside["afa"] == beside["afa_paper"] == 0.034
    assert (beside["fa_k"], beside["fa_l"], beside["fsfa"]) == (0.088, None, 0.090)
    assert (beside["isfa"], beside["isfa_k"], beside["afa_gibbs"]) == (0.073, 0.073, 0.047)
    assert beside["oracle_s"] is beside["noise"] is None


def test_the_paragraph_is_made_of_the_measured_numbers(outcome, tiny):
    table = outcome.tables["table1"]
    told = cells(outcome, "balanced")
    ratio = told["afa"]["mse"] / told["oracle_s"]["mse"]
    assert f"{ratio:.2f} times the squared error" in outcome.text
    worse = [{**row, "mse": 50 * row["mse"]} if row["method"] == "afa" else row for row in table]
    assert f"{50 * ratio:.2f} times the squared error" in paragraph(worse, tiny)
    assert "Measured in-sample" not in outcome.text  # the paper has nothing at K = 4
    at_10 = [{**row, "K": 10} for row in table]
    assert "Measured in-sample, the lowest of the five methods is" in paragraph(at_10, tiny)
    assert "45 of the paper's 50 numbers lie below the noise" in outcome.text


def test_the_verdict_follows_the_measured_order(outcome, tiny):
    def verdict(**times):
        table = [
            {**row, "K": 10, "mae": row["mae"] * times.get(row["method"], 1.0)}
            | ({"heldout": -1e9} if row["method"] in times and row["heldout"] else {})
            for row in outcome.tables["table1"]
        ]
        return paragraph(table, tiny).split("\n\n")[-1]

    assert outcome.text.split("\n\n")[-1].startswith("The paper has no numbers for these K; aFA")
    assert verdict(afa=1e-6).startswith("It agrees: aFA by EM has the lowest error in")
    worst = dict.fromkeys(("afa", "afa_most", "afa_paper"), 1e6)
    assert verdict(**worst).startswith("It does not agree: aFA by EM predicts new rows best in 0")


def test_an_unknown_design_is_refused_in_a_sentence(tiny):
    with pytest.raises(InputError, match=r"designs must be among sparse, dense.*got “odd”"):
        STUDY.run({**tiny, "designs": ["odd"]}, lambda _stage, _share: None, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depth": 3}, "table1 has the options designs.*got “depth”"),
        ({"n_rows": 0}, "n_rows must be a whole number above 0; got 0"),
        ({"n_rows": 10.5}, "n_rows must be a whole number"),
        ({"noise_sd": -1.0}, "noise_sd must be a number above 0"),
        ({"components": 4}, "components must be a list such as"),
        ({"components": []}, "components must be a list"),
        ({"designs": [3]}, "designs must be a text"),
    ],
)
def test_options_without_meaning_are_refused_in_a_sentence(changes, words):
    with pytest.raises(InputError, match=words):
        STUDY.options("quick", **changes)


def test_a_size_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="sizes of table1 are quick, default, full"):
        STUDY.options("huge")


def test_the_bar_of_a_sampled_method_follows_its_sweeps():
    rng, heard = np.random.default_rng(0), []
    Y = rng.standard_normal((80, 6))
    METHODS["afa_gibbs"].make(Task(Y, Y[:1], 3, 1, 1, 3, 4, 0, heard.append)).fit(Y)
    shares = [progress.iteration / progress.max_iter for progress in heard]
    assert shares[-7:] == [i / 7 for i in range(1, 8)]
    assert len(shares) > 7  # the start is heard, too
    assert set(shares[:-7]) == {0.0}
