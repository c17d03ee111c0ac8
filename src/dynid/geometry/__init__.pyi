from .kinematics import Geometry as Geometry
from .measurements.points import Points as Points
from .measurements.sockets import Sockets as Sockets
from .posture_plan import PosturePlan as PosturePlan
from .postures import plan_postures as plan_postures
from .sight import Sight as Sight
from .unknowns import GeometryModel as GeometryModel
from .unknowns import Unknown as Unknown
