"""Paper: every result computed again, and its experiments on whitening, designs and a recording."""

from appca.ui import controls, paper, state
from appca.ui.kit import tabs

NAMES = {"results": "Results", "whitening": "Whitening", "lab": "Synthetic lab", "brain": "Brain"}

controls.heading("Paper")
chosen = tabs(NAMES)
if chosen == "results":
    paper.results_tab()
elif chosen == "whitening":
    paper.whitening_tab(state.current_dataset())
elif chosen == "lab":
    paper.laboratory_tab()
else:
    paper.brain_tab()
