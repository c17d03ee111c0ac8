from .fit import fit_every_friction as fit_every_friction
from .fit import fit_friction as fit_friction
from .map import FrictionMap as FrictionMap
from .map import friction_map as friction_map
from .result import FrictionFit as FrictionFit
from .result import ModelFit as ModelFit
from .sweep import VelocitySweep as VelocitySweep
from .sweep import velocity_sweep as velocity_sweep
