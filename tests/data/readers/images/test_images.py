import io
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

from appca.data.files import ReadLimits
from appca.data.readers import read
from appca.words import InputError


def encoded(pixels, kind="PNG", **options):
    stream = io.BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(stream, kind, **options)
    return stream.getvalue()


def packed(files, method=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, data)
    return stream.getvalue()


def load(files, name="pictures.zip", **options):
    data = files if isinstance(files, bytes) else packed(files)
    return read(name, io.BytesIO(data), **options)


def noise(seed, *shape):
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


def test_rows_images_classes_and_ids_stay_together_whatever_the_order_in_the_zip(seed):
    rng = np.random.default_rng(seed)
    images = {
        f"set/{kind}/{kind}{number}.png": noise([seed, k, number], 5, 4)
        for k, kind in enumerate(("cat", "dog"))
        for number in range(12)
    }
    names = list(images)
    dataset = load({names[i]: encoded(images[names[i]]) for i in rng.permutation(len(names))})
    assert dataset.ids.tolist() == [f"{kind}{n}" for kind in ("cat", "dog") for n in range(12)]
    for row, name in enumerate(dataset.ids):
        kind = name[:3]
        assert dataset.labels["class"][row] == kind
        np.testing.assert_array_equal(dataset.image(row), images[f"set/{kind}/{name}.png"])
    assert dataset.image_shape == (5, 4)
    assert dataset.X.dtype == np.uint8


@pytest.mark.parametrize(
    ("names", "classes", "numbers"),
    [
        (["o1__0", "o1__5", "o2__0", "o10__0"], ["o1", "o1", "o2", "o10"], [0, 5, 0, 0]),
        (["cat-7", "cat-8", "dog-7"], ["cat", "cat", "dog"], [7, 8, 7]),
        (["cat07", "cat08", "dog07"], ["cat", "cat", "dog"], [7, 8, 7]),
        (["a (1)", "a (2)", "b (1)"], ["a", "a", "b"], [1, 2, 1]),
    ],
)  # fmt: skip
def test_names_show_class_and_number(names, classes, numbers):
    dataset = load({f"{name}.png": encoded(noise(i, 3, 3)) for i, name in enumerate(names)})
    assert dataset.labels["class"].tolist() == classes
    assert dataset.labels["number"].tolist() == numbers
    assert dataset.ids.tolist() == names


def test_names_that_show_nothing_give_no_labels_and_no_error():
    files = {
        f"{name}.png": encoded(noise(i, 3, 3)) for i, name in enumerate(("sea", "hill", "sky"))
    }
    assert load(files).labels == {}
    with pytest.raises(InputError, match="such as “hill” do not start with a class"):
        load(files, classes="name")
    with pytest.raises(InputError, match="images are in one folder"):
        load(files, classes="folder")


def test_folders_win_over_names_unless_asked_otherwise():
    files = {f"{'ab'[i % 2]}/cat{i}.png": encoded(noise(i, 3, 3)) for i in range(4)}
    files["a/dog9.png"] = encoded(noise(9, 3, 3))
    assert load(files).labels["class"].tolist() == ["a", "a", "a", "b", "b"]
    assert load(files, classes="name").labels["class"].tolist() == [
        "cat",
        "cat",
        "dog",
        "cat",
        "cat",
    ]
    assert load(files, classes="none").labels == {}


def test_folders_above_the_class_become_a_column_of_their_own():
    files = {
        f"data/{part}/{kind}/{i}.png": encoded(noise([i, len(part), len(kind)], 3, 3))
        for part in ("train", "test")
        for kind in ("cat", "mouse")
        for i in range(2)
    }
    dataset = load(files)
    assert dataset.labels["class"].tolist() == ["cat", "cat", "mouse", "mouse"] * 2
    assert dataset.labels["folder"].tolist() == ["test"] * 4 + ["train"] * 4
    assert dataset.ids[0] == "test/cat/0"


