"""Runs: every fit that is kept, to open, rename, delete and compare."""

from appca.ui.data import runs_list
from appca.ui.parts import controls

controls.heading("Runs")
kept = runs_list.all_runs()
if kept:
    runs_list.listing(kept)
    runs_list.comparison(kept)
else:
    runs_list.nothing_yet()
