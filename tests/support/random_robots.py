"""Random robots for the tests: any tree, any axes, any frames, any drives, always the same for the same seed.

`random_robot` is a plain seeded builder; `robots` draws its arguments with hypothesis, so that a failing
robot shrinks to a small one. Bodies are physically possible and of everyday size (kilograms, decimetres
to metres), so torques are of order 1 to 1000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.robot import Joint, Link, Transmission
from dynid.robot.drives import DRIVE_SYMBOLS
from dynid.robot.parts import Frame, Mimic

Array = NDArray[np.float64]
VELOCITY = {"fs": 0.7}  # Stribeck velocity of drive terms, by symbol


def random_rotation(rng: np.random.Generator) -> Array:
    """A rotation matrix, evenly distributed over all of them."""
    x, y, z, w = random_quaternion(rng)
    return np.asarray(pin.Quaternion(w, x, y, z).toRotationMatrix())


def random_quaternion(rng: np.random.Generator) -> Array:
    """A unit quaternion (x, y, z, w)."""
    quaternion = rng.normal(size=4)
    return quaternion / np.linalg.norm(quaternion)


def random_placement(rng: np.random.Generator) -> Array:
    """A 4x4 placement: any rotation, translation within half a metre on each axis."""
    out = np.eye(4)
    out[:3, :3] = random_rotation(rng)
    out[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return out


def random_inertia(rng: np.random.Generator) -> Array:
    """Ten numbers of a possible body: 0.5 to 5 kg spread over decimetres around a centre of mass off the origin."""
    spread = rng.uniform(0.05, 0.3, 3)
    root = random_rotation(rng) * spread
    second = root @ root.T
    mass, com = rng.uniform(0.5, 5.0), rng.uniform(-0.3, 0.3, 3)
    return dynid.inertia.inertia_from_com(mass, com, mass * (np.trace(second) * np.eye(3) - second))


def random_axis(rng: np.random.Generator) -> Array:
    """Half of them along x, y or z of either sign, the others anywhere."""
    if rng.random() < 0.5:
        return rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)]
    return rng.normal(size=3)


def chain(parents: Sequence[int], link: int) -> list[int]:
    """The link and all that carry it, down to the base: what the next joint may hang on in a depth-first order.

    Pinocchio's mass matrix needs joints in that order; `reordered` makes robots in any other.
    """
    out = [link]
    while out[-1] > 0:
        out.append(parents[out[-1] - 1])
    return out


def random_robot(
    seed: int,
    joints: int = 6,
    *,
    parents: Sequence[int] | None = None,
    kinds: str | None = None,
    base: str = "fixed",
    mounts: bool = True,
    mimics: int = 0,
    drives: bool = False,
    rotors: bool = False,
) -> Robot:
    """A robot of `joints` joints, any `mimics` of which follow others.

    `parents[j]` is the link that joint j hangs on (random where left out, so branched), `kinds` a string of
    "r" and "p". `drives` adds every kind of term on joint side and motor side, `rotors` only a rotor inertia a joint.
    """
    if not 0 <= mimics < joints:
        raise ValueError("a robot needs at least one joint that follows no other")
    rng = np.random.default_rng(seed)
    if parents is None:
        parents = []
        for j in range(joints):
            parents.append(j if rng.random() < 0.6 else int(rng.choice(chain(parents, j))))
    if kinds is None:
        kinds = "".join(rng.choice(["r", "r", "p"], joints))
    order = rng.permutation(joints)
    followers, leaders = set(order[:mimics]), order[mimics:]
    built = []
    for j in range(joints):
        mimic = None
        if j in followers:
            ratio, offset = rng.uniform(0.3, 2) * rng.choice([-1, 1]), rng.uniform(-1, 1)
            mimic = Mimic(f"j{rng.choice(leaders) + 1}", float(ratio), float(offset))
        built.append(
            Joint(
                f"j{j + 1}",
                "revolute" if kinds[j] == "r" else "prismatic",
                parents[j],
                random_placement(rng),
                random_axis(rng),
                random_placement(rng) if mounts else np.eye(4),
                mimic=mimic,
            )
        )
    robot = Robot(
        name=f"random{seed}",
        links=tuple(Link(f"l{b}", random_inertia(rng)) for b in range(joints + 1)),
        joints=tuple(built),
        gravity=rng.normal(size=3) * 6.0,
        base=base,  # type: ignore[arg-type]
        frames=tuple(Frame(f"tool{b}", b, random_placement(rng)) for b in (0, joints)),
    )
    if drives:
        return with_random_drives(robot, rng)
    if rotors:
        return with_random_rotors(robot, rng)
    return robot


def with_random_rotors(robot: Robot, rng: np.random.Generator) -> Robot:
    """A rotor inertia on every joint, which is Pinocchio's armature."""
    return robot.with_terms(*(robot.joint_term(i, "Ia", float(rng.uniform(0.05, 0.5))) for i in range(robot.n)))


