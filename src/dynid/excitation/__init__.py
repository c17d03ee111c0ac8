"""Motions that show parameters."""
