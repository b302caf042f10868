"""One file an experiment of the paper."""
