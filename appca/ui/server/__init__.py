"""The server around the pages: its routes, its guard, and what it prepares before anybody asks."""
