"""Sparse matrices from files that SciPy, h5py and anndata's own layout make."""

import gzip
import io
import zipfile

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from appca.data.files import ReadLimits, facts, in_one_line
from appca.data.readers import by_libraries, kind_of, read, read_many
from appca.data.readers.process import read_apart
from appca.words import InputError
from tests.sentences import faults_of


def counts(seed, n=9, d=7):
    rng = np.random.default_rng(seed)
    return rng.poisson(0.7, (n, d)) * (rng.random((n, d)) < 0.6) + np.eye(n, d, dtype=int)


def h5ad(X, layers=None, obsm=None, **columns):
    """An .h5ad file in the layout of anndata 0.8 and newer, by h5py alone."""
    stream = io.BytesIO()
    n, d = X.shape
    with h5py.File(stream, "w") as file:
        put(file, "X", X)
        for key, value in (layers or {}).items():
            put(file, f"layers/{key}", value)
        for key, value in (obsm or {}).items():
            put(file, f"obsm/{key}", value)
        for table, length, word in (("obs", n, "cell"), ("var", d, "gene")):
            group = file.create_group(table)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{word}{i}" for i in range(length)]
        for key, value in columns.items():
            table = "var" if len(value) == d else "obs"
            if isinstance(value, list):
                names, codes = np.unique([one or "" for one in value], return_inverse=True)
                missing = np.array([one is None for one in value])
                kept = names[names != ""].tolist()
                file[f"{table}/{key}/categories"] = kept
                file[f"{table}/{key}/codes"] = np.where(
                    missing, -1, codes - (len(names) - len(kept))
                ).astype(np.int8)
            else:
                file[f"{table}/{key}"] = value
    return stream.getvalue()


def put(file, path, values):
    if not sparse.issparse(values):
        file[path] = values
        return
    group = file.create_group(path)
    group.attrs["encoding-type"] = f"{values.format}_matrix"
    group.attrs["shape"] = values.shape
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(values, part)


def load(data, name="cells.h5ad", **options):
    return read(name, io.BytesIO(data), **options)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, np.asarray])
def test_annotated_data_keep_names_labels_and_values(kind, seed):
    X = counts(seed)
    kinds = ["B", "T", None] * 3
    depth = np.r_[np.inf, np.arange(8) / 3]
    data = h5ad(
        kind(X.astype(np.float32)),
        layers={"twice": kind(2.0 * X)},
        obsm={"X_pca": X[:, :3].astype(float)},
        kind=kinds,
        depth=depth,
        fine=np.arange(9) > 2,
    )
    dataset = load(data)
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.X.dtype == np.float32
    assert dataset.ids.tolist() == [f"cell{i}" for i in range(9)]
    assert dataset.feature_names == tuple(f"gene{j}" for j in range(7))
    assert set(dataset.labels) == {"kind", "fine", "depth"}
    assert list(dataset.labels)[2] == "depth"  # words come first
    assert dataset.labels["kind"].tolist() == ["B", "T", ""] * 3
    np.testing.assert_array_equal(dataset.labels["depth"][1:], depth[1:])
    assert np.isnan(dataset.labels["depth"][0])
    assert dataset.provenance["report"]["arrays"].keys() == {"X", "layers/twice", "obsm/X_pca"}
    np.testing.assert_array_equal(load(data, array="layers/twice").X, 2 * X)
    two = load(data, array="obsm/X_pca", labels=("kind",))
    np.testing.assert_array_equal(two.X, X[:, :3])
    assert two.feature_names is None
    assert list(two.labels) == ["kind"]


def test_marked_variables_alone_are_read_unless_all_are_wanted(seed):
    X = counts(seed)
    marks = np.arange(7) % 3 == 0
    data = h5ad(sparse.csr_matrix(X.astype(float)), highly_variable=marks, other=~marks)
    np.testing.assert_array_equal(load(data).X, X[:, ::3])
    report = load(data).provenance["report"]
    assert facts(report)["Variables"] == "3 of 7 variables, those marked by “highly_variable”"
    assert "3 of 7 variables" in in_one_line(report, load(data))
    assert load(data).feature_names == ("gene0", "gene3", "gene6")
    np.testing.assert_array_equal(load(data, mask_var=None).X, X)
    np.testing.assert_array_equal(load(data, mask_var="other").X, X[:, ~marks])
    for wrong, words in (
        ({"mask_var": "best"}, "no column “best” in var of “cells.h5ad”"),
        ({"array": "layers/x"}, "no array “layers/x”"),
        ({"labels": ("kind",)}, "no column “kind” in obs"),
    ):
        with pytest.raises(InputError, match=words):
            load(data, **wrong)


