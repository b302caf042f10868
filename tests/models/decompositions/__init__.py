"""Tests of decompositions."""
