from .filters import CausalFilters as CausalFilters
from .filters import causal_filters as causal_filters
from .identification import OnlineIdentification as OnlineIdentification
