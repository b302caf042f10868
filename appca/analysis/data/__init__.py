"""For the page Data: new rows under a fitted model."""
