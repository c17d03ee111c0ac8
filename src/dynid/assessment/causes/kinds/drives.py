"""Candidate causes in drives and torque sensors: gains, delays, filters, saturation, friction, ripple, drift."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import DRIVE_EFFECT, CauseCode, Relevance
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.assessment.causes.cause_source import CauseSource
from dynid.assessment.causes.ripple import ripple_orders
from dynid.dynamics.functions import inverse_dynamics
from dynid.signals.presliding import PRESLIDING_DISTANCES, friction_state

__all__ = [
    "CLOCK_RATE",
    "COUPLING",
    "COUPLINGS",
    "CROSSTALK",
    "DRIFT",
    "DRIVES",
    "FRICTION",
    "GRAVITY",
    "GRAVITY_COMPENSATED",
    "GRAVITY_MISSING",
    "GRAVITY_REVERSED",
    "HYSTERESIS",
    "LOAD_FRICTION",
    "NEAR_REVERSALS",
    "OFFSET",
    "PAYLOAD",
    "PRESLIDING",
    "RIPPLE",
    "ROTOR_INERTIA",
    "RUNS",
    "SATURATION",
    "SENSORS",
    "SPRING",
    "STRIBECK",
    "TORQUE_ASYMMETRIC",
    "TORQUE_GAIN",
    "TORQUE_NONLINEAR",
    "coupling_groups",
    "drive_groups",
    "payload_groups_near",
    "presliding_groups",
    "ripple_groups_near",
    "run_groups",
    "sensor_groups",
    "stribeck_groups",
]

Array = NDArray[np.float64]

TORQUE_GAIN = CauseCode(
    "torque_gain",
    "the torque of one joint does not fit those of the others",
    "check gear ratio, torque constant and sign of the joint, or calibrate them (dynid gains)",
    "2 %",
    check="torque_scale",
    relevance=Relevance(imitated=True),
)
TORQUE_ASYMMETRIC = CauseCode(
    "torque_asymmetric",
    "the gain of a torque differs between its directions",
    "check the drive or sensor of the joint in both directions: its gain must not depend on the sign of the torque",
    "2 %, 3 % of the torque",
    check="torque_scale",
    relevance=Relevance(imitated=True),
)
TORQUE_NONLINEAR = CauseCode(
    "torque_nonlinear",
    "the gain of a torque changes with its size, as of a motor whose torque constant falls near its peak",
    "calibrate the sensor or the torque constant over its whole range (motors give less torque per ampere near "
    "their peak), or leave out large torques",
    "2 %, 3 % of the torque",
    check="torque_scale",
    relevance=Relevance(imitated=True),
)
CROSSTALK = CauseCode(
    "crosstalk",
    "a sensor also shows the torque of another joint",
    "measure how much the sensor shows of the other joint's torque, and take it out of the log",
    "0.5 % of it, 3 % of the torque",
    check="torque_scale",
    relevance=Relevance(imitated=True),
)
CLOCK_RATE = CauseCode(
    "clock_rate",
    "the time stamps are too long or too short by a factor",
    "compare the time stamps with a clock, and scale them when loading",
    "2 %, 3 % of the torque",
    check="delay",
    relevance=Relevance(imitated=True),
)
GRAVITY_COMPENSATED = CauseCode(
    "gravity_compensated",
    "the torques do not contain gravity, because a controller adds it afterwards",
    "log the torque that the drive delivers, or add the gravity torques of the controller to the log; check the "
    "direction of gravity in the robot",
    "50 % of that of the a-priori model",
    check="torque_scale",
    relevance=Relevance(positive=True),
    fatal=True,
)
GRAVITY_REVERSED = CauseCode(
    "gravity_reversed",
    "the torques oppose gravity",
    "check the direction of gravity in the robot, and the signs of positions and torques",
    "150 % of that of the a-priori model",
    check="torque_scale",
    relevance=Relevance(positive=True),
    fatal=True,
)
GRAVITY_MISSING = CauseCode(
    "gravity_missing",
    "the model has no gravity, and the torques contain it",
    "give the gravity vector to the robot",
    "1 m/s2",
    check="torque_scale",
    fatal=True,
)
SATURATION = CauseCode(
    "saturation",
    "a drive saturates, or its torque is clipped in the log",
    "slow the motion down, and leave out samples at the limit of the drive",
    "1 % of the torque, 40 % of the residual",
    relevance=Relevance(share=0.4),
)
OFFSET = CauseCode(
    "offset",
    "constant torque",
    "add an offset to the friction of the joint (--friction)",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
FRICTION = CauseCode(
    "friction",
    "friction with another dependence on velocity",
    "add this friction to the model",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
LOAD_FRICTION = CauseCode(
    "load_friction", "friction grows with the load", "add friction that grows with the load to the model", "1 %"
)
ROTOR_INERTIA = CauseCode(
    "rotor_inertia",
    "rotor inertia is missing",
    "add rotor inertia to the model (--rotor-inertia)",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
SPRING = CauseCode(
    "spring",
    "torque proportional to q",
    "add a spring to the model",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
GRAVITY = CauseCode(
    "gravity",
    "torque proportional to sin q and cos q",
    "add the counterbalance to the model",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
HYSTERESIS = CauseCode(
    "hysteresis",
    "friction builds up over tenths of a radian after each reversal, as of cables and seals",
    "look for a cable, hose or seal that bends before it slides; torques after reversals of this joint are wrong by "
    "that much",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
RIPPLE = CauseCode(
    "ripple",
    "torque ripple over the position; its order is searched for",
    "add the ripple to the model",
    "1 % of the torque",
)
DRIFT = CauseCode(
    "drift",
    "friction or offset changes during or between runs",
    "warm the robot up before recording, or identify friction at its working temperature",
    "5 % of the friction",
    check="change",
    between=True,
)
COUPLING = CauseCode(
    "coupling",
    "torque from the motion of another joint",
    "add the coupled term to the model",
    "2 % of the torque",
    relevance=Relevance(unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT),
)
PAYLOAD = CauseCode(
    "payload",
    "one run carries a payload, or it is picked up or put down in a run",
    "identify and validate with the same payload, or give the payload to the robot",
    "1 % of the torque",
    check="change",
    between=True,
)
PRESLIDING = CauseCode(
    "presliding",
    "friction builds up over a distance after each reversal, in all joints or in one",
    "make sure that the positions are measured and not commanded, leave out rows near reversals (min_velocity), and "
    "do not rely on torques of small or slow motion; a delay would make it worse",
    "1 % of the torque, half of the residual",
    relevance=Relevance(share=0.5, agreement=0.3, positive=True),
)
STRIBECK = CauseCode(
    "stribeck",
    "friction is larger near standstill, or not that of a Stribeck law in the model",
    "add Stribeck friction to the robot (dynid friction), or leave out slow motion (min_velocity) and do not rely "
    "on torques near standstill",
    "2 %, or 1 % of the torque",
    relevance=Relevance(share=0.3, unexplained=DRIVE_EFFECT, effect=DRIVE_EFFECT, positive=True),
)

_LEAST_GAIN, _MOST_GAIN = 2.0, 60.0  # percent
# Share of the power of a torque that each of its directions has, where they can have gains of their own.
_BOTH_SIDES = 0.1
# Relative step of the derivative by the rate of the clock.
_CLOCK_STEP, _TINY = 1e-4, 1e-300
# Percent of the gravity of the a-priori model. A controller takes out all of it, by a model that is off by less than
# half; gravity in the opposite direction is twice as much.
_MISSING, _REVERSED = (50.0, 150.0), (150.0, 250.0)
# More than all of it, by more than bodies are usually off, may be either.
_EITHER = 120.0
# Gravity (m/s2) of a log whose model has none, by bodies that may be off by half.
_WEIGHT = (1.0, 20.0)
# Share of the largest torque beyond which a saturated drive delivers less than is recorded.
_LEVELS = (0.5, 0.7, 0.85)
_QUANTILES = (0.5, 0.8, 0.9, 0.97)
_STRIBECK = (0.02, 0.05, 0.1)  # of the highest velocity
_STANDSTILL = 1e-6
# Distances (rad) over which cables and seals bend.
_BENDS = (0.03, 0.1, 0.3)
# Parts of the recordings after which a payload may change, and of such a part.
_CHANGES, _FINER = 20, 8
# Largest factor of the friction that builds up after reversals: a fit without it finds too little Coulomb friction.
_MOST_STEP = 10.0
# Orders of a ripple that are tried on either side of a line of its spectrum, a quarter wide, and the step.
_ORDERS, _ORDER_STEP = 12, 0.025
# Drives are coupled with their neighbours; of robots with few joints, all pairs are tried.
_MANY_JOINTS, _NEIGHBOURS = 10, 2


def sensor_groups(model: Model) -> Iterator[Group]:
    """Gains, saturation, and gravity that is not in the torques."""
    rows, robot = model.rows, model.robot
    torque = model.torque_rows
    yield from _gravity(model)
    for k, j in enumerate(rows.joints):
        name = robot.coordinates[j]
        yield Group(
            TORQUE_GAIN,
            (j,),
            _scaled(name),
            model.only(k, torque[k]),
            "%",
            100.0,
            _LEAST_GAIN,
        )
    yield from _gain_errors(model)
    yield from _crosstalk(model)
    yield from _clock_rate(model)
    for k, j in enumerate(rows.joints):
        size = np.abs(torque[k])
        for level in _LEVELS:
            beyond = np.maximum(size - level * size.max(), 0.0) * np.sign(torque[k])
            words = _named(f"the torque of '{robot.coordinates[j]}' is limited: large ones are missing from the log")
            yield Group(SATURATION, (j,), words, model.only(k, beyond), "%", 100.0)
        size = np.abs(rows.y[k])
        for share in _QUANTILES:
            beyond = np.maximum(size - np.quantile(size, share), 0.0) * np.sign(rows.y[k])
            words = _named(f"the drive of '{robot.coordinates[j]}' saturates: large torques of the log did not act")
            yield Group(SATURATION, (j,), words, model.only(k, beyond), "%", 100.0)


def _gain_errors(model: Model) -> Iterator[Group]:
    """Gains that hold in one direction of a torque only, or change with its size."""
    rows, robot = model.rows, model.robot
    peak = np.maximum(np.max([np.abs(x).max(axis=0) for x in model.whole], axis=0), _TINY)
    made = rows.decimated([np.stack([np.maximum(x, 0.0), np.minimum(x, 0.0), x**3 / peak**2], -1) for x in model.whole])
    for k, j in enumerate(rows.joints):
        name, (up, down, bent) = robot.coordinates[j], made[k][:, j].T
        power = np.array([up @ up, down @ down])
        if power.min() > _BOTH_SIDES * power.sum():  # else it is a gain
            for column, side in ((up, "positive"), (down, "negative")):
                words, columns = _one_sided(name, side), model.only(k, column)
                yield Group(TORQUE_ASYMMETRIC, (j,), words, columns, "%", 100.0, _LEAST_GAIN, _MOST_GAIN)
        columns = model.only(k, np.column_stack([bent, up + down]))
        yield Group(TORQUE_NONLINEAR, (j,), _bent(name), columns, "%", 100.0, _LEAST_GAIN, _MOST_GAIN)


def _crosstalk(model: Model) -> Iterator[Group]:
    """A sensor that also shows a share of the torque of another joint."""
    rows, robot = model.rows, model.robot
    made = rows.decimated(model.whole)
    for k, j in enumerate(rows.joints):
        for i in _partners(robot.n, j):
            words = _stated(f"the sensor of '{robot.coordinates[j]}' also shows", f"% of '{robot.coordinates[i]}'")
            yield Group(CROSSTALK, (j,), words, model.only(k, made[k][:, i]), "%", 100.0, 0.5, _MOST_GAIN)


def _clock_rate(model: Model) -> Iterator[Group]:
    """Time stamps that are too long or too short by a factor: velocities and accelerations are wrong by its powers."""
    h = _CLOCK_STEP

    def columns(q: Array, v: Array, a: Array) -> Array:
        late, early = (
            inverse_dynamics(model.robot, q, v * (1.0 + s), a * (1.0 + s) ** 2, model.parameters) for s in (h, -h)
        )
        return (late - early) / (2.0 * h)

    made = model.everywhere(model.rows.sampled(columns))
    yield Group(CLOCK_RATE, (), _clocked, made, "%", 100.0, _LEAST_GAIN, _MOST_GAIN)


def _gravity(model: Model) -> Iterator[Group]:
    """Gravity of the a-priori model that the torques do not contain, or contain with the opposite sign."""

    def columns(q: Array, _v: Array, _a: Array) -> Array:
        return -inverse_dynamics(model.bodies, q, np.zeros_like(q), np.zeros_like(q))

    if not np.any(model.bodies.gravity):
        yield _gravity_of_the_log(model)
        return
    made = model.rows.sampled(columns)
    if not any(np.any(x) for x in made):
        return
    everywhere, prior = model.everywhere(made), "% of that of the a-priori model"

    def missing(size: str, value: float) -> str:
        if value > _EITHER:
            return f"the torques do not contain gravity, or oppose it: they differ by {size} {prior}"
        return f"the torques do not contain gravity: {size} {prior} is missing"

    yield Group(GRAVITY_COMPENSATED, (), missing, everywhere, "%", 100.0, *_MISSING)
    opposed = _stated("the torques oppose gravity: they differ by", prior)
    yield Group(GRAVITY_REVERSED, (), opposed, everywhere, "%", 100.0, *_REVERSED)


def _gravity_of_the_log(model: Model) -> Group:
    """Gravity of the a-priori bodies in any direction, for a model that has none."""
    pulled = [model.bodies.with_gravity(axis) for axis in np.eye(3)]

    def columns(q: Array, _v: Array, _a: Array) -> Array:
        return np.stack([inverse_dynamics(robot, q, 0 * q, 0 * q) for robot in pulled], axis=-1)

    words = _stated("the model has no gravity, and the torques contain about", "m/s2 of it")
    made = model.everywhere(model.rows.sampled(columns))
    return Group(GRAVITY_MISSING, (), words, made, "m/s2", 1.0, *_WEIGHT, core=3)


def drive_groups(model: Model) -> Iterator[Group]:
    """Friction, offset, spring, ripple and drift of each joint."""
    rows, robot = model.rows, model.robot
    turning = [joint.kind == "revolute" for joint in robot.joints if joint.name in robot.coordinates]
    for k, j in enumerate(rows.joints):
        orders = ripple_orders([x[:, j] for x in model.residual], [m.q[:, j] for m in rows.motions])
        made = [
            _columns(m.q[:, j], m.v[:, j], m.a[:, j], np.abs(load[:, j]), orders, turning[j])
            for m, load in zip(rows.motions, model.load, strict=True)
        ]
        thin = rows.decimated([np.column_stack([c for *_, c, _ in each]) for each in made])[k]
        at = 0
        for code, what, unit, column, option in made[0]:
            width, name = 1 if column.ndim == 1 else column.shape[1], robot.coordinates[j]
            words, columns = _sized(f"'{name}': {what}", unit), model.only(k, thin[:, at : at + width])
            yield Group(code, (j,), words, columns, unit, core=width, option=option.format(name))
            at += width
    yield from _load_friction(model)
    yield from _drift(model)


def stribeck_groups(model: Model) -> Iterator[Group]:
    """Friction that is larger near standstill, of each joint."""
    rows, robot = model.rows, model.robot
    fastest = np.maximum(np.max([np.abs(m.v).max(axis=0) for m in rows.motions], axis=0), _STANDSTILL)
    for share in _STRIBECK:
        near = rows.decimated([np.sign(m.v) * np.exp(-((m.v / (share * fastest)) ** 2)) for m in rows.motions])
        for k, j in enumerate(rows.joints):
            words = _sized(f"'{robot.coordinates[j]}': friction is larger near standstill (Stribeck)", "N m")
            yield Group(STRIBECK, (j,), words, model.only(k, near[k][:, j]), "N m")


def presliding_groups(model: Model) -> Iterator[Group]:
    """Friction that builds up over a distance after each reversal, of all joints, and of each alone."""
    rows = model.rows
    full = [np.abs(whole - viscous) for whole, viscous in zip(model.friction, model.viscous, strict=True)]
    turning = [joint.kind == "revolute" for joint in model.robot.joints if joint.name in model.robot.coordinates]
    for distance in PRESLIDING_DISTANCES:
        short = [friction_state(m.q, m.v, distance) - np.sign(m.v) for m in rows.motions]
        made = rows.decimated([x * size for x, size in zip(short, full, strict=True)])
        own = [c[:, j] if turning[j] else np.zeros(len(c)) for c, j in zip(made, rows.joints, strict=True)]
        yield Group(PRESLIDING, (), _builds_up(distance), model.everywhere(own), "times", most=_MOST_STEP)
        if len(own) > 1:
            for k, j in enumerate(rows.joints):
                words = _builds_up(distance, f" of '{model.robot.coordinates[j]}'")
                columns = model.only(k, own[k])
                yield Group(PRESLIDING, (j,), words, columns, "times", most=_MOST_STEP)


def _builds_up(distance: float, whose: str = "") -> Callable[[str, float], str]:
    what = f"friction{whose} builds up over about {1e3 * distance:.2g} mrad after each reversal (presliding)"
    return lambda size, value: f"{what}, which looks like a delay"


def _columns(
    q: Array, v: Array, a: Array, load: Array, orders: Sequence[float], turns: bool
) -> list[tuple[CauseCode, str, str, Array, str]]:
    """Effects in the drive of one joint: code, words, unit, columns (N,) or (N, c), and the option that adds it."""
    sign = np.sign(v)
    curve, quadratic = "friction is not linear in the velocity", "quadratic-friction={}"
    found = [
        (OFFSET, "the torque has an offset", "N m", np.ones(len(q)), ""),
        (FRICTION, "Coulomb friction is missing", "N m", sign, ""),
        (FRICTION, "viscous friction is missing", "N m s/rad", v, ""),
        (FRICTION, "viscous friction differs by direction", "N m s/rad", np.abs(v), ""),
        (FRICTION, curve, "N m s2/rad2", v * np.abs(v), quadratic),
        (LOAD_FRICTION, "friction grows with the load", "N m per N m", load * sign, "load-friction={}"),
        (ROTOR_INERTIA, "rotor inertia is missing", "kg m2", a, ""),
        (SPRING, "a spring acts", "N m/rad", q, "spring={}"),
        (
            GRAVITY,
            "a torque follows sin q and cos q (counterbalance)",
            "N m",
            np.column_stack([np.sin(q), np.cos(q)]),
            "counterbalance={}",
        ),
    ]
    found += [
        (
            HYSTERESIS,
            f"friction that builds up over {bend:g} rad after reversals is missing (cable or seal)",
            "N m",
            friction_state(q[:, None], v[:, None], bend)[:, 0],
            "",
        )
        for bend in (_BENDS if turns else ())
    ]
    return found + [_ripple(q, order) for order in orders]


def _ripple(q: Array, order: float) -> tuple[CauseCode, str, str, Array, str]:
    """A ripple of one joint."""
    what = f"the torque has a ripple of {order:.4g} periods per revolution (cogging)"
    return (
        RIPPLE,
        what,
        "N m",
        np.column_stack([np.sin(order * q), np.cos(order * q)]),
        f"ripple={{}}:{order:.5g}",
    )


def ripple_groups_near(model: Model, found: Group) -> Iterator[Group]:
    """The ripple of a group at orders around its own, whole ones among them."""
    rows, j = model.rows, found.joints[0]
    name, k = model.robot.coordinates[j], rows.joints.index(j)
    own = float(found.option.rpartition(":")[2])
    near = {own + x for x in np.arange(-_ORDERS, _ORDERS + 1) * _ORDER_STEP if x}
    for order in sorted(near | {float(x) for x in range(math.ceil(min(near)), math.floor(max(near)) + 1)}):
        code, what, unit, _, option = _ripple(np.zeros(1), order)
        both = rows.decimated([_ripple(m.q[:, j], order)[3] for m in rows.motions])[k]
        words = _sized(f"'{name}': {what}", unit)
        yield Group(code, (j,), words, model.only(k, both), unit, core=2, option=option.format(name))


def _load_friction(model: Model) -> Iterator[Group]:
    """Friction that grows with the torque of all joints alike."""
    rows = model.rows
    made = rows.decimated([np.abs(x) * np.sign(m.v) for x, m in zip(model.whole, rows.motions, strict=True)])
    own = [c[:, j] for c, j in zip(made, rows.joints, strict=True)]
    words = _percent("friction grows with the load of all joints,", "of it")
    yield Group(LOAD_FRICTION, (), words, model.everywhere(own), "%", 100.0, 1.0, option="load-friction")


def _drift(model: Model) -> Iterator[Group]:
    """Friction that changes during each run and between runs, of all joints alike and of each, and offsets that do."""
    rows, robot = model.rows, model.robot
    clock = [_clock(r, rows) for r in range(len(rows.motions))]
    for what, torque in (("friction", model.friction), ("viscous friction", model.viscous)):
        warm = rows.decimated([(x[:, :, None] * c[:, None, :]) for x, c in zip(torque, clock, strict=True)])
        own = [c[:, j] for c, j in zip(warm, rows.joints, strict=True)]
        if any(np.any(c) for c in own):
            words = _percent(f"{what} changes", "with time, as of a robot that warms up")
            width = own[0].shape[1]
            yield Group(DRIFT, (), words, model.everywhere(own), "%", 100.0, 5.0, core=width)
        for k, j in enumerate(rows.joints):
            if np.any(own[k]):
                words = _percent(f"{what} of '{robot.coordinates[j]}' changes", "with time")
                width = own[k].shape[1]
                yield Group(DRIFT, (j,), words, model.only(k, own[k]), "%", 100.0, 5.0, core=width)
    time = rows.decimated(clock)
    for k, j in enumerate(rows.joints):
        words = _sized(f"'{robot.coordinates[j]}': the torque drifts with time", "N m")
        yield Group(DRIFT, (j,), words, model.only(k, time[k]), "N m", core=time[k].shape[1])


def _clock(r: int, rows: CauseRows) -> Array:
    """Time within run r from -0.5 to 0.5, and one column for each further recording, which may be warmer."""
    n = len(rows.motions[r].t)
    later = max(rows.groups)
    marks = [np.full(n, float(rows.groups[r] == g)) for g in range(1, later + 1)]
    return np.column_stack([np.linspace(-0.5, 0.5, n), *marks])


def coupling_groups(model: Model) -> Iterator[Group]:
    """Torques from the motion of another joint."""
    rows, robot = model.rows, model.robot
    n = robot.n
    pairs = [(i, j) for i in range(n) for j in range(i)]
    full = []
    for m in rows.motions:
        s = np.sign(m.v)
        both = [np.sign(m.v[:, i] + f * m.v[:, j]) for i, j in pairs for f in (1, -1)]
        full.append(np.column_stack([m.v, s, m.a, *both]))
    thin = rows.decimated(full)
    for k, j in enumerate(rows.joints):
        name = robot.coordinates[j]
        for i in _partners(n, j):
            other = robot.coordinates[i]
            at = 3 * n + 2 * pairs.index((max(i, j), min(i, j)))
            pair = f"{name}:{other}"
            for column, what, unit, option in (
                (i, f"viscous friction from the velocity of '{other}' is missing", "N m s/rad", "coupled-friction="),
                (n + i, f"Coulomb friction from the velocity of '{other}' is missing", "N m", "coupled-friction="),
                (2 * n + i, f"inertia that turns with '{other}' is missing", "kg m2", "coupled-inertia="),
                (at, f"Coulomb friction of a shaft that turns with it and '{other}' is missing", "N m", ""),
                (at + 1, f"Coulomb friction of a shaft that turns against '{other}' is missing", "N m", ""),
            ):
                words, columns = _sized(f"'{name}': {what}", unit), model.only(k, thin[k][:, column])
                yield Group(COUPLING, (j,), words, columns, unit, option=option and option + pair)


def _partners(joints: int, joint: int) -> list[int]:
    """Joints that another one may be coupled with."""
    near = _NEIGHBOURS if joints > _MANY_JOINTS else joints
    return [i for i in range(joints) if i != joint and abs(i - joint) <= near]


def run_groups(model: Model) -> Iterator[Group]:
    """A payload that one of the runs carries, or that is picked up or put down in it."""
    robot, motions = model.robot, model.rows.motions
    parts = max(2, _CHANGES // len(motions))
    for link in robot.parameter_links:
        if not any(x.parent == link for x in robot.joints):
            starts = [(r, part * len(m.t) // parts) for r, m in enumerate(motions) for part in range(parts)]
            yield from _payloads(model, link, starts[1:])


def payload_groups_near(model: Model, group: Group) -> Iterator[Group]:
    """The same payload from other times on, between those that were tried."""
    motions, first = model.rows.motions, model.rows.first
    run = int(model.rows.run_of(np.array([group.start]))[0])
    step = len(motions[run].t) // max(2, _CHANGES // len(motions))
    start = group.start - int(first[run])
    if start:  # it does not come with the run
        near = start + (np.arange(-_FINER, _FINER + 1) * step) // _FINER
        link = next(i for i, x in enumerate(model.robot.links) if x.name == group.link)
        yield from _payloads(model, link, [(run, int(s)) for s in near if 0 < s < len(motions[run].t)])


def _payloads(model: Model, link: int, starts: Iterable[tuple[int, int]]) -> Iterator[Group]:
    """A payload on a link from a sample of a run on, until the end of it."""
    rows, robot = model.rows, model.robot
    name, names = robot.links[link].name, list(robot.parameter_names)
    at = [names.index(f"{s}_{name}") for s in ("m", "mx", "my", "mz")]
    K = np.column_stack([rows.base.values(row) for row in np.eye(len(names))[at]])
    torque = [W @ K for W in rows.W]
    for r, start in starts:
        motion, first = rows.motions[r], int(rows.first[r])
        here = [(i >= first + start) & (i < first + len(motion.t)) for i in rows.index]
        columns = model.everywhere([x * h[:, None] for x, h in zip(torque, here, strict=True)])
        words = _loaded(motion.name, name, float(motion.t[start]) if start else None)
        yield Group(PAYLOAD, (), words, columns, "kg", link=name, start=first + start)


def _scaled(name: str) -> Callable[[str, float], str]:
    def words(size: str, value: float) -> str:
        if value < -100.0:  # less than nothing
            return f"'{name}' is reversed beside the other joints: its axis, or position and torque, are negated"
        return f"the torque of '{name}' is {size} % too {'large' if value > 0 else 'small'} for the other joints"

    return words


def _one_sided(name: str, side: str) -> Callable[[str, float], str]:
    def words(size: str, value: float) -> str:
        return f"{side} torques of '{name}' are {size} % too {'large' if value > 0 else 'small'} beside the others"

    return words


def _bent(name: str) -> Callable[[str, float], str]:
    def words(size: str, value: float) -> str:
        what = f"{size} % too {'large' if value > 0 else 'small'}"
        return f"the torque of '{name}' is not proportional: its largest value is {what} beside small ones"

    return words


def _clocked(size: str, value: float) -> str:
    return f"the clock of the log is wrong: its time stamps are {size} % too {'long' if value > 0 else 'short'}"


def _loaded(run: str, link: str, since: float | None) -> Callable[[str, float], str]:
    def words(size: str, value: float) -> str:
        if since is not None:
            more = "more" if value > 0 else "less"
            return f"'{link}' carries {size} kg {more} from about t = {since:.3g} s of '{run}' on"
        return f"run '{run}' carries {size} kg {'more' if value > 0 else 'less'} on '{link}' than the others"

    return words


def _named(words: str) -> Callable[[str, float], str]:
    return lambda _size, _value: words


def _stated(before: str, after: str) -> Callable[[str, float], str]:
    return lambda size, _: f"{before} {size} {after}"


def _sized(words: str, unit: str) -> Callable[[str, float], str]:
    return lambda size, _: f"{words}, {size} {unit}"


def _percent(words: str, where: str) -> Callable[[str, float], str]:
    return lambda size, _: f"{words} by {size} % {where}"


SENSORS = CauseSource(
    name="sensors",
    codes=(
        *(TORQUE_GAIN, TORQUE_ASYMMETRIC, TORQUE_NONLINEAR, CROSSTALK, CLOCK_RATE),
        *(GRAVITY_COMPENSATED, GRAVITY_REVERSED, GRAVITY_MISSING, SATURATION),
    ),
    groups=sensor_groups,
)
DRIVES = CauseSource(
    name="drives",
    codes=(OFFSET, FRICTION, LOAD_FRICTION, ROTOR_INERTIA, SPRING, GRAVITY, HYSTERESIS, RIPPLE, DRIFT),
    groups=drive_groups,
    near={RIPPLE: ripple_groups_near},
)
RUNS = CauseSource(name="runs", codes=(PAYLOAD,), groups=run_groups, near={PAYLOAD: payload_groups_near})
COUPLINGS = CauseSource(name="couplings", codes=(COUPLING,), groups=coupling_groups)
NEAR_REVERSALS = CauseSource(name="near-reversals", codes=(PRESLIDING, STRIBECK))
