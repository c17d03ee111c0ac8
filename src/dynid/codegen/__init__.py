"""Scalar code of a robot's dynamics: an expression graph, the recursions over it, and what writes it down."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
