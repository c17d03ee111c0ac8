"""Identification while a robot runs: causal filters, bounded updates, payload pick-up and release."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
