"""Closed-loop simulation: controllers, sensors and the loop they close."""
