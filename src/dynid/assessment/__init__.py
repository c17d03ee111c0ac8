"""Whether data, model and estimate can be trusted: checks of recordings, hypothesis tests, model checks, the verdict."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
