"""Audits: each law that a model can break is broken once and named; falls are held against closed forms."""

from __future__ import annotations

import doctest
import importlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid import Robot
from dynid.assessment.model.free_fall import free_fall, passive_acceleration
from dynid.assessment.model.physical import mass_matrices, random_poses
from dynid.cli.main import app
from dynid.errors import InvalidShape, InvalidValue, NotFinite, UnknownName
from dynid.robot import Joint, Limits, Link
from dynid.robot.spatial import placement
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_motion, random_robot

G = 9.81
UP = np.array([0.0, 0.0, 1.0])
FEW = {"poses": 50, "seconds": 0.5}


def pendulum(inertia: float = 1.0, **drive: float) -> Robot:
    """1 kg at the end of 1 m, hanging along gravity at q = 0, with `inertia` (kg m2) about its axis."""
    body = np.array([1.0, 0, 0, -1.0, inertia, 0, inertia, 0, 0, 0])
    robot = Robot(
        "pendulum",
        (Link("base", np.zeros(10)), Link("bob", body)),
        (Joint("hinge", "revolute", 0, np.eye(4), np.array([1.0, 0, 0])),),
    )
    return robot.with_terms(*(robot.joint_term(0, symbol, value) for symbol, value in drive.items()))


def impossible_elbow(rotor: float = 0.0) -> Robot:
    """A planar arm under in-plane gravity with det M = 0.6 - 9 cos(q2)^2: the fore link moves too much for its mass."""
    first = np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5])
    second = np.array([0.1, 3.0, 0, 0, 0, 0, 0, 0, 0, 1.0])
    robot = Robot(
        "elbow",
        (Link("base", np.zeros(10)), Link("upper", first), Link("fore", second)),
        (
            Joint("a", "revolute", 0, np.eye(4), UP),
            Joint("b", "revolute", 1, placement(translation=[1.0, 0, 0]), UP),
        ),
        gravity=np.array([0, -G, 0]),
    )
    return robot.with_terms(*(robot.joint_term(i, "Ia", rotor) for i in range(2))) if rotor else robot


# -- free fall -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["LSODA", "RK45"])
def test_a_small_swing_has_the_energy_of_the_textbook(method: str) -> None:
    """Kinetic energy (a w sin wt)^2 / 2 with w^2 = g / l, and potential energy from the height of the base."""
    angle, w = 0.01, np.sqrt(G)
    fall = free_fall(pendulum(), start=[angle], seconds=2.0, method=method)
    expected = 0.5 * (angle * w * np.sin(w * fall.time)) ** 2
    assert np.abs(fall.kinetic - expected).max() < 1e-4 * expected.max()  # the amplitude changes the period by a^2 / 16
    assert fall.potential[0] == pytest.approx(-G * np.cos(angle), rel=1e-12)
    assert fall.verdict == "energy stays" and fall.ok and fall.died is None
    assert fall.time[-1] == 2.0 and len(fall.time) == 201


def test_viscous_friction_makes_the_energy_fall() -> None:
    """A damped oscillator: the energy is that of exp(-d t) (cos st + d / s sin st)."""
    angle, friction = 0.01, 0.8
    fall = free_fall(pendulum(fv=friction), start=[angle], seconds=3.0)
    d = friction / 2
    s = np.sqrt(G - d**2)
    x = angle * np.exp(-d * fall.time) * (np.cos(s * fall.time) + d / s * np.sin(s * fall.time))
    v = -angle * np.exp(-d * fall.time) * G / s * np.sin(s * fall.time)
    expected = 0.5 * v**2 + 0.5 * G * x**2
    assert np.abs(fall.energy + G - expected).max() < 1e-4 * expected.max()
    assert fall.verdict == "energy falls" and fall.ok


@pytest.mark.parametrize("symbols", [("fc",), ("fcp", "fcn")])
def test_dry_friction_holds_and_creeps(symbols: tuple[str, ...]) -> None:
    """Smoothed friction above the load lets it creep at atanh(load / friction) / steepness, either way round."""
    for side in (1, -1):
        fall = free_fall(pendulum(**dict.fromkeys(symbols, 20.0)), start=[side * np.pi / 2], seconds=1.0, steepness=500)
        expected = G * np.arctanh(G / 20) / 500
        assert fall.energy[0] - fall.energy[-1] == pytest.approx(expected, rel=5e-3)  # it starts from rest
        assert fall.verdict == "energy falls"


def test_negative_friction_makes_the_energy_rise() -> None:
    """The fall shows it, and the drive is named."""
    found = dynid.assessment.audit(pendulum(fv=-0.5), start=[0.1], **FEW)
    assert found.fall.verdict == "energy rises" and found.fall.rise > 0
    assert list(found.drives) == ["fv_hinge"] and "drives instead of braking" in found.drives["fv_hinge"]
    assert not found.ok and not found.moves


