"""Estimators by kind: a function from an Observation or an Experiment, and its options, to a Solution."""
