from .ball_joints import BallJoint as BallJoint
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
from .cluster import connect as connect
from .dataset import DataSet as DataSet
from .dataset import open_dataset as open_dataset
from .dataset_files import write_partition as write_partition
from .formats import readers as readers
from .load import load_recording as load_recording
from .log_format import LogFormat as LogFormat
from .measured_joints import reconcile as reconcile
from .partitions import LeftOut as LeftOut
from .partitions import Partition as Partition
from .reader import Reader as Reader
from .recording import Recording as Recording
from .run import Run as Run
from .wrench import WrenchSensor as WrenchSensor
