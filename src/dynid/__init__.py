"""dynid: from a robot description and its recorded motion to a dynamic model that can be trusted."""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
