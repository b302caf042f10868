"""The page Export: figures, projections, components, reports, models, scripts."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.as_python import Recipe, script
from appca.analysis.components import common, explained_shares, name_of, patterns, ranked, title
from appca.analysis.tables import Columns, projection_table
from appca.annotated_file import H5AD, ending_of, new_file, with_fit
from appca.canvas.html import picture_page
from appca.canvas.panels import colour_choices, colour_of
from appca.canvas.scene import Map, Scene, scene_shown
from appca.canvas.sheets import is_ink, sample, tiles_of
from appca.data.dataset import Dataset
from appca.plots.components import component_figure, montage
from appca.plots.files import associations, drawn, facts, framed, image, paragraph, section, table
from appca.runs import run, store
from appca.runs.home import threads
from appca.runs.model_file import annotated_fit, model_bytes
from appca.ui import arrivals, canvas, controls, diagnostics, fits, kit, services, settings, state
from appca.ui.components import MEANING
from appca.ui.downloads import card, component_buttons, save_button, stem_of, table_buttons
from appca.ui.groups import suspects, unusual_sentences
from appca.ui.rows import MOST_LABELS, unusual
from appca.words import InputError, capital, counted, listed, number, percent, shortened

if TYPE_CHECKING:
    import pandas as pd

    from appca.plots.still import StillFigure

FigureMaker = Callable[[], "StillFigure"]
FIGURES = {
    "subspaces": ("Subspaces", "The picture of Explore, with images where they fit."),
    "pairs": ("Pairs of components", "All rows that use both, in panels that share an axis."),
    "components": ("Components", "Each component's picture and share of the variance."),
    "pca": ("PCA", "All rows on two principal components."),
    "features": ("Two features", "All rows on the two features that Explore shows."),
    "umap": ("UMAP", "All rows."),
}


class Material(NamedTuple):
    """The inputs of a run's figures."""

    dataset: Dataset
    shown: fits.Shown
    colour: str
    selected: np.ndarray | None = None  # (N,) bool: the other rows are grey
    coordinates: np.ndarray | None = None  # (N, 2), the UMAP map
    findings: tuple[str, ...] | list[str] = ()  # sentences of comparisons of groups
    associations: "pd.DataFrame | None" = None  # all tests of Components, if they were computed


def figures(material: Material) -> dict[str, FigureMaker]:
    """Return the functions that draw the figures, by their keys in `FIGURES`."""
    dataset, shown, colour, selected, places, *_ = material
    maps_of = canvas.maps_of(dataset, shown)
    maps_of |= {} if places is None else {"umap": Map("UMAP", places)}

    @cache
    def scene() -> Scene:
        extra = {colour} - colour_choices(dataset).keys()
        colours = {key: colour_of(dataset, shown.fitted, key) for key in extra}
        return scene_shown(dataset, shown.fitted, maps_of, colourings=colours)

    def of_rows(layout: str = "") -> "StillFigure":
        from appca.canvas.figure import draw

        return draw(scene(), layout or scene().meta["first"], colour, selected=selected)

    def of_components() -> "StillFigure":
        fitted, shape, names = shown.fitted, dataset.image_shape, dataset.feature_names
        titles = [
            f"{capital(name_of(fitted, k))}\n{percent(share, 1)} of variance"
            for k, share in enumerate(explained_shares(fitted, dataset)[0])
        ]
        return component_figure(patterns(fitted, shape), titles, shape, names, axis=dataset.axis)

    by_pair = {"pairs": partial(of_rows, "pairs")} if (shown.fitted.active.sum(1) > 2).any() else {}
    maps = {name: partial(of_rows, name) for name in maps_of}
    return {"subspaces": of_rows, **by_pair, "components": of_components, **maps}


MOST_SUBSPACES, MOST_UNUSUAL, MOST_LISTED, EXAMPLE_ROWS = 40, 10, 200, 5
MARKS = {"good": "passed", "unknown": "not checked", "doubtful": "with care", "bad": "failed"}
SAMPLE_COLUMNS, SAMPLE, SAMPLE_WIDTH = 16, 64, 530
SUBSPACES = "Rows with the same choice of components share a subspace; the fullest first."
AGAIN = "This script repeats the fit, exactly on the same machine with the same versions."


