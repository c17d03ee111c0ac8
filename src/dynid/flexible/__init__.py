"""Flexible joints: stiffness, damping and motor inertia from encoders of motors and links, or of motors alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
