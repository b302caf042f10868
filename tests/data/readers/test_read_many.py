import hashlib
import io
from functools import partial

import numpy as np
import pandas as pd
import pytest

from appca.data.files import ENDINGS, ReadLimits, checksum, plain_file
from appca.data.readers import SUFFIXES, kind_of, read, read_many
from appca.words import InputError
from tests.data.file_makers import encoded, noise, packed


def pictures(names, *shape):
    return {name: encoded(noise(i, *(shape or (4, 5)))) for i, name in enumerate(names)}


def load(files, **options):
    return read_many([(name, io.BytesIO(data)) for name, data in files.items()], **options)


def test_a_folder_of_images_is_what_its_zip_would_be():
    names = [f"pets/{kind}/{i}.png" for i in range(3) for kind in ("dog", "cat")]
    files = pictures(names)
    folder, archive = load(files), read("pets.zip", io.BytesIO(packed(files)))
    assert folder.digest == archive.digest
    assert folder.name == archive.name == "pets"
    assert folder.labels["class"].tolist() == ["cat"] * 3 + ["dog"] * 3
    assert folder.provenance["files"] == names


def test_files_that_are_no_images_are_left_out_and_named():
    files = {**pictures(["a/1.png", "a/2.png"]), "a/notes.txt": b"notes", "a/table.csv": b"1,2"}
    dataset = load(files)
    assert dataset.n_rows == 2
    assert dataset.provenance["report"]["skipped"] == ["a/notes.txt", "a/table.csv"]
    assert load({**files, "a/.DS_Store": b"x"}).provenance["report"]["files"] == 4


@pytest.mark.parametrize(
    ("names", "pattern", "labels"),
    [
        (["obj1__0", "obj10__5"], "{class}__{n}.png", {"class": ["obj1", "obj10"], "n": [0, 5]}),
        (["a_dog_1", "my_cat_2"], "{kind}_{n}", {"kind": ["a_dog", "my_cat"], "n": [1, 2]}),
        (["s1.left(2)", "s2.left(4)"], "{who}.left({n})", {"who": ["s1", "s2"], "n": [2, 4]}),
        (["x1-a", "x2-b"], "*-{side}", {"side": ["a", "b"]}),
    ],
)
def test_a_template_names_the_parts_of_file_names(names, pattern, labels):
    dataset = load(pictures([f"{name}.png" for name in names]), pattern=pattern)
    assert {key: column.tolist() for key, column in dataset.labels.items()} == labels


def test_a_template_with_a_slash_reads_the_folders_too():
    files = pictures(["in/ann/left1.png", "in/ann/left2.png", "in/bob/right1.png"])
    labels = load(files, pattern="{who}/{side}{n}").labels
    assert labels["who"].tolist() == ["ann", "ann", "bob"]
    assert labels["side"].tolist() == ["left", "left", "right"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("{class}-{n}", "does not fit the file name “a__1”"),
        ("{class}{class}", "is not a regular expression"),
        ("plain", "has no group or"),
    ],
)
def test_a_template_that_does_not_fit_is_refused(pattern, words):
    with pytest.raises(InputError, match=words):
        load(pictures(["a__1.png", "b__2.png"]), pattern=pattern)


def test_mixed_sizes_need_a_choice_and_colour_is_kept_by_choice():
    files = {"a.png": encoded(noise(0, 4, 5)), "b.png": encoded(noise(1, 6, 6, 3))}
    with pytest.raises(InputError, match=r"“a\.png” has 5 x 4 and “b\.png” has 6 x 6"):
        load(files)
    assert load(files, size=(4, 4)).image_shape == (4, 4)
    dataset = load(files, size=(4, 4), colour="keep")
    assert dataset.image_shape == (4, 4, 3)
    grey = dataset.image(0)
    np.testing.assert_array_equal(grey[..., 0], grey[..., 2])
    np.testing.assert_array_equal(grey[..., 0], load(files, size=(4, 4)).image(0))
    assert (dataset.image(1)[..., 0] != dataset.image(1)[..., 2]).any()


