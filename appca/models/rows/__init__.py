"""How data are gone through: in memory, in blocks or on Dask."""
