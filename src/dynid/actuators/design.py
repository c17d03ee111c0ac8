"""Design of commands that show unknown actuators: chirps of all joints, chosen by the standard deviations they give."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.actuators.prediction import Predicted, checked_noise, predict, resting
from dynid.actuators.unknowns import DEFAULT_UNKNOWN, ParameterSpace, Quantity, Spec, Unknown
from dynid.dynamics.functions import mass_matrix
from dynid.errors import Infeasible, InvalidShape, InvalidValue, NotApplicable, SimulationFailed, named
from dynid.files import write_text
from dynid.progress import Progress, ProgressCallback
from dynid.recording.run import column_names
from dynid.results import Result, SavedResult, Table, about, framed
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.terminal import rendered, table_of

__all__ = ["ChirpDesign", "ChirpTrial", "design_chirps"]

Array = NDArray[np.float64]

# Highest frequencies (Hz) that are tried, and shares of what amplitude and limits allow.
_FREQUENCIES = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
_SHARES = (0.25, 0.5, 1.0)
# Frequencies below this share of the rate have enough rows per period.
_RESOLVED = 0.2
_LOWEST = 0.1  # Hz
_RAMP = 0.5  # s
# Share of a limit that the command uses, since its window and its changing frequency add a little.
_MARGIN = 0.9
_SHORTEST, _MOST_ROWS = 4 * _RAMP, 100_000
# Chirps of neighboring joints differ by this factor in frequency, so that they do not move as one.
_APART = 0.07
# Share of the amplitude below which limits leave little of it, and multiples of the noise below which motion is small.
_LITTLE, _NOISY = 0.1, 20.0
# A delay is judged against this (s); a quantity whose expected value is zero against this share of its largest effect.
_DELAY, _SMALL = 0.005, 0.1


@dataclass(frozen=True, eq=False)
class ChirpTrial(Result):
    """One chirp that was tried."""

    highest: float = field(metadata=about("Frequency at its end, in Hz."))
    share: float = field(metadata=about("Share of what amplitude and limits allow."))
    std: Array = field(
        metadata=about(
            "Standard deviations that a log of it would give; infinite for what it does not show, NaN if it diverges.",
            size=("C",),
        )
    )
    worst: float = field(
        metadata=about("Largest of them relative to the expected values; infinite if the chirp cannot be used.")
    )
    problem: str = field(metadata=about("Limit that it exceeds, or that it diverges; empty if it can be used."))


@dataclass(frozen=True, eq=False)
class ChirpDesign(SavedResult):
    """Commanded positions that show the unknowns best."""

    kind = "chirps"
    tables = (
        Table(
            "chirp design",
            "C",
            framed(
                unknown=lambda d: [x.label for x in d.unknowns],
                value="values",
                std="std",
                unit=lambda d: [x.unit for x in d.unknowns],
            ),
        ),
    )

    joints: tuple[str, ...] = field(metadata=about("Joints."))
    command: Array = field(
        metadata=about("Commanded positions (rad or m). They begin and end at rest.", size=("K", "n"))
    )
    rate: float = field(metadata=about("Rows per second."))
    highest: float = field(metadata=about("Frequency at the end of the chirps, in Hz."))
    share: float = field(metadata=about("Share that was chosen of what amplitude and limits allow."))
    amplitude: Array = field(metadata=about("Amplitude that was wanted (rad or m).", size=("n",)))
    motion: Array = field(metadata=about("Range of the simulated positions (rad or m).", size=("n",)))
    noise: Array = field(
        metadata=about("Standard deviation of the measured positions (rad or m) that was assumed.", size=("n",))
    )
    unknowns: tuple[Unknown, ...] = field(metadata=about("Unknowns."))
    values: Array = field(metadata=about("Expected values.", size=("C",)))
    std: Array = field(
        metadata=about(
            "Standard deviations that a log of these commands would give; infinite for what it does not show.",
            size=("C",),
        )
    )
    tried: tuple[ChirpTrial, ...] = field(metadata=about("Every chirp that was tried."))

    @property
    def duration(self) -> float:
        """Seconds of the command."""
        return len(self.command) / self.rate

    @property
    def remarks(self) -> tuple[str, ...]:
        """Joints that hardly move, and why, one sentence each."""
        out = []
        sizes = np.abs(self.command - self.command[0]).max(axis=0) / self.share
        rows = zip(self.joints, sizes, self.amplitude, self.motion, self.noise, strict=True)
        for joint, size, wanted, motion, noise in rows:
            if size < _LITTLE * wanted:
                reason = "limits of velocity or acceleration"
                out.append(f"{reason} leave {size:.2g} of the amplitude of {wanted:.2g} for '{joint}'")
            if motion < _NOISY * noise:
                times = f"{motion / noise:.2g} times the noise of its positions"
                out.append(f"'{joint}' moves by {motion:.2g} only, {times}")
        return tuple(out)

    def summary(self) -> str:
        """Every chirp with the largest standard deviation of each quantity, and those of the chosen one."""
        groups = _groups(self.unknowns)
        heads = [f"{quantity}\n{_shown(0.0, unit)[1]}".rstrip() for quantity, unit in groups]
        table = table_of("largest standard deviation", "to\nHz", "amplitude", *heads, "remark", text=("remark",))
        for x in self.tried:
            cells = [_number(x.std[own].max(), unit) for (_, unit), own in groups.items()]
            chosen = "chosen" if (x.highest, x.share) == (self.highest, self.share) else ""
            table.add_row(f"{x.highest:g}", f"{x.share:.0%}", *cells, x.problem or chosen)
        expected = table_of(
            "expected from the chosen chirp", "unknown", "value", "std", "unit", text=("unknown", "unit")
        )
        for one, value, std in zip(self.unknowns, self.values, self.std, strict=True):
            expected.add_row(one.label, *(_number(x, one.unit) for x in (value, std)), _shown(0.0, one.unit)[1])
        line = (
            f"chosen: chirps from {_LOWEST:g} to {self.highest:g} Hz with {self.share:.0%} of the amplitude, "
            f"{self.duration:g} s at {self.rate:g} Hz"
        )
        return rendered(table, expected, *(f"note: {x}" for x in self.remarks), line)

    def to_dict(self) -> dict[str, Any]:
        """The design as plain data; None for what a log does not show. The command is left out."""
        rows = zip(self.unknowns, self.values, self.std, strict=True)
        return {
            "joints": list(self.joints),
            "posture": self.command[0].tolist(),
            "lowest": _LOWEST,
            "highest": self.highest,
            "share": self.share,
            "duration": self.duration,
            "rate": self.rate,
            "amplitude": self.amplitude.tolist(),
            "motion": self.motion.tolist(),
            "noise": self.noise.tolist(),
            "remarks": list(self.remarks),
            "unknowns": [
                {"label": x.label, "value": float(value), "std": _plain(std), "unit": x.unit} for x, value, std in rows
            ],
            "tried": [
                {
                    "highest": x.highest,
                    "share": x.share,
                    "worst": _plain(x.worst),
                    "largest_std": [
                        {"quantity": str(quantity), "unit": unit, "std": _plain(x.std[own].max())}
                        for (quantity, unit), own in _groups(self.unknowns).items()
                    ],
                    "problem": x.problem,
                }
                for x in self.tried
            ],
        }

    def to_csv(self, path: str | Path) -> None:
        """Write time and commanded positions, in columns as a recording names its reference.

        Parameters
        ----------
        path : str or Path
        """
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(["t", *column_names("reference", self.joints)])
        t = np.arange(len(self.command)) / self.rate
        np.savetxt(out, np.column_stack([t, self.command]), "%.17g", ",")
        write_text(path, out.getvalue())


def design_chirps(
    robot: Robot,
    law: ActuatorLaw,
    amplitude: ArrayLike,
    *,
    seconds: float = 20.0,
    rate: float = 200.0,
    unknown: Spec = DEFAULT_UNKNOWN,
    noise: ArrayLike = 1e-3,
    start: ArrayLike | None = None,
    acceleration: ArrayLike = np.inf,
    progress: ProgressCallback | None = None,
) -> ChirpDesign:
    """Chirps of all joints at once that show the unknowns best, within the limits of the robot.

    Commands and simulated motion keep to its limits of position and velocity, torques to those of effort. Where a
    velocity or an acceleration is limited, the amplitude falls as the frequency rises.

    Parameters
    ----------
    robot : Robot
        With the values that are expected. A floating base is held fixed.
    law : ActuatorLaw
        Law with a proportional gain on every joint.
    amplitude : float or array of shape (n,)
        Largest amplitude of the command (rad or m).
    seconds : float
        Duration of the command.
    rate : float
        Rows per second.
    unknown : sequence of str or mapping
        As for `identify_actuators`.
    noise : float or array of shape (n,)
        Standard deviation of the measured positions (rad or m).
    start : array of shape (n,), optional
        Posture that the chirps start from, move about and end in. By default zero, or the middle of its range for a
        joint that would leave it about zero.
    acceleration : float or array of shape (n,), optional
        Largest acceleration of the command (rad/s2 or m/s2), such as that of the set point inside a servo.
    progress : callable, optional
        Called with a `Progress`.

    Returns
    -------
    ChirpDesign

    Raises
    ------
    DataError
        If an argument has the wrong shape or is not positive, or every chirp exceeds a limit or diverges.

    Examples
    --------
    >>> import dynid
    >>> from dynid.actuators import design_chirps
    >>> from dynid.robot import ActuatorLaw
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    >>> law = ActuatorLaw(robot.coordinates, kp=60.0, kd=3.0)
    >>> design = design_chirps(robot, law, 0.4, seconds=4.0)
    >>> design.command.shape
    (800, 2)
    """
    robot, law = _checked(robot, law, seconds, rate)
    sizes = checked_noise(noise, robot.n)
    largest, fastest = _positive(amplitude, robot, "amplitude"), _positive(acceleration, robot, "acceleration")
    posture = _posture(robot, largest) if start is None else _given_posture(robot, start)
    rest = resting(robot, law, posture, rate)
    velocities = np.array([robot.limits[c].velocity for c in robot.coordinates])
    trials: list[ChirpTrial] = []
    found: list[tuple[Array, Predicted]] = []
    pairs = list(product([f for f in _FREQUENCIES if f <= _RESOLVED * rate], _SHARES))
    for k, (highest, share) in enumerate(pairs):
        command = posture + share * _chirp(largest, velocities, fastest, seconds, rate, highest)
        predicted = predict(robot, law, command, rate, unknown, sizes, rest)
        problem = _problem(robot, command, predicted, rate, fastest)
        worst = np.inf if problem else float(np.max(predicted.std / _typical(predicted.space, posture, largest)))
        trials.append(ChirpTrial(highest, share, predicted.std, worst, problem))
        found.append((command, predicted))
        if progress is not None:
            progress(Progress(f"simulated a chirp to {highest:g} Hz", (k + 1) / len(pairs)))
    usable = [k for k, x in enumerate(trials) if not x.problem]
    if all(x.diverged for _, x in found):
        raise SimulationFailed("the simulation of every chirp diverges: the law is unstable with the model")
    if not usable:
        raise Infeasible(
            f"every chirp exceeds a limit, the smallest and slowest too ({trials[0].problem}): give a smaller "
            "amplitude or another start posture",
            "amplitude",
        )
    best = min(usable, key=lambda k: (np.isinf(trials[k].std).sum(), trials[k].worst))
    command, chosen = found[best]
    return ChirpDesign(
        joints=robot.coordinates,
        command=command,
        rate=rate,
        highest=trials[best].highest,
        share=trials[best].share,
        amplitude=largest,
        motion=np.ptp(chosen.q, axis=0),
        noise=sizes,
        unknowns=chosen.space.unknowns,
        values=chosen.space.values + chosen.space.rest,
        std=chosen.std,
        tried=tuple(trials),
    )


def _chirp(
    amplitude: Array, velocity: Array, acceleration: Array, seconds: float, rate: float, highest: float
) -> Array:
    """Chirps (K, n) that begin and end at rest; their amplitude falls where velocity or acceleration is limited."""
    t = np.arange(int(seconds * rate)) / rate
    turns = _LOWEST * t + (highest - _LOWEST) * t**2 / (2 * seconds)
    scale = 1.0 - _APART * (np.arange(len(amplitude)) % 4)
    omega = 2 * np.pi * np.outer(_LOWEST + (highest - _LOWEST) * t / seconds, scale)
    size = np.minimum(amplitude, _MARGIN * np.minimum(velocity / omega, acceleration / omega**2))
    window = np.sin(0.5 * np.pi * np.minimum(1.0, np.minimum(t, t[-1] - t) / _RAMP)) ** 2
    return np.asarray(size * window[:, None] * np.sin(2 * np.pi * np.outer(turns, scale)))


def _checked(robot: Robot, law: ActuatorLaw, seconds: float, rate: float) -> tuple[Robot, ActuatorLaw]:
    """The robot on a fixed base and the law of its joints, if chirps can be designed for them."""
    law = law.of(robot.coordinates)
    if not law.kp.all():
        raise NotApplicable(f"joint '{law.joints[int(np.argmin(law.kp))]}' does not follow a chirp: its law has no kp")
    if not (np.isfinite(rate) and _RESOLVED * rate >= min(_FREQUENCIES)):
        raise InvalidValue(f"{named('rate')} must be at least {min(_FREQUENCIES) / _RESOLVED:g} Hz, got {rate:g}")
    if not _SHORTEST <= seconds <= _MOST_ROWS / rate:
        raise InvalidValue(
            f"the duration of a chirp at {rate:g} Hz lies between {_SHORTEST:g} and {_MOST_ROWS / rate:g} s, got "
            f"{seconds:g}",
            "seconds",
        )
    return robot.with_base("fixed"), law


def _positive(given: ArrayLike, robot: Robot, name: str) -> Array:
    """One positive number per joint; an infinite one where there is no limit."""
    values = np.asarray(given, dtype=float)
    if values.shape not in ((), (1,), (robot.n,)):
        raise InvalidShape(f"{named(name)} has one number or {robot.n}, got {values.size}")
    if not np.all(values > 0) or (name == "amplitude" and not np.isfinite(values).all()):
        raise InvalidValue(f"{named(name)} must be positive, got {values.min():g}")
    return np.broadcast_to(values, (robot.n,))


def _ranges(robot: Robot) -> tuple[Array, Array]:
    """Lowest and highest position of every joint (n,)."""
    lower, upper = np.array([(robot.limits[c].lower, robot.limits[c].upper) for c in robot.coordinates]).T
    return lower, upper


def _posture(robot: Robot, amplitude: Array) -> Array:
    """Zero, or the middle of its range for a joint whose whole chirp would leave it about zero."""
    lower, upper = _ranges(robot)
    posture = np.array(robot.home)
    leaves = (posture - amplitude < lower) | (posture + amplitude > upper)
    # A joint with one stop has no middle: it moves at two amplitudes from the stop.
    low = np.where(np.isinf(lower), upper - 4 * amplitude, lower)
    high = np.where(np.isinf(upper), lower + 4 * amplitude, upper)
    posture[leaves] = 0.5 * (low[leaves] + high[leaves])
    return posture


def _given_posture(robot: Robot, start: ArrayLike) -> Array:
    """A posture within the ranges of the joints."""
    posture = np.asarray(start, dtype=float)
    if posture.shape != (robot.n,):
        raise InvalidShape(f"the start posture needs {robot.n} positions, got {posture.size}", "start")
    for name, x, low, high in zip(robot.coordinates, posture, *_ranges(robot), strict=True):
        if not low <= x <= high:
            raise InvalidValue(
                f"the start posture of joint '{name}' is {x:g}, outside its range [{low:g}, {high:g}]", "start"
            )
    return posture


def _problem(robot: Robot, command: Array, predicted: Predicted, rate: float, acceleration: Array) -> str:
    """The limit that a command or its motion exceeds, or that it diverges; empty if neither."""
    if predicted.diverged:
        return "diverges"
    velocity = np.gradient(command, 1.0 / rate, axis=0)
    accelerations = np.abs(np.gradient(velocity, 1.0 / rate, axis=0)).max(axis=0)
    both = np.concatenate([command, predicted.q])
    fast = np.abs(np.concatenate([velocity, predicted.v])).max(axis=0)
    torque = np.abs(predicted.torque).max(axis=0)
    for i, joint in enumerate(robot.coordinates):
        x = robot.limits[joint]
        if not x.lower <= both[:, i].min() <= both[:, i].max() <= x.upper:
            return f"range of {joint}"
        for name, size, most in (
            ("velocity", fast[i], x.velocity),
            ("acceleration", accelerations[i], acceleration[i]),
            ("torque", torque[i], x.effort),
        ):
            if size > most:
                return f"{name} of {joint}: {size:.3g} > {most:.3g}"
    return ""


def _groups(unknowns: Sequence[Unknown]) -> dict[tuple[Quantity, str], list[int]]:
    """Indices of the unknowns of every quantity and unit."""
    out: dict[tuple[Quantity, str], list[int]] = {}
    for k, x in enumerate(unknowns):
        out.setdefault((x.quantity, x.unit), []).append(k)
    return out


def _typical(space: ParameterSpace, posture: Array, amplitude: Array) -> Array:
    """Sizes (C,) that standard deviations are compared with: the typical value of each quantity.

    Where that is zero, since the robot file has none, a share of what would matter: of the inertia of the joint, of its
    critical damping, of the torque and the position error of the amplitude.
    """
    law, inertia = space.law, np.diag(mass_matrix(space.robot, posture[None])[0])
    torque, damping = law.kp * amplitude, 2 * np.sqrt(law.kp * inertia)
    matters = dict.fromkeys((Quantity.FRICTION, Quantity.STRIBECK, Quantity.OFFSET), torque)
    matters |= {Quantity.ARMATURE: inertia, Quantity.BACKLASH: amplitude, Quantity.BIAS: amplitude}
    matters |= dict.fromkeys((Quantity.DAMPING, Quantity.KD, Quantity.BACK_EMF), damping)
    size = np.zeros(len(space.unknowns))
    for (quantity, _), own in _groups(space.unknowns).items():
        typical = float(np.median(np.abs(space.values[own])))
        if quantity is Quantity.DELAY:
            typical = _DELAY
        elif typical == 0:
            typical = _SMALL * float(np.median(matters.get(quantity, np.ones(1))))
        size[own] = typical
    return size


def _shown(value: float, unit: str) -> tuple[float, str]:
    """A value in the unit of tables: delays in milliseconds."""
    return (1e3 * value, "ms") if unit == "s" else (value, unit)


def _number(value: float, unit: str) -> str:
    """A value of a table."""
    return "not shown" if np.isinf(value) else "-" if np.isnan(value) else f"{_shown(value, unit)[0]:.2g}"


def _plain(value: float) -> float | None:
    """A number for JSON."""
    return float(value) if np.isfinite(value) else None
