"""For the page Explore: subspaces, single rows, maps, neighbours, new rows."""
