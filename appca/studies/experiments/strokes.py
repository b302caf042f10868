"""Random digits of each subspace of aPPCA: whether they are thicker, whether slanted."""

import numpy as np

from appca.analysis.explore.subspaces import title
from appca.studies.claims import CheckedClaim, checked
from appca.studies.experiments.vae_digits import SIZES, coded, effects, measures, strongest
from appca.studies.parts.fitting import fit
from appca.studies.parts.own_copy import images_of
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study
from appca.words.numbers import fixed, minus

COLUMNS, LINES = 20, 4
CLEAR, SLIGHT = 0.5, 0.2  # standard deviations, as is usual for Cohen's d


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, draw members at random, and measure ink and slant in every subspace."""
    digits = coded(options, report, 0.9)
    fitted = fit(digits.Y, options, report, 0.9, 1.0)
    rows = effects(digits, fitted)
    rng = np.random.default_rng(options["seed"])
    arrays = {}
    values = measures(digits)
    for number, subspace in enumerate(fitted.subspaces):
        drawn = rng.permutation(subspace.rows)[: COLUMNS * LINES]
        arrays[f"rows_{number}"] = drawn
        for place, measured in enumerate(values.values()):
            arrays[f"values_{number}_{place}"] = measured[subspace.rows].astype(np.float32)
    arrays["subspaces"] = np.array([title(part.components) for part in fitted.subspaces])
    return Outcome({"strokes": rows}, arrays, claims(rows))


def claims(rows: list[Row]) -> list[CheckedClaim]:
    """Judge ink and slant by the largest difference of a subspace from all other digits."""
    ink, *slants = (strongest(rows, name) for name in dict.fromkeys(r["measure"] for r in rows))
    return [differs("thickness", [ink]), differs("slant", slants)]


def differs(what: str, rows: list[Row]) -> CheckedClaim:
    """Take the largest of the effects: it holds from `CLEAR` on, and partly from `SLIGHT` on."""
    most = max(rows, key=lambda row: abs(float(row["effect"])))
    size = abs(most["effect"])
    measured = (
        f"{most['measure'].split(',')[0]} of {most['subspace']}: {fixed(most['effect'])} "
        f"(± {most['effect_error']:.2f}) standard deviations from the other digits, "
        f"{fixed(most['effect_within_classes'])} within a class"
    )
    tests = [size >= CLEAR, size >= SLIGHT]
    number = (f"{minus(format(most['effect'], '+.2f'))} sd", f"{what} in {most['subspace']}")
    return checked(f"The subspaces differ in {what}", measured, tests, number=number)


def figures(outcome: Outcome) -> Figures:
    """Members of each subspace drawn at random, if the person has them; the measures' spread."""
    from appca.plots.paper.study_panels import boxes, sheets

    arrays, rows = outcome.arrays, outcome.tables["strokes"]
    subspaces = arrays["subspaces"].tolist()
    names = list(dict.fromkeys(str(row["measure"]) for row in rows))
    drawn = {
        f"Subspace {name}, {len(arrays[f'values_{number}_0']):,} digits": images
        for number, name in enumerate(subspaces)
        if (images := images_of("mnist", arrays[f"rows_{number}"])) is not None
    }
    spread = {
        name: {
            subspace: arrays[f"values_{number}_{place}"]
            for number, subspace in enumerate(subspaces)
        }
        for place, name in enumerate(names)
    }
    pictures = {"members": sheets(drawn, COLUMNS, 1.5)} if drawn else {}
    return pictures | {"spread": boxes(spread)}


STUDY = Study(
    name="strokes",
    title="Thickness and slant of the digits in each subspace",
    paper=(
        "The paper shows digits drawn at random from each subspace, and says that most in one are "
        "thicker and most in another slanted. It gives no numbers."
    ),
    revision=2,
    sizes=SIZES,
    takes={"quick": 15.0, "default": 60.0, "full": 180.0},
    run=run,
    figures=figures,
)
