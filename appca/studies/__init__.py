"""The experiments of the paper, computed anew: what an experiment is, how it runs and is kept."""
