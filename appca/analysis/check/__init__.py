"""For the page Check: choosing K and L, comparisons, diagnostics, held-out cells."""
