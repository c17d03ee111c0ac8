from .law import ActuatorLaw as ActuatorLaw
