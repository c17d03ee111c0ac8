from .kinematics import Geometry as Geometry
from .measurements.points import Points as Points
from .measurements.sockets import Sockets as Sockets
from .unknowns import GeometryModel as GeometryModel
from .unknowns import Unknown as Unknown
