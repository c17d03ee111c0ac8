"""Errors of the sensors, estimated together with the parameters: delays, gains, offsets, and the tilt of the base."""
