"""What a simulation gives: the truth, what the sensors saw of it, and the recording a logger would have written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.simulation.unmodeled import UnmodeledEffects

__all__ = ["Simulation"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened: t (N,), then true q, v, a, delivered torque, measured q, v and torque, reference, each (N, n).

    `outcome` is "finished", or says why and when it stopped; the arrays then hold what was done until then. `motor_q`
    and `motor_v` are the true motion of the motors, that of the links unless joints are flexible. `periods` is how
    many control periods a sample stands for, `disturbance` (N, n) what pushed, `parameters` what replaced the robot's.
    """

    robot: Robot
    t: Array
    q: Array
    v: Array
    a: Array
    torque: Array
    measured_q: Array
    measured_v: Array
    measured_torque: Array
    reference: Array
    outcome: str
    seconds: float
    motor_q: Array
    motor_v: Array
    periods: int = 1
    unmodeled: UnmodeledEffects | None = None
    parameters: Array | None = None
    disturbance: Array | None = None

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"

    def run(self, name: str = "simulated") -> Run:
        """What a logger would have written."""
        return Run(
            self.t,
            self.measured_q,
            v=self.measured_v,
            torque=self.measured_torque,
            reference=self.reference,
            name=name,
        )

    def recording(self, name: str = "simulated") -> Recording:
        """`run` as a recording of its own."""
        return Recording(self.robot.coordinates, (self.run(name),))

    def to_dict(self) -> dict[str, Any]:
        """Outcome and, joint by joint, the largest tracking error and torque."""
        return {
            "outcome": self.outcome,
            "finished": self.finished,
            "samples": len(self.t),
            "seconds": self.seconds,
            "joints": {
                name: {"tracking": float(error), "torque": float(torque)}
                for name, error, torque in zip(
                    self.robot.coordinates,
                    np.abs(self.q - self.reference).max(axis=0, initial=0.0),
                    np.abs(self.torque).max(axis=0, initial=0.0),
                    strict=True,
                )
            },
        }

    def summary(self) -> str:
        """`to_dict` as a table."""
        page = self.to_dict()
        lines = [f"{self.robot.name}: {self.outcome}, {len(self.t)} samples in {self.seconds:.2f} s"]
        width = max(map(len, page["joints"]))
        lines.append(f"{'':<{width}}  largest error  largest torque")
        lines += [f"{k:<{width}}  {x['tracking']:13.4g}  {x['torque']:14.4g}" for k, x in page["joints"].items()]
        effort = {name: limit.effort for name, limit in self.robot.limits.items()}
        beyond = [k for k, x in page["joints"].items() if x["torque"] > effort.get(k, np.inf)]
        if beyond:
            lines.append(f"beyond the drives: torque of {', '.join(beyond)}; soften the gains or limit the torques")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Simulation('{self.robot.name}', {len(self.t)} samples, {self.outcome})"
