"""The C, Rust, Julia, MATLAB and ros2_control examples of docs/using-a-model.md compile, run, and give our torques."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid import Robot
from tests.support.compare import difference

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "using-a-model.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "ros2_control"
Q, V, A = 0.1 * np.arange(1, 7), np.full(6, 0.5), np.full(6, -1.0)


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def compiler(*names: str) -> str:
    found = next((x for x in names if shutil.which(x)), None)
    if found is None:
        pytest.skip(f"no {names[0]} on this machine")
    return found


def done(*words: object, cwd: Path) -> str:
    ended = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def robot() -> Robot:
    return dynid.load_robot("tx40")


@pytest.fixture
def place(robot: Robot, tmp_path: Path) -> Path:
    names = ("inverse_dynamics", "gravity_torque", "forward_dynamics")
    dynid.generate_code(robot, names, name="arm").write(tmp_path / "code")
    return tmp_path


def test_julia_example(robot: Robot, place: Path) -> None:
    """Printed with all digits: equal to rounding."""
    dynid.generate_code(robot, ("inverse_dynamics", "forward_dynamics"), language="julia", name="arm").write(
        place / "code"
    )
    (place / "main.jl").write_text(block("julia"))
    torque = np.array(done(compiler("julia"), "--startup-file=no", "main.jl", cwd=place).split(), dtype=float)
    assert difference(torque, dynid.inverse_dynamics(robot, Q, V, A)) < 1e-12


def test_matlab_example(robot: Robot, place: Path) -> None:
    """Printed with all digits: equal to rounding."""
    dynid.generate_code(robot, language="matlab", name="arm").write(place / "code")
    (place / "main.m").write_text(block("matlab"))
    words = (compiler("octave-cli", "octave"), "--no-gui", "--no-init-file", "main.m")
    torque = np.array(done(*words, cwd=place).split(), dtype=float)
    assert difference(torque, dynid.inverse_dynamics(robot, Q, V, A)) < 1e-12


def test_c_example(robot: Robot, place: Path) -> None:
    """Printed with all digits: equal to rounding."""
    (place / "main.c").write_text(block("c"))
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-Icode")
    done(compiler("cc", "gcc"), *strict, "main.c", "code/arm.c", "-lm", "-o", "main", cwd=place)
    torque = np.array(done(place / "main", cwd=place).split(), dtype=float)
    assert difference(torque, dynid.inverse_dynamics(robot, Q, V, A)) < 1e-12


def test_rust_example(robot: Robot, place: Path) -> None:
    """Linked with the C code; its own assertion holds too."""
    rustc, cc = compiler("rustc"), compiler("cc", "gcc")
    (place / "main.rs").write_text(block("rust"))
    done(cc, "-O2", "-Icode", "-c", "code/arm.c", "-o", "arm.o", cwd=place)
    done(compiler("ar"), "rcs", "libarm.a", "arm.o", cwd=place)
    words = ("-O", "--edition", "2021", "-D", "warnings", "main.rs", "-L", "native=.", "-l", "static=arm")
    done(rustc, *words, cwd=place)
    torque = np.array(done(place / "main", cwd=place).split(), dtype=float)
    assert difference(torque, dynid.inverse_dynamics(robot, Q, V, A)) < 1e-12


def test_ros2_control_example(robot: Robot, place: Path) -> None:
    """Against the stub, not ROS: it holds the arm by its gravity torque, then follows a swing of 1 rad.

    The simulated arm is the model itself, so only the integration step is left: 1 ms of a speed of about 2 rad/s.
    """
    gxx, cc = compiler("g++", "c++"), compiler("cc", "gcc")
    done(cc, "-O2", "-Icode", "-c", "code/arm.c", "-o", "arm.o", cwd=place)
    strict = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-O2", "-Icode", f"-I{EXAMPLE / 'stub'}")
    done(gxx, *strict, EXAMPLE / "try_it.cpp", "arm.o", "-o", "try_it", cwd=place)
    holding, worst = done(place / "try_it", cwd=place).splitlines()
    torque = np.array(holding.split()[1:], dtype=float)
    assert difference(torque, dynid.dynamics.gravity_torque(robot, Q)) < 1e-12
    assert 0 < float(worst.split()[1]) < 2e-3


def test_the_page_shows_what_the_example_does() -> None:
    """The lines quoted are lines of the file."""
    assert block("cpp") in (EXAMPLE / "computed_torque.hpp").read_text(encoding="utf-8")
