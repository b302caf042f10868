"""Files of sparse matrices: annotated data (.h5ad), 10x Genomics, Matrix Market, SciPy's NPZ."""
