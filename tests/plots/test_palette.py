import itertools

import numpy as np
import pytest

from appca.plots import palette


def test_classes_are_sorted_as_people_count():
    column = np.array(["obj10", "obj2", "", "obj1", "obj2"])
    names, codes = palette.categories(column)
    assert names == ("obj1", "obj2", "obj10")
    np.testing.assert_array_equal(codes, [2, 1, -1, 0, 1])


def test_numbers_as_classes_are_sorted_by_value_and_nan_is_no_class():
    names, codes = palette.categories(np.array([10.0, -1.0, np.nan, 2.5]))
    assert names == ("-1", "2.5", "10")
    np.testing.assert_array_equal(codes, [2, 0, -1, 1])


def test_names_that_mix_words_and_numbers_can_be_sorted():
    names, _ = palette.categories(np.array(["b", "10", "a2b", "a10", "2"]))
    assert names == ("2", "10", "a2b", "a10", "b")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.array(["a", "b"]), "category"),
        (np.array([0, 1, 1]), "category"),
        (np.array([True, False]), "category"),
        (np.arange(50), "number"),
        (np.array([0.0, 1.0]), "number"),
    ],
)
def test_text_and_few_integers_are_classes_and_the_rest_are_numbers(column, kind):
    assert palette.colour_by("x", column).kind == kind


def test_the_same_class_has_the_same_colour_whatever_rows_are_shown():
    names = ("a", "b", "c")
    every = palette.levels(palette.Colour("category", "x", np.array([0, 1, 2]), names), 3)
    some = palette.levels(palette.Colour("category", "x", np.array([2, 2]), names), 2)
    assert every.table[every.codes[2]] == some.table[some.codes[0]]


def test_rows_without_a_class_have_the_colour_of_the_missing():
    levels = palette.levels(palette.Colour("category", "x", np.array([0, -1]), ("a",)), 2)
    assert levels.table[levels.codes[1]] == palette.MISSING
    assert levels.table[levels.codes[0]] == palette.CATEGORICAL[0]


def test_forty_classes_differ_in_colour_or_shape():
    names = tuple(map(str, range(40)))
    levels = palette.levels(palette.Colour("category", "x", np.arange(40), names), 40)
    looks = {(levels.table[code], levels.shapes[code]) for code in levels.codes}
    assert len(looks) == 40


def test_many_classes_need_two_bytes_a_row():
    names = tuple(map(str, range(300)))
    levels = palette.levels(palette.Colour("category", "x", np.arange(300), names), 300)
    assert levels.codes.dtype == np.uint16
    np.testing.assert_array_equal(levels.codes, np.arange(300))


def test_a_number_rises_along_its_scale_and_nan_is_missing():
    values = np.append(np.linspace(3, 5, 200), np.nan)
    levels = palette.levels(palette.Colour("number", "x", values), 201)
    codes = levels.codes[:200].astype(int)
    assert np.all(np.diff(codes) >= 0)
    assert (codes[0], codes[-1]) == (0, palette.LEVELS - 1)
    assert levels.table[levels.codes[200]] == palette.MISSING


def test_an_outlier_does_not_flatten_the_scale_and_is_said_to_be_clipped():
    values = np.append(np.linspace(0, 1, 1000), 1e6)
    levels = palette.levels(palette.Colour("number", "x", values), 1001)
    assert levels.limits[1] < 1.01
    assert levels.clipped == (True, True)
    assert np.ptp(levels.codes[:1000].astype(int)) == palette.LEVELS - 1


@pytest.mark.parametrize("values", [np.full(5, 3.0), np.full(5, np.nan)])
def test_a_constant_or_empty_number_is_drawn_without_a_warning(values):
    levels = palette.levels(palette.Colour("number", "x", values), 5)
    assert len(set(levels.codes)) == 1


def test_twenty_colours_stay_apart_as_the_comment_says():
    lab = oklab(np.array([rgb(colour) for colour in palette.CATEGORICAL]))
    distance = [np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2)]
    assert len(palette.CATEGORICAL) == 20
    assert min(distance) > 0.085


def rgb(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def oklab(colours: np.ndarray) -> np.ndarray:
    """Convert sRGB 0..1 to OKLab, by the matrices of its definition."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    cone = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lightness = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.cbrt(linear @ np.array(cone).T) @ np.array(lightness).T


def test_values_that_are_not_one_a_row_are_refused():
    colour = palette.Colour("number", "error", np.zeros(3))
    with pytest.raises(ValueError, match=r"'error' has 3 values for 4 rows; give one value a row"):
        palette.levels(colour, 4)


def test_codes_beyond_the_names_are_refused():
    colour = palette.Colour("category", "class", np.array([0, 2]), ("a", "b"))
    with pytest.raises(ValueError, match=r"has code 2 but 2 class names"):
        palette.levels(colour, 2)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"'category' or 'number'; got 'hue'"):
        palette.levels(palette.Colour("hue", "x", np.zeros(2)), 2)
