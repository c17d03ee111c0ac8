"""Actuators as the files of simulators, one module per simulator."""
