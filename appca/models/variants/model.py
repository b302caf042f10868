"""Which of the paper's assumptions the parameters of aPPCA give up, and what excludes what."""

from typing import Any

import numpy as np

from appca.models.base.data_checks import (
    refuse_few_features,
    refuse_sizes,
    refuse_starts,
    warn_of_constant,
    warn_of_end,
)
from appca.models.orthonormal.gibbs_fit import plan_of
from appca.models.orthonormal.screening import EMControl
from appca.models.rows.observations import Observations, Rows
from appca.models.sampling.chains import Chains
from appca.models.settings.table import LEARNED
from appca.models.variants.em import PAPER, Variant, VariantSettings, VariantState, settings_for
from appca.models.variants.fit import fit_variant
from appca.models.variants.gibbs_fit import fit_variant_by_gibbs
from appca.models.variants.posterior import extended_posterior_of, publish_variant, state_of

MOST_WITH_SIZES = 500  # components: a table of all sizes has K^2 numbers a row, up to C(K, K/2)


def variant_of(model: Any) -> Variant:
    """Return what the parameters of an estimator ask for."""
    return Variant(model.noise == "feature", model.row_scale == LEARNED, model.n_active == LEARNED)


def first_size(model: Any) -> int:
    """Return L, or where it is learned the L of the fit that gives a start."""
    learned = model.n_active == LEARNED
    return (model.n_components + 1) // 2 if learned else int(model.n_active)


def refuse_conflicts(model: Any, shape: tuple[int, int]) -> None:
    """Raise ValueError for parameters that exclude one another or do not suit the data."""
    refuse_sizes(model.n_components, *shape)
    refuse_variant(model)
    if first_size(model) > model.n_components:
        msg = (
            f"n_active must be at most n_components={model.n_components}; got {model.n_active}: "
            "lower n_active or raise n_components."
        )
        raise ValueError(msg)
    if model.w_update == "sample" and model.inference != "gibbs":
        msg = (
            f"w_update must not be 'sample' with inference={model.inference!r}, which maximises"
            ": leave w_update at 'auto', or set inference='gibbs'."
        )
        raise ValueError(msg)
    refuse_starts(model.init, model.n_init)


def refuse_variant(model: Any) -> None:
    """Raise ValueError for what the extensions of the paper's model cannot do."""
    variant = variant_of(model)
    learned = [
        f"{name}={getattr(model, name)!r}"
        for name, is_new in zip(("noise", "row_scale", "n_active"), variant, strict=True)
        if is_new
    ]
    sampled = model.inference == "gibbs" and not variant.by_feature
    if learned and model.inference != "em" and not sampled:
        others = "'em'" if variant.by_feature else "'em' or 'gibbs'"
        msg = (
            f"inference must be {others} with {' and '.join(learned)}; got {model.inference!r}: "
            "set inference='em', or take the paper's model."
        )
        raise ValueError(msg)
    if learned and sampled and model.z_update != "block":
        msg = (
            f"z_update must be 'block' with {' and '.join(learned)}; got {model.z_update!r}: leave "
            "it at 'block', which draws scale and support of a row together."
        )
        raise ValueError(msg)
    if variant.by_feature and not isinstance(model.latent_variance, str):
        msg = (
            "latent_variance must be 'shared' or 'component' with noise='feature', where it is "
            f"relative to the noise; got {model.latent_variance!r}: choose one of these."
        )
        raise ValueError(msg)
    if variant.learn_sizes and model.n_components > MOST_WITH_SIZES:
        msg = (
            f"n_components must be at most {MOST_WITH_SIZES} with n_active='learned'; got "
            f"{model.n_components}: ask for fewer components, or give n_active a number."
        )
        raise ValueError(msg)


def refuse_gaps(model: Any) -> None:
    """Raise ValueError for parameters that take no missing entries."""
    if model.inference != "em":
        msg = (
            f"X has missing entries (NaN), which need inference='em'; got {model.inference!r}: "
            "change that, or fill in or leave out those cells."
        )
        raise ValueError(msg)
    if variant_of(model) != PAPER:
        msg = (
            "X has missing entries (NaN), which need noise='shared', row_scale='none' and a "
            "number as n_active: set these, or fill in or leave out those cells."
        )
        raise ValueError(msg)


def fit_extended(
    model: Any, rng: np.random.Generator, rows: Observations, control: EMControl
) -> tuple[list[float], str]:
    """Fit an estimator that gives up assumptions of the paper's model; return how it went."""
    settings = settings_for(control.settings, variant_of(model), rows)
    refuse_few_features(model.n_components, settings.most)
    start = _start(model, rng, rows, settings)
    model._forget_fit()
    fit = fit_variant(rng, rows, start, control, settings)
    publish_variant(model, rows, fit, same_order=isinstance(start, VariantState))
    warn_of_constant(settings.most)
    warn_of_end(fit.stop_reason, model.max_iter)
    return fit.log_likelihoods, fit.stop_reason


def sample_extended(
    model: Any, rng: np.random.Generator, rows: Rows, control: EMControl
) -> Chains[Any]:
    """Sample the posterior of row scales, sizes or both, publish a draw, and return the chains."""
    settings = settings_for(control.settings, variant_of(model), rows)
    start = _start(model, rng, rows, settings)
    model._forget_fit()
    fit, chains = fit_variant_by_gibbs(rng, rows, start, control, settings, plan_of(model))
    publish_variant(model, rows, fit, same_order=False)
    return chains


def _start(
    model: Any, rng: np.random.Generator, rows: Observations, settings: VariantSettings
) -> Any:
    """Return where EM starts: directions, candidates, or the state of the fit before."""
    continued = model._continued(rng, rows)
    if continued is None:
        return model._start(rows.d)
    W, more = continued
    state = state_of(extended_posterior_of(model), rows, settings)
    return state or (W if more is None else np.hstack([W, more.V]))
