"""Clean signals: filters, derivatives, decimation, and the one settings object that chooses them."""
