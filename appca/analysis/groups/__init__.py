"""For the page Groups: similar rows, what sets a group apart, selections."""
