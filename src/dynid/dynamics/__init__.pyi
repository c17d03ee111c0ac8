from .centroidal import center_of_mass as center_of_mass
from .centroidal import momentum as momentum
from .centroidal import total_mass as total_mass
from .frames import frame_jacobian as frame_jacobian
from .frames import frame_placement as frame_placement
from .functions import (
    bias_torque as bias_torque,
)
from .functions import (
    coriolis_matrix as coriolis_matrix,
)
from .functions import (
    coriolis_torque as coriolis_torque,
)
from .functions import (
    forward_dynamics as forward_dynamics,
)
from .functions import (
    gravity_torque as gravity_torque,
)
from .functions import (
    inverse_dynamics as inverse_dynamics,
)
from .functions import (
    kinetic_energy as kinetic_energy,
)
from .functions import (
    kinetic_energy_regressor as kinetic_energy_regressor,
)
from .functions import (
    mass_matrix as mass_matrix,
)
from .functions import (
    potential_energy as potential_energy,
)
from .functions import (
    potential_energy_regressor as potential_energy_regressor,
)
from .functions import (
    regressor as regressor,
)
from .gradient import check_gradient as check_gradient
from .gradient import regressor_adjoint as regressor_adjoint
