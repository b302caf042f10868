"""Inference where W is free: EM and Gibbs sampling for adaptive and sparse factor analysis."""
