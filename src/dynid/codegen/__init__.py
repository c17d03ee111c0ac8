"""Scalar code of a robot's dynamics: expression graph, recursions, and emitters for C, NumPy, CasADi and LaTeX."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
