"""Elementary symmetric polynomials: exact sums, draws and maxima over supports of L of K."""
