from .settings import Signals as Signals
