"""Checks of a recording: clock, channels, units, signs, delays, order of columns, excitation."""
