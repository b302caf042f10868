"""The page Components: their pictures, names and signs, and sharing."""
