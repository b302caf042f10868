from appca.plots.files import markdown_table


def test_a_table_has_a_head_a_rule_and_a_line_a_row():
    assert markdown_table(["a", "b"], [[1, "x"], ["", None]]) == (
        "| a | b |\n| --- | --- |\n| 1 | x |\n|  | None |"
    )


def test_no_cell_ends_its_column_or_its_line():
    assert markdown_table(["x"], [["p | q\\"], ["one\n\ntwo"]]).splitlines()[2:] == [
        "| p \\| q\\\\ |",
        "| one two |",
    ]
