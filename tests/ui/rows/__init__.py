"""Tests of ui/rows."""
