"""Benchmark of all estimators on simulated robots with known parameters."""
