"""A quadruped and a biped on the ground, simulated by MuJoCo: what torques, encoders and an inertial unit tell.

The plants have contacts of MuJoCo, which are soft and slip, torque noise of 2 %, encoder steps of 2 pi / 2^14, and an
inertial unit with noise and bias. The a-priori trunk is wrong by a quarter of its mass and 4 cm; the legs are those of
the plant, because no motion separates all masses of the legs from that of the trunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import dynid
from dynid.legs import Contact, LegsEstimate, identify_legs, identify_trunk_payload
from dynid.robot.model import Robot
from studies.reproduce.legs_models import FOOT_RADIUS, IMU
from studies.reproduce.legs_plant import (
    LegsPlant,
    Payload,
    RobotFallsError,
    air_run,
    legs_plant,
    with_true_forces,
    with_wrong_schedule,
)
from studies.reproduce.study import Figure, kept_figures

__all__ = ["contacts_of", "figures", "wrong_prior"]

PAYLOADS = {"quadruped": (0.92, (0.05, 0.02, 0.1)), "biped": (1.8, (0.05, 0.02, 0.25))}
_MOTIONS = 6  # that are tried
_MASS = "2 % of the mass of the trunk"
_CENTER = "5 mm"
_COVERED = "all leg parameters within 3 standard deviations, but for the 0.3 % that lie outside by chance"


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """One run per robot, or five."""
    sections = {
        f"{kind}, run {seed}": partial(_one, kind, seed)
        for kind in ("quadruped", "biped")
        for seed in range(5 if full else 1)
    }
    yield from kept_figures("legs", sections, folder)


def contacts_of(plant: LegsPlant) -> list[Contact]:
    """The feet of a plant: balls of the quadruped, soles of the biped."""
    if plant.robot.name == "quadruped":
        return [Contact(frame=foot, radius=FOOT_RADIUS) for foot in plant.feet]
    return [Contact(frame=foot, kind="surface") for foot in plant.feet]  # type: ignore[arg-type]


def wrong_prior(robot: Robot) -> Robot:
    """The robot with a trunk that is a quarter too light and has its centre of mass 4 cm away."""
    pi = robot.parameters.copy()
    mass, center, tensor = dynid.inertia.inertia_to_com(pi[:10])
    pi[:10] = dynid.inertia.inertia_from_com(0.75 * mass, center + np.array([0.03, -0.02, 0.02]), 0.75 * tensor)
    return robot.with_parameters(pi)


def _one(kind: str, seed: int) -> Iterator[Figure]:
    """All figures of one plant."""
    plant = _walking(kind, seed)
    section = f"{kind}, run {seed}"
    robot, feet = plant.robot, contacts_of(plant)
    prior = wrong_prior(robot)
    found = identify_legs(prior, plant.recording, feet, "wls", imu=IMU)
    yield from _trunk(section, "contact forces unknown", found, robot)
    yield _covered(section, "contact forces unknown", found, robot)
    measured = dynid.Recording(robot.coordinates, (with_true_forces(plant),))
    known = identify_legs(prior, measured, feet, "wls", imu=IMU, foot_forces=True)
    yield from _trunk(section, "contact forces measured", known, robot)
    yield _told(section, "parameters, contact forces unknown and measured", found, known)
    held, run = air_run(kind, seed)
    air = dynid.identify(held, dynid.Recording(held.coordinates, (run,)), "wls")
    text = f"{air.base.count} of {found.estimate.base.count}, none of the trunk"
    trunk = any("trunk" in name for name in air.base.names)
    yield Figure(section, "parameters, legs in the air only", "fewer", text, float(trunk), 0.0, "no trunk")
    wrong = dynid.Recording(robot.coordinates, (with_wrong_schedule(plant, 0.1, seed),))
    survived = identify_legs(prior, wrong, feet, "wls", imu=IMU)
    yield from _trunk(section, "a tenth of the schedule wrong", survived, robot)
    named = sum(mask.mean() > 0.01 for run in survived.contradicted.values() for mask in run.values())
    yield Figure(
        section, "feet whose schedule is named as wrong", str(len(feet)), str(named), len(feet) - named, 0.0, "all"
    )
    yield from _payload(section, kind, seed, plant, found)


def _walking(kind: str, seed: int, payload: Payload | None = None) -> LegsPlant:
    """The first of some motions in which the robot does not fall."""
    for motion in range(seed, seed + 100 * _MOTIONS, 100):
        try:
            return legs_plant(kind, motion, payload)
        except RobotFallsError:
            continue
    raise RuntimeError(f"the {kind} falls in all of {_MOTIONS} motions")


def _trunk(section: str, what: str, found: LegsEstimate, robot: Robot) -> Iterator[Figure]:
    """Mass and centre of mass of the trunk."""
    truth, center = robot.parameters[0], robot.parameters[1:4] / robot.parameters[0]
    trunk = found.trunk
    off = float(np.abs(trunk.mass / truth - 1.0))
    yield Figure(section, f"trunk, {what}, kg", f"{truth:.4g}", f"{trunk.mass:.4g}", off, 0.02, _MASS)
    error = 1e3 * float(np.linalg.norm(trunk.center - center))
    yield Figure(section, f"centre of the trunk, {what}, mm off", "0", f"{error:.2f}", error, 5.0, _CENTER)


def _covered(section: str, what: str, found: LegsEstimate, robot: Robot) -> Figure:
    """Share of the leg parameters within three standard deviations."""
    base = found.estimate.base
    z = np.abs(found.estimate.beta - base.values(robot.parameters)) / found.estimate.std
    legs = np.array(["trunk" not in name for name in base.names])
    outside = float(np.mean(z[legs] > 3.0))
    text = f"{np.mean(z[legs] <= 3.0):.1%}, largest {z[legs].max():.2f}"
    return Figure(section, f"leg parameters within 3 sigma, {what}", "100 %", text, outside, 0.025, _COVERED)


def _told(section: str, what: str, found: LegsEstimate, known: LegsEstimate) -> Figure:
    """Number of parameters and the median ratio of their standard deviations."""
    same = found.estimate.base.count == known.estimate.base.count
    ratio = float(np.median(found.estimate.std / known.estimate.std)) if same else np.nan
    text = f"{found.estimate.base.count} and {known.estimate.base.count}, standard deviations {ratio:.2f} times"
    return Figure(section, what, "as many", text, float(not same), 0.0, "the same structure")


def _payload(section: str, kind: str, seed: int, plant: LegsPlant, found: LegsEstimate) -> Iterator[Figure]:
    """A payload of a tenth of the trunk, from another motion, as the difference to the identified robot."""
    mass, center = PAYLOADS[kind]
    loaded = _walking(kind, seed + 50, (mass, center))
    run = replace(loaded.run, name="loaded")
    payload = identify_trunk_payload(found, dynid.Recording(plant.robot.coordinates, (run,)))
    off = abs(payload.mass / mass - 1.0)
    yield Figure(section, "payload, kg", f"{mass:.3g}", f"{payload.mass:.4g}", off, 0.05, "5 % of its mass")
    error = 1e3 * float(np.linalg.norm(payload.center - np.array(center)))
    yield Figure(section, "centre of the payload, mm off", "0", f"{error:.1f}", error, 10.0, "1 cm")
