"""Data: open files, built-in sets and recent work; see what was read; add rows to a fit."""

from appca.ui.data import new_data, open_tab, recent, this_data
from appca.ui.parts import controls, widgets
from appca.ui.session import state

controls.heading("Data")
tab = widgets.tabs({"open": "Open", "this": "This data", "recent": "Recent", "add": "New rows"})
if tab == "open":
    open_tab.page()
elif tab == "this":
    this_data.page(state.current_dataset())
elif tab == "recent":
    recent.page()
else:
    new_data.page(state.current_dataset())
