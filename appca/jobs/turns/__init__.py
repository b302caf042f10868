"""Who waits for which job, which job comes next, and how many may wait."""
