"""Brain: a recording over time, separated into components, beside a linear model."""

from appca.ui import brain_page, brain_result, controls

controls.heading("Brain")

brain_page.explained()
recording = brain_page.recording()
options = brain_page.settings(recording)
stored = brain_page.stored(options)
if stored is None:
    brain_page.wait_or_offer(recording, options)
else:
    brain_result.result(stored)
