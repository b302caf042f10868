"""Which components a row uses where W is free: enumeration, search, draws, and their kernels."""
