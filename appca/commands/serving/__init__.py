"""What is said of an app that is open."""
