"""Friction in depth: models with nonlinear inner parameters, their fits, their choice, and motion that shows them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
