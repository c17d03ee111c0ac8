"""What dynid excite does with --rank: the loop of the simulations, the candidates and their order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli import values
from dynid.cli.inputs import Inputs
from dynid.errors import InvalidValue, MissingArgument, NotApplicable, UnknownName
from dynid.progress import ProgressCallback

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dynid.excitation.ranking import Ranking
    from dynid.robot.model import Robot
    from dynid.simulation.closed_loop import ClosedLoop

__all__ = ["COUNT", "ranked", "ranking_loop"]

# Motions that are compared unless told otherwise.
COUNT = 5


def ranking_loop(
    inputs: Inputs,
    rank: str | None,
    count: int | None,
    controller: Path | None,
    position_noise: str,
    torque_std: NDArray[np.float64] | None,
) -> ClosedLoop | None:
    """The closed loop in which motions are ranked; None where they are not."""
    if rank is None:
        noisy = None if position_noise == "0" else position_noise
        given = {"--candidates": count, "--controller": controller, "--position-noise": noisy}
        for flag, value in given.items():
            if value is not None:
                raise NotApplicable(f"{flag} belongs to --rank simulated")
        return None
    if count is not None and count < 1:
        raise InvalidValue(f"--candidates is a whole number from 1, got {count}", "candidates")
    if rank != "simulated":
        raise UnknownName(f"--rank is simulated or left out, not '{rank}'", "rank")
    if torque_std is None:
        raise MissingArgument(
            "--rank simulated needs --torque-noise, the noise of the torques that are simulated", "torque_noise"
        )
    noise = values.number_or_per_joint(position_noise, "--position-noise")
    sensors = {"noise": noise, "torque_noise": torque_std}
    loop = inputs.closed_loop(controller, None, None, None, sensors=sensors)
    if loop is None or loop.controller is None:
        raise MissingArgument("--rank simulated needs a --controller, or loop.controller of dynid.toml", "controller")
    return loop


def ranked(
    robot: Robot, duration: float, count: int, loop: ClosedLoop, progress: ProgressCallback, request: Mapping[str, Any]
) -> Ranking:
    """Candidates of one request, in the order of their simulated identification."""
    from dynid.excitation.ranking import design_candidates, rank_motions

    motions = design_candidates(robot, duration, count, progress=progress, **request)
    return rank_motions(robot, motions, loop, seed=request["seed"], progress=progress)
