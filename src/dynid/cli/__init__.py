"""The commands by subject, each a call of the public functions."""
