"""What has nothing to do with a model: Gaussian pieces, the Stiefel manifold, loops, compiling."""
