"""Payload of a robot while it runs, from joint states."""
