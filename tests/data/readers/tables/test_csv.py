import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from appca.data.files import ReadLimits
from appca.data.readers import read
check_rectangle = guess = None
from appca.words import InputError


def table(text, name="table.csv", **options):
    data = text if isinstance(text, bytes) else text.encode()
    return read(name, io.BytesIO(data), **options)


def report(text, **options):
    return table(text, **options).provenance["report"]


MEASURES = """id;species;width;height;note
a1;setosa;1.5;2;good
a2;virginica;2.5;3;
a3;setosa;0.5;4;good
"""


def test_roles_are_guessed_from_names_and_values():
    dataset = table(MEASURES)
    found = dataset.provenance["report"]
    assert found["roles"] == {
        "id": "id",
        "species": "label",
        "width": "feature",
        "height": "feature",
        "note": "label",
    }
    assert (found["rows"], found["columns"], found["separator"]) == (3, 5, ";")
    assert dataset.ids.tolist() == ["a1", "a2", "a3"]
    assert dataset.feature_names == ("width", "height")
    np.testing.assert_array_equal(dataset.X, [[1.5, 2], [2.5, 3], [0.5, 4]])
    assert list(dataset.labels) == ["species", "note"]
    assert dataset.labels["note"].tolist() == ["good", "", "good"]
    assert dataset.name == "table"


def test_roles_can_be_chosen():
    dataset = table(MEASURES, roles={"id": "label", "note": "ignored"})
    assert dataset.ids.tolist() == ["row-1", "row-2", "row-3"]
    assert set(dataset.labels) == {"id", "species"}
    assert dataset.provenance["report"]["roles"]["note"] == "ignored"
    with pytest.raises(InputError, match="1 feature column of 5; at least 2"):
        table(MEASURES, roles={"height": "label"})


@pytest.mark.parametrize(
    ("header", "values", "role"),
    [
        ("target", "0 1 0", "label"),
        ("Class", "3 3 7", "label"),
        ("target", "0.5 1.5 2.5", "feature"),
        ("weight", "0 1 0", "feature"),
        ("flag", "True False True", "label"),
        ("sample_id", "7 5 9", "id"),
        ("sample_id", "7 7 9", "feature"),
        ("index", "0 1 2", "id"),
        ("when", "2020-01-01 2020-01-01 2020-01-03", "ignored"),
        ("when", "18.06.2024 1.7.24 02.07.2024", "ignored"),
        ("when", "8:15 12:30 23:59:01", "ignored"),
        ("version", "1.2.3 1.2.4 1.2.3", "label"),
        ("name", "x y z", "id"),
        ("class", "x y z", "label"),
    ],
)
def test_the_role_of_a_column_follows_from_its_name_and_values(header, values, role):
    rows = zip("123", "468", values.split(), strict=True)
    text = f"a,b,{header}\n" + "\n".join(map(",".join, rows))
    assert report(text)["roles"][header] == role


def test_the_class_comes_first_and_columns_without_repeats_last():
    text = "key,remark,colour,species,a,b\n" + "\n".join(
        f"k{i},remark {i},{'red' if i % 2 else 'blue'},s{i % 3},{i},{i * i}" for i in range(6)
    )
    assert list(table(text).labels) == ["species", "colour", "remark"]


def test_an_index_column_without_a_name_becomes_the_ids():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [4.0, 5, 7]})
    dataset = table(frame.to_csv())
    assert dataset.ids.tolist() == ["0", "1", "2"]
    assert dataset.feature_names == ("a", "b")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("with_header", [True, False])
def test_every_separator_is_found_with_and_without_a_header(separator, with_header):
    lines = ["p q r"] * with_header + ["1 2.5 3", "4 5 -6e2", "7 8 9"]
    dataset = table("\n".join(lines).replace(" ", separator))
    np.testing.assert_array_equal(dataset.X, [[1, 2.5, 3], [4, 5, -600], [7, 8, 9]])
    expected = ("p", "q", "r") if with_header else ("column 1", "column 2", "column 3")
    assert dataset.feature_names == expected
    assert dataset.provenance["report"]["header"] is with_header


def test_a_separator_of_ones_own_and_a_header_of_numbers_can_be_chosen():
    assert table("1:2:3\n4:5:6\n7:8:8", separator=":").X.shape == (3, 3)
    assert table("2001,2002\n1,2\n3,5", header=True).feature_names == ("2001", "2002")
    assert table("2001,2002\n1,2\n3,5").X.shape == (3, 2)


