"""How data are gone through: in memory, in blocks, on Dask, or as sums and principal directions."""
