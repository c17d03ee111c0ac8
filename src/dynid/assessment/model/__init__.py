"""Checks of the model itself: mass matrix, free fall, physical consistency."""
