from . import clearances as clearances
from .amplitudes import AmplitudeLimits as AmplitudeLimits
from .amplitudes import halper_rules as halper_rules
from .design import design_excitation as design_excitation
from .excitation import Excitation as Excitation
from .information import Information as Information
from .information import earlier_information as earlier_information
from .limits import MotionLimits as MotionLimits
from .limits import motion_limits as motion_limits
from .live import LiveExcitation as LiveExcitation
from .live import LiveScore as LiveScore
from .postures import Postures as Postures
from .postures import select_postures as select_postures
from .ranking import Candidate as Candidate
from .ranking import Ranking as Ranking
from .ranking import design_candidates as design_candidates
from .ranking import rank_motions as rank_motions
from .sequencing import (
    retimed as retimed,
)
from .sequencing import (
    sequence as sequence,
)
from .sequencing import (
    shortest_duration as shortest_duration,
)
from .sequencing import (
    with_ramps as with_ramps,
)
from .stacking import ExcitationStack as ExcitationStack
from .stacking import StackEnd as StackEnd
from .stacking import stack_excitations as stack_excitations
from .standing import Standing as Standing
from .standing import stand_on as stand_on
