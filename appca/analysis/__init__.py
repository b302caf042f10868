"""What is computed from a run, in folders named as the pages that show it."""
