import decimal
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from appca.data.files import ReadLimits
from appca.data.readers import read, read_many
from appca.words import InputError
from tests.bad_files import huge_png
from tests.sentences import faults_of


def written(table, **options):
    stream = io.BytesIO()
    table = pa.table(table) if isinstance(table, dict) else table
    parquet.write_table(table, stream, **options)
    return stream.getvalue()


def load(data, **options):
    data = data if isinstance(data, bytes) else written(data)
    return read("data.parquet", io.BytesIO(data), **options)


def numbers(seed, n=6):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=n), "b": rng.integers(-5, 5, size=n)}


def test_a_table_is_what_its_csv_would_be(seed):
    frame = pd.DataFrame({"name": list("uvwxyz"), "class": list("ababab"), **numbers(seed)})
    from_csv = read("data.csv", io.BytesIO(frame.to_csv(index=False).encode()))
    assert load(written(pa.Table.from_pandas(frame))).digest == from_csv.digest


def test_dictionaries_flags_dates_and_decimals_find_their_roles(seed):
    table = {
        "kind": pa.array(list("xyxyxy")).dictionary_encode(),
        "flag": pa.array([True, False, None, True, False, True]),
        "day": pa.array(pd.date_range("2024-01-01", periods=3).repeat(2)),
        "price": pa.array([decimal.Decimal(f"{i}.5") for i in range(6)]),
        **numbers(seed),
    }
    dataset = load(table)
    assert dataset.provenance["report"]["roles"] == {
        **dict.fromkeys(["kind", "flag"], "label"),
        "day": "ignored",
        **dict.fromkeys(["price", "a", "b"], "feature"),
    }
    assert dataset.labels["flag"].tolist() == ["True", "False", "", "True", "False", "True"]
    labelled = load(table, roles={"day": "label"})
    assert (
        labelled.labels["day"].tolist()
        == ["2024-01-01"] * 2 + ["2024-01-02"] * 2 + ["2024-01-03"] * 2
    )
    assert dataset.X[:, 0].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


def test_lists_of_one_length_become_columns_and_others_are_left_out(seed):
    block = np.random.default_rng(seed).normal(size=(6, 3))
    table = {"vector": pa.array(list(block)), "ragged": pa.array([[1], [2, 3], [], [4], [5], [6]])}
    dataset = load(table)
    np.testing.assert_array_equal(dataset.X, block)
    assert dataset.feature_names == ("vector[0]", "vector[1]", "vector[2]")
    assert dataset.provenance["report"]["roles"]["ragged"] == "ignored"


def test_vectors_of_a_fixed_length_become_columns(seed):
    block = np.random.default_rng(seed).normal(size=(6, 4)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), 4)
    dataset = load({"embedding": vectors, "text": list("abcabc")})
    np.testing.assert_array_equal(dataset.X, block)
    assert dataset.labels["text"].tolist() == list("abcabc")


def pictures(seed, n=6, **columns):
    from tests.data.file_makers import encoded, noise

    stack = [noise([seed, i], 4, 5) for i in range(n)]
    cells = [{"bytes": encoded(one), "path": f"{i}.png"} for i, one in enumerate(stack)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return np.stack(stack), pa.table({"image": pa.array(cells, kind), **columns})


def test_images_of_hugging_face_are_images_with_named_classes(seed):
    stack, table = pictures(seed, label=[0, 1, 0, 1, -1, 0], note=[f"n{i}" for i in range(6)])
    about = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    table = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    dataset = load(written(table, row_group_size=2))
    np.testing.assert_array_equal(dataset.images(np.arange(6)), stack)
    assert dataset.labels["label"].tolist() == ["cat", "dog", "cat", "dog", "", "cat"]
    assert dataset.ids.tolist() == [f"n{i}" for i in range(6)]
    assert load(written(table), size=(2, 3)).image_shape == (2, 3)
    plain = table.replace_schema_metadata({"huggingface": "{not json"})
    assert load(written(plain)).labels["label"].tolist() == [0, 1, 0, 1, -1, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "Row 3 of “image” has no image bytes"),
        (b"no image", "is not an image"),
        (huge_png(), "make it smaller"),
    ],
)
def test_images_that_cannot_be_decoded_are_refused(content, words, seed):
    _, table = pictures(seed)
    cells = table["image"].to_pylist()
    cells[2]["bytes"] = content
    broken = pa.table({"image": pa.array(cells, table["image"].type)})
    with pytest.raises(InputError, match=words) as refused:
        load(written(broken))
    assert not faults_of(str(refused.value))


