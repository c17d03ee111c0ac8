"""One arm, its recording, and results of everything that can be plotted, made once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import dynid
from dynid.assessment import Finding, SimulationError
from dynid.assessment.data.channels import TORQUE_SATURATED
from dynid.assessment.model.horizon import ModelErrors
from dynid.friction.selection import FrictionSelection
from dynid.identification.validation_errors import Validation, validation_of
from dynid.residual.residual import Residual
from dynid.simulation.replay import Ending
from dynid.simulation.simulation import Simulation


@pytest.fixture(scope="package")
def robot() -> dynid.Robot:
    """An arm with a revolute and a prismatic joint: both kinds of units."""
    body = {"mass": 2.0, "com": [0.1, 0.0, 0.05], "tensor": [0.02, 0, 0, 0.03, 0, 0.03]}
    rows = [
        {"alpha": 0.0, "inertia": body, "drive": {"fv": 1.0, "fc": 0.5}},
        {"alpha": "-pi/2", "kind": "prismatic", "inertia": body, "drive": {"fv": 3.0, "fc": 2.0}},
    ]
    return dynid.Robot.from_dh(rows, "modified", name="stacker")


@pytest.fixture(scope="package")
def recording(robot: dynid.Robot) -> dynid.Recording:
    t = np.arange(0.0, 4.0, 0.01)
    q = np.column_stack([np.sin(2.0 * t), 0.2 + 0.1 * np.cos(3.0 * t)])
    v = np.gradient(q, t, axis=0)
    torque = dynid.inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
    return dynid.Recording(robot.coordinates, (dynid.Run(t, q, v=v, torque=torque, name="first"),))


@pytest.fixture(scope="package")
def validation(robot: dynid.Robot, recording: dynid.Recording) -> Validation:
    run = recording.runs[0]
    measured = [run.torque[:, j] for j in range(2)]  # type: ignore[index]
    predicted = [x + 0.1 for x in measured]
    return validation_of(robot, robot.coordinates, measured, predicted, [run.t, run.t])


@pytest.fixture(scope="package")
def estimate(robot: dynid.Robot, recording: dynid.Recording) -> dynid.Estimate:
    return dynid.identify(robot.with_parameters(1.2 * robot.parameters), recording, "wls", noise_model="white")


@pytest.fixture(scope="package")
def excitation(robot: dynid.Robot) -> dynid.Excitation:
    """A motion close to its velocity limits."""
    limits = {"joint1": {"lower": -3.0, "upper": 3.0, "velocity": 0.3}}
    limits["joint2"] = {"lower": -1.0, "upper": 1.0, "velocity": 0.2}
    motion = dynid.design_excitation(robot, duration=4.0, limits=limits, budget=60, seed=0)
    # The search is limited by time: its result is scaled to the same use of the limits on every computer.
    return replace(motion, coefficients=0.97 * motion.coefficients / motion.use["velocity"][:, None])


@pytest.fixture(scope="package")
def simulation(robot: dynid.Robot) -> Simulation:
    law = dynid.controllers.pd(500.0, [40.0, 400.0], [8.0, 60.0])
    t = np.arange(500) / 500.0
    path = np.column_stack([0.2 - 0.2 * np.cos(4.0 * t), 0.1 - 0.1 * np.cos(4.0 * t)])
    return dynid.simulate(robot, dynid.ClosedLoop(controller=law), path)


@pytest.fixture(scope="package")
def selection(robot: dynid.Robot, recording: dynid.Recording) -> FrictionSelection:
    models = ["viscous", "coulomb+viscous"]
    return dynid.friction.select_friction(robot, recording, models=models, offset=False)


@dataclass(frozen=True)
class Learned:
    """A residual and the recording that it was learned from."""

    residual: Residual
    data: dynid.Recording


@pytest.fixture(scope="package")
def learned(robot: dynid.Robot, recording: dynid.Recording) -> Learned:
    training = dynid.residual.Training(method="sparse", points=10, restarts=0)
    run = recording.runs[0]
    pulled = replace(run, torque=run.torque + 0.5 * np.sin(4.0 * run.q))  # type: ignore[operator]
    data = dynid.Recording(recording.joints, (pulled,))
    return Learned(dynid.fit_residual(robot, data, kernel="own", training=training), data)


@pytest.fixture(scope="package")
def finding() -> Finding:
    rows = ((10, 20), (100, 101), (101, 102))
    words = ("What it is.", "3 of them", "What to do.")
    return Finding(TORQUE_SATURATED, "warning", "first", "joint2", *words, rows=rows)


@pytest.fixture(scope="package")
def horizons() -> SimulationError:
    at = (0.1, 0.5, 2.0)
    growth = np.array(at)[None, :, None] * np.ones((6, 1, 1))
    models = [ModelErrors(k * growth, k * growth, growth[:, 0], growth[:, 0], (Ending.COMPLETED,) * 6) for k in (1, 2)]
    return SimulationError("arm", "open", ("j",), ("rad",), ("tool",), at, identified=models[0], prior=models[1])
