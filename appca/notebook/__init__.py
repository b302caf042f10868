"""Earlier places of `appca.explore` and its kin, for notebooks that import them from here."""
