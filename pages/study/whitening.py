"""Whitening: what a classifier learns from raw values, from PCA and from adaptive PCA."""

from appca.ui import controls, state, whitening_page

controls.heading("Whitening")

dataset = state.current_dataset()
whitening_page.explained()
options = whitening_page.choices(dataset)
if options is not None:
    stored = whitening_page.stored(options)
    if stored is None:
        whitening_page.wait_or_offer(dataset, options)
    else:
        whitening_page.result(stored)
