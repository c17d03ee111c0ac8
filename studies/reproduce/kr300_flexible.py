"""The KUKA KR300 with encoders on motors and links of axes 1 to 3: stiffness, and what it predicts on a held-out run.

Axes 4 to 6 have no link encoders. Stiffness and choices come from runs A and B, errors from run C.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.flexible import FlexibleEstimate, identify_flexible
from dynid.flexible.rows import two_sided
from dynid.flexible.validation import predicted_springs
from dynid.identification.pipeline import identify
from dynid.identification.validation import validate
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure, data_folder

__all__ = ["figures", "kr300_recordings"]

Array = NDArray[np.float64]

_RATIOS = [1798 / 7, 1872 / 7, 757 / 3, 221.0, 5032 / 21, 206793 / 1340]
_START = [0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]
_RECORD = "for the record"
_HALF, _WORSE = 0.5, 1.05


def kr300_recordings() -> tuple[Robot, Recording, Recording]:
    """The robot, runs A and B, and run C, with the link encoders of axes 1 to 3."""
    robot = CASES["kr300"]().robot

    def read(letter: str) -> Recording:
        return load_recording(
            data_folder() / "kuka-kr300-weigand" / f"recording_{letter}.csv.gz",
            robot,
            columns={
                "q": "pos_mot_deg_{i}",
                "torque": "torque_abs_nm_{i}",
                "link_q": [*(f"pos_se_deg_{k}" for k in (1, 2, 3)), "none", "none", "none"],
            },
            time="t",
            units={"q": "deg", "link_q": "deg"},
            scale={"torque": _RATIOS},
            offset={"q": _START, "link_q": _START},
        )

    return robot, read("A") + read("B"), read("C")


def figures() -> Iterator[Figure]:
    """Stiffness with standard deviations, delays of encoders, and errors on run C."""
    robot, train, test = kr300_recordings()
    found = identify_flexible(robot, train)
    section = "Stiffness of axes 1 to 3 from runs A and B"
    for k, joint in enumerate(found.joints):
        low, high = found.interval(joint)
        ours = f"{found.stiffness[k]:.3g} N m/rad, 95 % interval {low:.2g} to {high:.2g}"
        yield Figure(section, joint, "-", ours, 0.0, 0.0, _RECORD)
    delays = ", ".join(f"{1e3 * x:.2f}" for x in found.delays)
    name = "link encoders behind motor encoders"
    yield Figure(section, name, "0 ms", f"{delays} ms; errors {', '.join(found.errors)}", 0.0, 0.0, _RECORD)
    yield Figure(
        section, "axes 4 to 6", "-", "no link encoders: the columns are zero", 0.0, 0.0, "they are rigid joints here"
    )
    yield from _held_out(found, train, test)
    yield from _motor_side(found, train)


def _held_out(found: FlexibleEstimate, train: Recording, test: Recording) -> Iterator[Figure]:
    section = "Run C"
    rigid = 100 * validate(identify(found.robot, train, "wls"), test).relative
    checked = found.validate(test)
    ours = 100 * checked.torque.relative
    for joint, a, b in zip(found.robot.coordinates, ours, rigid, strict=True):
        ratio = float(a / b)
        name = f"torque error of {joint}"
        reason = "both models differ by less from one held-out run to the next"
        yield Figure(section, name, f"rigid {b:.1f} %", f"{a:.1f} %", ratio, _WORSE, reason)
    links = checked.links
    assert links is not None
    for k, joint in enumerate(links.joints):
        flexible, encoder, without = (1e6 * float(x[k]) for x in (links.flexible, links.encoder, links.rigid))
        shown = f"{flexible:.0f} urad; {encoder:.0f} urad with the encoder errors but no spring"
        name = f"link position of {joint} from the motor, RMS"
        reason = "half of the error of a rigid joint"
        yield Figure(section, name, f"rigid {without:.0f} urad", shown, flexible / without, _HALF, reason)


def _motor_side(found: FlexibleEstimate, train: Recording) -> Iterator[Figure]:
    """What the springs change of the torques: with motor encoders alone, this is all that shows them."""
    section = "Motor encoders alone, runs A and B"
    run = train.runs[0]
    motors = two_sided(found.robot, run, (), found.signals).motors
    links = predicted_springs(found, motors).bent(motors).links
    rigid = found.model.link_rows(motors.q, motors.v, motors.a) @ found.beta
    bent = found.model.link_rows(links.q, links.v, links.a) @ found.beta
    for k, i in enumerate(found.model.flexible):
        change = float(np.std((bent - rigid)[motors.lead : -motors.lead or None, i]))
        ours = f"springs change the torque by {change:.1f} N m; the residual is {found.noise[i]:.0f} N m"
        reason = "shown why not: the effect is below the residual of friction, so no fit of torques can find it"
        yield Figure(section, f"stiffness of {found.joints[k]}", "within 25 %", ours, 0.0, 0.0, reason)