def test_offsets_act_only_if_asked() -> None:
    """A constant torque does work; without it nothing moves the hanging pendulum."""
    robot = pendulum(off=5.0)
    assert free_fall(robot, seconds=0.5).kinetic.max() < 1e-12
    with_offset = free_fall(robot, seconds=0.5, offsets=True)
    assert with_offset.verdict == "energy rises"
    assert passive_acceleration(robot, offsets=True)(np.zeros((1, 1)), np.zeros((1, 1))) == pytest.approx(-5.0)


def test_negative_inertia_moves_without_dying_but_is_told() -> None:
    """M = -1 can be solved and keeps its energy: only the sign of the kinetic energy gives it away."""
    found = dynid.assessment.audit(pendulum(inertia=-1.0), start=[0.5], **FEW)
    assert found.fall.verdict.startswith("kinetic energy turns negative at")
    assert not found.fall.ok and found.mass.positive == 0 and found.mass.smallest == pytest.approx(-1.0)
    assert "negative principal value" in found.links["bob"][0]


@pytest.mark.parametrize("method", ["LSODA", "RK45"])
def test_an_impossible_robot_dies(method: str) -> None:
    """Where det M passes zero the acceleration has no bound, and the integration ends with the time and the cause."""
    found = dynid.assessment.audit(impossible_elbow(), start=[0.0, 1.5], poses=50, method=method)
    fall = found.fall
    assert fall.died == pytest.approx(0.3213, abs=1e-3)  # both methods, and tighter tolerances, agree
    assert fall.time[-1] <= fall.died < 2.0 and fall.cause
    assert fall.verdict == "integration failed at 0.3213 s"
    assert fall.verdict in found.summary() and fall.cause in found.summary()
    assert not found.ok


def test_a_body_without_inertia_dies_at_once() -> None:
    """A singular mass matrix gives no acceleration at all."""
    fall = free_fall(pendulum(inertia=0.0), start=[0.5])
    assert fall.died == 0.0 and "singular" in fall.cause and len(fall.time) == 1


@pytest.mark.parametrize("base", ["fixed", "floating", "instrumented"])
def test_frictionless_robots_keep_their_energy(base: str) -> None:
    """Trees with couplings, springs and rotors on every base; the tip moves, the sum stays."""
    robot = random_robot(21, 4, kinds="rrpr", base=base, drives=True).without("f*", "off*")
    start = random_motion(robot, 3, 1)[0][0]
    fall = free_fall(robot, start=start, seconds=0.5)
    assert fall.verdict == "energy stays"
    assert fall.kinetic.max() > 1.0 and np.ptp(fall.energy) < 1e-5 * fall.kinetic.max()  # integrated to 1e-6 a step


# -- mass matrices -------------------------------------------------------------------------------


def test_ratio_and_smallest_eigenvalue_of_the_elbow() -> None:
    """det M > 0 for |cos q2| < sqrt(0.6) / 3: a share 2 asin(sqrt(0.6) / 3) / pi of all angles."""
    found = mass_matrices(impossible_elbow(), poses=2000)
    share = 2 / np.pi * np.arcsin(np.sqrt(0.6) / 3)
    assert found.ratio == pytest.approx(share, abs=3 * np.sqrt(share * (1 - share) / 2000))
    c = np.cos(found.pose[1])
    M = np.array([[1.6 + 6 * c, 1 + 3 * c], [1 + 3 * c, 1.0]])
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(M)[0], rel=1e-9)
    assert c < -0.99  # the worst angle is pi


def test_limits_decide_where_the_poses_are() -> None:
    """Within limits that keep clear of the fault nothing is found, unless they are left out."""
    robot = impossible_elbow().with_limits({"b": {"position": (1.4, 1.7)}})
    assert mass_matrices(robot, poses=200).ratio == 1.0
    assert mass_matrices(robot, poses=200, limits=False).ratio < 0.3


def test_rotors_can_hide_impossible_bodies() -> None:
    """With heavy rotors M is positive definite everywhere, without them it is not."""
    robot = impossible_elbow(rotor=10.0)
    assert mass_matrices(robot, poses=200).ratio == 1.0
    alone = mass_matrices(robot, poses=200, rotor_inertia=False)
    assert alone.ratio == mass_matrices(impossible_elbow(), poses=200).ratio < 0.3


