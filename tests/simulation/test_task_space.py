"""Control of a frame: linear error dynamics along its axes, impedance, and what redundancy leaves over."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dynid
from dynid import controllers
from dynid.dynamics.frames import frame_drift
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from tests.support.closed_loops import TX40, Array, refused, still, wheel

EXACT = Sensors(velocity="exact")
RATE, SECONDS = 2000.0, 0.5
BODIES = dynid.load_robot("iiwa14").without("f*")
IIWA = BODIES.with_terms(*(BODIES.joint_term(i, "Ia", 0.3) for i in range(7)))
BARE = TX40.without("f*", "off*")
HOME = np.array([0.2, 0.6, -0.1, -1.2, 0.1, 0.9, 0.0])
POSE = np.array([0.3, 0.4, 1.0, 0.5, 0.7, -0.2])
TIP, WRIST = IIWA.links[-1].name, TX40.links[-1].name


def circle(centre: Array, radius: float, velocity: float, first: Array):  # type: ignore[no-untyped-def]
    """A circle in the plane y = const that starts at `centre`, moved by `first`."""

    def target(t: float) -> tuple[Array, Array, Array]:
        c, s = np.cos(velocity * t), np.sin(velocity * t)
        x = centre + first + radius * np.array([1 - c, 0, s])
        return x, radius * velocity * np.array([s, 0, c]), radius * velocity**2 * np.array([c, 0, -s])

    return target


def run(robot: dynid.Robot, law: controllers.CallableController, at: Array, **more: object) -> Simulation:
    path = still(robot.n, RATE, SECONDS)
    done = simulate(robot, ClosedLoop(controller=law, sensors=EXACT), path, initial=(at, np.zeros(robot.n)), **more)  # type: ignore[arg-type]
    assert done.completed
    return done


def decaying(t: Array, first: Array, velocity: Array, gain: float) -> Array:
    """Critically damped error from its first value and rate."""
    w = np.sqrt(gain)
    return np.exp(-w * t)[:, None] * (first + (velocity + w * first) * t[:, None])


@pytest.mark.parametrize("robot", [IIWA, TX40], ids=lambda r: r.name)
def test_drift_is_the_rate_of_the_jacobian(robot: dynid.Robot) -> None:
    """J' v by central differences of J along the motion, for the tip and for a link halfway."""
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, (2, 20, robot.n))
    for frame in (robot.links[-1].name, robot.links[3].name):
        ahead, behind = (dynid.dynamics.frame_jacobian(robot, q + h * v, frame) for h in (1e-5, -1e-5))
        expected = np.einsum("kij,kj->ki", (ahead - behind) / 2e-5, v)
        np.testing.assert_allclose(frame_drift(robot, q, v, frame), expected, atol=1e-8)
    np.testing.assert_array_equal(frame_drift(robot, q[0], v[0], frame), frame_drift(robot, q, v, frame)[0])
    refused(lambda: frame_drift(robot.with_base("floating"), q, v, frame), "floating")


def test_a_frame_runs_round_a_circle_with_the_error_of_a_double_integrator_under_pd() -> None:
    """From 4 cm beside it and at rest: critically damped in every axis, joint space never asked."""
    start = dynid.dynamics.frame_placement(IIWA, HOME, TIP)[:3, 3]
    first = np.array([0.04, -0.03, 0.02])
    target = circle(start, -0.08, 6.0, first)
    law = controllers.task_space(RATE, IIWA, TIP, 900.0, 60.0, target=target, null_damping=5.0)
    done = run(IIWA, law, HOME)
    x = dynid.dynamics.frame_placement(IIWA, done.q, TIP)[:, :3, 3]
    wanted = np.array([target(t)[0] for t in done.t])
    error = decaying(done.t, -first, -np.array(target(0.0)[1]), 900.0)
    # Held torques are late by half a period of 0.5 ms.
    np.testing.assert_allclose(x - wanted, error, atol=1e-3)
    assert np.abs(x - wanted)[-1].max() < 3e-4 and np.ptp(x, axis=0).max() > 0.1


