"""Whitening: what a classifier learns from raw values, from PCA and from adaptive PCA."""

from appca.ui.paper import whitening
from appca.ui.parts import controls
from appca.ui.session import state

controls.heading("Whitening")
whitening.body(state.current_dataset())
