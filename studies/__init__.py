"""Reproductions of published figures, the benchmark of estimators, and baselines; in a checkout, not in the wheel."""
