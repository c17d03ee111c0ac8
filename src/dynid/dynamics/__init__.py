"""Rigid-body dynamics of a robot over batches of samples, in compiled kernels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
