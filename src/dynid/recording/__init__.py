"""What a robot did: recordings, the files they come from, and checks that speak plainly."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
