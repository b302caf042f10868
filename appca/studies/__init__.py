"""The experiments of the paper, computed anew: each makes tables, arrays and a paragraph."""
