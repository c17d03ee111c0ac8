"""Damaged files for every reader: `python -m fuzz` makes them from files of our own, reads them and counts the ends."""
