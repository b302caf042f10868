"""For the page Components: what each component does, and which classes share it."""