def test_poses_fill_every_kind_of_limits() -> None:
    """Both ends, one end and none; turning and sliding; the same seed gives the same poses."""
    kinds = ["revolute", "revolute", "revolute", "revolute", "prismatic", "prismatic"]
    ranges = [(-1, 2), (5, np.inf), (-np.inf, -5), (-np.inf, np.inf), (-np.inf, np.inf), (0.2, 0.4)]
    turn = 2 * np.pi
    expected = [(-1, 2), (5, 5 + turn), (-5 - turn, -5), (-np.pi, np.pi), (-1, 1), (0.2, 0.4)]
    joints = tuple(
        Joint(f"j{i}", kind, i, np.eye(4), UP, limits=Limits(*map(float, r)))
        for i, (kind, r) in enumerate(zip(kinds, ranges, strict=True))
    )
    robot = Robot("six", tuple(Link(f"l{i}", np.zeros(10)) for i in range(7)), joints)
    q = random_poses(robot, 2000, 0, limits=True)
    width = np.diff(expected)[:, 0]
    assert np.all(np.abs(q.min(axis=0) - np.array(expected)[:, 0]) < 0.01 * width)
    assert np.all(np.abs(q.max(axis=0) - np.array(expected)[:, 1]) < 0.01 * width)
    assert np.array_equal(q, random_poses(robot, 2000, 0, limits=True))
    assert not np.array_equal(q, random_poses(robot, 2000, 1, limits=True))


# -- the whole -----------------------------------------------------------------------------------


def test_a_sound_robot_passes_and_its_base_parameters_do() -> None:
    """Any vector with the same base parameters moves alike; its bodies are not judged."""
    robot = dynid.load_robot("tx40")
    start = np.full(robot.n, 0.5)
    own = dynid.assessment.audit(robot, start=start, **FEW)
    assert own.ok is True and own.verdict == "no problem was found in this model"
    assert own.links == {} and own.drives == {} and "all physically consistent" in own.summary()
    base = dynid.base_parameters(robot)
    joined = base.join(base.values())
    other = dynid.assessment.audit(robot, joined, bodies=False, start=start, **FEW)
    assert other.ok and other.links is None and "not checked" in other.summary()
    assert other.mass.smallest == pytest.approx(own.mass.smallest, rel=1e-9)
    assert np.allclose(other.fall.kinetic, own.fall.kinetic, rtol=1e-3, atol=1e-6)
    assert not dynid.assessment.audit(
        robot, joined, start=start, **FEW
    ).ok  # judged one by one, its bodies are not possible


def test_the_example_of_the_docstring_runs() -> None:
    """What the docstring of `audit` promises."""
    result = doctest.testmod(importlib.import_module("dynid.assessment.model.physical"))
    assert result.attempted == 2 and result.failed == 0


def test_impossible_bodies_that_move_are_told_apart() -> None:
    """A rotor of negative inertia on a heavy link can be simulated, but not built."""
    robot = pendulum(Ia=-0.1)
    found = dynid.assessment.audit(robot, start=[0.5], **FEW)
    assert found.moves and not found.ok
    assert found.drives == {"Ia_hinge": "rotor inertia -0.1 kg m2 is negative"}
    assert "not physically consistent" in found.summary()


def test_audits_are_plain_data() -> None:
    """Everything in the dictionary goes through JSON and comes back the same."""
    found = dynid.assessment.audit(impossible_elbow(), start=[0.0, 1.5], **FEW)
    page = found.to_dict()
    assert json.loads(json.dumps(page)) == page
    assert page["ok"] is False and page["mass_matrix"]["ratio"] == found.mass.ratio
    assert page["free_fall"]["died"] == found.fall.died
    assert set(page["links"]) == {"upper", "fore"}
    assert len(page["free_fall"]["time"]) == len(page["free_fall"]["kinetic"]) == len(found.fall.time)


def test_inspect_audits_if_asked() -> None:
    """In words and for machines; the exit code stays 0 whatever is found."""
    plain = CliRunner().invoke(app, ["inspect", "box2", "--json"])
    assert "audit" not in json.loads(plain.stdout)
    told = CliRunner().invoke(app, ["inspect", "puma560", "--audit", "--json"])
    assert told.exit_code == 0
    page = json.loads(told.stdout)["audit"]
    assert page["ok"] is False and page["mass_matrix"]["poses"] == 10_000 and "link1" in page["links"]
    words = CliRunner().invoke(app, ["inspect", "puma560", "--audit"])
    assert words.exit_code == 0 and f"puma560: {page['verdict']}" in words.stdout
    assert "positive definite at 10000 of 10000 random poses" in words.stdout
    assert "free fall of 2 s: energy falls" in words.stdout


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"poses": 0}, (InvalidValue, "poses")),
        ({"seconds": -1.0}, (InvalidValue, "seconds")),
        ({"seconds": np.inf}, (InvalidValue, "seconds")),
        ({"steepness": 0.0}, (InvalidValue, "seconds")),
        ({"method": "Euler"}, (UnknownName, "method")),
        ({"start": [0.0, 0.0]}, (InvalidShape, "q")),
        ({"start": [[0.0]]}, (InvalidShape, "")),
        ({"start": [np.nan]}, (NotFinite, "q")),
        ({"parameters": [1.0]}, (InvalidShape, "parameters")),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], error: Error) -> None:
    """One plain line each."""
    with expect_error(*error):
        dynid.assessment.audit(pendulum(), **({"poses": 10, "seconds": 0.1} | options))
