"""Actuators as the files of simulators."""