def test_names_that_are_there_twice_are_numbered(seed):
    X = counts(seed).astype(float)
    stream = io.BytesIO(h5ad(X))
    with h5py.File(stream, "r+") as file:
        del file["var/_index"]
        file["var/_index"] = ["a", "b", "a", "a-1", "a", "c", "d"]
    assert load(stream.getvalue()).feature_names == ("a", "b", "a-2", "a-1", "a-3", "c", "d")


def test_counts_of_10x_are_cells_by_genes(seed):
    X = counts(seed)
    stream = io.BytesIO()
    by_cell = sparse.csc_matrix(X.T)  # genes, cells
    with h5py.File(stream, "w") as file:
        group = file.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(by_cell, part)
        group["shape"] = np.array(by_cell.shape, np.int32)
        group["barcodes"] = np.array([f"AAA{i}-1" for i in range(9)], "S8")
        group["features/name"] = np.array([f"G{j}" for j in range(7)], "S8")
        group["features/id"] = np.array([f"ENSG{j}" for j in range(7)], "S8")
    dataset = load(stream.getvalue(), "counts.h5")
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids[2] == "AAA2-1"
    assert dataset.feature_names[6] == "G6"


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_npz_of_scipy(kind, seed):
    X = counts(seed)
    stream = io.BytesIO()
    sparse.save_npz(stream, kind(X))
    np.testing.assert_array_equal(load(stream.getvalue(), "x.npz").X, X)
    sparse.save_npz(stream := io.BytesIO(), sparse.coo_matrix(X))
    with pytest.raises(InputError):
        load(stream.getvalue(), "x.npz")


def market(X):
    mmwrite(stream := io.BytesIO(), X)
    return stream.getvalue()


def test_matrix_market_alone_with_names_and_in_a_zip(seed):
    X = counts(seed)
    alone = market(sparse.coo_matrix(X))
    np.testing.assert_array_equal(load(alone, "x.mtx").X, X)
    np.testing.assert_array_equal(load(gzip.compress(alone), "x.mtx.gz", transpose=True).X, X.T)
    np.testing.assert_array_equal(load(market(X.astype(float)), "x.mtx").X, X)
    files = {
        "run/matrix.mtx.gz": gzip.compress(market(sparse.coo_matrix(X.T))),
        "run/barcodes.tsv.gz": gzip.compress("".join(f"cell{i}\n" for i in range(9)).encode()),
        "run/features.tsv": "".join(f"ENSG{j}\tG{j}\tGene\n" for j in range(7)).encode(),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    one = load(stream.getvalue(), "run.zip")
    several = read_many([(name, io.BytesIO(data)) for name, data in files.items()])
    for dataset in (one, several):
        np.testing.assert_array_equal(dataset.X, X)
        assert dataset.ids[8] == "cell8"
        assert dataset.feature_names[0] == "G0"
    files["run/barcodes.tsv.gz"] = b"a\nb\n"
    with pytest.raises(InputError, match="2 barcodes for"):
        read_many([(name, io.BytesIO(data)) for name, data in files.items()])


def test_the_kinds_are_known_by_name():
    assert [kind_of(f"a{end}") for end in (".h5ad", ".mtx", ".mtx.gz")] == ["h5ad", "mtx", "mtx"]


def test_a_matrix_that_cannot_be_filled_is_refused_before_it_is(seed):
    wide = sparse.random(60, 20_000, 1e-4, "csr", random_state=seed)
    data = h5ad(wide)
    with pytest.raises(InputError, match=r"become 60 x 20,000 numbers .* highly variable"):
        load(data, limits=ReadLimits(n_bytes=7_000_000))


BROKEN = {
    "indices": lambda matrix: matrix.indices.__setitem__(0, 99),
    "negative": lambda matrix: matrix.indices.__setitem__(0, -1),
    "pointer": lambda matrix: matrix.indptr.__setitem__(1, 10_000),
    "order": lambda matrix: matrix.indptr.__setitem__(2, matrix.indptr[3] + 1),
    "end": lambda matrix: matrix.indptr.__setitem__(-1, 3),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("form", ["h5ad", "npz"])
def test_indices_that_lead_out_of_the_matrix_are_refused(how, form, seed):
    matrix = sparse.csr_matrix(counts(seed).astype(float))
    BROKEN[how](matrix)
    stream = io.BytesIO()
    if form == "npz":
        np.savez(
            stream,
            format=b"csr",
            shape=matrix.shape,
            **{part: getattr(matrix, part) for part in ("data", "indices", "indptr")},
        )
    data = h5ad(matrix) if form == "h5ad" else stream.getvalue()
    with pytest.raises(InputError, match=r"The sparse matrix in .* is damaged") as refused:
        load(data, f"x.{form}")
    assert not faults_of(str(refused.value))


def changed(data, change):
    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        change(file)
    return stream.getvalue()


SOUND = h5ad(sparse.csr_matrix(counts(0).astype(float)), kind=["a", "b", None] * 3)


def external(file):
    del file["obs"]
    file["obs"] = h5py.ExternalLink("/etc/passwd", "obs")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"nothing", "is not an HDF5 file or is damaged"),
        (SOUND[:-500], "is not an HDF5 file or is damaged"),
        (changed(SOUND, lambda file: file["X"].attrs.__delitem__("shape")), "is damaged"),
        (changed(SOUND, lambda file: file["X"].attrs.__setitem__("shape", [9, 70])), "damaged"),
        (changed(SOUND, lambda file: file.__delitem__("obs")), "has no names in obs"),
        (changed(SOUND, external), "has no names in obs"),
        (changed(SOUND, lambda file: file.__delitem__("X")), "holds no matrix of numbers"),
        (
            changed(SOUND, lambda file: file["obs/kind/codes"].__setitem__(0, 9)),
            "is not an HDF5 file or is damaged",
        ),
    ],
)
def test_damaged_annotated_data_are_refused_in_one_sentence(data, words):
    with pytest.raises(InputError, match=words) as refused:
        load(data)
    assert not faults_of(str(refused.value))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"%%MatrixMarket matrix coordinate real general\n",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1000000000\n1 1 1\n",
        b"%%MatrixMarket matrix array real general\n100000 100000\n1\n",
        b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n9 9 1\n",
        b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 x\n2 2 1\n",
        b"%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 1 1 2\n",
        b"a,b\n1,2\n",
    ],
)
def test_damaged_matrix_market_files_are_refused_in_one_sentence(text):
    with pytest.raises(InputError) as refused:
        load(text, "x.mtx")
    assert not faults_of(str(refused.value))


