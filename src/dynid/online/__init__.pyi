from .filters import CausalFilters as CausalFilters
from .filters import causal_filters as causal_filters
from .identification import OnlineIdentification as OnlineIdentification
from .payload import PayloadMonitor as PayloadMonitor
from .payload_state import EventKind as EventKind
from .payload_state import PayloadEvent as PayloadEvent
from .payload_state import PayloadState as PayloadState
