"""Tests of the explorer component."""
