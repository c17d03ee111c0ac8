"""Code of a robot's dynamics: expression graph, recursions, emitters for C, NumPy, CasADi, LaTeX, PyTorch and JAX."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
