"""Choose K and L: how well each choice explains rows it has not seen, and which one to take."""

from appca.ui import choose_page, choose_stability, controls, state

dataset = state.current_dataset()
controls.heading("Choose K and L")

if choose_page.is_offered():
    config = choose_page.settings(dataset)
    if config is not None:
        choose_page.grid(dataset, config)
    choose_stability.section(dataset)
