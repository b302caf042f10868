"""Models and their inference: NumPy, SciPy, numba, scikit-learn and Pymanopt only."""
