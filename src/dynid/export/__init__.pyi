from .mjcf import write_mjcf as write_mjcf
from .model_file import write as write
from .parameters import load_parameters as load_parameters
from .parameters import write_parameters as write_parameters
from .sdf import write_sdf as write_sdf
from .urdf import write_urdf as write_urdf
