"""Files of arrays (NPY, NPZ, MAT, IDX): which array holds the rows."""
