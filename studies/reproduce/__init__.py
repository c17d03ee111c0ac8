"""Every published figure that can be checked, ours beside it.

Published numbers live in `data/`, one file a table. A study yields `Figure`s; the command line prints
them and fails if one is out of its tolerance.
"""
