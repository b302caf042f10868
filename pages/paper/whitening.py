"""Whitening: what a classifier learns from raw values, from PCA and from adaptive PCA."""

from appca.ui.paper import whitening
from appca.ui.parts import controls
from appca.ui.session import state

controls.heading("Whitening")

dataset = state.current_dataset()
whitening.explained()
options = whitening.choices(dataset)
if options is not None:
    stored = whitening.stored(options)
    if stored is None:
        whitening.wait_or_offer(dataset, options)
    else:
        whitening.result(stored)
