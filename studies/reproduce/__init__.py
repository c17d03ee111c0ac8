"""Reproductions of published figures.

Published values are in `data/`, one file per table. A study yields `Figure`s; the command line prints them and fails if
one is out of its tolerance.
"""
