"""docs/benchmarks.md and docs/measurements.md, from the files that the benchmarks have written.

`python -m benchmarks.document` writes both pages from results/ beside this file: the first has
what a user waits for, the second all else. A section without results says so.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from appca.plots.export.markdown import table
from appca.words.wording import counted
from benchmarks import (
    app_readings,
    codes,
    densities_reading,
    estimated_reading,
    oracles_reading,
    readings,
    rivals_reading,
    sparse,
)
from benchmarks.cluster import D, K, L
from benchmarks.results import RESULTS, Result, Row, read
from benchmarks.shapes import LIMIT_S, SHORT_S
from benchmarks.table import LONG_S
from benchmarks.targets import targets

__all__ = ["PAGE", "SECTIONS", "TABLES", "Section", "page", "tables"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
TABLES = PAGE.with_name("measurements.md")
ADVICE = PAGE.with_name("when-to-use.md")
QUOTED = {  # results -> the lines of the advice between which they are quoted
    "densities": ("% table of benchmarks.densities", "% end of densities"),
    "rivals": ("% table of benchmarks.rivals", "% end of the table"),
}


class Section(NamedTuple):
    """A benchmark on the page."""

    name: str  # of its file of results
    title: str
    what: str  # is measured, and how
    command: str
    lines: Callable[[Sequence[Row]], list[dict[str, str]]]  # rows -> cells by heading
    reading: Callable[[Sequence[Row]], list[str]]  # rows -> sentences


WAITED = (  # for these a user waits: sections of the first page
    *("speed", "solids", "sparse", "cluster", "million", "pages", "slider", "first_view"),
    *("codes", "visitors"),
)
INTRODUCTION = """# What you will wait for

Times of fits and of the app. [Measurements](measurements.md) has all other tables: likelihoods,
errors, comparisons with other methods, and the numbers that a change must not make worse.

`python -m benchmarks.document` writes both pages from the files in `benchmarks/results/`, and a
test fails when they differ: no number here is written by hand.

## How to read the numbers

- **Machine.** Each section names the date, the versions, the cores and the BLAS it was measured
  on. No benchmark uses a GPU.
- **Processor s** is processor time summed over all threads, **clock s** the time that passes.
  Methods take turns within a round, so that other work on the machine falls on all of them;
  numbers are medians over rounds, and a ratio is the median of the ratios within a round, not a
  ratio of medians.
- **Nats per row** is the mean log-likelihood of a row, in natural logarithms; **held out** means
  rows that the fit has not seen.
- **Error** is the mean squared reconstruction error of a cell. Pixels are divided by 255, those
  of the 8 x 8 digits by 16.
- **Peak / data** is the memory a fit takes at its peak, the rows included, over the size of the
  rows; of a fit of less than 10 s, which is made twice, the second one's.
- **One start** is aPPCA with `tol=0.02` from a single start, `init="quartimax"` (`"ica"` above
  100 components); by default several starts are compared.
- **The two products** of an EM iteration are X W and X'S, of the rows X (N, D) with the components
  W (D, K) and with scores S (N, K): every iteration has to compute them, whatever the model.

Run the commands in the environment that the README's test command makes (`. .venv/bin/activate`),
with `APPCA_DATA` naming a folder that holds MNIST and COIL-20. Each writes
`benchmarks/results/NAME.json`; then write the pages again.
"""
MEASURED = """# Measurements

