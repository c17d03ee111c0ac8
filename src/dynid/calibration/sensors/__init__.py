"""Errors of the sensors, estimated together with the parameters: delays, gains, offsets, and a leaning base."""
