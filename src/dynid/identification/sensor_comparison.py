"""Base parameters that are identifiable with different sets of sensors, and what another sensor would add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingArgument, UnknownName
from dynid.identification.loads import check_run
from dynid.identification.observation import Observation, fold
from dynid.identification.observing import observe_motions
from dynid.markup import HtmlFrame
from dynid.parameters.base import BaseParameters, Method, base_parameters, choose_channels
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals, prepare
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Gain", "SensorSet", "SensorSets", "one_more_sensor", "sensor_sets"]

Array = NDArray[np.float64]
Choice = str | Sequence[str]

# A combination is new if its remainder outside of the known ones is larger than this, on rows of unit length.
_NEW = 1e-7
# A combination is excited if its singular value (unit columns) is above this share of the largest.
_EXCITED = 1e-3
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class SensorSet:
    """A set of channels with the base parameters that are identifiable from them.

    Attributes
    ----------
    name : str
        Name of the set.
    base : BaseParameters
        The identifiable combinations.
    excited : int or None
        Number of combinations whose singular value is within a factor of 1000 of the largest one in a recording; None
        without a recording.
    condition_number : float or None
        Condition number of the regressor with unit columns in a recording; None without one.
    """

    name: str
    base: BaseParameters
    excited: int | None = None
    condition_number: float | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels."""
        return self.base.channels

    @property
    def count(self) -> int:
        """Number of identifiable combinations of standard parameters."""
        return self.base.count


@dataclass(frozen=True, eq=False)
class Gain:
    """What becomes identifiable with an additional sensor.

    Attributes
    ----------
    sensor : str
        Name of the sensor.
    combinations : tuple of str
        Combinations that become identifiable.
    together : SensorSet
        The set with the sensor.
    """

    sensor: str
    combinations: tuple[str, ...]
    together: SensorSet

    @property
    def count(self) -> int:
        """Number of combinations that become identifiable."""
        return len(self.combinations)


@dataclass(frozen=True, eq=False)
class SensorSets(HtmlFrame):
    """Sets of sensors of one robot, by name.

    Attributes
    ----------
    robot : Robot
        The robot.
    sets : tuple of SensorSet
        The sets, in the order in which they were given.
    """

    robot: Robot
    sets: tuple[SensorSet, ...]

    def __getitem__(self, name: str) -> SensorSet:
        for one in self.sets:
            if one.name == name:
                return one
        raise UnknownName(f"no set of sensors '{name}', the sets are {', '.join(x.name for x in self.sets)}", "name")

    @property
    def counts(self) -> dict[str, int]:
        """Number of identifiable combinations by the name of the set."""
        return {x.name: x.count for x in self.sets}

    def gain(self, first: str, second: str) -> tuple[str, ...]:
        """Combinations that are identifiable with the second set and not with the first, given by their names."""
        return new_combinations(self[first].base, self[second].base)

    def to_frame(self) -> pl.DataFrame:
        """The sets as a table.

        Returns
        -------
        polars.DataFrame
            One row per set: sensors, channels, identifiable, excited and condition_number (null without a recording).
        """
        import polars as pl

        rows = [(x.name, len(x.channels), x.count, x.excited, x.condition_number) for x in self.sets]
        words = {"sensors": str, "channels": int, "identifiable": int, "excited": int, "condition_number": float}
        return pl.DataFrame(rows, schema=words, orient="row")

    def summary(self) -> str:
        """A table of the sets, as wide as the terminal."""
        names = ("sensors", "channels", "identifiable", "excited", "condition number")
        title = f"{self.robot.name}: {len(self.robot.layout)} standard parameters"
        table = table_of(title, *names, text=("sensors",))
        for x in self.sets:
            data = ("-", "-") if x.excited is None else (str(x.excited), f"{x.condition_number:.4g}")
            table.add_row(x.name, str(len(x.channels)), str(x.count), *data)
        return rendered(table)


def sensor_sets(
    robot: Robot,
    sets: Mapping[str, Choice] | None = None,
    *,
    recording: Recording | None = None,
    signals: Signals | None = None,
    method: Method = "left-to-right",
) -> SensorSets:
    """Identifiable combinations per set of sensors, and how well a recording excites them.

    Parameters
    ----------
    robot : Robot
        The robot.
    sets : mapping of str to channels, optional
        Sets of channels by name, as for `base_parameters`. By default joint torques, base wrench, its forces, its
        moments, and all, as far as the robot has them.
    recording : Recording, optional
        Motion whose excitation is computed. Only the motion is used: it need not contain what the sensors measure.
    signals : Signals, optional
        How the runs are filtered and differentiated.
    method : str, default "left-to-right"
        The method of `base_parameters`.

    Returns
    -------
    SensorSets

    Examples
    --------
    >>> import dynid
    >>> dynid.identification.sensor_sets(dynid.load_robot("box2", base="instrumented")).counts["wrench"]
    13
    """
    chosen = dict(_usual(robot) if sets is None else sets)
    if not chosen:
        raise MissingArgument("sets is empty: give at least one set of sensors", "sets")
    found = [SensorSet(name, base_parameters(robot, channels=x, method=method)) for name, x in chosen.items()]
    if recording is not None:
        union = [c for c in robot.channels if any(c in x.channels for x in found)]
        seen = _motion_alone(robot, recording, signals or Signals(), union)
        found = [_excited(x, seen) for x in found]
    return SensorSets(robot, tuple(found))


