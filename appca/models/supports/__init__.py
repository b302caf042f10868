"""Which components a row uses: exact sums over supports, searches, draws, and their kernels."""
