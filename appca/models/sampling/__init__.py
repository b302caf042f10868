"""What all samplers share: chains, full conditionals, priors of Z, and label-free summaries."""