def one_more_sensor(
    robot: Robot,
    channels: Choice,
    sensors: Mapping[str, Choice] | None = None,
    *,
    recording: Recording | None = None,
    signals: Signals | None = None,
) -> tuple[Gain, ...]:
    """What becomes identifiable with each of several additional sensors.

    Parameters
    ----------
    robot : Robot
        The robot.
    channels : str or sequence of str
        Channels that are measured already.
    sensors : mapping of str to channels, optional
        Channels of each additional sensor, by name. By default the base wrench, and the torque of each joint.
    recording : Recording, optional
        Recorded motion, as for `sensor_sets`.
    signals : Signals, optional
        How it is filtered, as for `sensor_sets`.

    Returns
    -------
    tuple of Gain
        One per sensor that is not among the channels, in descending order of the number of combinations.
    """
    have = [robot.channels[i] for i in choose_channels(robot, channels)]
    if sensors is None:
        more: dict[str, Choice] = {} if robot.base == "fixed" else {"wrench": "wrench"}
        more |= {c: (c,) for c in robot.coordinates}
    else:
        more = dict(sensors)
    added = {name: [robot.channels[i] for i in choose_channels(robot, choice)] for name, choice in more.items()}
    added = {name: own for name, own in added.items() if not set(own) <= set(have)}
    names = {"": have} | {name: [c for c in robot.channels if c in {*have, *own}] for name, own in added.items()}
    found = sensor_sets(robot, names, recording=recording, signals=signals)
    gains = [Gain(name, found.gain("", name), found[name]) for name in added]
    return tuple(sorted(gains, key=lambda g: -g.count))


def new_combinations(known: BaseParameters, more: BaseParameters) -> tuple[str, ...]:
    """Base parameters of the second structure that do not follow from the first and from those before them."""
    basis = np.linalg.qr(_unit(known.matrix).T)[0]
    out = []
    for row, expression in zip(_unit(more.matrix), more.expressions, strict=True):
        rest = row
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        if size > _NEW:
            basis = np.column_stack([basis, rest / size])
            out.append(expression)
    return tuple(out)


def _unit(rows: Array) -> Array:
    """Rows scaled to unit norm."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _usual(robot: Robot) -> dict[str, Choice]:
    """The default sets of sensors."""
    if robot.base == "fixed":
        return {"torque": "torque"}
    wrench: dict[str, Choice] = {"wrench": "wrench", "force": ("base.f?",), "moment": ("base.m?",)}
    return wrench if not robot.n else {"torque": "torque"} | wrench | {"all": "all"}


def _motion_alone(robot: Robot, recording: Recording, settings: Signals, channels: Sequence[str]) -> Observation:
    """The folded regressor of a recorded motion, for channels that need not be measured."""
    motions = []
    for run in recording.runs:
        check_run(robot, run, ())
        motion = prepare(run, settings)
        nothing = np.zeros_like(motion.q), np.zeros((len(motion.t), 6))
        motions.append(replace(motion, torque=nothing[0], wrench=nothing[1], wrenches={}, sensors={}))
    return observe_motions(base_parameters(robot, channels=channels), motions, settings)


def _excited(one: SensorSet, seen: Observation) -> SensorSet:
    """The set with the excitation by a recording, from the factors of its channels with unit columns."""
    # In a scan from left to right, columns kept for some channels are also kept for more channels.
    columns = [seen.base.kept.index(j) for j in one.base.kept]
    rows = [f[:, columns] for f, c in zip(seen.factors, seen.base.channels, strict=True) if c in one.channels]
    factor = fold(np.vstack(rows))
    norms = np.linalg.norm(factor, axis=0)
    singular = np.linalg.svd(factor[:, norms > 0] / norms[norms > 0], compute_uv=False)
    excited = int(np.count_nonzero(singular > _EXCITED * singular.max(initial=0.0)))
    smallest = singular.min() if len(singular) == one.count else 0.0
    condition = float(singular.max() / smallest) if smallest > _ROUNDING * singular.max() else np.inf
    return replace(one, excited=excited, condition_number=condition)
