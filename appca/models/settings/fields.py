"""How settings are called, explained and chosen where people see them."""

from typing import NamedTuple

from appca.models.settings.table import LEARNED

FIXED = "fixed"  # the setting is a number of the person's
EXTENSIONS = ("noise", "row_scale", "n_active")  # of the paper's model


class SettingChoice(NamedTuple):
    """A parameter with few values."""

    label: str
    names: dict[str, str]  # value to what is on screen
    help: str


class Number(NamedTuple):
    """A parameter that is a number, whole where its limits are."""

    label: str
    least: float
    most: float
    help: str


ABOVE_ZERO = (1e-6, 1e6)
_VARIANCE = (
    "The prior is inverse gamma, with this {} in units of the mean variance of the features."
)
_ALPHA = "The prior of alpha is gamma with this {}; shape over rate is its mean."

FIELDS: dict[str, SettingChoice | Number] = {
    "noise": SettingChoice(
        "Noise",
        {"shared": "One for all features", "feature": "One for each feature"},
        "One for each feature suits data whose features are not equally noisy; the fit then does "
        "not depend on their units.",
    ),
    "row_scale": SettingChoice(
        "Rows",
        {"none": "Alike", LEARNED: "Each with its own scale"},
        "With its own scale, an unusual row counts less, and how unusual it is can be read off.",
    ),
    "n_active": SettingChoice(
        "Components a row",
        {FIXED: "Exactly L", LEARNED: "Learned"},
        "Learned: a row may use any number of components, from none to all K.",
    ),
    "inference": SettingChoice(
        "Inference",
        {"em": "Exact EM", "gibbs": "Gibbs sampling", "hard": "Hard assignment"},
        "EM finds the most likely components. Gibbs sampling starts there and draws from all that "
        "the data allow, which shows how sure each number is. Hard assignment gives each row "
        "wholly to its best choice: faster, coarser.",
    ),
    "init": SettingChoice(
        "Start",
        {
            "auto": "Best of several starts",
            "quartimax": "Quartimax rotation",
            "annealed": "PCA, annealed",
            "ica": "Independent components",
            "pca": "PCA",
            "dictionary": "Rows of the data",
            "random": "Random",
        },
        "Where the fit begins. Of several starts, the one that climbs highest on a sample of the "
        "rows is taken. Independent components find the factors that a start from PCA often "
        "misses.",
    ),
    "alpha": SettingChoice(
        "Mass parameter alpha",
        {"infer": "Learned", FIXED: "A fixed number"},
        "How many components rows are expected to use between them; learned with the rest, or "
        "fixed.",
    ),
    "prior": SettingChoice(
        "Prior of the choices",
        {"ibp": "Indian buffet", "beta-bernoulli": "Beta-Bernoulli"},
        "The buffet favours few components that many rows share; Beta-Bernoulli gives each "
        "component a share of its own.",
    ),
    "latent_variance": SettingChoice(
        "Factor variance",
        {"shared": "One for all components", "component": "One each", FIXED: "A fixed number"},
        "How far rows spread along the components: learned, or fixed at a number of yours (the "
        "paper fixes 1, which makes the fit depend on the unit of the data).",
    ),
    "mean": SettingChoice(
        "Mean",
        {"learned": "Learned", "sample": "Average of the rows", "zero": "Zero"},
        "The point from which the components start. Learned fits best when L is below K.",
    ),
    "w_update": SettingChoice(
        "Update of the components",
        {"auto": "Automatic", "polar": "Closed form", "pymanopt": "Pymanopt"},
        "Automatic: the closed form for EM, a draw for Gibbs sampling. Pymanopt searches step by "
        "step for what the closed form gives at once, is 16 to 300 times slower and may stop "
        "early; with Gibbs sampling either of the two is the paper's, which does not sample W.",
    ),
    "z_update": SettingChoice(
        "Draw of the choices",
        {"block": "A row at once", "swap": "One by one"},
        "Draw the components of a row together, or one after the other as the paper does.",
    ),
    "allocation": SettingChoice(
        "Sums over choices",
        {"auto": "Where they are few", "exact": "All of them", "best": "The best one"},
        "Weigh all choices of factors of a row, or give it wholly to the best one.",
    ),
    "n_init": Number("Starts", 1, 50, "Fit from this many starts and keep the best."),
    "max_iter": Number("Most iterations", 1, 100_000, "Stop after this many."),
    "n_chains": Number(
        "Chains", 1, 16, "Independent chains: only two or more can contradict one another."
    ),
    "burn_in": Number("Burn-in", 0, 1_000_000, "Sweeps thrown away at the start of each chain."),
    "n_draws": Number("Draws", 1, 100_000, "Draws kept of each chain."),
    "thin": Number("Sweeps per draw", 1, 10_000, "Keep one draw in this many sweeps."),
    "n_paths": Number(
        "Paths per row",
        2,
        10_000,
        "Where there are too many choices to sum over, the likelihood of a row is estimated with "
        "this many paths: more are slower and more exact.",
    ),
    "chain_starts": SettingChoice(
        "Chains start",
        {"overdispersed": "Far from one another", "init": "Where “Start” says"},
        "Chains that start far from one another and agree have found the same peak. Chains from "
        "one start that agree only show that they move well around it.",
    ),
    "noise_shape": Number("Noise: shape", *ABOVE_ZERO, _VARIANCE.format("shape")),
    "noise_scale": Number("Noise: scale", *ABOVE_ZERO, _VARIANCE.format("scale")),
    "latent_shape": Number("Factor variance: shape", *ABOVE_ZERO, _VARIANCE.format("shape")),
    "latent_scale": Number("Factor variance: scale", *ABOVE_ZERO, _VARIANCE.format("scale")),
    "loading_shape": Number("Loadings: shape", *ABOVE_ZERO, _VARIANCE.format("shape")),
    "loading_scale": Number("Loadings: scale", *ABOVE_ZERO, _VARIANCE.format("scale")),
    "alpha_shape": Number("Alpha: shape", *ABOVE_ZERO, _ALPHA.format("shape")),
    "alpha_rate": Number("Alpha: rate", *ABOVE_ZERO, _ALPHA.format("rate")),
    "random_state": Number(
        "Seed", 0, 2**31 - 1, "Starts the random numbers: the same seed gives the same fit."
    ),
}
FURTHER = {"latent_variance", "mean", "w_update", "z_update", "allocation", "thin", "max_iter"}
FURTHER |= {"n_paths"}  # behind “Further settings”
PRIORS = {name for name in FIELDS if name.endswith(("_shape", "_scale", "_rate"))} - {*EXTENSIONS}
