"""Brain: a recording over time, separated into components, beside a linear model."""

from appca.ui.paper import brain
from appca.ui.parts import controls

controls.heading("Brain")
brain.body()
