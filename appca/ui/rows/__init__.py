"""Rows of the data as pages show them: pictures, a table, one row taken apart."""
