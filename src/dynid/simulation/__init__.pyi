from .closed_loop import ClosedLoop as ClosedLoop
from .controller_identification import (
    ControllerIdentification as ControllerIdentification,
)
from .controller_identification import (
    IdentifiedLaw as IdentifiedLaw,
)
from .controller_identification import (
    identify_controller as identify_controller,
)
from .energy import EnergyAudit as EnergyAudit
from .energy import energy_audit as energy_audit
from .engine import simulate as simulate
from .reference import Reference as Reference
from .sensors import Sensors as Sensors
from .simulation import Simulation as Simulation
from .unmodeled import UnmodeledEffects as UnmodeledEffects