def report(material: Material, script: str) -> str:
    """Return the HTML report; `script` reproduces the fit."""
    dataset, shown, selected = material.dataset, material.shown, material.selected
    config, fitted, labels = shown.config, shown.fitted, kit.every(dataset)[:MOST_LABELS]
    classes = [dataset.classes(label.title) for label in labels]
    name = store.title(config) if shown.run is None else shown.run.name
    body = [facts({"Data": dataset.name, "Fit": f"{name} ({config.id})"})]
    data = [facts(dataset.facts | {"Digest (SHA-256)": dataset.digest})]
    if dataset.image_shape is not None:
        rows = sample(dataset.n_rows, SAMPLE)
        tiles = tiles_of(dataset, rows)
        sheet = montage(255 - tiles if is_ink(dataset) else tiles, SAMPLE_COLUMNS)
        height = round(SAMPLE_WIDTH * sheet.shape[0] / sheet.shape[1])
        data.append(image(sheet, f"{counted(len(rows), 'row')} drawn at random", height))
    before, parameters = (
        facts({option: value for option, value in chosen.items() if value is not None})
        for chosen in (config.preprocessing, config.parameters)
    )
    about = paragraph(f"{run.MODELS[config.model].title}. {run.MODELS[config.model].about}")
    chosen = [about, "<h3>Before the fit</h3>", before, "<h3>Model</h3>", parameters]
    body += [section("Data", *data), section("Settings", *chosen)]
    body += [section("Fit", facts(kit.fit_facts(dataset, shown))), _judged(dataset, shown)]
    if selected is not None:
        few = f"{selected.sum():,} of {dataset.n_rows:,} rows; in figures the rest is grey: "
        body.append(
            section("Selection", paragraph(few + listed([*dataset.ids[selected]], MOST_LISTED)))
        )
    kept = [(each.name, dataset.ids[each.mask].tolist()) for each in state.named(dataset)]
    if lines := [[name, f"{len(ids):,}", listed(ids, MOST_LISTED)] for name, ids in kept]:
        body.append(section("Named selections", table(["Name", "Rows", "Ids"], lines)))
    if material.findings:
        body.append(section("Comparisons of groups", *map(paragraph, material.findings)))
    names = [capital(name_of(fitted, k)) for k in range(len(fitted.scale))]
    each = zip(names, explained_shares(fitted, dataset)[0], fitted.active.mean(axis=0), strict=True)
    named = [[name, percent(share, 1), percent(part)] for name, share, part in each]
    columns = ["Component", "Share of variance", "Rows that use it"]
    parts = [table(columns, named), associations(material.associations, names)]
    body.append(section("Components", *parts))
    every, lines = ranked(fitted.active), []
    for used, rows in every[:MOST_SUBSPACES]:
        share, sure = len(rows) / dataset.n_rows, fitted.membership[rows].mean(dtype=float)
        line = [title(used), f"{len(rows):,}", percent(share), percent(sure, 1)]
        lines.append([*line, number(fitted.error[rows].mean(dtype=float))])
        for called, codes in classes:
            most = common(called, codes[rows])
            lines[-1].append(", ".join(f"{label} ({percent(part)})" for label, part in most))
    columns = ["Subspace", "Rows", "Share", "Membership", "Mean square error"]
    columns += [each.title for each in labels]
    parts = [paragraph(SUBSPACES), table(columns, lines)]
    if left := every[MOST_SUBSPACES:]:
        together = counted(sum(len(subspace.rows) for subspace in left), "row")
        parts.append(paragraph(f"And {len(left):,} more with {together} together."))
    body.append(section("Subspaces", *parts))
    for key, make in figures(material).items():
        heading, text = FIGURES[key]
        body.append(section(f"Figure: {heading}", paragraph(text), drawn(make(), heading)))
    versions = facts({name: str(version) for name, version in shown.info.versions.items()})
    made = [paragraph(AGAIN), paragraph(script, "pre"), "<h3>Versions</h3>", versions]
    body.append(section("How to repeat the fit", *made))
    return framed(f"{name}: {dataset.name}", "".join(body))