Tables from which a change for the worse is seen: likelihoods, errors, comparisons with other
methods, the cost of single steps. [What you will wait for](benchmarks.md) explains the columns and
has the times that a user notices. `python -m benchmarks.document` writes this page.
"""

SECTIONS = (
    Section(
        "table",
        "The models beside scikit-learn",
        "Every fit runs in a separate process, after a small fit that loads libraries and "
        f"compiled code. The time limit is {LIMIT_S} s on a data set. After a method has exceeded "
        f"it, and for most methods on the voxel-shaped rows, the limit is {SHORT_S} s. Fits of "
        f"more than {LONG_S} s run once (“once”); the others run several times.",
        "python -m benchmarks.table --large --rounds 3 --minutes 45",
        readings.table_lines,
        readings.table_reading,
    ),
    Section(
        "speed",
        "What a person waits for",
        "Default fits, including all starts, and the description of rows, with one BLAS thread "
        "unless the line says otherwise. Processor time includes threads that spin while they "
        "wait, so with two threads a method that waits looks slower than by the clock. Memory is "
        "that of the first fit of all rows in a process.",
        "python -m benchmarks.speed",
        readings.speed_lines,
        readings.speed_reading,
    ),
    Section(
        "solids",
        "Many pictures of two kinds, by two kinds of BLAS kernels",
        "Processor time with one BLAS thread of fits with (10, 3): by default, and with a noise of "
        "each feature and a scale of each row (A + B). The solids are those of the turntable, at "
        "random angles, places and lights.",
        "python -m benchmarks.solids",
        readings.solids_lines,
        readings.solids_reading,
    ),
    Section(
        "passes",
        "An EM iteration beside its two products",
        "An E step over all rows and an M step, in turn with the two products by NumPy on the "
        "same number of threads.",
        "python -m benchmarks.table --passes --data MNIST",
        readings.passes_lines,
        readings.passes_reading,
    ),
    Section(
        "long",
        "What a longer fit would gain",
        "EM continues from the end of one start, also through iterations without a gain.",
        "python -m benchmarks.table --long --data 'MNIST 60'",
        readings.long_lines,
        readings.long_reading,
    ),
    Section(
        "growth",
        "How the time of an iteration grows",
        "Processor time of an EM iteration of aPPCA while one size grows and the others are fixed; "
        "the power is the slope of log time over log size.",
        "python -m benchmarks.table --growth",
        readings.growth_lines,
        readings.growth_reading,
    ),
    Section(
        "cluster",
        "More rows than memory holds",
        f"aPPCA with K = {K} and L = {L} fitted through Dask to rows of {D} float32 numbers. "
        "Chunks are generated again in every iteration, on worker processes of one machine "
        "(`pip install -e '.[dask]'`). Cosines are with the planted directions.",
        "python -m benchmarks.cluster",
        readings.cluster_lines,
        readings.cluster_reading,
    ),
    Section(
        "planted",
        "Recovery of planted directions",
        "Rows drawn from the model with noise of standard deviation 0.1; |cosine| between "
        "fitted and true directions under the best matching, and how much higher a fit started "
        "at the true W ends.",
        "python -m benchmarks.planted 3",
        readings.planted_lines,
        readings.planted_reading,
    ),
    Section(
        "likelihoods",
        "Likelihoods on real data",
        "aPPCA by default settings, seed 0, with a learned mean; exact log-likelihood of the "
        "rows fitted to.",
        "python -m benchmarks.likelihoods",
        readings.likelihoods_lines,
        readings.likelihoods_reading,
    ),
    Section(
        "adaptive_fa_balanced",
        "aFA against the noise floor",
        "Balanced design: 1,000 rows, 50 features, noise of standard deviation 0.1. Errors are "
        "over that of an oracle, which knows W and the noise and takes the best supports; each "
        "number is the worst over the data sets, from the paper's start (PCA) the best.",
        "python -m benchmarks.adaptive_fa balanced",
        readings.balanced_lines,
        readings.balanced_reading,
    ),
    Section(
        "adaptive_fa_digits",
        "aFA on odd digits",
        "2,500 odd MNIST digits in 350 principal coordinates, K = 100, L = 50, start included; "
        "how many factors distinct rows of two digits share, and whether every digit shares "
        "most with its own kind.",
        "python -m benchmarks.adaptive_fa digits",
        readings.digits_lines,
        readings.digits_reading,
    ),
    Section(
        "rivals",
        "aPPCA beside mixtures and other decompositions",
        "At most 2,500 rows, a fifth held out; three starts, one BLAS thread. Axes are the "
        "directions a person has to learn; error is the share of the held-out variance that is "
        "left; recovered is the mean matched |cosine| between the directions of two starts. "
        "“As exact” is the smallest mixture tried whose error is no larger than aPPCA's. A density "
        "that hardly varying features leave without bound is left out.",
        "python -m benchmarks.rivals",
        rivals_reading.rivals_lines,
        rivals_reading.rivals_reading,
    ),
    Section(
        "densities",
        "Held-out likelihoods under one protocol",
        "At most 2,500 rows in three folds, each row held out once; one BLAS thread. All methods "
        "see the same features, of at least 5% of the mean variance or, in lines that say so, all "
        "but those that vary in hardly more than one training row. All noise variances have the "
        "floor of noise='feature', at least 1% of the feature's variance, and all methods that "
        "climb have three starts. A is noise by feature, B a scale for each row, C "
        "learned sizes and V a variance for each component; aPPCA without them is the paper's "
        "model. ± is the standard error over rows of the difference on the same rows. Certainty is "
        "the mean of max(r, 1 - r) over inclusion probabilities r. Parameters are those of the "
        "last fold.",
        "python -m benchmarks.densities",
        densities_reading.lines,
        densities_reading.reading,
    ),
    Section(
        "oracles_starts",
        "A default fit against thirty random starts",
        "Log-likelihood of the rows fitted to, nats a row. A fit by default settings is compared "
        "with 30 fits of one start each, from a random rotation or random loadings "
        '(`init="random"`, seeds 1 to 30). A negative loss means that the default fit is better '
        "than all of them. Tables are in standard deviations, pixels between 0 and 1.",
        "python -m benchmarks.oracles starts",
        oracles_reading.starts_lines,
        oracles_reading.starts_reading,
    ),
    Section(
        "oracles_gaps",
        "Likelihoods of rows with missing values",
        "A tenth of the cells is hidden. Up to 5,000 supports the library sums over all of them. "
        "Beyond, it sums over the best support and all its exchanges of one component. Here that "
        "sum is compared with the exact one at the same parameters, in nats a row: the mean error, "
        "the largest of a row, and the mean error of the best support alone. The last columns "
        "compare a fit by these sums with a fit by exact ones.",
        "python -m benchmarks.oracles gaps",
        oracles_reading.gaps_lines,
        oracles_reading.gaps_reading,
    ),
    Section(
        "estimated",
        "Estimated likelihoods and their stated errors",
        "Annealed importance sampling against the sum over all supports, at parameters that the "
        "rows were drawn from and, in the last lines, averaged over draws of a fit. The library "
        "itself sums all supports up to K = 16 in sparse factor analysis (fsFA), and up to 12,870 "
        "of them, any L at K = 16, in adaptive factor analysis (aFA); 16 paths are its default, 4 "
        "a draw in averages.",
        "python -m benchmarks.estimated",
        estimated_reading.lines,
        estimated_reading.reading,
    ),
    Section(
        "oracles_streams",
        "Streams in random and in sorted order",
        "`partial_fit` on batches against `fit` on all rows, in nats a row of all rows. A stream "
        "is shuffled three times; sorted by class, the rows of each class are shuffled. The last "
        "column is the loss when one row is learned after a fit of all others.",
        "python -m benchmarks.oracles streams",
        oracles_reading.streams_lines,
        oracles_reading.streams_reading,
    ),
    Section(
        "missing",
        "Prediction of masked cells",
        "Root mean squared error on cells masked at random, in preprocessed units (tables: one "
        "standard deviation), averaged over seeds. The imputers of scikit-learn run on at most "
        "64 columns.",
        "python -m benchmarks.missing",
        readings.missing_lines,
        readings.missing_reading,
    ),
    Section(
        "quality",
        "Neighbourhood measures on a sample of anchors",
        "Rows of 50 features projected on two of them; the measures of the page Check, with "
        "their standard errors.",
        "python -m benchmarks.quality",
        readings.quality_lines,
        readings.quality_reading,
    ),
    Section(
        "pages",
        "The first picture, and from page to page",
        "A copy of the sources of which nothing is compiled, and a new home: from the start of the "
        "server's process until the digits are drawn with their images, and again at its second "
        "start. Then 10,000 rows of MNIST at K = 10, L = 3: from a click in the navigation until "
        "the page is complete, twice. Chromium with WebGL by software.",
        "python -m benchmarks.pages",
        app_readings.pages_lines,
        app_readings.pages_reading,
    ),
    Section(
        "sparse",
        "Sparse counts",
        "Counts of planted supports, fitted as CSR in float32 with K = 20 components, L = 5 a row. "
        "Memory is the most that the process held, with the data; the share of variance is "
        "what scores and components reproduce; the last column is the mean over planted "
        "components of the largest |cosine| with a fitted one.",
        "python -m benchmarks.sparse",
        sparse.lines,
        sparse.reading,
    ),
    Section(
        "codes",
        "Codes of other models",
        "An HDF5 file of 100,000 rows that each use 32 of 4,096 components: from the command to "
        "the written page, in a new process each time; then the page in a new window of Chromium "
        "with WebGL by software, from navigation to the picture of all rows, and medians of "
        "frames. A frame takes 16.7 ms at 60 a second.",
        "python -m benchmarks.codes",
        codes.lines,
        codes.reading,
    ),
    Section(
        "million",
        "A million rows by one command",
        "`appca FILE` for 1,000,000 x 50 numbers (200 MB), each start with a new home: from the "
        "command until the picture is complete; the target is 10 s. Memory is that of all its "
        "processes, without pages of the file; the target is 1.2 GB.",
        "python -m benchmarks.million",
        app_readings.million_lines,
        app_readings.million_reading,
    ),
    Section(
        "slider",
        "From a move of the slider to the picture",
        "MNIST on Explore, Chromium with WebGL by software; from the key to the frame after the "
        "complete picture of the final fit, which waits for the raster. Medians over the moves of "
        "K and L.",
        "python -m benchmarks.slider",
        app_readings.slider_lines,
        app_readings.slider_reading,
    ),
    Section(
        "first_view",
        "From the end of a large fit to its picture",
        "MNIST with 60,000 rows at K = 20, L = 5 on Explore, which shows a preview meanwhile: from "
        "the end of the fit until every row is in the picture; the target is 3 s. Chromium with "
        "WebGL by software.",
        "python -m benchmarks.first_view",
        app_readings.first_view_lines,
        app_readings.first_view_reading,
    ),
    Section(
        "canvas",
        "The picture of all subspaces",
        "Planted rows with K = 10, L = 3 and one map, in Chromium at 1400 x 900 with WebGL by "
        "software. Packing is warm. Medians of three new windows that have kept nothing; "
        "navigation ends when all points and words stand, and the canvas is one script, as the app "
        "sends it. plotly.js draws the same number of points in 12 panels. Of new colours or "
        "another selection a fair sample is drawn first, 0.03 points a pixel, then all.",
        "python -m benchmarks.canvas",
        app_readings.canvas_lines,
        app_readings.canvas_reading,
    ),
    Section(
        "visitors",
        "Many visitors at once",
        "Windows over the app's websocket, each moving K or L on 10,000 rows of MNIST at random, "
        "up to two seconds after its last picture; from a move until the picture's data are there.",
        "python -m benchmarks.visitors",
        app_readings.visitors_lines,
        app_readings.visitors_reading,
    ),
    Section(
        "stored",
        "Checking what is stored",
        "A data set is opened by a process for the first time, when all its blocks are checked "
        "against their digests, and again; `appca check` looks at the home that holds it. Seconds "
        "on the clock, files in the system's cache.",
        "python -m benchmarks.stored",
        app_readings.stored_lines,
        app_readings.stored_reading,
    ),
    Section(
        "uploads",
        "What a hostile upload costs",
        "Files under 2 MB that claim to be far more, uploaded in one window; another opens the "
        "app's first page meanwhile, again and again. Memory is that of the server and of the "
        "processes that read for it, beyond what they had before.",
        "python -m benchmarks.uploads",
        app_readings.uploads_lines,
        app_readings.uploads_reading,
    ),
)


def main() -> None:
    """Write both pages, and the tables of the one that quotes them."""
    PAGE.write_text(page(), encoding="utf-8")
    TABLES.write_text(tables(), encoding="utf-8")
    ADVICE.write_text(advice(), encoding="utf-8")


def page(folder: Path = RESULTS) -> str:
    """Return the Markdown of what a user waits for, of the results in a folder."""
    waited = [one for one in SECTIONS if one.name in WAITED]
    parts = (written(one, read(folder, one.name)) for one in waited)
    return "\n".join([INTRODUCTION, *chain.from_iterable(parts)])


def tables(folder: Path = RESULTS) -> str:
    """Return the Markdown of all other results in a folder, with what was asked of every one."""
    results = {one.name: read(folder, one.name) for one in SECTIONS}
    there = {name: result.rows for name, result in results.items() if result is not None}
    others = [one for one in SECTIONS if one.name not in WAITED]
    parts = (written(one, results[one.name]) for one in others)
    return "\n".join([MEASURED, *asked(there), *chain.from_iterable(parts)])


def advice(folder: Path = RESULTS) -> str:
    """Return the page that says when to use the model, with its table of today."""
    text = ADVICE.read_text(encoding="utf-8")
    written_by = {
        "densities": (densities_reading.summary, densities_reading.reading),
        "rivals": (rivals_reading.summary, rivals_reading.rivals_reading),
    }
    for name, (begin, end) in QUOTED.items():
        result, (summary, reading) = read(folder, name), written_by[name]
        if result is None:
            continue
        before, _, rest = text.partition(begin)
        parts = [before + begin, summary(result.rows), " ".join(reading(result.rows)), end]
        text = "\n\n".join(parts) + rest.partition(end)[2]
    return text


def asked(rows: dict[str, list[Row]]) -> Iterator[str]:
    """Write the table of targets, if anything about them is measured."""
    found = targets(rows)
    if found:
        yield "## Bounds and measurements\n"
        held = sum(one.held for one in found)
        yield f"{held} of {len(found)} targets are met; the sections below hold the details.\n"
        yield table(["what", "asked", "measured", "met"], (one.cells() for one in found)) + "\n"


def written(section: Section, result: Result | None) -> Iterator[str]:
    """Write one section."""
    yield f"## {section.title}\n\n{section.what}\n\n    {section.command}\n"
    if result is None:
        yield "No results are stored yet; the command writes them.\n"
        return
    yield f"*{in_words(result.about)}*\n"
    cells = section.lines(result.rows)
    yield table(list(cells[0]), (row.values() for row in cells)) + "\n"
    sentences = section.reading(result.rows)
    if sentences:
        yield " ".join(sentences) + "\n"


def in_words(about: Row) -> str:
    """Return the facts of a file of results as one line."""
    parts = [about["date"], f"appca {about['version']}", f"Python {about['python']}"]
    parts += [f"NumPy {about['numpy']}"] if "numpy" in about else []
    parts.append(f"{counted(about['cores'], 'core')} ({about['machine']})")
    blas = [
        f"{one['library']} {one['kernel']}, {counted(one['threads'], 'thread')}"
        for one in about.get("blas", ())
    ]
    parts.append(f"BLAS {' and '.join(blas) or 'not recorded'}")
    return "; ".join(parts) + "."


if __name__ == "__main__":
    main()
