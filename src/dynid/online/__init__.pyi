from .filters import CausalFilters as CausalFilters
from .filters import causal_filters as causal_filters
from .identification import OnlineIdentification as OnlineIdentification
from .payload import EventKind as EventKind
from .payload import PayloadEvent as PayloadEvent
from .payload import PayloadMonitor as PayloadMonitor
from .payload import PayloadState as PayloadState