def test_missing_cells_and_roles_are_chosen_as_for_csv(seed):
    table = {**numbers(seed), "c": pa.array([1.0, None, 3.0, None, 5.0, 6.0])}
    with pytest.raises(InputError, match="2 missing cells, in “c”"):
        load(table)
    assert load(table, missing="mean").X[1, 2] == pytest.approx(3.75)
    assert load(table, roles={"c": "ignored"}).n_features == 2


def test_row_names_of_pandas_become_ids(seed):
    frame = pd.DataFrame(numbers(seed), index=list("uvwxyz"))
    assert load(written(pa.Table.from_pandas(frame))).ids.tolist() == list("uvwxyz")


def test_a_few_bytes_cannot_stand_for_gigabytes_of_text():
    codes = pa.array(np.zeros(50_000, np.int32))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["long " * 20_000]))
    numbers = {"a": range(50_000), "b": range(50_000, 100_000)}
    data = written(pa.table({"text": text, **numbers}), store_schema=False)
    assert len(data) < 2_000_000
    dataset = load(data)
    assert dataset.X.shape == (50_000, 2)
    assert dataset.provenance["report"]["roles"]["text"] == "ignored"
    with pytest.raises(InputError, match="texts of up to 100,000 characters, too long for a label"):
        load(data, roles={"text": "label"})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PAR1 and no more", "is not a Parquet file"),
        (written({"a": [1.0], "b": [2.0]}), "1 row of data"),
        (written({"a": [1.0, 2.0]}), "1 feature column of 1"),
        (written({"a": [1.0, 2.0], "b": [3.0, 4.0]})[:-20], "is not a Parquet file"),
        (
            written(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, names=["a", "a"])),
            "Column names must differ",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(data, words):
    with pytest.raises(InputError, match=words):
        load(data)


def test_a_table_beyond_the_limit_is_refused_by_its_footer():
    data = written({"a": np.zeros(200_000), "b": np.zeros(200_000)})
    assert len(data) < 10_000
    with pytest.raises(InputError, match="would become 200,000 x 2 numbers"):
        load(data, limits=ReadLimits(n_bytes=1_000_000))


def test_lists_and_thousands_of_columns_become_one_matrix(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 3000))
    frame = pd.DataFrame(X[:, :2000], columns=[f"g{j}" for j in range(2000)])
    frame.insert(1000, "vector", list(X[:, 2000:]))
    frame.insert(500, "kind", list("abab"))
    data = written(pa.Table.from_pandas(frame))
    dataset = load(data)
    assert dataset.n_features == 3000
    order = [*range(1000), *range(2000, 3000), *range(1000, 2000)]
    np.testing.assert_array_equal(dataset.X, X[:, order])
    assert dataset.feature_names[999:1002] == ("g999", "vector[0]", "vector[1]")
    with pytest.raises(InputError, match="has 3,001 columns, more than the 3,000 of a table"):
        load(data, limits=ReadLimits(columns=3000))


def test_files_with_the_same_columns_are_one_table(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(12, 3)), columns=["a", "b", "c"])
    frame["kind"] = ["x", "y", "z", "x"] * 3
    parts = [frame.iloc[:5], frame.iloc[5:]]
    files = [(f"part-{i}.parquet", io.BytesIO(part.to_parquet())) for i, part in enumerate(parts)]
    together = read_many(files)
    whole = read("whole.parquet", io.BytesIO(frame.to_parquet()))
    np.testing.assert_array_equal(together.X, whole.X)
    assert together.labels["kind"].tolist() == whole.labels["kind"].tolist()
    assert together.provenance["files"] == ["part-0.parquet", "part-1.parquet"]
