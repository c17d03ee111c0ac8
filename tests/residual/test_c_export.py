"""Predictors written as C, compiled by the system's compiler and held against the ones they come from."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import DynidError, InvalidValue
from dynid.residual.blend import Blend
from dynid.residual.predictor import Predictor
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.made_residuals import made_residual, motion
from tests.support.random_robots import random_motion, random_robot

Array = NDArray[np.float64]
Torque = Callable[..., tuple[int, Array, Array]]

SAME = 1e-9  # relative to the largest torque; what is measured is below 1e-13
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
compiled = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler on this computer")

CASES: dict[str, dict[str, Any]] = {
    "tx40": {},
    "puma560": {"kernel": "matern32+friction", "noise": "reversal"},
    "twolink": {"kernel": "matern52", "degree": 1},
    "kinks and tails": {"kernel": "exponential+rational-quadratic-iso", "noise": "reversal"},
    "rv2sq": {"kernel": "rational-quadratic", "inducing": 20},
    "box2": {"inducing": 20, "degree": 0},
    "iiwa14": {"local": 6, "samples": 200, "periodic": True},
    "wam7": {"missing": tuple(range(7))},
    "mimics": {"bound": 0.1},
    "every drive": {"samples": 300, "has_rigid": True},
    "smooth": {"blend": Blend(0.5, 0.5), "missing": (1,)},
    "no drives": {"has_rigid": False},
}


def robot_of(name: str) -> dynid.Robot:
    trees = {
        "mimics": random_robot(5, 8, kinds="rprprprr", mimics=3, rotors=True),
        "every drive": random_robot(8, 5, drives=True, mimics=1),
        "smooth": random_robot(8, 5, drives=True).with_smooth_coulomb(3.0),
        "no drives": random_robot(9, 4),
        "kinks and tails": random_robot(10, 5, drives=True),
    }
    if name in trees:
        return trees[name]
    robot = dynid.load_robot(name)
    return robot.with_parameters(np.random.default_rng(0).uniform(0.1, 1.0, robot.parameters.size))


def build(predictor: Predictor, folder: Path, name: str = "predictor") -> Torque:
    """The C function, called with arrays: whether the sample was valid, torque, std."""
    source, _ = predictor.to_c(folder, name)
    library = folder / f"{name}.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    done = subprocess.run([str(COMPILER), *strict, str(source), "-o", str(library), "-lm"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    torque = getattr(ctypes.CDLL(str(library)), f"{name}_torque")
    pointer = ctypes.POINTER(ctypes.c_double)
    torque.argtypes, torque.restype = [pointer] * 5, ctypes.c_int

    def call(q: Array, v: Array, a: Array) -> tuple[int, Array, Array]:
        given = [np.ascontiguousarray(x, float) for x in (q, v, a)]
        tau, std = np.zeros(predictor.n), np.zeros(predictor.n)
        valid = torque(*(x.ctypes.data_as(pointer) for x in (*given, tau, std)))
        bare = np.zeros(predictor.n)
        assert torque(*(x.ctypes.data_as(pointer) for x in (*given, bare)), None) == valid
        assert np.array_equal(bare, tau)
        return valid, tau, std

    return call


@compiled
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variance", [True, False])
def test_c_gives_the_same_numbers(name: str, variance: bool, tmp_path: Path) -> None:
    robot = robot_of(name)
    predictor = made_residual(robot, **CASES[name]).predictor(variance=variance, rank=50)
    torque = build(predictor, tmp_path)
    far, near = random_motion(robot, 3, 10), motion(robot, CASES[name].get("samples", 120), 0)
    query = [np.vstack([x, y[:10]]) for x, y in zip(far, near, strict=True)]
    expected = predictor.predict(*query)
    results = [torque(*sample) for sample in zip(*query, strict=True)]
    assert all(valid == 1 for valid, _, _ in results)
    assert difference([tau for _, tau, _ in results], expected.torque) < SAME
    if variance:
        assert difference([std for _, _, std in results], expected.std) < SAME
    else:
        assert all(np.isnan(std).all() for _, _, std in results)


@compiled
def test_c_treats_what_is_not_finite_the_same(tmp_path: Path) -> None:
    residual = made_residual(dynid.load_robot("puma560"), 40)
    predictor = residual.predictor()
    torque = build(predictor, tmp_path, "arm")
    q, v, a = motion(residual.robot, 8, 3)
    q[0, 0], q[3, 1], q[4, 1], v[4, 0], a[6, :] = np.nan, np.inf, np.nan, -np.inf, np.nan
    expected = residual.predict(q, v, a)
    assert not expected.valid.all()
    for i, sample in enumerate(zip(q, v, a, strict=True)):
        valid, tau, std = torque(*sample)
        assert valid == expected.valid[i]
        assert difference(tau, expected.torque[i]) < SAME
        assert difference(std, expected.std[i]) < SAME
    ctypes.CDLL(str(tmp_path / "arm.so")).arm_reset()
    nothing = np.full(6, np.nan)
    home = dynid.inverse_dynamics(residual.robot, residual.home, np.zeros(6), np.zeros(6))
    assert difference(torque(nothing, nothing, nothing)[1], home) < SAME


@compiled
def test_unbounded_joints_and_odd_names(tmp_path: Path) -> None:
    robot = dynid.load_robot("twolink")
    odd = replace(robot, joints=tuple(replace(x, name=f"/* {x.name} */ \\") for x in robot.joints), drives=())
    predictor = made_residual(odd, 30, bound=np.inf).predictor()
    torque = build(predictor, tmp_path / "made" / "here", "_arm2")
    query = [x[0] for x in motion(odd, 1, 3)]
    assert difference(torque(*query)[1], predictor(*query)) < SAME


def test_names_and_paths_that_cannot_be(tmp_path: Path) -> None:
    predictor = made_residual(dynid.load_robot("twolink"), 30).predictor()
    for name in ("", "2arm", "my-arm", "../arm"):
        with expect_error(InvalidValue, "name"):
            predictor.to_c(tmp_path, name)
    (tmp_path / "file").write_text("")
    with expect_error(DynidError, code="not_writable"):
        predictor.to_c(tmp_path / "file")
    (tmp_path / "arm.c").mkdir()
    with expect_error(DynidError, code="not_writable"):
        predictor.to_c(tmp_path, "arm")
