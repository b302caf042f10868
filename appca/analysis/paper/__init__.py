"""For the page Paper: responses of the brain to events."""
