"""Pictures of the page Check: grids over K and L, two runs side by side, chains."""
