import numpy as np
import pytest

from appca.plots import style


def test_classes_are_sorted_as_people_count():
    column = np.array(["obj10", "obj2", "", "obj1", "obj2"])
    colour = style.colour_by("x", column)
    assert colour.names == ("obj1", "obj2", "obj10")
    np.testing.assert_array_equal(colour.values, [2, 1, -1, 0, 1])


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
    assert style.colour_by("x", column).kind == kind


def test_the_same_class_has_the_same_colour_whatever_rows_are_shown():
    names = ("a", "b", "c")
    every = style.levels(style.Colour("category", "x", np.array([0, 1, 2]), names))
    some = style.levels(style.Colour("category", "x", np.array([2, 2]), names))
    assert every.table[every.codes[2]] == some.table[some.codes[0]]


def test_rows_without_a_class_have_the_colour_of_the_missing():
    levels = style.levels(style.Colour("category", "x", np.array([0, -1]), ("a",)))
    assert levels.table[levels.codes[1]] == style.MISSING
    assert levels.table[levels.codes[0]] == style.CATEGORICAL[0]


def test_forty_classes_differ_in_colour_or_shape():
    names = tuple(map(str, range(40)))
    levels = style.levels(style.Colour("category", "x", np.arange(40), names))
    looks = {(levels.table[code], levels.shapes[code]) for code in levels.codes}
    assert len(looks) == 40


def test_many_classes_need_two_bytes_a_row():
    names = tuple(map(str, range(300)))
    levels = style.levels(style.Colour("category", "x", np.arange(300), names))
    assert levels.codes.dtype == np.uint16
    np.testing.assert_array_equal(levels.codes, np.arange(300))


def test_a_number_rises_along_its_scale_and_nan_is_missing():
    values = np.append(np.linspace(3, 5, 200), np.nan)
    levels = style.levels(style.Colour("number", "x", values))
    codes = levels.codes[:200].astype(int)
    assert np.all(np.diff(codes) >= 0)
    assert (codes[0], codes[-1]) == (0, style.LEVELS - 1)
    assert levels.table[levels.codes[200]] == style.MISSING


def test_an_outlier_does_not_flatten_the_scale():
    values = np.append(np.linspace(0, 1, 1000), 1e6)
    levels = style.levels(style.Colour("number", "x", values))
    assert levels.limits[1] < 1.01
    assert np.ptp(levels.codes[:1000].astype(int)) == style.LEVELS - 1


@pytest.mark.parametrize("values", [np.full(5, 3.0), np.full(5, np.nan)])
def test_a_constant_or_empty_number_is_drawn_without_a_warning(values):
    levels = style.levels(style.Colour("number", "x", values))
    assert len(set(levels.codes)) == 1


GROUNDS = ("#ffffff", "#f4f6f9", "#161d27", "#0c1016")  # panel and page, light and dark


@pytest.mark.parametrize("colours", [style.CATEGORICAL, style.MANY])
@pytest.mark.parametrize("ground", GROUNDS)
def test_classes_stand_out_on_both_grounds(colours, ground):
    of_ground = luminance(ground)
    for colour in colours:
        light, dark = sorted([luminance(colour), of_ground], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0, colour


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])
