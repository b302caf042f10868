"""Choose K and L: how well each choice explains rows it has not seen, and which one to take."""

from appca.ui.check import choose, choose_stability
from appca.ui.parts import controls
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Choose K and L")

if choose.is_offered():
    config = choose.settings(dataset)
    if config is not None:
        choose.grid(dataset, config)
    choose_stability.section(dataset)
