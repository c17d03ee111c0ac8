"""Reproductions of published figures and the benchmark of estimators; in a checkout, not in the wheel."""
