"""Measurements that are no tests: what the README quotes, each with its command."""
