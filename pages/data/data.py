"""Data: open files, built-in sets and recent work; check columns; add rows to a fit."""

from appca.ui import controls, kit, new_rows, open, state, this_data

controls.heading("Data")
tab = kit.tabs({"open": "Open", "this": "This data", "add": "New rows"})
if tab == "open":
    open.open_tab()
elif tab == "this":
    this_data.page(state.current_dataset())
else:
    new_rows.page(state.current_dataset())
