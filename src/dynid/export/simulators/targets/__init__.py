"""One simulator per module, each with its record."""
