"""Joint positions that cannot be radians."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dynid.errors import InvalidValue
from dynid.geometry.measurements.measurement import Measurement
from dynid.robot.model import Robot

__all__ = ["check_radians"]

# Two turns (rad): beyond, a revolute joint reads degrees, unless its limits say that it turns so far.
_TURNS = 4 * np.pi
# Share of the postures that may be beyond, such as single damaged rows.
_SINGLE = 0.1


def check_radians(robot: Robot, measurements: Iterable[Measurement]) -> None:
    """Refuse joint positions that are far beyond two turns and the limits of their joint.

    Raises
    ------
    InvalidValue
        If more than a tenth of the postures have such a position of one joint.
    """
    joints = {j.name: j for j in robot.joints}
    for m in measurements:
        for name, q in zip(robot.coordinates, m.q.T, strict=False):
            limits = joints[name].limits
            reach = max((abs(x) for x in (limits.lower, limits.upper) if np.isfinite(x)), default=0.0)
            far = np.abs(q) > max(_TURNS, reach)
            if joints[name].kind == "revolute" and far.mean() > _SINGLE:
                k = int(np.argmax(np.abs(q)))
                raise InvalidValue(
                    f"joint '{name}' reads {q[k]:.4g} rad in posture {k}, more than two turns: if its positions are in "
                    "degrees, convert them with numpy.radians",
                    "q",
                )
