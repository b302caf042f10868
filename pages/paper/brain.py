"""Brain: a recording over time, separated into components, beside a linear model."""

from appca.ui.paper import brain, brain_result
from appca.ui.parts import controls

controls.heading("Brain")

brain.explained()
recording = brain.recording()
options = brain.settings(recording)
stored = brain.stored(options)
if stored is None:
    brain.wait_or_offer(recording, options)
else:
    brain_result.result(stored)