def test_a_pattern_makes_columns_of_its_groups():
    files = {f"p{i}_s{i % 2}_x.png": encoded(noise(i, 3, 3)) for i in range(4)}
    dataset = load(files, pattern=r"p(?P<person>\d+)_(?P<session>s\d)_.*")
    assert dataset.labels["person"].tolist() == [0, 1, 2, 3]
    assert dataset.labels["session"].tolist() == ["s0", "s1", "s0", "s1"]
    assert load(files, pattern=r".*_(s\d)_x").labels["class"].tolist() == ["s0", "s1", "s0", "s1"]
    for pattern, words in (
        ("(", "not a regular expression"),
        ("p.*", "no group"),
        ("q(.*)", "fit"),
    ):
        with pytest.raises(InputError, match=words):
            load(files, pattern=pattern)


def test_different_sizes_are_refused_with_two_examples_or_brought_to_the_chosen_size():
    files = {"a.png": encoded(noise(0, 4, 6)), "b.png": encoded(noise(1, 5, 6))}
    with pytest.raises(InputError, match=r"“a\.png” has 6 x 4 and “b\.png” has 6 x 5.; choose"):
        load(files)
    dataset = load(files, size=(8, 9))
    assert dataset.image_shape == (8, 9)
    same = load({"a.png": encoded(noise(0, 8, 9)), "b.png": encoded(noise(1, 8, 9))}, size=(8, 9))
    np.testing.assert_array_equal(same.image(0), noise(0, 8, 9))


def test_making_an_image_smaller_averages_its_pixels():
    board = np.kron(np.indices((8, 8)).sum(axis=0) % 2, np.ones((4, 4))) * 255
    files = {"a.png": encoded(board.astype(np.uint8)), "b.png": encoded(noise(0, 32, 32))}
    small = load(files, size=(4, 4)).image(0).astype(int)
    assert abs(small - 127.5).max() < 30


def test_colour_becomes_grey_or_is_kept():
    red = np.zeros((3, 4, 3), np.uint8)
    red[..., 0] = np.arange(12).reshape(3, 4) * 20
    files = {"a.png": encoded(red), "b.png": encoded(noise(1, 3, 4))}
    grey = load(files)
    assert grey.image_shape == (3, 4)
    assert grey.provenance["report"]["colour"] == 1
    np.testing.assert_allclose(grey.image(0), 0.299 * red[..., 0], atol=1)
    np.testing.assert_array_equal(grey.image(1), noise(1, 3, 4))
    kept = load(files, colour="keep")
    assert kept.image_shape == (3, 4, 3)
    assert kept.n_features == 36
    np.testing.assert_array_equal(kept.image(0), red)
    np.testing.assert_array_equal(kept.image(1), np.repeat(noise(1, 3, 4)[..., None], 3, axis=2))


def test_grey_images_saved_in_colour_stay_grey_and_exact():
    pixels = noise(0, 3, 4)
    files = {
        "a.png": encoded(np.repeat(pixels[..., None], 3, axis=2)),
        "b.png": encoded(noise(1, 3, 4)),
    }
    dataset = load(files, colour="keep")
    assert dataset.image_shape == (3, 4)
    np.testing.assert_array_equal(dataset.image(0), pixels)


def test_deep_palette_transparent_and_black_and_white_images_are_understood():
    deep = np.arange(16, dtype=np.uint16).reshape(4, 4) * 4096
    half = np.zeros((4, 4, 4), np.uint8)
    half[..., 0] = 200
    half[:2, :, 3] = 255
    files = {
        "a.png": encoded(Image.fromarray(deep)),
        "b.png": encoded(Image.fromarray(half)),
        "c.png": encoded(Image.fromarray(noise(0, 4, 4)).convert("P")),
        "d.png": encoded(Image.fromarray(noise(1, 4, 4) > 127)),
    }
    dataset = load(files, colour="keep", classes="none")
    np.testing.assert_array_equal(dataset.image(0)[..., 0], deep >> 8)
    assert dataset.image(1)[0, 0].tolist() == [200, 0, 0]
    assert dataset.image(1)[3, 0].tolist() == [0, 0, 0]  # what is transparent is black
    np.testing.assert_array_equal(dataset.image(2)[..., 0], noise(0, 4, 4))
    np.testing.assert_array_equal(dataset.image(3)[..., 0], (noise(1, 4, 4) > 127) * 255)


