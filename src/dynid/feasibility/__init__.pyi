from . import constraints as constraints
from .center import analytic_center as analytic_center
from .certificate import Certificate as Certificate
from .log_cholesky import refine_parameters as refine_parameters
from .queries import (
    Nearest as Nearest,
)
from .queries import (
    Verdict as Verdict,
)
from .queries import (
    is_feasible as is_feasible,
)
from .queries import (
    nearest_feasible as nearest_feasible,
)
from .queries import (
    standard_parameters as standard_parameters,
)
from .regression import fit_regressor as fit_regressor
from .sets import FeasibleSet as FeasibleSet
from .sets import feasible_set as feasible_set
from .shapes import bounding_ellipsoids as bounding_ellipsoids
