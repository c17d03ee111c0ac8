"""Scalar code of a robot's dynamics: an expression graph, the recursions over it, and what writes it down."""
