from .document import write as write
from .document import write_comparison as write_comparison
from .fleet import write_fleet as write_fleet
from .results import write_result as write_result
