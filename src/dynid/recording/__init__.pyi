from .base_motion import (
    BaseMotion as BaseMotion,
)
from .base_motion import (
    base_from_foot as base_from_foot,
)
from .base_motion import (
    base_from_imu as base_from_imu,
)
from .base_motion import (
    base_from_matrices as base_from_matrices,
)
from .load import load_recording as load_recording
from .log_format import LogFormat as LogFormat
from .measured_joints import reconcile as reconcile
from .recording import Recording as Recording
from .recording import Run as Run
from .wrench import WrenchSensor as WrenchSensor
