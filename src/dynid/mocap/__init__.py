"""Motion capture: marker files, force plates on one clock with the cameras, joint angles from markers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
