"""Measurements that show where a robot's links are, one class per file."""
