"""Actuators of a robot written as the file of a simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dynid.errors import NotApplicable
from dynid.export.label import Label, label_of, passed
from dynid.export.simulators.properties import Kept, Losses, loss_sentences
from dynid.export.simulators.registry import simulator_target, simulator_targets
from dynid.export.simulators.target import SimulatorTarget
from dynid.export.simulators.values import Actuators, actuators_of
from dynid.files import write_text
from dynid.identification.estimate import Estimate
from dynid.markup import HtmlSummary
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot

__all__ = ["SimulatorFile", "actuator_text", "list_simulators", "write_actuators"]


@dataclass(frozen=True)
class SimulatorFile(HtmlSummary):
    """A file of a simulator, what it holds and what it does not.

    Attributes
    ----------
    path : Path
        The file.
    simulator : str
        Name of the simulator.
    kept : tuple of Kept
        What the file holds, and where.
    lost : tuple of Loss
        What the file does not hold, with the values of the joints.
    warnings : tuple of str
        Warnings about the rest of the model.
    """

    path: Path
    simulator: str
    kept: tuple[Kept, ...]
    lost: Losses
    warnings: tuple[str, ...] = ()

    def summary(self) -> str:
        """What was written, and what is lost, in words."""
        kept = [f"  {k.what}: {k.place}" for k in self.kept]
        lost = [f"  {sentence}" for sentence in loss_sentences(self.lost)] or ["  nothing"]
        more = [f"  {warning}" for warning in self.warnings]
        lines = [f"{self.path} for {simulator_target(self.simulator).words}", "kept:", *kept, "lost:", *lost]
        return "\n".join([*lines, *(["warnings:", *more] if more else [])])


def list_simulators() -> dict[str, str]:
    """Simulators that actuators can be written for.

    Returns
    -------
    dict of str to str
        Name of each simulator, and the ending of its file.

    Examples
    --------
    >>> import dynid
    >>> dynid.export.list_simulators()["mujoco"]
    '.xml'
    """
    return {name: target.ending for name, target in simulator_targets().items()}


def actuator_text(
    robot: Robot | Estimate,
    law: ActuatorLaw,
    simulator: str,
    *,
    step: float | None = None,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
    untrusted: bool = False,
) -> tuple[str, Losses]:
    """The actuators of a robot as the text of a file for a simulator.

    Parameters
    ----------
    robot : Robot or Estimate
        The robot, or an estimate whose identified robot is written; its drive terms hold armature and friction.
    law : ActuatorLaw
        Law of the actuators, of some or all joints of the robot.
    simulator : str
        Name of the simulator; see `list_simulators`.
    step : float, optional
        Physics step of the simulation (s), in which delays are counted: the period of the law if not given, or 1 ms for
        a law that acts continuously.
    template : str or Path, optional
        Model file of the same robot, for simulators whose file is a model: MJCF for MuJoCo, URDF for the others.
        Its text is kept; inertias, drives and actuators change.
    allow_infeasible : bool, default False
        Write parameters that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the file says of the estimate it is made of; by default that of the estimate given as `robot`.
    untrusted : bool, default False
        Write the file of an estimate whose verdict is "do not use". It is refused otherwise.

    Returns
    -------
    text : str
        Text of the file. Its comments explain each number and list what the simulator cannot hold.
    lost : tuple of Loss
        What the simulator cannot hold, with the values of the joints.

    Raises
    ------
    DataError
        If the simulator is unknown, the law has a joint that the robot does not move, there is no template for this
        simulator, or the verdict on the estimate is "do not use".
    ModelError
        If the parameters are refused, or the template is a file of another robot.

    Examples
    --------
    >>> import dynid
    >>> from dynid.robot import ActuatorLaw
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    >>> law = ActuatorLaw(robot.coordinates, kp=20.0, kd=0.5, backlash=0.01)
    >>> text, lost = dynid.export.actuator_text(robot, law, "mujoco")
    >>> [(loss.code.value, loss.joint, loss.value) for loss in lost]
    [('backlash', 'joint1', 0.01), ('backlash', 'joint2', 0.01)]
    """
    chosen = _named(simulator, template)
    written = chosen.write(_actuators(robot, law, step, template, allow_infeasible, label, untrusted))
    return written.text, written.lost


def write_actuators(
    robot: Robot | Estimate,
    law: ActuatorLaw,
    path: str | Path,
    simulator: str,
    *,
    step: float | None = None,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
    untrusted: bool = False,
) -> SimulatorFile:
    """Write the actuators of a robot as a file for a simulator.

    Parameters
    ----------
    robot : Robot or Estimate
        The robot, or an estimate whose identified robot is written; its drive terms hold armature and friction.
    law : ActuatorLaw
        Law of the actuators, of some or all joints of the robot.
    path : str or Path
        File to write. It is replaced whole or not at all.
    simulator : str
        Name of the simulator; see `list_simulators`.
    step : float, optional
        Physics step of the simulation (s), in which delays are counted: the period of the law if not given, or 1 ms for
        a law that acts continuously.
    template : str or Path, optional
        Model file of the same robot, for simulators whose file is a model: MJCF for MuJoCo, URDF for the others.
        Its text is kept; inertias, drives and actuators change.
    allow_infeasible : bool, default False
        Write parameters that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the file says of the estimate it is made of; by default that of the estimate given as `robot`.
    untrusted : bool, default False
        Write the file of an estimate whose verdict is "do not use". It is refused otherwise.

    Returns
    -------
    SimulatorFile
        What the file holds and what it does not.

    Raises
    ------
    DataError
        If the simulator is unknown, the law has a joint that the robot does not move, there is no template for this
        simulator, or the verdict on the estimate is "do not use".
    ModelError
        If the parameters are refused, or the template is a file of another robot.
    """
    chosen = _named(simulator, template)
    actuators = _actuators(robot, law, step, template, allow_infeasible, label, untrusted)
    written = chosen.write(actuators)
    write_text(path, written.text)
    warnings = (*(() if actuators.label is None else actuators.label.warnings), *written.warnings)
    if chosen.missing is not None:
        warnings += tuple(chosen.missing(written.text, path, template))
    return SimulatorFile(Path(path), simulator, actuators.kept(chosen.places), written.lost, warnings)


def _actuators(
    source: Robot | Estimate,
    law: ActuatorLaw,
    step: float | None,
    template: str | Path | None,
    allow_infeasible: bool,
    label: Label | None,
    untrusted: bool,
) -> Actuators:
    """The actuators of a robot or an estimate that passes the gate, with its label."""
    found = label_of(source, untrusted) if label is None else passed(label, untrusted)
    robot = source if isinstance(source, Robot) else source.identified_robot
    return actuators_of(robot, law, step, template, allow_infeasible, found)


def _named(simulator: str, template: str | Path | None) -> SimulatorTarget:
    found = simulator_target(simulator)
    if template is not None and not found.template:
        with_one = [name for name, target in simulator_targets().items() if target.template]
        raise NotApplicable(f"a template is for {', '.join(with_one)}, not for {simulator}", "template")
    return found
