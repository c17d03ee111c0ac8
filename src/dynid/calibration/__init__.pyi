from .drive_gains import (
    DriveGains as DriveGains,
)
from .drive_gains import (
    identify_drive_gains as identify_drive_gains,
)
from .drive_gains import (
    reference_gains as reference_gains,
)
from .payload import Payload as Payload
from .payload import identify_payload as identify_payload
from .sensors.calibrate import calibrate_sensors as calibrate_sensors
from .sensors.result import SensorCalibration as SensorCalibration
from .verdict import assess_gains as assess_gains
from .verdict import assess_payload as assess_payload
