"""Cases to judge bodies by: every real torque machine, and arms whose bodies are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dynid.errors import DataError, did_you_mean
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce.arms import ARMS, Conditions, Variant
from studies.reproduce.dvrk_arms import mtm, psm
from studies.reproduce.dvrk_errors import arm_recordings
from studies.reproduce.robot_cases import CASES, Case, lwr4

__all__ = ["MACHINES", "RECORDED", "BodyCase", "arm", "arms", "machine", "machines", "moving_mass"]

RECORDED = "recorded"  # the variant of a real machine


@dataclass(frozen=True, eq=False, kw_only=True)
class BodyCase:
    """A robot with the recording that is fitted, motion that is not seen, and what is known of its bodies.

    Attributes
    ----------
    name : str
        Name of the machine or arm.
    variant : str
        What is wrong with the prior or missing in the model; "recorded" for a real machine.
    robot : Robot
        The prior.
    train, test : Recording
        Recording to identify from, and unseen motion, None where there is none.
    truth : Robot or None
        The robot with its true bodies and drives; None for a real machine.
    mass : float or None
        Known mass of all links that move, together (kg).
    source : str
        Where the mass is from.
    gain_known : bool
        Whether the torques are in N m, so that the mass can be compared.
    held_back : bool
        Whether the case is left out while defaults are set.
    """

    name: str
    variant: str
    robot: Robot
    train: Recording
    test: Recording | None
    truth: Robot | None
    mass: float | None
    source: str
    gain_known: bool
    held_back: bool


def moving_mass(robot: Robot) -> float:
    """Mass of all links that move, together (kg)."""
    return float(sum(robot.links[i].inertia[0] for i in robot.parameter_links))


@dataclass(frozen=True)
class _Machine:
    """A real machine: its recordings, the mass of its moving links (0 for that of the file, None unknown)."""

    case: Callable[[], Case]
    mass: float | None
    source: str
    gain_known: bool
    held_back: bool


def _lwr4_unseen_third() -> Case:
    """The two runs of one motion for training, the faster one for testing."""
    data = lwr4()
    assert data.test is not None
    first, third = data.train.runs
    return Case(
        data.robot, Recording(data.train.joints, (first, *data.test.runs)), Recording(data.train.joints, (third,))
    )


def _surgical(name: str, make: Callable[[], Robot]) -> Case:
    robot = make()
    runs = arm_recordings(name, robot)
    return Case(robot, runs["training"], runs["test"])


_FILE = 0.0
_LWR4 = "model file: 16.0 kg as on the data sheet, of which the base has 1.6 kg"
_GEN3 = "none: the README finds 1.5 to 1.9 times the gravity load of the file, probably a tool"
_NO_MASS = "none: no data sheet at hand, and the model has no masses"
_HAND = "README: masses by CAD or by hand; only first moments are in the torques"

MACHINES: dict[str, _Machine] = {
    "lwr4": _Machine(_lwr4_unseen_third, _FILE, _LWR4, True, False),
    "lwr4, other split": _Machine(CASES["lwr4"], _FILE, _LWR4, True, True),
    "tx40": _Machine(CASES["tx40_halves"], _FILE, "built-in model: literature values of the TX40's links", True, False),
    "tx40, all": _Machine(CASES["tx40"], _FILE, "built-in model: literature values of the TX40's links", True, True),
    "kr300": _Machine(
        CASES["kr300"],
        925 + 137.5,
        "README: CAD masses, and 135 to 140 kg of payload by the gravity torque",
        True,
        False,
    ),
    "tiago": _Machine(CASES["tiago"], _FILE, "model file; the gains of the efforts are guesses", False, True),
    "ur10e": _Machine(
        CASES["ur10e"], _FILE, "model file; with the authors' gains 2.805 kg weigh 2.45 kg", False, False
    ),
    "med7": _Machine(CASES["med7"], _FILE, "model file", True, True),
    "kinova, sensors": _Machine(CASES["kinova_sensor"], None, _GEN3, True, False),
    "kinova, currents": _Machine(CASES["kinova_current"], None, _GEN3, False, True),
    "rokae, sensors": _Machine(CASES["xmate_sensor"], None, _NO_MASS, True, False),
    "rokae, motors": _Machine(CASES["xmate_motor"], None, _NO_MASS, False, True),
    "psm": _Machine(
        lambda: _surgical("psm", psm), None, "none: the published masses are a choice of the authors", True, False
    ),
    "mtm": _Machine(
        lambda: _surgical("mtm", mtm), None, "none: the published masses are a choice of the authors", True, True
    ),
    "pendulum A.0": _Machine(CASES["pendulum_a0"], 1.238, _HAND, True, False),
    "pendulum C.0": _Machine(CASES["pendulum_c0"], 1.146, _HAND, True, True),
    "pendulum C.1": _Machine(CASES["pendulum_c1"], 1.096, _HAND, True, False),
    "wam": _Machine(
        CASES["wam"], _FILE, "built-in model; efforts are 1.1 times the controller's gravity model", True, True
    ),
    "two-link arm": _Machine(
        CASES["two_link"], 1.1, "README: notes of the authors; drive constants about 1/400", True, False
    ),
    "pendulum 1": _Machine(CASES["pendulum_1"], None, "none: torques in units of current", False, True),
    "pendulum 2": _Machine(CASES["pendulum_2"], None, "none: torques in units of current", False, False),
}


def machine(name: str) -> BodyCase:
    """A real machine by its name in `MACHINES`."""
    if name not in MACHINES:
        raise DataError(f"no machine is named '{name}', there are {', '.join(MACHINES)}{did_you_mean(name, MACHINES)}")
    known = MACHINES[name]
    data = known.case()
    mass = moving_mass(data.robot) if known.mass == _FILE else known.mass
    return BodyCase(
        name=name, variant=RECORDED, robot=data.robot, train=data.train, test=data.test, truth=None, mass=mass,
        source=known.source, gain_known=known.gain_known, held_back=known.held_back,
    )  # fmt: skip


def machines(names: Iterable[str] = tuple(MACHINES)) -> Iterator[BodyCase]:
    """Real machines one after the other, all of them unless named."""
    return (machine(name) for name in names)


def arm(name: str, variant: Variant = Variant.HONEST, conditions: Conditions | None = None) -> BodyCase:
    """A simulated arm by its name in `ARMS`, in one variant."""
    if name not in ARMS:
        raise DataError(f"no arm is named '{name}', there are {', '.join(ARMS)}{did_you_mean(name, ARMS)}")
    found = ARMS[name].sampled(variant, conditions or Conditions())
    return BodyCase(
        name=name, variant=variant, robot=found.robot, train=found.train, test=found.test, truth=found.truth,
        mass=moving_mass(found.truth), source="the simulated arm", gain_known=True, held_back=ARMS[name].held_back,
    )  # fmt: skip


def arms(
    names: Iterable[str] = tuple(ARMS),
    variants: Iterable[Variant] = tuple(Variant),
    conditions: Conditions | None = None,
) -> Iterator[BodyCase]:
    """Simulated arms one after the other, each in all variants unless named."""
    return (arm(name, variant, conditions) for name in names for variant in tuple(variants))
