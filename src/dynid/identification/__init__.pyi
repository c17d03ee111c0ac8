from .covariance import (
    barrier_covariance as barrier_covariance,
)
from .covariance import (
    base_covariance as base_covariance,
)
from .covariance import (
    shortest_covariance as shortest_covariance,
)
from .essential import Essential as Essential
from .essential import essential_parameters as essential_parameters
from .estimate import Estimate as Estimate
from .experiment import Experiment as Experiment
from .observation import Observation as Observation
from .observation import observe as observe
from .paired import Paired as Paired
from .pipeline import (
    SequentialIdentification as SequentialIdentification,
)
from .pipeline import (
    estimate_closed_loop as estimate_closed_loop,
)
from .pipeline import (
    identify as identify,
)
from .sensor_comparison import (
    Gain as Gain,
)
from .sensor_comparison import (
    SensorSet as SensorSet,
)
from .sensor_comparison import (
    SensorSets as SensorSets,
)
from .sensor_comparison import (
    one_more_sensor as one_more_sensor,
)
from .sensor_comparison import (
    sensor_sets as sensor_sets,
)
from .shared import SharedEstimate as SharedEstimate
from .shared import identify_shared as identify_shared
from .static import (
    StaticParameters as StaticParameters,
)
from .static import (
    identify_in_steps as identify_in_steps,
)
from .static import (
    pressure_wrench as pressure_wrench,
)
from .static import (
    static_parameters as static_parameters,
)
from .validation import Validation as Validation
from .validation import cross_validate as cross_validate
