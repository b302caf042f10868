"""Forms of settings that several pages have: preprocessing, its autoencoder, the map."""