def test_photographs_stand_as_they_were_held():
    image = Image.fromarray(
        np.kron(np.array([[255, 0], [0, 0]], np.uint8), np.ones((8, 16), np.uint8))
    )
    turned = image.getexif()
    turned[0x0112] = 6  # the camera was turned by 90 degrees
    files = {"a.jpg": encoded(image, "JPEG", exif=turned, quality=95)}
    files["b.png"] = encoded(noise(0, 32, 16))
    dataset = load(files)
    assert dataset.image_shape == (32, 16)
    assert dataset.image(0)[:14, 9:].min() > 200
    assert dataset.image(0)[18:].max() < 50


def test_what_is_no_image_by_its_name_is_left_out_and_named():
    files = {
        "a.png": encoded(noise(0, 3, 3)),
        "b.png": encoded(noise(1, 3, 3)),
        "readme.txt": b"hello",
        "__MACOSX/._a.png": b"x",
        ".DS_Store": b"x",
        "folder/.hidden.png": b"x",
    }
    dataset = load(files)
    assert dataset.n_rows == 2
    assert dataset.provenance["report"]["skipped"] == ["readme.txt"]


def test_a_file_that_only_looks_like_an_image_is_refused_or_skipped_by_choice():
    whole = encoded(noise(0, 30, 30))
    files = {
        "a.png": whole,
        "b.png": encoded(noise(1, 30, 30)),
        "c.png": b"<svg/>",
        "d.png": whole[:300],
    }
    with pytest.raises(
        InputError, match=r"“c\.png” in “pictures\.zip” is not an image; take it out"
    ):
        load(files)
    dataset = load(files, broken="skip")
    assert dataset.ids.tolist() == ["a", "b"]
    assert dataset.provenance["report"]["skipped"] == ["c.png", "d.png"]


def test_names_that_lead_elsewhere_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["../../evil/a.png", "/etc/b.png", "C:\\windows\\c.png", "d/../e.png"]
    dataset = load({name: encoded(noise(i, 3, 3)) for i, name in enumerate(names)})
    assert dataset.n_rows == 4
    assert list(tmp_path.iterdir()) == []
    assert not any(".." in name or name.startswith("/") for name in dataset.ids)


def test_one_name_twice_gives_two_rows_with_ids_of_their_own():
    files = [("a.png", encoded(noise(0, 3, 3))), ("a.png", encoded(noise(1, 3, 3)))]
    dataset = load(packed(files))
    assert dataset.ids.tolist() == ["a.png", "a.png (2)"]
    assert {dataset.image(row).tobytes() for row in (0, 1)} == {
        noise(seed, 3, 3).tobytes() for seed in (0, 1)
    }


