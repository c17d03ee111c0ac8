"""Physical consistency of parameters: constraint sets, cone programs and feasibility queries."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
