"""The slot kernels as plain Python, whole or broken on purpose."""

import numpy as np

from tests.geweke import broken


def uncompiled(tmp_path, stem, old="", new=""):
    """Import the kernels as plain Python, `old` replaced by `new`; give their search for draws."""
    source, plain = "appca.models.numeric_kernels", "tests.uncompiled"
    kernels = broken("appca.models.slot_kernels", source, plain, tmp_path, f"{stem}_uncompiled")
    if old:
        kernels = broken(kernels.__name__, old, new, tmp_path, f"{stem}_broken")

    def search(at, betas, model):
        w = kernels.row_state(at.c.shape[1], at.members.shape[1])
        ended = np.empty_like(at.members)
        with np.errstate(over="ignore"):  # the generator is arithmetic modulo 2^64
            for i, c in enumerate(at.c):
                w.stream[0] = at.seeds[i]
                kernels.build(at.members[i], model, c, w)
                for beta in betas:
                    kernels.sweep(beta, model, w)
                ended[i] = w.members
        return ended

    return search


CONTROLS = {
    "increment_without_determinant": ("0.5 * (fit[i] - increment[i])", "0.5 * fit[i]"),
    "signal_halved": ("0.5 * (fit[i] - increment[i])", "0.5 * (0.5 * fit[i] - increment[i])"),
    "factor_left_in": ("s = max(w.schur[i] + a * a * schur, prior)", "s = max(w.schur[i], prior)"),
    "slots_in_sorted_order": (
        "    for slot in w.order:\n        modes",
        "    for place in range(len(w.order)):\n"
        "        slot = np.argsort(w.members)[place]\n        modes",
    ),
}
