"""Numbers, fast: dynamics of a robot over batches of samples."""