def test_the_null_space_moves_without_the_task() -> None:
    """The elbow is drawn half a radian away while the tip stays; without stiffness it does not move."""
    start = dynid.dynamics.frame_placement(IIWA, HOME, TIP)[:3, 3]

    def hold(_: float) -> tuple[Array, Array, Array]:
        return start, np.zeros(3), np.zeros(3)

    posture = HOME + np.array([0.8, 0, 0.8, 0, 0, 0, 0])
    moving, resting = (
        run(
            IIWA,
            controllers.task_space(
                RATE, IIWA, TIP, 900.0, 60.0, target=hold, posture=posture, null_stiffness=k, null_damping=20.0
            ),
            HOME,
        )
        for k in (200.0, 0.0)
    )
    assert np.abs(resting.q - HOME).max() < 1e-6
    assert np.abs(moving.q[-1] - HOME).max() > 0.3
    x = dynid.dynamics.frame_placement(IIWA, moving.q, TIP)[:, :3, 3]
    assert np.abs(x - start).max() < 2e-4
    # The same pull without the projection tears the tip away.
    M = dynid.mass_matrix(IIWA, HOME)
    J = dynid.dynamics.frame_jacobian(IIWA, HOME, TIP)[:3]
    pull = 200.0 * (posture - HOME)
    torque = moving.torque[0] - dynid.inverse_dynamics(IIWA, HOME, 0 * HOME, 0 * HOME)
    assert np.abs(J @ np.linalg.solve(M, torque)).max() < 1e-9 < 1.0 < np.abs(J @ pull).max()


def test_a_pose_follows_position_and_orientation() -> None:
    """Six axes of the TX40: errors of both decay as critically damped ones; a turn about one axis stays about it."""
    start = dynid.dynamics.frame_placement(TX40, POSE, WRIST)
    turn = np.array([0.0, 0.2, 0.0])
    goal = start.copy()
    goal[:3, 3] += [0.03, 0.0, -0.02]
    goal[:3, :3] = Rotation.from_rotvec(turn).as_matrix() @ start[:3, :3]
    law = controllers.task_space(
        RATE, BARE, WRIST, 900.0, 60.0, axes="pose", target=lambda _: (goal, np.zeros(6), np.zeros(6))
    )
    done = run(BARE, law, POSE)
    now = dynid.dynamics.frame_placement(TX40, done.q, WRIST)
    left = Rotation.from_matrix(goal[:3, :3] @ now[:, :3, :3].transpose(0, 2, 1)).as_rotvec()
    shape = decaying(done.t, np.ones(1), np.zeros(1), 900.0)
    # Held torques are late by half a period of 0.5 ms: 1 % of the distance.
    np.testing.assert_allclose(left, turn * shape, atol=2e-3)
    np.testing.assert_allclose(goal[:3, 3] - now[:, :3, 3], np.array([0.03, 0, -0.02]) * shape, atol=3e-4)
    assert np.abs(left[-1]).max() < 1e-4


@pytest.mark.slow
def test_without_a_target_the_joints_reference_is_followed() -> None:
    """With the right model a non-redundant arm tracks a joint motion through its pose alone."""
    q = POSE + 0.3 * (1 - np.cos(2 * np.pi * np.arange(1000) / RATE))[:, None] * [1, -1, 1, 1, -1, 1]
    law = controllers.task_space(RATE, TX40, WRIST, 900.0, 60.0, axes="pose", slope=5.0)
    done = simulate(TX40, ClosedLoop(controller=law, sensors=EXACT, coulomb_slope=5.0), q)
    assert done.completed and np.abs(done.q - q).max() < 5e-3 and np.ptp(q, axis=0).max() > 0.5
    # Friction that is not compensated is felt.
    plain = controllers.task_space(RATE, TX40, WRIST, 900.0, 60.0, axes="pose")
    assert np.abs(simulate(TX40, ClosedLoop(controller=plain, sensors=EXACT, coulomb_slope=5.0), q).q - q).max() > 2e-2


def test_friction_may_stay() -> None:
    """Without compensation the torque at a state is that of the rigid bodies and constant wishes alone."""
    start = dynid.dynamics.frame_placement(TX40, POSE, WRIST)[:3, 3]
    velocity = np.full(6, 0.5)
    laws = [
        controllers.task_space(
            RATE, TX40, WRIST, 0.0, 0.0, target=lambda _: (start, np.zeros(3), np.zeros(3)), slope=slope
        )
        for slope in (None, 50.0)
    ]
    without, with_ = (np.asarray(law.function(0.0, POSE, velocity, velocity, POSE, velocity)) for law in laws)
    bare, smooth = TX40.without("f*", "off*", "Ia*"), TX40.with_smooth_coulomb(50.0)
    zero = np.zeros(6)
    friction = dynid.inverse_dynamics(smooth, POSE, velocity, zero) - dynid.inverse_dynamics(bare, POSE, velocity, zero)
    np.testing.assert_allclose(with_ - without, friction, atol=1e-9)


