"""Estimators, one file each: a function from an Observation, or from an Experiment it simulates, to a Solution."""