def test_more_pixels_than_the_limit_are_refused_after_the_first_image():
    files = {**pictures([f"{i}.png" for i in range(5)], 40, 40), "d.png": b"not looked at"}
    with pytest.raises(InputError, match="choose a smaller size or fewer images"):
        load(files, limits=ReadLimits(n_bytes=6400))


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": b"1,2\n3,4", "b.csv": b"1,2\n3,4"},
        {"a.npy": b"x", "b.idx": b"x"},
        {"a.nii": b"x", "b.nii": b"x"},
        {"a.txt": b"x", "README": b"x", "c": b"x", "d": b"x"},
    ],
)
def test_files_that_do_not_belong_together_are_refused(files):
    with pytest.raises(InputError, match="do not make one data set together"):
        load(files)
    with pytest.raises(InputError, match="no file to read"):
        read_many([])


def test_a_recording_takes_the_mask_that_lies_beside_it(seed):
    import nibabel

    rng = np.random.default_rng(seed)
    volumes = rng.normal(size=(3, 3, 2, 20)).astype(np.float32)
    mask = np.zeros((3, 3, 2), np.uint8)
    mask[0] = 1

    def file(values):
        image = nibabel.Nifti1Image(values, np.eye(4))
        if values.ndim == 4:
            image.header.set_zooms((1, 1, 1, 2))
            image.header.set_xyzt_units("mm", "sec")
        return image.to_bytes()

    dataset = load({"brain_mask.nii": file(mask), "rest.nii": file(volumes)})
    assert dataset.name == "rest"
    assert dataset.n_rows == 6


def test_a_data_set_remembers_its_file_by_checksum_and_how_it_was_read():
    data = b"id;a;b\n1;2;x\n2;3;y\n3;5;z\n"
    dataset = read("t.csv", io.BytesIO(data), roles={"id": "feature"}, separator=";")
    assert dataset.provenance["sha256"] == hashlib.sha256(data).hexdigest()
    assert dataset.provenance["options"] == {"roles": {"id": "feature"}, "separator": ";"}
    both = [("a", io.BytesIO(b"1")), ("b", io.BytesIO(b"2"))]
    assert checksum(both) != checksum(both[::-1])


def test_a_file_on_the_disk_is_opened_where_it_is_and_others_are_copied(tmp_path):
    path = tmp_path / "plain"
    path.write_bytes(b"numbers")
    with plain_file("plain", path) as stream:
        assert stream.name == str(path)
    with plain_file(
        "plain", io.BytesIO(b"numbers"), ReadLimits(scratch=tmp_path / "new")
    ) as stream:
        assert stream.read() == b"numbers"
        assert stream.fileno() > 2
    assert list((tmp_path / "new").iterdir()) == []


def test_a_disk_without_room_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="could not be copied for reading"):
        plain_file("x", io.BytesIO(b"1"), ReadLimits(scratch=tmp_path / "file"))


def test_every_suffix_has_a_reader_and_several_of_a_kind_are_known():
    assert set(ENDINGS) < set(SUFFIXES)
    assert {kind_of(f"name{suffix.upper()}") for suffix in ENDINGS} == {"images"}
    assert kind_of("name.doc") is None
    assert kind_of("name", io.BytesIO(b"PAR1")) == "parquet"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_beside_an_array_names_and_labels_its_rows(kind, seed):
    X = np.random.default_rng(seed).normal(size=(9, 16)).astype(np.float32)
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(9)],
            "kind": list("abc") * 3,
            "year": np.arange(9) % 4 + 2000,
        }
    )
    np.save(array := io.BytesIO(), X)
    write = {"csv": partial(table.to_csv, index=False), "parquet": table.to_parquet}[kind]
    write(beside := io.BytesIO())
    dataset = load({f"meta.{kind}": beside.getvalue(), "X.npy": array.getvalue()})
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == table["id"].tolist()
    assert dataset.labels["kind"].tolist() == table["kind"].tolist()
    assert dataset.labels["year"].tolist() == table["year"].tolist()
    np.save(array := io.BytesIO(), X[1:])
    with pytest.raises(InputError, match="has 9 lines for the 8 rows of the array"):
        load({f"meta.{kind}": beside.getvalue(), "X.npy": array.getvalue()})
