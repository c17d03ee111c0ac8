"""What the data say about the estimate: hypothesis tests, covariances and Monte Carlo."""