@pytest.mark.slow
def test_impedance_gives_way_as_a_spring_in_space() -> None:
    """At rest under constant joint torques: J' K e is what pushes."""
    start = dynid.dynamics.frame_placement(TX40, POSE, WRIST)
    stiffness = np.array([2000.0, 1500, 1000, 100, 80, 60])
    law = controllers.task_impedance(
        RATE, BARE, WRIST, stiffness, [400, 400, 400, 20, 20, 20], axes="pose",
        target=lambda _: (start, np.zeros(6), np.zeros(6)),
    )  # fmt: skip
    push = np.array([4.0, -3.0, 2.0, 1.0, -1.0, 0.5])
    path = still(6, RATE, 2.0)
    done = simulate(
        BARE,
        ClosedLoop(controller=law, sensors=EXACT),
        path,
        initial=(POSE, np.zeros(6)),
        disturbance=np.broadcast_to(push, path.q.shape).copy(),
    )
    assert done.completed and np.abs(done.v[-1]).max() < 1e-3
    now = dynid.dynamics.frame_placement(TX40, done.q[-1], WRIST)
    turn = Rotation.from_matrix(now[:3, :3] @ start[:3, :3].T).as_rotvec()
    e = np.concatenate([now[:3, 3] - start[:3, 3], turn])
    J = dynid.dynamics.frame_jacobian(TX40, done.q[-1], WRIST)
    assert np.abs(e).max() > 1e-3
    np.testing.assert_allclose(J.T @ (stiffness * e), push, atol=0.02)


def test_impedance_swings_with_the_inertia_of_the_frame() -> None:
    """A e'' + D e' + K e = 0 with the robot's own A: the first acceleration from a spring that is drawn."""
    start = dynid.dynamics.frame_placement(IIWA, HOME, TIP)[:3, 3]
    away = start + np.array([0.02, 0.01, -0.01])
    law = controllers.task_impedance(
        RATE, IIWA, TIP, 500.0, 50.0, target=lambda _: (away, np.array([0.1, 0, 0]), np.array([0, 0, 1.0]))
    )
    done = run(IIWA, law, HOME)
    J, M = dynid.dynamics.frame_jacobian(IIWA, HOME, TIP)[:3], dynid.mass_matrix(IIWA, HOME)
    A = np.linalg.inv(J @ np.linalg.inv(M) @ J.T)
    expected = np.array([0, 0, 1.0]) + np.linalg.solve(A, 500.0 * (away - start) + 50.0 * np.array([0.1, 0, 0]))
    np.testing.assert_allclose(J @ done.a[0], expected, atol=1e-6)


def test_bad_tasks_are_refused() -> None:
    """One sentence each: axes, frames, gains, targets, postures, singular poses."""
    make = controllers.task_space
    refused(lambda: make(RATE, TX40, WRIST, 1.0, 1.0, axes="xq"), "axes", "'xq'")
    refused(lambda: make(RATE, TX40, WRIST, 1.0, 1.0, axes="xx"), "axes")
    refused(lambda: make(RATE, TX40, "hand", 1.0, 1.0), "hand")
    refused(lambda: make(RATE, TX40, WRIST, [1.0, 2.0], 1.0), "kp", "3")
    refused(lambda: make(RATE, wheel(), "arm", 1.0, 1.0), "3 axes", "has 1")
    refused(lambda: make(RATE, TX40.with_base("floating"), WRIST, 1.0, 1.0), "fixed base")
    refused(lambda: make(RATE, TX40, WRIST, 1.0, 1.0, slope=-1.0), "slope")
    refused(lambda: make(RATE, TX40, WRIST, 1.0, 1.0, target=3), "function of time")  # type: ignore[arg-type]
    refused(lambda: make(RATE, TX40, WRIST, 1.0, 1.0, null_stiffness=1.0), "posture")
    refused(lambda: make(RATE, TX40, WRIST, 1.0, 1.0, null_stiffness=1.0, posture=[0.0]), "posture", "6")
    refused(lambda: controllers.task_impedance(RATE, TX40, WRIST, [1.0, 2.0], 1.0), "stiffness", "3")
    path = still(6, RATE, 0.1, 0.4)
    for bad in (lambda _: 3.0, lambda _: ([0, 0], [0, 0], [0, 0]), lambda _: ([np.nan] * 3, [0] * 3, [0] * 3)):
        refused(
            lambda bad=bad: simulate(TX40, ClosedLoop(controller=make(RATE, TX40, WRIST, 1.0, 1.0, target=bad)), path),
            "target",
            "0 s",
        )  # type: ignore[misc]
    stretched = still(6, RATE, 0.1)  # the axes of joints 4 and 6 are one
    refused(
        lambda: simulate(TX40, ClosedLoop(controller=make(RATE, TX40, WRIST, 1.0, 1.0, axes="pose")), stretched),
        "singular",
        WRIST,
    )
    assert simulate(TX40, ClosedLoop(controller=make(RATE, TX40, WRIST, 1.0, 1.0, axes="pose")), path).completed