def test_the_process_that_reads_uploads_reads_them(tmp_path):
    (tmp_path / "cells.h5ad").write_bytes(SOUND)
    dataset = read_apart([("cells.h5ad", tmp_path / "cells.h5ad")], missing="model")
    np.testing.assert_array_equal(dataset.X, counts(0))
    assert isinstance(dataset.X, np.memmap) or dataset.X.base is not None


def test_files_of_anndata_itself_in_all_its_columns(tmp_path, seed):
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    import pandas as pd

    X = counts(seed)
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(["B", "T", None] * 3),
            "text": list("abcabcabc"),
            "whole": pd.array([1, None, 3] * 3, dtype="Int64"),
            "flag": pd.array([True, None, False] * 3, dtype="boolean"),
            "real": np.arange(9) / 7,
        },
        index=[f"c{i}" for i in range(9)],
    )
    adata = ad.AnnData(sparse.csr_matrix(X.astype(np.float32)), obs=obs)
    adata.layers["raw"] = sparse.csc_matrix(X)
    adata.write_h5ad(tmp_path / "a.h5ad", compression="gzip")
    dataset = read("a.h5ad", tmp_path / "a.h5ad")
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(read("a.h5ad", tmp_path / "a.h5ad", array="layers/raw").X, X)
    assert dataset.ids.tolist() == obs.index.tolist()
    assert dataset.labels["kind"].tolist() == ["B", "T", ""] * 3
    assert dataset.labels["flag"].tolist() == ["True", "", "False"] * 3
    np.testing.assert_array_equal(dataset.labels["whole"], [1, np.nan, 3] * 3)
    np.testing.assert_array_equal(dataset.labels["real"], obs["real"])


def test_sparse_matrices_in_a_zip_or_npz_are_read_apart(seed):
    X = sparse.csr_matrix(counts(seed))
    stream, text = io.BytesIO(), io.BytesIO()
    sparse.save_npz(stream, X)
    mmwrite(text, X)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("matrix.mtx", text.getvalue())
    dense = io.BytesIO()
    np.savez(dense, X=X.toarray())
    cases = {"a.npz": stream, "a.zip": zipped, "dense.npz": dense}
    assert {name: by_libraries([(name, file)]) for name, file in cases.items()} == {
        "a.npz": True,
        "a.zip": True,
        "dense.npz": False,
    }
