"""A variational autoencoder as preprocessing."""
