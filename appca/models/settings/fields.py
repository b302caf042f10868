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
        "With its own scale, an unusual row has less influence. The scale says how unusual it is.",
    ),
    "n_active": SettingChoice(
        "Components a row",
        {FIXED: "Exactly L", LEARNED: "Learned"},
        "Learned: a row may use any number of components, from none to all K.",
    ),
    "inference": SettingChoice(
        "Inference",
        {"em": "Exact EM", "gibbs": "Gibbs sampling", "hard": "Hard assignment"},
        "EM finds the most likely components. Gibbs sampling starts there and draws from the "
        "posterior, so that every number has an uncertainty. Hard assignment gives each row its "
        "best support only: faster, but coarser.",
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
        "Where the fit begins. “Best of several” tries them on a sample of the rows. Independent "
        "components find the factors that a start from PCA often misses.",
    ),
    "alpha": SettingChoice(
        "Mass parameter alpha",
        {"infer": "Learned", FIXED: "A fixed number"},
        "A larger alpha expects the rows to use more components in all. Learned with the rest, or "
        "fixed.",
    ),
    "prior": SettingChoice(
        "Prior of the supports",
        {"ibp": "Indian buffet", "beta-bernoulli": "Beta-Bernoulli"},
        "The Indian buffet favours few components that many rows share; Beta-Bernoulli gives each "
        "component its own frequency.",
    ),
    "latent_variance": SettingChoice(
        "Factor variance",
        {"shared": "One for all components", "component": "One each", FIXED: "A fixed number"},
        "How far rows spread along the components. Learned, or fixed at a number that you choose "
        "(the paper fixes 1, which makes the fit depend on the unit of the data).",
    ),
    "mean": SettingChoice(
        "Mean",
        {"learned": "Learned", "sample": "Mean of the rows", "zero": "Zero"},
        "The point where all scores are zero. Learned fits best when L is below K.",
    ),
    "w_update": SettingChoice(
        "Update of the components",
        {"auto": "Automatic", "polar": "Closed form", "pymanopt": "Pymanopt"},
        "Automatic: the closed form for EM, a draw for Gibbs sampling. Pymanopt searches "
        "iteratively for the same solution; it is 16 to 300 times slower and may stop early. With "
        "Gibbs sampling, these two are the paper's update, which does not sample W.",
    ),
    "z_update": SettingChoice(
        "Draw of the supports",
        {"block": "Whole support", "swap": "One by one"},
        "Draw the whole support of a row, or one component after the other as the paper does.",
    ),
    "allocation": SettingChoice(
        "Sum over supports",
        {"auto": "Where there are few", "exact": "All of them", "best": "The best one"},
        "Sum over all supports of a row, or use only the best one.",
    ),
    "n_init": Number("Starts", 1, 50, "Fit from this many starts and keep the best."),
    "max_iter": Number("Most iterations", 1, 100_000, "Stop after this many iterations."),
    "n_chains": Number(
        "Chains", 1, 16, "Independent chains. Convergence can be checked with two or more."
    ),
    "burn_in": Number("Burn-in", 0, 1_000_000, "Sweeps discarded at the start of each chain."),
    "n_draws": Number("Draws", 1, 100_000, "Draws kept from each chain."),
    "thin": Number("Sweeps per draw", 1, 10_000, "Keep one draw in this many sweeps."),
    "n_paths": Number(
        "Paths per row",
        2,
        10_000,
        "Where there are too many supports to sum over, the likelihood of a row is estimated from "
        "this many paths. More paths are slower and more accurate.",
    ),
    "chain_starts": SettingChoice(
        "Chains start",
        {"overdispersed": "Far apart", "init": "As “Start” says"},
        "If chains that start far apart agree, they found the same mode. If chains from one start "
        "agree, they only mix well around it.",
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
        "Seed", 0, 2**31 - 1, "Seed of the random numbers: the same seed gives the same fit."
    ),
}
FURTHER = {"latent_variance", "mean", "w_update", "z_update", "allocation", "thin", "max_iter"}
FURTHER |= {"n_paths"}  # behind “Further settings”
PRIORS = {name for name in FIELDS if name.endswith(("_shape", "_scale", "_rate"))} - {*EXTENSIONS}
