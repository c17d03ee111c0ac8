"""Actuators for simulators: how servos and motors follow position commands, identified from encoders alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
