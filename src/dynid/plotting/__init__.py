"""Figures in Python: one style, palette and layout for the `plot()` methods of all results.

Functions take arrays, names and units, so that any package may draw its results. They need matplotlib, which is
imported when the first figure is drawn.
"""
