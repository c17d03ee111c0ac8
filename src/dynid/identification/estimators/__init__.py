"""Estimators, one file each: a function from an Observation or an Experiment, and its options, to a Solution."""
