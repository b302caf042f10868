"""Paper: every result computed again, and its experiments on whitening, designs and a recording."""

from appca.ui.paper import brain, lab, paper, whitening
from appca.ui.parts import controls
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

NAMES = {"results": "Results", "whitening": "Whitening", "lab": "Synthetic lab", "brain": "Brain"}

controls.heading("Paper")
chosen = tabs(NAMES)
if chosen == "results":
    paper.body()
elif chosen == "whitening":
    whitening.body(state.current_dataset())
elif chosen == "lab":
    lab.body()
else:
    brain.body()
