"""Inference where W'W = I: EM, its starts and acceleration, Gibbs sampling."""
