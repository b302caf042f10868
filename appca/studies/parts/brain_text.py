"""What a separated brain recording shows, in words made of its numbers."""

from collections.abc import Mapping, Sequence

from appca.data.numbers import fixed, percent

PAPER_RMSE, PAPER_SD = 14.1 / 16.5, 3.0 / 4.8  # aPPCA's over PPCA's


def text_of(rows: Sequence[Mapping], facts: Mapping) -> str:
    """
    Say what the tables say.

    Parameters
    ----------
    rows : sequence of mapping
        Of the table "fmri": aPPCA, PPCA (L), PPCA (K) for each pair of sizes, the control last.
    facts : mapping
        The row of the table "recording".
    """
    models, control = rows[:3], rows[-3:]
    parts = [
        f"{facts['recording']}, {facts['voxels']:,} voxels over {facts['volumes']} volumes, "
        "without cubic drift, their overall standard deviation being 1.",
        _errors(models, control),
        _others(rows[3:-3]),
        _heldout(models, facts),
        _stimulus(models, control),
        _places(models, facts),
    ]
    measured = " ".join(part for part in parts if part)
    return f"{measured}\n\n{_verdict(models, facts)}"


def _errors(models: Sequence[Mapping], control: Sequence[Mapping]) -> str:
    appca, small, large = models
    ratio, spread = appca["rmse"] / small["rmse"], appca["rmse_sd"] / small["rmse_sd"]
    agrees = "as in the paper" if ratio < 1 and spread < 1 else "unlike in the paper"
    return (
        f"RMSE over voxels: {_named(appca)} {_spread(appca)}, {_named(small)} {_spread(small)}, "
        f"{_named(large)} {_spread(large)}. Mean and spread are {ratio:.2f} and {spread:.2f} of "
        f"those of PPCA with as many components as aPPCA has active, {agrees} ({PAPER_RMSE:.2f} "
        f"and {PAPER_SD:.2f}). A lower mean alone proves nothing, as each voxel chooses its "
        f"{appca['L']} of {appca['K']}: with random phases, where nothing is shared, it is "
        f"{_spread(control[0])} against {_spread(control[1])}."
    )


def _others(rows: Sequence[Mapping]) -> str:
    told = [
        f"{_named(appca)} {_spread(appca)} and {_named(small)} {_spread(small)}"
        for appca, small in zip(rows[::3], rows[1::3], strict=True)
    ]
    return f"Other sizes: {'; '.join(told)}." if told else ""


def _heldout(models: Sequence[Mapping], facts: Mapping) -> str:
    best = max(models, key=lambda row: row["heldout"])
    told = ", ".join(f"{_named(row)} {fixed(row['heldout'], 1)}" for row in models)
    others = facts["voxels"] - facts["voxels_of_the_fit"]
    return (
        f"Log-likelihood of the {others:,} voxels that no model was fitted to, nats a voxel: "
        f"{told}; {_named(best)} describes them best."
    )


def _stimulus(models: Sequence[Mapping], control: Sequence[Mapping]) -> str:
    appca, small, _ = models
    if appca["r"] is None:
        return "Without events no component can be compared with a stimulus."
    told = ", ".join(
        f"{_named(row)} r = {row['r']:.2f} (p = {row['p']:.3f}, with all events 6 s later "
        f"{fixed(row['r_shifted'], 2)})"
        for row in models
    )
    below = abs(appca["r_shifted"]) < appca["r"] / 2
    half = "falls below half" if below else "does not fall below half"
    better = "higher" if appca["r"] > small["r"] else "not higher"
    return (
        f"The component most correlated with the stimulus: {told}; p by circular shifts, each "
        f"with its own best component. aPPCA's correlation is {better} than that of PPCA with as "
        f"many active, {half} when the events are shifted, and is {control[0]['r']:.2f} (p = "
        f"{control[0]['p']:.3f}) where phases are random."
    )


def _places(models: Sequence[Mapping], facts: Mapping) -> str:
    appca = models[0]
    n = facts["active_voxels"]
    if not n:
        return "" if n is None else "The linear model finds no active voxel to compare maps with."
    told = ", ".join(
        f"{_named(row)} {row['dice']:.2f} ({percent(row['energy_inside'])})" for row in models
    )
    return (
        f"The linear model finds {n:,} active voxels (t above {facts['t_threshold']:.2f}, 5 % "
        f"family-wise). As many strongest voxels of the maps overlap with them by Dice, and of "
        f"the maps' squares there lie there, {told}. aPPCA's component is on in "
        f"{percent(appca['on'])} of all voxels, {percent(appca['on_inside'])} of the active and "
        f"{percent(appca['on_outside'])} of "
        f"the others; PPCA's are on everywhere."
    )


def _verdict(models: Sequence[Mapping], facts: Mapping) -> str:
    """Judge the paper's claims: lower and less spread errors, and better localisation."""
    appca, small, large = models
    lower = appca["rmse"] < small["rmse"] and appca["rmse_sd"] < small["rmse_sd"]
    errors = "lower and less spread" if lower else "not lower and less spread at once"
    beyond = "also" if appca["rmse"] < large["rmse"] else "but not"
    told = (
        f"As to the errors: {errors} than those of PPCA with {small['K']} components, {beyond} "
        f"lower than those of PPCA with {large['K']}."
    )
    if not facts["active_voxels"]:
        return told
    wins = [appca[name] > max(small[name], large[name]) for name in ("dice", "energy_inside")]
    if all(wins):
        return f"{told} The paper's claim of better localisation holds here on both measures."
    if any(wins):
        which = "the overlap" if wins[0] else "the share of squares inside"
        return f"{told} The paper's claim of better localisation holds here only by {which}."
    return f"{told} The paper's claim of better localisation holds here on neither measure."


def _named(row: Mapping) -> str:
    if row["model"] == "PPCA":
        return f"PPCA {row['K']}"
    return f"aPPCA {row['K']}/{row['L']}"


def _spread(row: Mapping) -> str:
    return f"{row['rmse']:.3f} (sd {row['rmse_sd']:.3f})"
