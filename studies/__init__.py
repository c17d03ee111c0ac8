"""Published figures beside ours, the benchmark of estimators, and baselines; found in a checkout, not in the wheel."""
