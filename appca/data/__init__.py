"""Data sets: where they come from, how they are read, and what is done to them before a fit."""
