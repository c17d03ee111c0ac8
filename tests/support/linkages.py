"""Robots with closed loops for tests, and constrained dynamics of the same robots computed with MuJoCo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.export.mjcf import write_mjcf
from dynid.robot import Frame, Loop
from dynid.robot.model import Robot

Array = NDArray[np.float64]


def _body(mass: float, com: tuple[float, float, float], size: float) -> dict[str, Any]:
    """A plausible body: that of an ellipsoid that is longer along its centre of mass."""
    x, y, z = (0.3 * size + abs(c) for c in com)
    tensor = [mass / 5 * (y * y + z * z), 0, 0, mass / 5 * (x * x + z * z), 0, mass / 5 * (x * x + y * y)]
    return {"mass": mass, "com": list(com), "tensor": tensor}


def leg() -> Robot:
    """The built-in leg of twelve joints: a planar knee linkage, and a spatial rod that moves an ankle with two axes."""
    return dynid.load_robot("leg12")


def parallelogram() -> Robot:
    """Two cranks of 0.3 m on the ground, 0.5 m apart, and the bar between their ends."""
    rows = [
        {"name": "first", "axis": [0, 1, 0], "inertia": _body(1.2, (0.14, 0, 0.01), 0.05)},
        {"name": "bar", "xyz": [0.3, 0, 0], "axis": [0, 1, 0], "inertia": _body(2.0, (0.27, 0, -0.02), 0.05)},
        {
            "name": "second",
            "parent": "base",
            "xyz": [0.5, 0, 0],
            "axis": [0, 1, 0],
            "inertia": _body(0.9, (0.16, 0, 0.015), 0.05),
        },
    ]
    loop = [
        {
            "kind": "connect",
            "first": {"link": "link2", "name": "bar_end", "xyz": [0.5, 0, 0]},
            "second": {"link": "link3", "name": "crank_end", "xyz": [0.3, 0, 0]},
        }
    ]
    return Robot.from_dh(
        rows,
        "origin",
        name="parallelogram",
        loop=loop,
        passive=["bar", "second"],
        posture={"first": 1.0, "bar": -1.0, "second": 1.0},
    )


def stuck() -> Robot:
    """A four-bar linkage with a coupler so short that its crank cannot turn."""
    robot, place = dynid.load_robot("fourbar"), np.eye(4)
    place[0, 3] = 0.25
    pin = Loop("connect", Frame("coupler_end", 2, place), robot.loops[0].second, name="pin")
    return robot.with_loops(pin, passive=robot.passive, posture={"crank": 0.2, "coupler": 0.5, "rocker": -2.0})


def swung_by_mujoco(
    robot: Robot, folder: Path, amplitude: Array, seconds: float, seed: int, rate: int = 500, step: float = 2e-4
) -> tuple[Array, Array, Array]:
    """Positions, velocities and torques (N, n) of the drives of a robot that MuJoCo moves under a PD controller.

    The loops are stiff equality constraints of MuJoCo. The references are sums of sines around the assembled posture
    that reach as far as the amplitude, which must keep the loops away from singular postures. A step of MuJoCo is
    x[k+1] - 2 x[k] + x[k-1] = h^2 a[k], so that torque and acceleration belong to the time of x[k], but its velocity is
    that of half a step before. Friction is applied at the velocity half a step later: otherwise the rotor inertias of
    the recording would differ from those of the model by h fv / 2.
    """
    import mujoco

    path = folder / f"{robot.name}.xml"
    write_mjcf(robot.without("f*"), path)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.timestep = step
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.tolerance, spec.option.iterations = 1e-14, 200
    for equality in spec.equalities:
        equality.solref = [4 * step, 1.0]
        equality.solimp = [0.99999, 0.99999, 1e-3, 0.5, 2]
    for joint in spec.joints:
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
        joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    model = spec.compile()
    data = mujoco.MjData(model)
    order = [model.joint(name).dofadr[0] for name in robot.coordinates]
    data.qpos[[model.joint(name).dofadr[0] for name in robot.tree_coordinates]] = robot.assembled
    fc, fv = np.zeros((2, robot.n))
    for term in robot.drives:
        if term.symbol in ("fc", "fv"):
            (fc if term.symbol == "fc" else fv)[robot.coordinates.index(term.shaft)] = term.value
    inertia = np.diag(dynid.mass_matrix(robot, robot.home))
    kp, kd = inertia * 40.0**2, inertia * 2 * 40.0
    steps = round(1 / (rate * step))
    wanted = robot.home + amplitude * _waves(robot.n, np.arange(round(seconds * rate) * steps) * step, seed)
    q, v, tau = np.empty((3, round(seconds * rate), robot.n))
    for k in range(len(wanted)):
        x, rate_of = data.qpos[order], data.qvel[order]
        torque = kp * (wanted[k] - x) - kd * rate_of
        if k % steps == 0:
            q[k // steps], v[k // steps], tau[k // steps] = x, rate_of, torque
        moving = rate_of + 0.5 * step * data.qacc[order]
        data.qfrc_applied[order] = torque - fc * np.tanh(100 * moving) - fv * moving
        mujoco.mj_step(model, data)
    return q, v, tau


def _waves(n: int, t: Array, seed: int) -> Array:
    """Sums of five sines (len(t), n) that start at rest and reach 1."""
    rng = np.random.default_rng(seed)
    frequency, phase = rng.uniform(0.15, 1.2, (5, n)), rng.uniform(0, 2 * np.pi, (5, n))
    rise = np.minimum(1.0, t) ** 2 * (3 - 2 * np.minimum(1.0, t))
    angle = 2 * np.pi * frequency * t[:, None, None] + phase
    out = rise[:, None] * np.mean(np.sin(angle) - np.sin(phase), axis=1)
    return np.asarray(out / np.abs(out).max(axis=0))


class InMujoco:
    """The same robot in MuJoCo, written as MJCF without friction: constrained dynamics by KKT with its Jacobians."""

    def __init__(self, robot: Robot, folder: Path) -> None:
        import mujoco

        path = folder / f"{robot.name}.xml"
        write_mjcf(robot.without("f*") if any(t.symbol[0] == "f" for t in robot.drives) else robot, path)
        self.robot = robot
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        self.order = [self.model.joint(name).dofadr[0] for name in robot.tree_coordinates]

    def solve(self, q: Array, v: Array, a: Array, passive: Array) -> tuple[Array, Array, Array]:
        """Tree velocity, torque on the independent joints and mass matrix at a sample; q and passive positions given.

        Velocities of the passive joints solve J v = 0, accelerations J a = -(dJ/dt) v, torques and multipliers l
        M a + bias = S tau + J' l.
        """
        import mujoco

        robot, m, d = self.robot, self.model, self.data
        names = robot.tree_coordinates
        free = np.array([x not in robot.passive for x in names])
        full = np.zeros(len(names))
        full[free], full[~free] = q, passive
        d.qpos[self.order] = full
        J = self._jacobian()
        N = np.zeros((len(names), robot.n))
        N[free] = np.eye(robot.n)
        N[~free] = -np.linalg.lstsq(J[:, ~free], J[:, free], rcond=None)[0]
        speed = N @ v
        # (dJ/dt) v by a difference of MuJoCo's own Jacobian along the motion.
        h, rate = 1e-6, []
        for s in (h, -h):
            d.qpos[self.order] = full + s * speed
            rate.append(self._jacobian() @ speed)
        drift = (rate[0] - rate[1]) / (2 * h)
        d.qpos[self.order] = full
        acceleration = N @ a
        acceleration[~free] -= np.linalg.lstsq(J[:, ~free], drift, rcond=None)[0]
        d.qvel[self.order], d.qacc[self.order] = speed, acceleration
        mujoco.mj_forward(m, d)
        d.qacc[self.order] = acceleration
        bias = d.qfrc_bias.copy()
        M, bias = self._mass(), bias[self.order]
        # KKT: unknown torques of the independent joints and multipliers.
        S = np.zeros((len(names), robot.n))
        S[free] = np.eye(robot.n)
        torque = np.linalg.lstsq(np.hstack([S, J.T]), M @ acceleration + bias, rcond=None)[0][: robot.n]
        return speed, torque, N.T @ M @ N

    def accelerate(self, q: Array, v: Array, tau: Array) -> Array:
        """Accelerations of the tree in an assembled state (q, v) of it, under torques tau on its joints.

        They solve M a - J' l = tau - bias and J a = -(dJ/dt) v.
        """
        import mujoco

        m, d = self.model, self.data
        h, rate = 1e-6, []
        for s in (h, -h):
            d.qpos[self.order] = q + s * v
            rate.append(self._jacobian() @ v)
        d.qpos[self.order] = q
        J = self._jacobian()
        d.qvel[self.order] = v
        mujoco.mj_forward(m, d)
        M, n = self._mass(), len(q)
        system = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
        right = np.concatenate([tau - d.qfrc_bias[self.order], (rate[1] - rate[0]) / (2 * h)])
        return np.linalg.lstsq(system, right, rcond=1e-10)[0][:n]

    def _mass(self) -> Array:
        """Mass matrix of the tree at the last posture."""
        import mujoco

        M = np.zeros((self.model.nv, self.model.nv))
        if hasattr(self.data, "qM"):
            mujoco.mj_fullM(self.model, M, self.data.qM)
        else:
            mujoco.mj_fullM(self.model, self.data, M)
        return M[np.ix_(self.order, self.order)]

    def _jacobian(self) -> Array:
        import mujoco

        m, d = self.model, self.data
        d.qvel[:] = 0
        mujoco.mj_forward(m, d)
        dense = np.zeros((d.nefc, m.nv))
        if mujoco.mj_isSparse(m):
            mujoco.mju_sparse2dense(dense, d.efc_J, d.efc_J_rownnz, d.efc_J_rowadr, d.efc_J_colind)
        else:
            dense[:] = d.efc_J.reshape(d.nefc, m.nv)
        return dense[d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY][:, self.order]

    def energy(self, q: Array, v: Array) -> tuple[float, float]:
        """Kinetic and potential energy of a state of the tree."""
        import mujoco

        m, d = self.model, self.data
        d.qpos[self.order], d.qvel[self.order] = q, v
        mujoco.mj_forward(m, d)
        mujoco.mj_energyPos(m, d)
        mujoco.mj_energyVel(m, d)
        return float(d.energy[1]), float(d.energy[0])
