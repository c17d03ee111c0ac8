from . import (
    assessment as assessment,
)
from . import (
    calibration as calibration,
)
from . import (
    codegen as codegen,
)
from . import (
    controllers as controllers,
)
from . import (
    dynamics as dynamics,
)
from . import (
    excitation as excitation,
)
from . import (
    export as export,
)
from . import (
    feasibility as feasibility,
)
from . import (
    friction as friction,
)
from . import (
    human as human,
)
from . import (
    identification as identification,
)
from . import (
    inertia as inertia,
)
from . import (
    mocap as mocap,
)
from . import (
    parameters as parameters,
)
from . import (
    report as report,
)
from . import (
    residual as residual,
)
from . import (
    stats as stats,
)
from .assessment.data.battery import check as check
from .assessment.finding import Finding as Finding
from .assessment.verdict.assess import assess as assess
from .assessment.verdict.assessment import Assessment as Assessment
from .codegen.generate import generate_code as generate_code
from .dynamics.functions import (
    forward_dynamics as forward_dynamics,
)
from .dynamics.functions import (
    inverse_dynamics as inverse_dynamics,
)
from .dynamics.functions import (
    mass_matrix as mass_matrix,
)
from .dynamics.functions import (
    regressor as regressor,
)
from .errors import DataError as DataError
from .errors import DynidError as DynidError
from .errors import ModelError as ModelError
from .excitation.design import design_excitation as design_excitation
from .excitation.excitation import Excitation as Excitation
from .identification.estimate import Estimate as Estimate
from .identification.pipeline import identify as identify
from .parameters.base import base_parameters as base_parameters
from .recording.load import load_recording as load_recording
from .recording.log_format import LogFormat as LogFormat
from .recording.recording import Recording as Recording
from .recording.recording import Run as Run
from .residual.fit import fit_residual as fit_residual
from .robot.load import builtin_robots as builtin_robots
from .robot.load import load_robot as load_robot
from .robot.model import Robot as Robot
from .signals.settings import Signals as Signals
from .simulation.engine import simulate as simulate

__version__: str
