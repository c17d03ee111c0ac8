"""Friction models with nonlinear parameters: their fit and selection, and experiments that excite them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