def test_a_bomb_is_refused_by_what_it_claims_before_it_is_unpacked():
    zeros = packed({f"{i}.png": bytes(40_000_000) for i in range(3)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="unpacks to 120 MB, more than 10 MB; give"):
        load(zeros, limits=ReadLimits(n_bytes=10_000_000))
    with pytest.raises(InputError, match=r"more than 67 MB, the most for .* kB of files; give"):
        load(zeros)


def test_a_member_that_lies_about_its_size_yields_no_more_than_it_claimed():
    data = bytearray(
        packed({"a.png": encoded(noise(0, 60, 60)), "b.png": encoded(noise(1, 60, 60))})
    )
    central = data.index(b"PK\x01\x02")
    data[central + 24 : central + 28] = (10).to_bytes(4, "little")  # unpacked size in the directory
    with pytest.raises(InputError, match=r"is damaged|not an image"):
        load(bytes(data))


def test_too_many_files_are_refused():
    files = {f"{i}.png": b"" for i in range(20)}
    with pytest.raises(InputError, match="holds 20 files, more than 10"):
        load(files, limits=ReadLimits(members=10))


def test_an_image_of_50_000_by_50_000_pixels_is_refused_unopened():
    head = encoded(noise(0, 3, 3))
    huge = head.replace((3).to_bytes(4, "big") * 2, (50_000).to_bytes(4, "big") * 2, 1)
    crc = __import__("zlib").crc32(huge[12:29]).to_bytes(4, "big")
    huge = huge[:29] + crc + huge[33:]
    with pytest.raises(InputError, match="pixels"):
        load({"a.png": huge, "b.png": head})


def test_an_image_beyond_the_pixel_limit_is_refused():
    files = {"a.png": encoded(noise(0, 30, 40)), "b.png": encoded(noise(1, 30, 40))}
    with pytest.raises(InputError, match=r"“a\.png” has 40 x 30 pixels, more than"):
        load(files, limits=ReadLimits(pixels=1000))


def test_images_that_together_fill_more_than_the_limit_are_refused():
    files = {f"{i}.png": encoded(np.full((100, 100), i, np.uint8)) for i in range(9)}
    with pytest.raises(InputError, match=r"The pixels of “pictures\.zip” fill more than"):
        load(files, limits=ReadLimits(n_bytes=50_000))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (b"", "not a zip file or is damaged"),
        (b"PK\x03\x04 and so on", "not a zip file or is damaged"),
        ({}, "holds 0 images; at least 2"),
        ({"a.png": encoded(noise(0, 3, 3))}, "holds 1 image; at least 2"),
        ({"a.txt": b"x", "b.txt": b"y"}, "holds 0 images"),
        ({"inner.zip": packed({"a.png": b"x"})}, "holds another archive, “inner.zip”"),
        ({"x.tar": b"x"}, "holds another archive"),
        ({"a.png": encoded(noise(0, 3, 3)), "b.png": encoded(noise(0, 3, 3))}, "All 2 rows"),
    ],
)
def test_a_bad_zip_is_refused_in_one_sentence(files, words):
    with pytest.raises(InputError, match=words) as caught:
        load(files)
    assert "\n" not in str(caught.value)


def test_a_damaged_member_is_named():
    data = bytearray(packed({"a.png": encoded(noise(0, 9, 9)), "b.png": encoded(noise(1, 9, 9))}))
    data[60] ^= 255
    with pytest.raises(InputError, match=r"“a\.png” in “pictures\.zip” is damaged"):
        load(bytes(data))


def test_an_encrypted_member_is_refused():
    data = bytearray(packed({"a.png": encoded(noise(0, 9, 9)), "b.png": encoded(noise(1, 9, 9))}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InputError, match=r"“a\.png” in “pictures\.zip” is encrypted"):
        load(bytes(data))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": (0, 5)}, "size must be a height and a width"),
        ({"size": (5,)}, "size must be a height and a width"),
        ({"colour": "blue"}, "colour must be grey or keep; got 'blue'"),
        ({"broken": "mend"}, "broken must be refuse or skip; got 'mend'"),
        ({"classes": "moon"}, "classes must be one of auto, folder, name, none; got 'moon'"),
        ({"missing": "mean"}, "has the options size, colour, .* got missing"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words):
    files = {f"{i}.png": encoded(noise(i, 3, 3)) for i in range(3)}
    with pytest.raises(InputError, match=words):
        load(files, **options)


def test_the_report_says_what_was_found():
    files = {f"{i}.png": encoded(noise(i % 2, 3, 3)) for i in range(3)} | {"x.md": b"x"}
    report = load(files).provenance["report"]
    assert report["files"] == 4
    assert report["rows"] == 3
    assert report["columns"] == 9
    assert report["duplicates"] == 1
    assert report["image_shape"] == (3, 3)
