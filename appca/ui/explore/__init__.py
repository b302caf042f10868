"""The page Explore: settings of the fit, maps, one row taken apart."""
