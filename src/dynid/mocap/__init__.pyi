from .capture import Capture as Capture
from .load import load_capture as load_capture
from .marker_calibration import MarkerCalibration as MarkerCalibration
from .marker_calibration import calibrate_markers as calibrate_markers
from .marker_kinematics import InverseKinematics as InverseKinematics
from .marker_kinematics import inverse_kinematics as inverse_kinematics
from .plate import Plate as Plate
