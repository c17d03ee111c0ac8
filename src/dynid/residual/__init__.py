"""What rigid bodies cannot say: Gaussian-process residuals on top of an estimate, and their control-rate predictor."""