def test_decimal_commas_are_understood_beside_semicolons():
    dataset = table("a;b;c\n1,5;2;-0,25\n3,5;4;1,0e1")
    np.testing.assert_array_equal(dataset.X, [[1.5, 2, -0.25], [3.5, 4, 10]])


def test_quotes_protect_separators_line_breaks_and_quotes():
    dataset = table('a,b,kind\n1,2,"x, ""y"""\n3,4,"two\nlines"\n5,6,"x, ""y"""\n')
    assert dataset.labels["kind"].tolist() == ['x, "y"', "two\nlines", 'x, "y"']


def test_labels_that_look_like_markup_or_formulas_stay_as_they_are():
    dataset = table("a,b,kind\n1,2,<b>bold</b>\n3,4,=1+1\n5,6,=1+1")
    assert dataset.labels["kind"].tolist() == ["<b>bold</b>", "=1+1", "=1+1"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_systems_and_blank_lines_are_understood(end):
    text = end.join(["", "a,b", "1,2", "", "3,4", "", ""])
    np.testing.assert_array_equal(table(text).X, [[1, 2], [3, 4]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_mark_themselves_are_understood(encoding):
    dataset = table("größe,b,art\n1,2,ö\n3,4,ä\n5,6,ä".encode(encoding))
    assert dataset.feature_names == ("größe", "b")
    assert dataset.labels["art"].tolist() == ["ö", "ä", "ä"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("größe,b,art\n1,2,ö\n3,4,€\n5,6,ö".encode("cp1252"), "cp1252"),
        (b"a,b,art\n1,2,\x81\n3,4,\xe9\n5,6,\xe9", "latin-1"),
        ("größe,b,art\n1,2,ö\n3,4,€\n5,6,ö".encode("utf-16-le"), "utf-16-le"),
        ("größe,b,art\n1,2,ö\n3,4,€\n5,6,ö".encode("utf-16-be"), "utf-16-be"),
        ("größe,b,art\n1,2,ö\n3,4,€\n5,6,ö".encode("utf-16"), "utf-16"),
        ("größe,b,art\n1,2,ö\n3,4,€\n5,6,ö".encode(), "utf-8"),
    ],
)
def test_encodings_are_found_out(data, found):
    dataset = table(data)
    assert dataset.provenance["report"]["encoding"] == found
    assert dataset.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    expected = "\x81" if found == "latin-1" else "ö"
    assert dataset.labels["art"][0] == expected


def test_what_is_not_text_is_not_read_as_western_european():
    with pytest.raises(InputError, match="not utf-8 text"):
        table(b"a,b\n\x01\x02,\xe9\n3,4\n")


MESSY = [
    "Kunde-Nr;Name;Größe (cm);Gewicht;Datum;Stadt;konstant;leer",
    *(
        f"{10000 + 2 * i};Müller{i};{150 + i % 40},5;{60 + 7 * i % 31},25;{1 + i % 28:02d}.06.2024;"
        f"{'Berlin' if i % 3 else 'Ulm'};7;"
        for i in range(40)
    ),
]


def test_a_spreadsheet_of_excel_is_understood_as_a_person_would():
    found = table("\r\n".join(MESSY).encode("cp1252")).provenance["report"]
    assert (found["encoding"], found["separator"], found["decimal"]) == ("cp1252", ";", ",")
    assert found["roles"] == {
        "Kunde-Nr": "ignored",
        "Name": "id",
        "Größe (cm)": "feature",
        "Gewicht": "feature",
        "Datum": "ignored",
        "Stadt": "label",
        "konstant": "ignored",
        "leer": "ignored",
    }
    assert found["left_out"] == {
        "Kunde-Nr": "counts the rows",
        "Datum": "dates",
        "konstant": "one value",
        "leer": "empty",
    }
    assert found["constant"] == ["konstant"]


def test_growing_whole_numbers_name_the_rows_of_a_table_with_enough_of_them():
    lines = [f"{3 * i + 100},{i % 5 + 0.5},{i % 7}" for i in range(20)]
    dataset = table("\n".join(["order,a,b", *lines]))
    assert dataset.ids[:2].tolist() == ["100", "103"]
    assert dataset.feature_names == ("a", "b")
    assert table("\n".join(["order,a,b", *lines[:7]])).feature_names == ("order", "a", "b")


def test_gzip_is_known_by_its_bytes_not_by_its_name():
    data = gzip.compress(b"a,b\n1,2\n3,4")
    for name in ("x.csv.gz", "x.csv"):
        np.testing.assert_array_equal(table(data, name=name).X, [[1, 2], [3, 4]])


def test_a_path_reads_like_a_file_object_and_the_object_stays_open(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n3\t4")
    file = io.BytesIO(b"a\tb\n1\t2\n3\t4")
    file.read()
    assert read("x.tsv", tmp_path / "x.tsv").digest == read("x.tsv", file).digest
    assert not file.closed


GAPS = "a,b,c\n1,2,x\n,4,y\n3,NA,x\n5,?,\n"


def test_missing_cells_are_refused_and_reported_by_column():
    with pytest.raises(InputError, match=r"3 missing cells, in “a” \(1\), “b” \(2\); choose") as e:
        table(GAPS)
    assert e.value.report["missing"] == {"a": 1, "b": 2}
    assert e.value.report["rows"] == 4
    assert e.value.report["roles"] == {"a": "feature", "b": "feature", "c": "label"}


def test_missing_cells_are_filled_by_the_mean_of_their_column_when_chosen():
    dataset = table(GAPS, missing="mean")
    np.testing.assert_array_equal(dataset.X, [[1, 2], [3, 4], [3, 3], [5, 3]])
    assert dataset.provenance["report"]["filled"] == 3
    assert dataset.provenance["report"]["dropped"] == 0


def test_rows_with_missing_cells_are_dropped_when_chosen_and_the_rest_keeps_its_names():
    text = GAPS + "6,7,z\n"
    dataset = table(text, missing="drop")
    np.testing.assert_array_equal(dataset.X, [[1, 2], [6, 7]])
    assert dataset.ids.tolist() == ["row-1", "row-5"]
    assert dataset.labels["c"].tolist() == ["x", "z"]
    assert dataset.provenance["report"]["dropped"] == 3
    assert dataset.provenance["report"]["rows"] == 5


def test_constant_columns_are_left_out_and_duplicate_rows_kept():
    found = report("a,b,c\n1,7,2\n1,7,2\n3,7,4\n1,7,2\n")
    assert found["roles"]["b"] == "ignored"
    assert found["constant"] == ["b"]
    assert found["duplicates"] == 2
    assert found["missing"] == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "“table.csv” is empty"),
        ("  \n\n ", "only blanks"),
        ("a,b,c\n", "a header line and no rows"),
        ("a,b\n1,2\n", "1 row of data; at least 2"),
        ("a,b\n1,2\n3,4,5\n6,7\n", "Line 3 of “table.csv” has 3 cells, the first has 2"),
        ("a,b\n1,2\n3\n6,7\n", "Line 3 of “table.csv” has 1 cell, the first has 2"),
        ('a,b\n1,"2"\n\n3,4,5\n', "Line 4 of “table.csv” has 3 cells"),
        ("a,b\n1,2\n3,x7\n5,6\n8,9\n", "Column “b” has 1 word among its numbers, “x7”"),
        ("a,b\n1,2\n3,inf\n5,6\n", "“b” is infinite in row 2"),
        ("a,b\n1,2\n1,2\n1,2\n", "All 3 rows are the same"),
        ("a\n1\n2\n3\n", "has 1 feature column of 1; at least 2"),
        ("a,b\nx,y\nx,z\n", "has 0 feature columns of 2"),
        ("a,b,a\n1,2,3\n4,5,6\n", "“a” appears twice"),
        (b"a,b\n1,\x00\n3,4\n", "zero bytes"),
        (b"PK\x03\x04....", "packed or spreadsheet file"),
        (b"\xff\xfe\x00", "is not utf-16 text"),
        ('a,b\n1,"2\n3,4\n', "cannot be read as a table"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(text, words):
    with pytest.raises(InputError, match=words) as caught:
        table(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"separator": "::"}, "separator must be one character; got '::'"),
        ({"encoding": "klingon"}, "no encoding 'klingon'"),
        ({"missing": "zero"}, "one of refuse, model, mean, drop; got 'zero'"),
        ({"roles": {"width": "target"}}, "A role is one of id, label, feature, ignored"),
        ({"roles": {"depth": "label"}}, "no column “depth”"),
        ({"roles": {"species": "feature"}}, "“species” cannot be a feature: it holds words"),
        ({"roles": {"species": "id"}}, "“setosa” appears more than once"),
        ({"roles": {"id": "id", "note": "id"}}, "Only one column can be the id"),
        ({"image_shape": (3, 3)}, "with 2 values in all"),
        ({"colour": "grey"}, "has the options separator, decimal, header, .* got colour"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        table(MEASURES, **options)


def test_a_truncated_gzip_is_refused():
    data = gzip.compress(b"a,b\n" + b"1,2\n3,4\n" * 500)
    for cut in (data[:-4], data[: len(data) // 2], data[:5]):
        with pytest.raises(InputError, match="breaks off or is damaged inside its gzip packing"):
            table(cut, name="x.csv.gz")


def test_a_gzip_that_unpacks_beyond_the_limit_is_stopped_early():
    bomb = gzip.compress(b"\0" * 30_000_000)
    with pytest.raises(InputError, match="unpacks to more than 2 MB"):
        table(bomb, name="x.csv.gz", limits=ReadLimits(n_bytes=2_000_000))


def test_a_file_or_a_matrix_beyond_the_limit_is_refused():
    text = "a,b\n" + "1,2\n3,4\n" * 100
    with pytest.raises(InputError, match="more than the 0 MB one file may have"):
        table(text, limits=ReadLimits(n_bytes=500))
    with pytest.raises(InputError, match="201 x 2 numbers"):
        table(text, limits=ReadLimits(n_bytes=1000))


def test_squares_of_grey_values_are_taken_for_images(seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(256, size=(5, 64))
    header = ",".join(["label", *(f"pixel{j}" for j in range(64))])
    lines = [",".join(map(str, [row % 3, *values])) for row, values in enumerate(pixels)]
    dataset = table("\n".join([header, *lines]))
    assert dataset.image_shape == (8, 8)
    assert dataset.X.dtype == np.uint8
    assert dataset.labels["label"].tolist() == [0, 1, 2, 0, 1]
    np.testing.assert_array_equal(dataset.image(3), pixels[3].reshape(8, 8))
    plain = table("\n".join([header, *lines]), image_shape=None)
    assert plain.image_shape is None
    assert plain.X.dtype == np.float64
    np.testing.assert_array_equal(plain.X, pixels)
    upright = table("\n".join([header, *lines]), image_shape=(4, 16))
    assert upright.image_shape == (4, 16)


def test_images_of_16_grey_values_are_drawn_up_to_white():
    rows = [[0] * 63 + [16], [16] * 64, [8] * 64]
    dataset = table("\n".join(",".join(map(str, row)) for row in rows))
    assert dataset.image_shape == (8, 8)
    assert dataset.image(1).min() == 255
    assert dataset.image_range == (0, 16)


@given(
    values=arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(2, 6)),
        elements=st.floats(-(2.0**40), 2.0**40),
    ),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_any_table_of_numbers_comes_back_number_for_number(values, separator):
    frame = pd.DataFrame(values, columns=[f"v{j}" for j in range(values.shape[1])])
    text = frame.to_csv(sep=separator, index=False)
    if (values == values[0]).all():
        with pytest.raises(InputError, match="are the same"):
            table(text)
        return
    roles = dict.fromkeys(frame.columns, "feature")
    np.testing.assert_array_equal(table(text, roles=roles).X, values)


def outcome(data, **options):
    """The data set a table gives, or the sentence that refuses it."""
    try:
        return table(data, **options), None
    except InputError as error:
        return None, str(error)


@settings(max_examples=40)
@given(
    cells=st.lists(
        st.lists(st.text(alphabet='ab,;"\n\t =<é', max_size=6), min_size=2, max_size=2),
        min_size=3,
        max_size=6,
    )
)
def test_any_text_is_read_back_or_refused_in_a_sentence(cells):
    frame = pd.DataFrame(cells, columns=["p", "q"]).assign(a=range(len(cells)), b=1.5)
    dataset, refusal = outcome(frame.to_csv(index=False), separator=",", header=True)
    if dataset is None:
        assert refusal.endswith(".")
        assert "\n" not in refusal
        return
    np.testing.assert_array_equal(dataset.X[:, 0], range(len(cells)))
    for key in {"p", "q"} & set(dataset.labels):
        read_back = [cell.strip() for cell in dataset.labels[key].tolist()]
        assert read_back == [cell.strip() for cell in frame[key]]


@given(data=st.binary(max_size=400))
def test_any_bytes_at_all_are_read_or_refused_in_a_sentence(data):
    dataset, refusal = outcome(data)
    assert dataset is not None or refusal.endswith(".")


def test_the_two_ways_of_counting_cells_agree_and_name_the_same_line():
    body = "\n".join(f"{i},{i}" for i in range(2000))
    for odd in (0, 777, 1999):
        lines = ["a,b", *body.split("\n")]
        lines[odd + 1] += ",9"
        messages = []
        for text in ("\n".join(lines), "\n".join(lines).replace("a,b", '"a",b')):
            dialect = guess("t", text.encode(), ",", True)
            with pytest.raises(InputError) as caught:
                check_rectangle("t", text.encode(), dialect)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert f"Line {odd + 2} " in messages[0]


def test_cells_are_counted_across_the_borders_of_pieces(monkeypatch):
    monkeypatch.setattr("appca.data.readers.tables._PIECE", 64)
    text = "\n".join(["a,b", *(f"{i},{i}" for i in range(100)), "7,7,7", "1,2"]).encode()
    with pytest.raises(InputError, match="Line 102 "):
        check_rectangle("t", text, guess("t", text, ",", True))
    long = ("a,b\n" + "1" * 200 + ",2\n3,4\n").encode()
    check_rectangle("t", long, guess("t", long, ",", True))


def test_a_suffix_nobody_knows_is_refused():
    with pytest.raises(
        InputError, match=r"“letter\.docx” is of no known kind; give a file that ends"
    ):
        read("letter.docx", io.BytesIO(b"x"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="could not be opened"):
        read("x.csv", tmp_path / "x.csv")


def test_long_runs_of_digits_are_looked_at_once():
    """Where a pattern tries all ways to divide them, this takes an hour."""
    long = "9" * 130_000
    with pytest.raises(InputError, match="1 feature column of 2"):
        table(f"a;b\n{long}x;1\n{long}y;2\n{long}x;3\n")


@pytest.mark.parametrize("digits", [30, 400, 5000])
def test_whole_numbers_of_any_length_are_read_or_refused(digits):
    dataset, refusal = outcome(f"a,b\n1,2\n{'9' * digits},4\n5,6\n")
    if digits == 30:
        assert dataset.X[1, 0] == 1e30
    else:
        assert refusal.endswith(".")


@pytest.mark.parametrize("how", ["mean", "model"])
@pytest.mark.parametrize("value", ["1.7e308", "inf"])
def test_columns_too_large_to_be_averaged_are_refused(value, how):
    with pytest.raises(InputError, match="“b” holds numbers too large to be averaged"):
        table(f"a,b\n1,{value}\n2,{value}\n3,\n4,{value}", missing=how)


def test_a_table_of_20_000_columns_is_read_and_beyond_the_bound_is_one_sentence(seed):
    X = np.random.default_rng(seed).normal(size=(4, 20_000)).round(3)
    names = [f"gene_{j}" for j in range(20_000)]
    head = ",".join(["sample", *names])
    lines = [",".join([f"s{i}", *map(str, row)]) for i, row in enumerate(X.tolist())]
    dataset = table("\n".join([head, *lines]))
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.feature_names == tuple(names)
    assert dataset.ids.tolist() == ["s0", "s1", "s2", "s3"]
    with pytest.raises(InputError, match="20,001 columns, more than the 20,000 of a table"):
        table("\n".join([head, *lines]), limits=ReadLimits(columns=20_000))


def test_few_whole_numbers_are_features_that_may_be_labels(seed):
    rng = np.random.default_rng(seed)
    rows = [f"{i % 11 + 1},{i % 2},{i * 3 % 44},{a}" for i, a in enumerate(rng.normal(size=44))]
    text = "\n".join(["population,sex,age,a", *rows])
    dataset = table(text)
    assert dataset.feature_names == ("population", "sex", "age", "a")  # nobody is surprised
    assert dataset.provenance["report"]["likely_labels"] == {"population": 11, "sex": 2}
    chosen = table(text, roles={"population": "label"})
    assert list(chosen.labels) == ["population"]
    assert chosen.provenance["report"]["likely_labels"] == {"sex": 2}


def test_where_most_columns_are_counts_none_is_taken_for_a_label(seed):
    counts = np.random.default_rng(seed).integers(5, size=(50, 8))
    text = "\n".join([",".join("abcdefgh"), *(",".join(map(str, row)) for row in counts)])
    assert table(text).provenance["report"]["likely_labels"] == {}
