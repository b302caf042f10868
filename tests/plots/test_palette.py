import itertools

import numpy as np
import pytest

from appca.plots import style


def test_classes_are_sorted_as_people_count():
    column = np.array(["obj10", "obj2", "", "obj1", "obj2"])
    names, codes = style.categories(column)
    assert names == ("obj1", "obj2", "obj10")
    np.testing.assert_array_equal(codes, [2, 1, -1, 0, 1])


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
MACHADO = {  # severity 1, of linear sRGB
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("colours", [style.CATEGORICAL, style.MANY])
@pytest.mark.parametrize("ground", GROUNDS)
def test_classes_stand_out_on_both_grounds(colours, ground):
    of_ground = luminance(ground)
    for colour in colours:
        light, dark = sorted([luminance(colour), of_ground], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0, colour


@pytest.mark.parametrize("vision", MACHADO)
def test_classes_are_told_apart_by_all_who_see_colours_differently(vision):
    apart = {"normal": (18.0, 11.6)}.get(vision, (11.0, 6.9))
    for colours, least in zip((style.CATEGORICAL, style.MANY), apart, strict=True):
        seen = [lab(colour, np.array(MACHADO[vision])) for colour in colours]
        distances = [ciede2000(a, b) for a, b in itertools.combinations(seen, 2)]
        assert min(distances) >= least - 0.05


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(colour: str, vision: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of a colour as somebody sees it."""
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = np.array(to_xyz) @ np.clip(vision @ linear(colour), 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one, other) -> float:
    """Colour difference of two CIELAB colours."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    dl, dc, dh = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    lm, cm = (l1 + l2) / 2, (c1 + c2) / 2
    hm = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    t = 1 - 0.17 * cos(hm - 30) + 0.24 * cos(2 * hm) + 0.32 * cos(3 * hm + 6)
    t -= 0.2 * cos(4 * hm - 63)
    sl = 1 + 0.015 * (lm - 50) ** 2 / np.sqrt(20 + (lm - 50) ** 2)
    sc, sh = 1 + 0.045 * cm, 1 + 0.015 * cm * t
    rc = 2 * np.sqrt(cm**7 / (cm**7 + 25**7))
    rt = -rc * np.sin(np.radians(60 * np.exp(-(((hm - 275) / 25) ** 2))))
    parts = dl / sl, dc / sc, dh / sh
    return float(np.sqrt(sum(p * p for p in parts) + rt * parts[1] * parts[2]))


def cos(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))
