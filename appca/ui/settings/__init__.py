"""Forms of settings that several pages have: preprocessing, the map."""
