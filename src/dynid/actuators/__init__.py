"""Actuators for simulators: what a servo or motor makes of a position command, identified from encoders alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