def with_random_drives(robot: Robot, rng: np.random.Generator) -> Robot:
    """Every kind of term on every joint; a full transmission with every kind of motor term, some of them cross-only."""

    def value() -> float:
        return float(rng.uniform(0.05, 0.5))

    terms = [
        robot.joint_term(
            i,
            symbol,
            value(),
            rest=float(rng.uniform(-1, 1)) if symbol == "k" else 0.0,
            velocity=VELOCITY.get(symbol, 0.0),
        )
        for i in range(robot.n)
        for symbol in DRIVE_SYMBOLS
    ]
    motors = tuple(f"motor{i + 1}" for i in range(robot.n))
    coupling = np.eye(robot.n) + rng.uniform(-0.3, 0.3, (robot.n, robot.n))
    robot = robot.with_terms(*terms).with_transmission(
        Transmission(motors, coupling, rng.choice([-1, 1], robot.n) * 50.0)
    )
    # A cross-only rotor takes away from the diagonal of the mass matrix; small ones leave it positive definite.
    return robot.with_terms(
        *(
            replace(
                robot.motor_term(
                    motor,
                    symbol,
                    0.02 * value(),
                    cross_only=bool(rng.random() < 0.5),
                    velocity=VELOCITY.get(symbol, 0.0),
                ),
                rest=float(rng.uniform(-1, 1)) if symbol == "k" else 0.0,
            )
            for motor in motors
            for symbol in DRIVE_SYMBOLS
        )
    )


def with_custom_terms(robot: Robot) -> Robot:
    """Two columns of the user's own: one over position and speed of all joints, one that carries acceleration."""

    def wave(q: Array, v: Array, a: Array) -> Array:
        return np.sin(q) * np.cumsum(v, axis=1)

    def coupled(q: Array, v: Array, a: Array) -> Array:
        return a * np.cos(q) ** 2 + v**2

    return robot.with_terms(
        robot.custom_term("wave", 0, wave, 0.3), robot.custom_term("coupled", robot.n - 1, coupled, 0.4)
    )


def random_motion(robot: Robot, seed: int, samples: int = 4) -> tuple[Array, Array, Array]:
    """q, v, a of `samples` unrelated samples: joints within 2 rad or m, speeds and accelerations of order one."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2, 2, (samples, robot.nq))
    if robot.base == "floating":
        q[:, 3:7] = [random_quaternion(rng) for _ in range(samples)]
    return q, rng.normal(size=(samples, robot.nv)), rng.normal(size=(samples, robot.nv))


def displaced(robot: Robot, q: Array, step: Array) -> Array:
    """q after moving along `step` (.., nv): on the group for a floating base (body-frame twist), else a sum."""
    if robot.base != "floating":
        return q + step
    out = np.empty(np.shape(q))
    for k in np.ndindex(out.shape[:-1]):
        x, y, z, w = q[k][3:7]
        start = pin.SE3(pin.Quaternion(w, x, y, z), q[k][:3])
        end = start * pin.exp6(pin.Motion(step[k][:6]))
        out[k][:3], out[k][3:7] = end.translation, pin.Quaternion(end.rotation).coeffs()
        out[k][7:] = q[k][7:] + step[k][6:]
    return out


def mimic_map(robot: Robot) -> tuple[Array, Array]:
    """All joint positions are G q + offset over the independent ones: G (joint, n) and offset (joint,)."""
    G, offset = np.zeros((len(robot.joints), robot.n)), np.zeros(len(robot.joints))
    for j, joint in enumerate(robot.joints):
        leader = joint.mimic.leader if joint.mimic else joint.name
        G[j, robot.coordinates.index(leader)] = joint.mimic.ratio if joint.mimic else 1.0
        offset[j] = joint.mimic.offset if joint.mimic else 0.0
    return G, offset


def reordered(robot: Robot, seed: int) -> tuple[Robot, Array]:
    """The same robot, without its drives, with its joints in another order; and the index of each in the old order."""
    rng = np.random.default_rng(seed)
    order: list[int] = []
    while len(order) < len(robot.joints):
        ready = [
            j
            for j, joint in enumerate(robot.joints)
            if j not in order and (joint.parent == 0 or joint.parent - 1 in order)
        ]
        order.append(int(rng.choice(ready)))
    place = {0: 0} | {old + 1: new + 1 for new, old in enumerate(order)}
    turned = replace(
        robot,
        joints=tuple(replace(robot.joints[j], parent=place[robot.joints[j].parent]) for j in order),
        links=(robot.links[0], *(robot.links[j + 1] for j in order)),
        frames=tuple(replace(frame, link=place[frame.link]) for frame in robot.frames),
        drives=(),
        transmission=None,
    )
    return turned, np.array(order)


@st.composite
def robots(
    draw: st.DrawFn,
    bases: Sequence[str] = ("fixed", "floating", "instrumented"),
    most: int = 12,
    **options: Any,
) -> Robot:
    """Robots of 1 to `most` joints, up to `mimics` of them followers; all but these sizes comes from a drawn seed."""
    joints = draw(st.integers(1, most))
    if "mimics" in options:
        options["mimics"] = draw(st.integers(min(1, joints - 1), min(options["mimics"], joints - 1)))
    return random_robot(draw(st.integers(0, 2**16)), joints, base=draw(st.sampled_from(bases)), **options)
