"""The public benchmark: every estimator on robots whose parameters are known."""
