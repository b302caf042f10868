"""The page Check: choosing K and L, comparisons, diagnostics."""
