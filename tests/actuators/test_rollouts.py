"""Rollouts under the law of actuators: against other simulators, central differences, and laws written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from dynid import DataError, Robot, load_robot
from dynid.actuators.chains import independent_chains
from dynid.actuators.rollouts import Commands, Directions, Rollout, Segments, rollout
from dynid.export.mjcf import write_mjcf
from dynid.robot.actuator_law import PER_JOINT, ActuatorLaw
from dynid.simulation.replay import Ending
from tests.support.legs import legs, pd_law, sines, sloped
from tests.support.random_robots import random_robot

Array = NDArray[np.float64]
RATE = 200.0


def whole(robot: Robot, commands: Commands, q: Array | None = None, v: Array | None = None) -> Segments:
    """One segment over the whole log, from the first command at rest by default."""
    start = np.zeros(robot.n) if commands.position is None else commands.position[0]
    q, v = start if q is None else q, np.zeros(robot.n) if v is None else v
    return Segments(np.array([0]), commands.shape[0] - 1, q[None], v[None])


def by_runge_kutta(
    robot: Robot,
    commands: Commands,
    law: ActuatorLaw,
    friction: Callable[[Array], Array],
    parts: int = 20,
    late: int = 0,
    late_torque: int = 0,
) -> Array:
    """Positions at the rows by Pinocchio's aba and Runge-Kutta steps, with the law written out by hand at 1 kHz.

    `late` are whole ticks by which the command, `late_torque` those by which the torque comes late.
    """
    model = robot.to_pinocchio()
    data = model.createData()
    assert commands.position is not None
    q, v, h = commands.position[0].copy(), np.zeros(robot.n), 1e-3 / parts
    out, sent = [q], []
    for tick in range(5 * (len(commands.position) - 1)):
        c = commands.position[max(0, tick - late) // 5]
        u = np.clip(law.kp * (c - q - law.bias) - law.kd * v, -law.torque_limit, law.torque_limit)
        sent.append(u)
        u = sent[max(0, tick - late_torque)]

        def f(q: Array, v: Array, u: Array = u) -> Array:
            tau = np.clip(
                u - law.back_emf * v,
                -law.stall_torque * (1 + v / law.no_load_velocity),
                law.stall_torque * (1 - v / law.no_load_velocity),
            )
            return np.array(pin.aba(model, data, q, v, tau - friction(v)))

        for _ in range(parts):
            a1 = f(q, v)
            a2 = f(q + 0.5 * h * v, v + 0.5 * h * a1)
            a3 = f(q + 0.5 * h * v + 0.25 * h * h * a1, v + 0.5 * h * a2)
            a4 = f(q + h * v + 0.5 * h * h * a2, v + h * a3)
            q, v = q + h * v + h * h / 6 * (a1 + a2 + a3), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        if tick % 5 == 4:
            out.append(q)
    return np.array(out)


def errors(robot: Robot, law: ActuatorLaw, commands: Commands, truth: Array, steps: list[float]) -> Array:
    """Largest errors of the positions with these integration steps."""
    found = [rollout(robot, law, commands, whole(robot, commands), step=h) for h in steps]
    assert all(x.endings == (Ending.COMPLETED,) for x in found)
    return np.array([np.abs(x.q[0] - truth).max() for x in found])


def test_smooth_motion_converges_to_pinocchios_with_the_square_of_the_step() -> None:
    robot = legs(Ia=0.01, fv=0.05)
    commands = sines(robot, 60)
    law = pd_law(robot, back_emf=0.05, bias=0.02)
    truth = by_runge_kutta(robot, commands, law, lambda v: 0.05 * v)
    found = errors(robot, law, commands, truth, [1e-3, 5e-4, 2.5e-4])
    assert found[0] < 4e-6
    assert np.all(np.abs(found[:-1] / found[1:] - 4) < 0.4)


def test_dry_friction_converges_to_pinocchios() -> None:
    """With the friction at the end of a step, errors fall with the step itself."""
    robot = sloped(legs(Ia=0.01, fv=0.03, fc=0.25, fs=0.15), 30.0)
    commands = sines(robot, 60)
    law = pd_law(robot, torque_limit=[0.7, 4.0, 4.0], stall_torque=1.5, no_load_velocity=20.0)

    def friction(v: Array) -> Array:
        return 0.03 * v + (0.25 + 0.15 * np.exp(-((v / 0.3) ** 2))) * np.tanh(30 * v)

    truth = by_runge_kutta(robot, commands, law, friction)
    for limit in ("torque_limit", "stall_torque"):
        without = law.changed(**{limit: np.inf})
        assert np.abs(rollout(robot, without, commands, whole(robot, commands)).q[0] - truth).max() > 0.02
    found = errors(robot, law, commands, truth, [1e-3, 5e-4, 2.5e-4])
    assert found[0] < 1e-3
    assert np.all((found[:-1] / found[1:] > 1.7) & (found[:-1] / found[1:] < 4.5))


def test_frictionloss_of_mujoco(tmp_path: Path) -> None:
    """MuJoCo's dry friction is a soft constraint and ours a steep tanh: positions agree to 1 % of the motion."""
    import mujoco

    robot = legs(Ia=0.01, fv=0.05, fc=0.3)
    commands, law = sines(robot, 200), pd_law(robot)
    assert commands.position is not None
    path = tmp_path / "leg.xml"
    write_mjcf(robot, path)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.timestep, spec.option.integrator = 1e-4, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    data = mujoco.MjData(model)
    order = [model.joint(name).dofadr[0] for name in robot.coordinates]
    assert np.allclose(model.dof_frictionloss[order], 0.3) and np.allclose(model.dof_armature[order], 0.01)
    data.qpos[order] = commands.position[0]
    theirs = [data.qpos[order].copy()]
    for tick in range(5 * (len(commands.position) - 1)):
        c = commands.position[tick // 5]
        data.qfrc_applied[order] = law.kp * (c - data.qpos[order]) - law.kd * data.qvel[order]
        for _ in range(10):
            mujoco.mj_step(model, data)
        if tick % 5 == 4:
            theirs.append(data.qpos[order].copy())
    ours = rollout(robot, law, commands, whole(robot, commands)).q[0]
    assert np.abs(ours - theirs).max() < 0.01 * np.ptp(theirs, axis=0).max()


# -- derivatives ------------------------------------------------------------------------------------


def directions(robot: Robot, fields: tuple[str, ...] = PER_JOINT) -> Directions:
    """Every standard parameter, then every field of the law of every joint."""
    p, n = robot.parameters.size, robot.n
    count = p + n * len(fields)
    changes = {}
    for i, field in enumerate(fields):
        changes[field] = np.zeros((count, n))
        changes[field][p + n * i : p + n * (i + 1)] = np.eye(n)
    return Directions(np.eye(count)[:, :p], changes)


def largest_miss(robot: Robot, law: ActuatorLaw, commands: Commands, start: Segments, h: float = 1e-6) -> float:
    """Largest error of a column of the derivatives, relative to its largest entry, against central differences.

    Columns below a thousandth of a typical one are compared on that scale: differences of rounded positions cannot
    resolve them.
    """
    inside = tuple(f for f in PER_JOINT if np.all((getattr(law, f) > h) & np.isfinite(getattr(law, f))))
    along = directions(robot, inside)
    found = rollout(robot, law, commands, start, directions=along)
    assert found.dq is not None and found.endings == (Ending.COMPLETED,) * len(start.first)
    plain = rollout(robot, law, commands, start)
    assert np.abs(plain.q - found.q).max() < 1e-10 and plain.dq is None

    def at(column: int, x: float) -> Array:
        c, n = len(along.parameters), robot.n
        state = np.zeros(2 * n)
        now, pi = law, robot.parameters
        if column < c:
            pi = pi + x * along.parameters[column]
            now = law.changed(**{f: getattr(law, f) + x * y[column] for f, y in along.law.items() if y[column].any()})
        else:
            state[column - c] = x
        moved = replace(start, q=start.q + state[:n], v=start.v + state[n:])
        return rollout(robot, now, commands, moved, parameters=pi).q

    columns = np.abs(found.dq).reshape(-1, found.dq.shape[-1]).max(axis=0)
    for i in range(len(inside)):
        first = robot.parameters.size + i * robot.n
        assert columns[first : first + robot.n].max() > 0, f"{inside[i]} has no effect"
    least = 1e-3 * np.median(columns[columns > 1e-9])
    worst = 0.0
    for column, scale in enumerate(columns):
        by_difference = (at(column, h) - at(column, -h)) / (2 * h)
        worst = max(worst, float(np.abs(by_difference - found.dq[..., column]).max() / max(scale, least)))
    return worst


def working_law(robot: Robot, **fields: object) -> ActuatorLaw:
    """A law with every field at work."""
    given = {"gain": 0.9, "delay": 0.00337, "back_emf": 0.08, "backlash": 0.01, "load_friction": 0.15, "bias": 0.03}
    limits = {"torque_limit": [1.0, 3.0, 3.0], "stall_torque": 2.6, "no_load_velocity": 9.0}
    return pd_law(robot, **(given | limits | fields))


def moving_commands(robot: Robot, rows: int) -> Commands:
    """Positions, velocities and torques that are commanded."""
    c = sines(robot, rows, size=0.5)
    assert c.position is not None
    return Commands(c.rate, c.position, np.gradient(c.position, axis=0) * c.rate, 0.3 * np.cos(9 * c.position))


@pytest.mark.parametrize("delayed", ["command", "torque"])
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("rate", [1000.0, None])
def test_derivatives_of_every_kind(delayed: str, hold: str, rate: float | None) -> None:
    """Bodies, drive terms, fields of the law and initial state, from two starts."""
    robot = sloped(legs(Ia=0.01, fv=0.03, fc=0.2, fs=0.1), 15.0)
    commands = moving_commands(robot, 22)
    law = working_law(robot, delayed=delayed, hold=hold, rate=rate)
    rng = np.random.default_rng(0)
    start = Segments(np.array([0, 6]), 15, rng.uniform(-0.5, 0.5, (2, 3)), rng.uniform(-2, 2, (2, 3)))
    assert largest_miss(robot, law, commands, start) < 1e-5


@pytest.mark.parametrize("seed", range(2))
def test_derivatives_with_all_drives(seed: int) -> None:
    """Every kind of drive term on joints and motors of a transmission, cross-only ones too; prismatic joints."""
    robot = sloped(random_robot(seed, 3, drives=True), 5.0)
    commands = moving_commands(robot, 25)
    law = pd_law(robot, kp=40.0, kd=8.0, delay=0.0021)
    assert largest_miss(robot, law, commands, whole(robot, commands), h=2e-5) < 1e-5


def test_derivatives_with_steep_friction_and_parts_of_a_tick() -> None:
    """A joint that turns back within the log, with friction complete at a hundredth of its speed."""
    robot = sloped(legs(Ia=0.01, fv=0.02, fc=0.4), 300.0)
    commands = sines(robot, 25)
    law = pd_law(robot, delay=0.0042)
    assert largest_miss(robot, law, commands, whole(robot, commands), h=1e-7) < 1e-5


@pytest.mark.parametrize("timestep", [None, 1e-3])
@pytest.mark.parametrize("width", [0.0, 0.3])
def test_derivatives_with_soft_friction(timestep: float | None, width: float) -> None:
    """Friction with a lead, without and with a width, in midpoint steps and in those of a simulator."""
    robot = sloped(legs(Ia=0.01, fv=0.03, fc=0.2, fs=0.1), 15.0)
    commands = moving_commands(robot, 22)
    law = pd_law(robot, delay=0.0021, friction_lead=0.004, friction_width=width, timestep=timestep)
    assert largest_miss(robot, law, commands, whole(robot, commands)) < 1e-5


@pytest.mark.parametrize("step", [1e-3, 5e-3])
def test_the_steps_and_the_soft_friction_of_mujoco(step: float, tmp_path: Path) -> None:
    """One joint with the default softness: lead dmax timeconst / 2 less the step, width by the regularizer R."""
    mujoco = pytest.importorskip("mujoco")
    text = (
        '<mujoco><worldbody><body><joint name="j" axis="0 1 0" armature="0.03" damping="0.3" frictionloss="0.4"/>'
        '<inertial pos="0 0 -0.1" mass="1" diaginertia="0.004 0.004 0.001"/></body></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep, model.opt.tolerance, model.opt.iterations = step, 1e-14, 200
    data, t = mujoco.MjData(model), np.arange(2000) * step
    command, q = 0.4 * np.sin(2 * np.pi * 0.5 * t)[:, None], np.zeros((len(t), 1))
    for k in range(len(t)):
        q[k] = data.qpos
        data.qfrc_applied[:] = 40.0 * (command[k] - data.qpos) - 1.0 * data.qvel
        mujoco.mj_step(model, data)
    lead, width = 0.95 * 0.02 / 2, 0.4 * model.dof_invweight0[0] * (0.1 / 0.9) * 0.95 * 0.02 / 2
    (tmp_path / "joint.xml").write_text(text)
    robot = load_robot(tmp_path / "joint.xml", friction="viscous+coulomb", rotor_inertia=True)
    law = ActuatorLaw(robot.coordinates, kp=40.0, kd=1.0, rate=1 / step, timestep=step)

    def miss(law: ActuatorLaw) -> float:
        start = Segments(np.array([0]), len(t) - 1, q[:1], np.zeros((1, 1)))
        return float(np.abs(rollout(sloped(robot, 1e5), law, Commands(1 / step, command), start).q[0] - q).max())

    # Friction sees the acceleration before damping is made implicit, 5 % more of it with the longer step.
    assert miss(law.changed(friction_lead=lead - step, friction_width=width)) < (1e-5 if step == 1e-3 else 3e-5)
    assert miss(law) > 2e-4


def test_derivatives_with_negative_friction() -> None:
    """Negative dry friction acts with the velocity at the start of a step; an estimator may pass through it."""
    robot = sloped(legs(Ia=0.01, fv=0.05, fc=-0.05, fs=-0.02), 15.0)
    commands = moving_commands(robot, 20)
    assert largest_miss(robot, pd_law(robot, delay=0.0021), commands, whole(robot, commands)) < 1e-5


# -- delay, segments, chains ------------------------------------------------------------------------


def test_whole_ticks_of_delay_are_a_shift_of_the_command() -> None:
    """Also where a segment starts in the middle of the log, whose earlier commands are known."""
    robot = legs(Ia=0.01, fv=0.05)
    commands = sines(robot, 60, rate=1000.0)
    assert commands.position is not None
    shifted = np.concatenate([np.repeat(commands.position[:1], 7, axis=0), commands.position[:-7]])
    start = Segments(np.array([0, 20]), 39, np.zeros((2, 3)), np.zeros((2, 3)))
    late = rollout(robot, pd_law(robot, delay=0.007), commands, start)
    by_hand = rollout(robot, pd_law(robot), Commands(1000.0, shifted), start)
    assert np.abs(late.q - by_hand.q).max() < 1e-12
    undelayed = rollout(robot, pd_law(robot), commands, start)
    assert np.abs(late.q - undelayed.q).max() > 1e-4


@pytest.mark.parametrize("delay", [0.0035, 0.0041])
def test_parts_of_a_tick_interpolate_the_command(delay: float) -> None:
    robot = legs(Ia=0.01, fv=0.05)
    commands = sines(robot, 40, rate=1000.0)
    assert commands.position is not None
    k = np.arange(40)
    shifted = np.stack([np.interp(k - 1000 * delay, k, x) for x in commands.position.T], axis=1)
    late = rollout(robot, pd_law(robot, delay=delay), commands, whole(robot, commands))
    by_hand = rollout(robot, pd_law(robot), Commands(1000.0, shifted), whole(robot, commands))
    assert np.abs(late.q - by_hand.q).max() < 1e-12


@pytest.mark.parametrize("late", ["command", "torque"])
def test_delay_against_a_law_written_by_hand(late: str) -> None:
    robot = legs(Ia=0.01, fv=0.05)
    commands = sines(robot, 60)
    law = pd_law(robot, delay=0.006, delayed=late)
    ticks = {"late" if late == "command" else "late_torque": 6}
    truth = by_runge_kutta(robot, commands, law, lambda v: 0.05 * v, parts=4, **ticks)
    found = errors(robot, law, commands, truth, [1e-3, 2.5e-4])
    assert found[1] < 2e-5 and found[0] / found[1] > 12


@pytest.mark.parametrize("rate", [1000.0, None])
def test_segments_in_the_middle_go_on_as_the_whole(rate: float | None) -> None:
    robot = legs(Ia=0.01, fv=0.05, fc=0.2)
    commands = sines(robot, 80)
    law = pd_law(robot, delay=0.0123, rate=rate)
    once = rollout(robot, law, commands, whole(robot, commands))
    first = np.array([17, 40, 70])
    parts = rollout(robot, law, commands, Segments(first, 20, once.q[0, first], once.v[0, first]))
    for k, row in enumerate(first):
        left = min(21, 80 - row)
        assert np.abs(parts.q[k, :left] - once.q[0, row : row + left]).max() < 1e-9
        assert np.isnan(parts.q[k, left:]).all()
        assert np.abs(parts.torque[k, :left] - once.torque[0, row : row + left]).max() < 1e-6


def test_a_continuous_law_is_the_limit_of_a_fast_one() -> None:
    """The gap falls with the period of the law."""
    robot = legs(Ia=0.01, fv=0.05)
    commands = sines(robot, 40)
    start = whole(robot, commands)
    continuous = rollout(robot, pd_law(robot, rate=None), commands, start, step=1e-4)
    slow, fast = (rollout(robot, pd_law(robot, rate=x), commands, start) for x in (5000.0, 20000.0))
    for x in ("q", "torque"):
        gaps = [np.abs(getattr(y, x) - getattr(continuous, x))[:, 1:].max() for y in (slow, fast)]
        assert 3.5 < gaps[0] / gaps[1] < 4.5


def test_open_loop_under_recorded_torques() -> None:
    """Torques alone, without gains, give the motion whose inverse dynamics they are."""
    import dynid

    robot = legs(Ia=0.01, fv=0.05)
    t = np.arange(301)[:, None] / 1000
    w = np.array([5.0, 7.0, 9.0])
    q, v, a = 0.3 * np.sin(w * t), 0.3 * w * np.cos(w * t), -0.3 * w**2 * np.sin(w * t)
    commands = Commands(1000.0, torque=dynid.inverse_dynamics(robot, q, v, a))
    law = ActuatorLaw(robot.coordinates, hold="linear")
    found = rollout(robot, law, commands, whole(robot, commands, q[0], v[0]))
    assert np.abs(found.q[0] - q).max() < 2e-5
    assert np.abs(found.torque[0] - commands.torque).max() < 1e-9


def four(**drive: float) -> tuple[Robot, Commands, Segments, Directions]:
    robot = legs(4, "fixed", **drive)
    commands = sines(robot, 20)
    return robot, commands, whole(robot, commands), directions(robot, ("kp", "delay"))


def test_legs_are_independent_chains() -> None:
    """Each leg moves as it does alone, and its columns touch its joints only."""
    robot, commands, start, along = four(Ia=0.01, fv=0.05, fc=0.2)
    found = rollout(robot, pd_law(robot, delay=0.003), commands, start, directions=along)
    chains = independent_chains(robot)
    assert [list(c.joints) for c in chains] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    touched = np.abs(found.dq).max(axis=(0, 1)) > 0  # type: ignore[arg-type]
    for c in chains:
        names = np.array(robot.parameter_names)[c.parameters]
        assert tuple(names) == c.robot.parameter_names
        other = np.setdiff1d(np.arange(robot.parameters.size), c.parameters)
        assert touched[np.ix_(c.joints, c.parameters)].any() and not touched[np.ix_(c.joints, other)].any()


def test_a_common_shaft_joins_chains() -> None:
    """The merged robot moves as its chains where the common term is zero, to rounding."""
    robot, commands, start, _ = four(Ia=0.01, fv=0.05)
    shaft = replace(robot.joint_term(0, "fv"), shaft="belt", direction=np.eye(12)[0] - np.eye(12)[3])
    joined = robot.with_terms(shaft)
    assert [len(c.joints) for c in independent_chains(joined)] == [6, 3, 3]
    law = pd_law(robot)
    one, two = (rollout(x, law, commands, start) for x in (robot, joined))
    assert np.abs(one.q - two.q).max() < 1e-12
    pulling = joined.parameters + 0.5 * (np.array(joined.parameter_names) == "fv_belt")
    assert np.abs(rollout(joined, law, commands, start, parameters=pulling).q - one.q).max() > 1e-4


def test_a_floating_base_is_bolted() -> None:
    fixed, floating = legs(1, Ia=0.01), legs(1, "floating", Ia=0.01)
    commands = sines(fixed, 20)
    one, two = (rollout(x, pd_law(fixed), commands, whole(fixed, commands)) for x in (fixed, floating))
    assert np.array_equal(one.q, two.q)
    assert floating.parameters.size == fixed.parameters.size + 10
    along = Directions(np.eye(floating.parameters.size), {})
    dq = rollout(floating, pd_law(fixed), commands, whole(fixed, commands), directions=along).dq
    assert dq is not None and np.all(dq[..., :10] == 0) and np.abs(dq[..., 10:20]).max() > 0


def test_steep_friction_holds_still() -> None:
    """A joint that friction holds creeps by the slope of the tanh, and never rings."""
    robot = sloped(legs(Ia=0.01, fc=2.0), 1e5)
    commands = Commands(RATE, np.zeros((100, 3)))
    law = pd_law(robot, kp=0.0, kd=0.0)
    found = rollout(
        robot, law, commands, whole(robot, commands, np.array([0.1, -0.2, 0.4]), np.array([0.5, -0.3, 0.2]))
    )
    assert found.endings == (Ending.COMPLETED,)
    assert np.abs(found.v[0, 20:]).max() < 2e-5


# -- endings and errors -----------------------------------------------------------------------------


def test_endings() -> None:
    """A law that is unstable diverges; a mass matrix that is not positive is named. Rows after the end are NaN."""
    robot = legs(2, Ia=0.01)
    commands = sines(robot, 60)
    law = pd_law(robot, kp=[25, 25, 4e5, 25, 25, 25], kd=0.0)
    found = rollout(robot, law, commands, whole(robot, commands), directions=directions(robot, ("kp",)))
    assert found.endings == (Ending.DIVERGED,)
    assert np.isnan(found.q[0, -1, :3]).all() and np.isfinite(found.q[0, -1, 3:]).all()
    assert np.isnan(found.dq[0, -1, :3]).all() and np.isfinite(found.dq[0, -1, 3:]).all()  # type: ignore[index]
    negative = np.where(np.array(robot.parameter_names) == "Ia_knee0", -1.0, robot.parameters)
    found = rollout(robot, pd_law(robot), commands, whole(robot, commands), parameters=negative)
    assert found.endings == (Ending.NOT_POSITIVE,)


def refused(words: str, call: Callable[[], Rollout]) -> None:
    with pytest.raises(DataError, match=words):
        call()


def test_refused() -> None:
    import dynid

    robot = legs()
    commands, law = sines(robot, 20), pd_law(robot)
    start = whole(robot, commands)

    def go(**given: object) -> Callable[[], Rollout]:
        all_of_it = {"robot": robot, "law": law, "commands": commands, "segments": start} | given
        return lambda: rollout(**all_of_it)  # type: ignore[arg-type]

    refused("330 Hz, which is not a whole multiple of the 200 Hz", go(law=law.changed(rate=330.0)))
    refused("100 Hz, which is not a whole multiple", go(law=law.changed(rate=100.0)))
    refused("no joint 'hip0'", go(law=ActuatorLaw(("a", "b", "c"))))
    refused("commands have 2 joints", go(commands=Commands(RATE, np.zeros((9, 2)))))
    refused("commands need positions, velocities or torques", go(commands=Commands(RATE)))
    refused("one shape", go(commands=Commands(RATE, np.zeros((9, 3)), np.zeros((8, 3)))))
    refused(
        "not finite, first in row 3",
        go(commands=Commands(RATE, np.where(np.arange(9)[:, None] < 3, 0.0, np.nan) + np.zeros((9, 3)))),
    )
    refused("starts within the 20 rows", go(segments=Segments(np.array([20]), 5, start.q, start.v)))
    refused("at least one row", go(segments=Segments(np.array([0]), 0, start.q, start.v)))
    refused("states \\(S, 3\\)", go(segments=Segments(np.array([0]), 5, start.q[:, :2], start.v)))
    refused(
        "segment 0 starts from a state that is not finite",
        go(segments=Segments(np.array([0]), 5, start.q * np.nan, start.v)),
    )
    refused("positive numbers", go(step=0.0))
    refused("longer than 10 s", lambda: law.changed(delay=11.0))
    refused("30 columns of parameters", go(directions=Directions(np.zeros((1, 4)), {})))
    refused("no field 'rate'", go(directions=Directions(np.zeros((1, 30)), {"rate": np.zeros((1, 3))})))
    refused("changes of kp need the shape", go(directions=Directions(np.zeros((1, 30)), {"kp": np.zeros((2, 3))})))
    custom = robot.with_terms(robot.custom_term("wave", 0, lambda q, v, a: np.sin(q)))
    refused("'wave_hip0' is a custom one", go(robot=custom))
    linkage = dynid.load_robot("fourbar")
    refused("closed loops", go(robot=linkage, law=ActuatorLaw(linkage.coordinates)))
