"""Paper: every figure and table of the paper, computed anew, beside what the paper says."""

from appca.ui.paper import paper
from appca.ui.parts import controls

controls.heading("Paper")
paper.body()
