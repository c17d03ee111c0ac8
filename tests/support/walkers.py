"""A small quadruped that stands and lifts its feet, without a simulator."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

import dynid
from dynid.legs import Contact, standing_run
from studies.reproduce.legs_models import QUADRUPED_FEET, quadruped_xml

POSTURE = np.tile([0.0, 0.75, -1.5], 4)
FEET = QUADRUPED_FEET


def write_walker(folder: Path) -> Path:
    """The file of the quadruped."""
    path = folder / "dog.xml"
    path.write_text(quadruped_xml())
    return path


@lru_cache(maxsize=1)
def walker() -> dynid.Robot:
    """The quadruped with its drives."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return dynid.load_robot(write_walker(Path(folder)), friction="viscous+coulomb", rotor_inertia=True)


def feet() -> list[Contact]:
    """Its feet as points."""
    return [Contact(frame=frame) for frame in FEET]


@lru_cache(maxsize=4)
def standing(seed: int = 0, duration: float = 16.0, noise: float = 0.005) -> dynid.Run:
    """It sways on its feet and lifts them one by one, at 200 Hz."""
    return standing_run(walker(), feet(), POSTURE, imu="imu", duration=duration, seed=seed, noise=noise)


def recording(*runs: dynid.Run) -> dynid.Recording:
    """Runs of the quadruped."""
    return dynid.Recording(walker().coordinates, runs)
