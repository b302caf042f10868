"""Tests of ui/arrivals."""
