from .scenario import (
    Estimator as Estimator,
)
from .scenario import (
    MonteCarloStudy as MonteCarloStudy,
)
from .scenario import (
    Scenario as Scenario,
)
from .scenario import (
    perturbed_parameters as perturbed_parameters,
)
from .study import MonteCarlo as MonteCarlo
from .study import monte_carlo as monte_carlo
