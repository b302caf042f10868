"""The page Paper: its results, whitening, the synthetic lab, the brain."""
