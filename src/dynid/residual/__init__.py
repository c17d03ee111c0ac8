"""Torques that the rigid model does not explain: Gaussian-process residuals, and their control-rate predictor."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
