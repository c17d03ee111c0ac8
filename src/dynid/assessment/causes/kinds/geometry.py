"""Candidate causes of wrong geometry: tilted base, encoder offset, placement of joints, elasticity and backlash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import CauseCode, Relevance
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.assessment.causes.cause_source import CauseSource
from dynid.assessment.causes.deflection import BETWEEN, FREQUENCIES, GAPS, deflections
from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.model import Robot
from dynid.robot.posture import tilted_gravity
from dynid.signals.filters import lowpass
from dynid.signals.settings import Motion

__all__ = [
    "BACKLASH",
    "ELASTICITY",
    "ENCODER_OFFSET",
    "GEOMETRY",
    "PLACEMENT",
    "POSITION_GAIN",
    "TILT",
    "elasticity_between",
    "geometry_groups",
    "slopes_of",
    "vertical",
]

Array = NDArray[np.float64]

TILT = CauseCode(
    "tilt",
    "the base is tilted",
    "measure how the base is mounted, give the gravity vector to the robot, identify again",
    "0.5 degrees",
    check="geometry",
    relevance=Relevance(imitated=True),
)
ENCODER_OFFSET = CauseCode(
    "encoder_offset",
    "the zero position of a joint is wrong",
    "correct the zero position of the joint (dynid calibrate), identify again",
    "0.3 degrees",
    check="geometry",
    relevance=Relevance(imitated=True),
)
POSITION_GAIN = CauseCode(
    "position_gain",
    "the positions of a joint are scaled: gear ratio, counts per revolution",
    "check the counts per revolution and the gear ratio of the encoder of this joint",
    "2 %",
    check="geometry",
    relevance=Relevance(imitated=True),
)
PLACEMENT = CauseCode(
    "placement",
    "a link has another length or shape than in the model",
    "check the length of the link before this joint in the robot description",
    "5 mm",
    check="geometry",
    relevance=Relevance(imitated=True),
)
ELASTICITY = CauseCode(
    "elasticity",
    "a joint is elastic, with the encoder on the motor side",
    "measure positions on the link side, excite more slowly, or model the elastic joint",
    "1 % of the torque",
    check="flexibility",
    relevance=Relevance(sigmas=2.0, positive=True, clear=True),
)
BACKLASH = CauseCode(
    "backlash",
    "a joint has backlash, with the encoder on the motor side",
    "measure positions on the link side, or preload the joint",
    "1 % of the torque",
    check="flexibility",
    relevance=Relevance(positive=True, clear=True),
)

# Steps of the central differences: rad and m. Torques are quadratic in the placement, so they are exact there.
_STEP = 1e-4
_DEGREES = 180.0 / np.pi
# Smallest sizes that matter: degrees and millimetres.
_LEAST_TILT, _LEAST_OFFSET, _LEAST_LENGTH = 0.5, 0.3, 5.0
_LEAST_GAIN, _MOST_GAIN = 2.0, 60.0  # percent
# A joint whose axis lies along gravity within this angle carries no weight until the base is tilted.
_ALONG = 1e-3
# Links shorter than this (m) have no direction of their length.
_SHORTEST = 0.02


def geometry_groups(model: Model) -> Iterator[Group]:
    """All candidates of wrong geometry."""
    yield from _tilt(model)
    yield from _joint_groups(model)
    if not model.bodies.loops:  # a joint that is moved alone opens its loop
        yield from _placements(model)


def _tilt(model: Model) -> Iterator[Group]:
    robot, rows = model.bodies, model.rows
    if not np.any(robot.gravity):
        return
    variants = [robot.with_gravity(tilted_gravity(robot, s * _STEP * np.eye(2)[k])) for k in range(2) for s in (1, -1)]

    def columns(q: Array, v: Array, a: Array) -> Array:
        t = [inverse_dynamics(r, q, v, a, model.body_parameters) for r in variants]
        return np.stack([(t[0] - t[1]) / (2 * _STEP), (t[2] - t[3]) / (2 * _STEP)], axis=-1)

    parts = rows.sampled(columns)
    # First moments that only a tilted base makes visible.
    q = np.concatenate([m.q for m in rows.motions])
    wide = []
    upright = [k for k, j in enumerate(rows.joints) if vertical(robot, j)]
    for k, (part, j) in enumerate(zip(parts, rows.joints, strict=True)):
        extra = np.zeros((len(part), 2 * len(upright)))
        if k in upright:
            at = 2 * upright.index(k)
            angle = q[rows.index[k], j]
            extra[:, at : at + 2] = np.column_stack([np.sin(angle), np.cos(angle)])
        wide.append(np.column_stack([part, extra]))
    yield Group(
        TILT,
        (),
        lambda size, _: f"the base is tilted by {size} degrees",
        model.everywhere(wide),
        "degrees",
        _DEGREES,
        _LEAST_TILT,
        core=2,
    )


def vertical(robot: Robot, joint: int, within: float = _ALONG) -> bool:
    """Whether a revolute joint on the base has its axis along gravity, within an angle (rad)."""
    name = robot.coordinates[joint]
    found = next(x for x in robot.joints if x.name == name)
    axis = found.placement[:3, :3] @ found.axis
    down = robot.gravity / np.linalg.norm(robot.gravity)
    return found.parent == 0 and found.kind == "revolute" and bool(np.linalg.norm(np.cross(axis, down)) < within)


def _joint_groups(model: Model) -> Iterator[Group]:
    """Encoder offset, elasticity and backlash of each joint: position errors that are constant or follow the load."""
    robot, rows = model.bodies, model.rows
    revolute = [next(x for x in robot.joints if x.name == c).kind == "revolute" for c in robot.coordinates]
    bent = [deflections(robot, m, x, model.body_parameters) for m, x in zip(rows.motions, model.load, strict=True)]
    for j, name in enumerate(robot.coordinates):
        slopes = _slopes(model, j)
        unit, scale, least = ("degrees", _DEGREES, _LEAST_OFFSET) if revolute[j] else ("mm", 1e3, _LEAST_LENGTH)
        yield Group(
            ENCODER_OFFSET,
            (j,),
            _named(f"the position of '{name}' is off by", unit),
            model.everywhere([-x[:, 0] for x in slopes]),
            unit,
            scale,
            least,
        )
        # Where the zero of such an encoder is, is not known either.
        states = [np.concatenate([getattr(m, s)[:, j] for m in rows.motions]) for s in "qva"]
        more = [-sum(x[:, k] * s[i] for k, s in enumerate(states)) for x, i in zip(slopes, rows.index, strict=True)]
        yield Group(
            POSITION_GAIN,
            (j,),
            _scaled(name),
            model.everywhere([np.column_stack([c, -x[:, 0]]) for c, x in zip(more, slopes, strict=True)]),
            "%",
            100.0,
            _LEAST_GAIN,
            _MOST_GAIN,
        )
        yield from _elasticity(model, j, slopes, [springs[:, j] for springs, _ in bent], FREQUENCIES)
        for k, gap in enumerate(GAPS):
            error = [_calm(gaps[:, j, k], m) for (_, gaps), m in zip(bent, rows.motions, strict=True)]
            words = _named(f"'{name}' has a backlash of about", unit)
            columns = model.everywhere(_moved(model, slopes, error))
            yield Group(BACKLASH, (j,), words, columns, unit, scale * float(gap))


def _elasticity(model: Model, j: int, slopes: list[Array], bent: list[Array], frequencies: Array) -> Iterator[Group]:
    """Elasticity of joint j with each frequency, given its deflections (N, spring, 3) in each motion."""
    for k, frequency in enumerate(frequencies):
        columns = model.everywhere(_moved(model, slopes, [x[:, k] for x in bent]))
        words = _elastic(model.robot.coordinates[j], float(frequency))
        yield Group(ELASTICITY, (j,), words, columns, "times")


def elasticity_between(model: Model, coarse: Sequence[Group], best: Group) -> Iterator[Group]:
    """Elasticity of a joint with frequencies near that of its best candidate, which is one of the `coarse` ones."""
    j = best.joints[0]
    same = [g for g in coarse if g.code is ELASTICITY and g.joints == best.joints]
    frequencies = float(FREQUENCIES[[g is best for g in same].index(True)]) * BETWEEN
    bent = [
        deflections(model.bodies, m, load, model.body_parameters, frequencies, GAPS[:0])[0][:, j]
        for m, load in zip(model.rows.motions, model.load, strict=True)
    ]
    yield from _elasticity(model, j, _slopes(model, j), bent, frequencies)


def _elastic(name: str, frequency: float) -> Callable[[str, float], str]:
    return lambda _size, _value: f"'{name}' is elastic: the body behind it oscillates at about {frequency:.2g} Hz"


def _calm(error: Array, motion: Motion) -> Array:
    """Position error with its derivatives as the low-pass of the positions shows them."""
    return lowpass(error, motion.cutoff, motion.rate) if motion.cutoff is not None else error


def slopes_of(robot: Robot, parameters: Array, rows: CauseRows, j: int) -> list[Array]:
    """Derivatives (m, 3) of the torque of each channel by position, velocity and acceleration of joint j.

    The robot may have further coordinates before those of the rows, which are at rest.
    """
    more = robot.n - rows.base.robot.n
    unit = np.eye(robot.n)[j]

    def columns(*states: Array) -> Array:
        whole = np.array([np.hstack([np.zeros((len(x), more)), x]) for x in states])
        out = []
        for k in range(3):
            step = np.outer(np.eye(3)[k], _STEP * unit)
            plus, minus = (whole + s * step[:, None] for s in (1, -1))
            plus, minus = (inverse_dynamics(robot, q, v, a, parameters) for q, v, a in (plus, minus))
            out.append((plus - minus)[:, more:] / (2 * _STEP))
        return np.stack(out, axis=-1)

    return rows.sampled(columns)


def _slopes(model: Model, j: int) -> list[Array]:
    """Derivatives (m, 3) of the torque of each channel by the motion of joint j."""
    return slopes_of(model.bodies, model.body_parameters, model.rows, j)


def _moved(model: Model, slopes: list[Array], error: list[Array]) -> list[Array]:
    """Column of each channel of a position error (N, 3) per motion, given with its derivatives."""
    whole = np.concatenate(error)
    return [-np.sum(x * whole[i], axis=1) for x, i in zip(slopes, model.rows.index, strict=True)]


def _placements(model: Model) -> Iterator[Group]:
    """Translation of each joint in its parent link."""
    robot, rows = model.bodies, model.rows
    lengths = [float(np.linalg.norm(joint.placement[:3, 3])) for joint in robot.joints]
    for i, joint in enumerate(robot.joints):
        if joint.parent == 0:
            continue  # the base link does not move: only the place of the robot changes

        def columns(q: Array, v: Array, a: Array, i: int = i) -> Array:
            out = []
            for axis in range(3):
                t = [
                    inverse_dynamics(_shifted(robot, i, axis, s * _STEP), q, v, a, model.body_parameters)
                    for s in (1.0, -1.0)
                ]
                out.append((t[0] - t[1]) / (2 * _STEP))
            return np.stack(out, axis=-1)

        joints = tuple(j for j, c in enumerate(robot.coordinates) if c == joint.name)
        made = rows.sampled(columns)
        # No link is wrong by more than its whole length, and none without length by more than the longest one.
        if lengths[i] > _SHORTEST:
            along = joint.placement[:3, 3] / lengths[i]
            yield Group(
                PLACEMENT,
                joints,
                _length(joint.name),
                model.everywhere([c @ along for c in made]),
                "mm",
                1e3,
                _LEAST_LENGTH,
                1e3 * lengths[i],
            )
        yield Group(
            PLACEMENT,
            joints,
            _named(f"the link before '{joint.name}' is wrong in length or shape by", "mm"),
            model.everywhere(made),
            "mm",
            1e3,
            _LEAST_LENGTH,
            1e3 * (lengths[i] if lengths[i] > _SHORTEST else max(lengths)),
            core=3,
        )


def _shifted(robot: Robot, i: int, axis: int, step: float) -> Robot:
    """The robot with joint i moved in its parent link."""
    placement = robot.joints[i].placement.copy()
    placement[axis, 3] += step
    joints = list(robot.joints)
    joints[i] = replace(joints[i], placement=placement)
    return replace(robot, joints=tuple(joints))


def _length(name: str) -> Callable[[str, float], str]:
    def words(size: str, value: float) -> str:
        return f"the link before '{name}' is {size} mm too {'short' if value > 0 else 'long'} in the model"

    return words


def _scaled(name: str) -> Callable[[str, float], str]:
    return lambda size, value: f"the positions of '{name}' are {size} % too {'large' if value > 0 else 'small'}"


def _named(start: str, unit: str) -> Callable[[str, float], str]:
    return lambda size, _: f"{start} {size} {unit}"


GEOMETRY = CauseSource(
    name="geometry",
    codes=(TILT, ENCODER_OFFSET, POSITION_GAIN, PLACEMENT, ELASTICITY, BACKLASH),
    groups=geometry_groups,
)
