from .base import BaseParameters as BaseParameters
from .base import base_parameters as base_parameters
from .base_model import BaseModel as BaseModel