def _judged(dataset: Dataset, shown: fits.Shown) -> str:
    level, checks = diagnostics.verdict(dataset, shown)
    results = [[check.label, MARKS[check.level], check.why] for check in checks]
    why = table(["Check", "Result", "Reason"], results)
    said, odd, _ = unusual(dataset, shown)
    lines = list[list[object]]()
    for row in said.order[~said.fits[said.order]].tolist():
        ways = zip(("far out within", "far from"), ("T²", "Q"), said.ratios[row], strict=True)
        each = [f"{w} its subspace ({q} {number(x)} × the limit)" for w, q, x in ways if x > 1]
        each += [f"far in {odd[row]}, or against its correlations"] if row in odd else []
        lines.append([shortened(dataset.ids[row]), "; ".join(each)])
    text = unusual_sentences(dataset, shown)[0]
    text += f" Up to {MOST_UNUSUAL} are listed." * bool(lines)
    for what, of in suspects(dataset, shown, {}).items():
        text += f" {what}: {listed([*of.values()], MOST_LISTED)}."
    listing = table(["Row", "Reason"], lines[:MOST_UNUSUAL]) if lines else ""
    trust = section("Can I trust it?", paragraph(f"{diagnostics.ANSWERS[level]}."), why)
    return trust + section("Unusual rows", paragraph(text), listing)


INCLUSIONS = "Inclusion probabilities", False, "export_inclusion"  # label, default, key
INCLUSION = "The probability that a row uses each component, in further columns."
LINES = "One line per row: id, labels, subspace and its probability, scores (zero for unused "
LINES += "components), mean squared error, log-likelihood. NPZ has the components, too."
PICTURE = "One HTML file, offline, with hover, images, lasso, search, tour and colours."
COMPONENTS = "Per feature: the fit's centre and what a score of 1 adds; CSV also in scaled units."
MODEL = "Model and preprocessing in one file without pickle, for any rows with the same features."
REPORT = "One HTML page, offline: data, settings, verdict, unusual rows, components and figures."
ANNOTATED = "Scores, loadings, supports and their probability, with the names of appca.tl.appca."


def choices(dataset: Dataset, shown: fits.Shown) -> tuple[np.ndarray | None, Material]:
    """Draw menus of rows and colours; return indices of selected rows, if any, and inputs."""
    mask, every = state.get(dataset), counted(dataset.n_rows, "row")
    names = {"all": f"All {every}"}
    names |= {"selected": f"Selected ({mask.sum():,})"} if mask.any() else {}
    about = "Projections of the selected rows only; figures and report mark them."
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        some = kit.one_of("Rows", names, key="export_rows", help=about) == "selected"
        colour = controls.colouring(dataset)
    embedding = settings.stored_map(dataset, shown.config)
    places = None if embedding is None else embedding.coordinates[:, :2]
    said = st.session_state.get(state.KEYS.findings, {})
    tests = said.get((shown.key, MEANING))
    told = [said[key] for key in said if key[0] == shown.key and key[1] != MEANING]
    material = Material(dataset, shown, colour, mask if some else None, places, told, tests)
    return np.flatnonzero(mask) if some else None, material


def figure_card(material: Material) -> Callable[[], None]:
    """Draw a menu of figures; return a function that draws the chosen figure."""
    every, shown = figures(material), material.shown
    look: Any = {"label_visibility": "collapsed"}
    with card("Figure"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            titles = {name: FIGURES[name][0] for name in every}
            chosen = kit.one_of("Which", titles, key="export_figure", **look)
            formats = {kind: kind.upper() for kind in ("png", "svg", "pdf")}
            kind = kit.one_of("Format", formats, key="export_kind", **look)
            made, file = partial(_file, every[chosen], kind), f"{chosen}-{shown.config.id}.{kind}"
            save_button("Save figure", made, file, key=f"figure-{chosen}", primary=True)
        with st.container(key="export_figure_place"):
            place = st.empty()
    place.caption("Drawing the figure …")
    marked = "" if material.selected is None else state.token(material.dataset)
    key = f"{shown.key} {material.colour} {chosen} {marked} {material.coordinates is None}"

    def draw() -> None:
        place.image(preview(key, every[chosen]), alt=f"Figure: {titles[chosen]}", width="stretch")

    return draw


@services.by_key(8)
def preview(make: FigureMaker) -> bytes:
    """Return a figure as PNG."""
    return _file(make, "png")


def _file(make: FigureMaker, kind: str) -> bytes:
    from appca.plots.still import file_of

    return file_of(make(), kind)


def projections(dataset: Dataset, shown: fits.Shown, rows: np.ndarray | None) -> None:
    """Draw the buttons and columns of projections, and the first lines."""
    stem = "projection" if rows is None else "selection"
    with card("Projections", LINES):
        place = st.container()
        with st.container(horizontal=True, gap="medium"):
            inclusion = st.toggle(*INCLUSIONS, help=INCLUSION, persist_state="session")
        columns = Columns(any(shown.fitted.names), bool(inclusion), controls.is_by_type(dataset))
        with place:
            made = partial(projection_table, dataset, shown.fitted, rows, columns)
            table_buttons(made, shown, stem, columns=columns)
        first = np.arange(dataset.n_rows) if rows is None else rows
        lines = projection_table(dataset, shown.fitted, first[:EXAMPLE_ROWS], columns)
        st.dataframe(lines, hide_index=True, width="stretch")


def cards(material: Material) -> None:
    """Draw the cards of all other files."""
    dataset, shown, colour = material.dataset, material.shown, material.colour
    config, imported = shown.config, shown.config.imported is not None
    of_fit = config.id, store.title(config), config.of_import(None).to_dict(), threads()
    numbers = shown.numbering.order, shown.numbering.signs
    recipe = Recipe(*of_fit, shown.info.log_likelihood, imported, *numbers)
    text, runs = script(dataset, recipe), services.runs()

    def save(label: str, make: Callable[[], bytes | str], file_name: str, key: str) -> None:
        def renewed() -> bytes | str:
            content = make()
            with suppress(InputError):
                runs.renew(config.id)  # marks it as recently used
            return content

        save_button(label, renewed, file_name, key=key)

    with card("Picture", PICTURE):
        scene = canvas.scene_of(dataset, shown, colour, settings.stored_map(dataset, config)).scene
        colourings = scene.meta["colourings"]
        first = colour if colour in colourings else next(iter(colourings), "")
        picture = partial(picture_page, [scene], dataset.name, first)
        save("Save HTML", picture, f"{stem_of(dataset.name)}-{config.id}.html", "picture")
    with card("Components", COMPONENTS):
        component_buttons(dataset, shown)
    with card("Report", REPORT):
        save("Save report", partial(report, material, text), f"report-{config.id}.html", "report")
    with card("Model", MODEL):
        model, name = (config, shown.fitted, shown.info), f"model-{config.id}.npz"
        save("Save model", partial(model_bytes, *model, dataset.feature_names), name, "model")
        st.code(f'model = appca.load_model("{name}")', language="python", wrap_lines=True)
    with card("AnnData", ANNOTATED):
        _annotated(dataset, shown, save)
    arrivals.save(dataset, shown)
    again = "Reproduces the same numbers on the same machine with the same versions."
    with card("Python", None if imported else again):
        if imported:
            st.caption("This fit was imported; the script may not reproduce its numbers.")
        save_button("Save script", text.encode, f"fit-{config.id}.py", key="script")
        with st.expander("Show the script"):
            st.code(text, language="python", wrap_lines=True)


def _annotated(dataset: Dataset, shown: fits.Shown, save: Callable[..., None]) -> None:
    names, reported = dataset.provenance.get("files", ()), dataset.provenance.get("report", {})
    whole = reported.get("rows") == dataset.n_rows and "array" in reported
    name = names[0] if whole and len(names) == 1 and ending_of(names[0]) else None
    source = None if name is None else arrivals.source_of(dataset)
    said, label, ending = "", "H5AD", H5AD
    if source is None:
        said = "A new file: the rows as X, their labels as obs, and this fit."
        said += f" To add the fit to “{name}” instead, open that file again." if name else ""
    else:
        said = f"“{name}” with this fit. Nothing else in the file is changed."
        if ending_of(str(name)) != H5AD:
            label, ending = "Zarr", ".zarr.zip"

    def made() -> bytes:
        fit = annotated_fit(shown.config, shown.fitted)
        return new_file(dataset, fit) if source is None else with_fit(*source, dataset, fit)

    file_name = f"{stem_of(name or dataset.name)}-{shown.config.id}{ending}"
    save(f"Save {label}", made, file_name, "h5ad")
    st.caption(kit.markdown(said))
