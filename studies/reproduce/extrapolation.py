"""Extrapolation: does the torque of fast motion lie in the band that an estimate from slow motion predicts?

Nothing here is published. The plants are not ours: the motion is a Fourier series in closed form, Pinocchio gives the
torques of bodies and rotors, and the friction laws are written here. The recording reaches 30 % of the velocity limits,
the predicted motion reaches them. Counted are the instants at which a joint is fastest, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pinocchio as pin
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dynid.assessment.verdict.assess import evidence_of
from dynid.assessment.verdict.model_checks import check_domain
from dynid.excitation.basis import fourier
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from studies.reproduce.coverage_plants import ARMS
from studies.reproduce.study import Figure, kept_figures

__all__ = ["LAWS", "Extrapolation", "Plant", "extrapolation", "figures"]

Array = NDArray[np.float64]

SLOW = 0.3
_WANTED, _LEVEL, _WIDEST = 0.90, 1.96, 16.0
_RATE, _PERIOD, _HARMONICS = 200.0, 10.0, 5
_TORQUE_NOISE, _POSITION_NOISE = 0.02, 1e-5  # share of the torque, rad


def _stribeck(speed: Array) -> Array:
    return 0.5 + 0.4 * np.exp(-((speed / 0.06) ** 2)) + 0.5 * speed


# Friction at a share of the largest velocity, as a share of that at the largest.
LAWS: dict[str, Callable[[Array], Array]] = {"square root": np.sqrt, "quadratic": np.square, "Stribeck": _stribeck}


@dataclass(frozen=True)
class Plant:
    """An arm of `ARMS` whose joints all have one of the friction laws."""

    arm: str
    law: str
    seed: int

    @cached_property
    def prior(self) -> Robot:
        """What is known before: bodies with errors, velocity limits, and that there is Coulomb and viscous friction."""
        arm = ARMS[self.arm]
        bodies = replace(arm.prior, drives=(), transmission=None)
        robot = bodies.with_drives("viscous+coulomb", rotor_inertia=True)
        return robot.with_limits({name: {"velocity": arm.velocity} for name in robot.coordinates})

    def motion(self, share: float) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations of a motion that reaches this share of the velocity limits."""
        arm, n = ARMS[self.arm], ARMS[self.arm].truth.n
        a, b = np.random.default_rng([self.seed, round(100 * share)]).normal(size=(2, n, _HARMONICS))
        t = np.asarray(share * np.arange(round(_PERIOD / share * _RATE)) / _RATE, dtype=np.float64)
        _, v, _ = fourier(a, b, 0.0, 1 / _PERIOD, t)
        scale = (arm.velocity / np.abs(v).max(axis=0))[:, None]
        q, v, acceleration = fourier(scale * a, scale * b, 0.0, 1 / _PERIOD, t)
        return q, share * v, share**2 * acceleration

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (N, joint) of bodies, rotors and friction."""
        arm = ARMS[self.arm]
        model = replace(arm.truth, drives=()).to_pinocchio()
        model.armature = np.array(arm.rotor_inertia)
        data = model.createData()
        rigid = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
        largest = np.array(arm.coulomb) + np.array(arm.viscous) * arm.velocity
        return np.asarray(rigid + largest * LAWS[self.law](np.abs(v) / arm.velocity) * np.sign(v))

    def recording(self) -> Recording:
        """What is recorded of the slow motion."""
        q, v, a = self.motion(SLOW)
        torque = self.torque(q, v, a)
        rng = np.random.default_rng([self.seed, 1])
        torque += _TORQUE_NOISE * torque.std(axis=0) * rng.standard_normal(torque.shape)
        positions = q + _POSITION_NOISE * rng.standard_normal(q.shape)
        return Recording(self.prior.coordinates, (Run(np.arange(len(q)) / _RATE, positions, torque=torque),))


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """Errors of predicted torques at the fastest instants and the half-widths of their 95 % bands (instant,).

    `share` is the recorded share of the velocity limit that the verdict names.
    """

    error: Array
    band: Array
    share: float

    @property
    def inside(self) -> float:
        """Share of the errors within their band."""
        return float(np.mean(self.error <= self.band))

    @property
    def width(self) -> float:
        """Median half-width of the band over the error."""
        return float(np.median(self.band / np.maximum(self.error, 1e-12)))


def extrapolation(plant: Plant, method: str) -> Extrapolation:
    """Identify from the slow recording and predict the fast motion."""
    estimate = identify(plant.prior, plant.recording(), method)
    q, v, a = plant.motion(1.0)
    joints = range(plant.prior.n)
    at = [(pick(v[:, j]), j) for j in joints for pick in (np.argmax, np.argmin)]
    rows, columns = (np.array(x) for x in zip(*at, strict=True))
    q, v, a = q[rows], v[rows], a[rows]
    predicted = estimate.predict(q, v, a)
    each = np.arange(len(rows)), columns
    check = check_domain(evidence_of(estimate))
    named = np.nan if check.figure is None else check.figure
    return Extrapolation(
        np.abs(plant.torque(q, v, a) - predicted.torque)[each], _LEVEL * predicted.std[each], float(named)
    )


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Ten recordings of two joints and one of six by least squares, one of two joints by the default method.

    `full`: forty recordings of two joints and twenty of six by three methods.
    """
    few = (("two joints", "wls", 10), ("six joints", "wls", 1), ("two joints", "auto", 1))
    many = ((arm, m, n) for m in ("wls", "feasible", "auto") for arm, n in (("two joints", 40), ("six joints", 20)))
    sections = {
        f"{arm}, {law} friction, {method}, {seeds} recordings": partial(_of_law, arm, law, method, seeds, full)
        for arm, method, seeds in (many if full else few)
        for law in LAWS
    }
    yield from kept_figures("extrapolation", sections, folder)


def _of_law(arm: str, law: str, method: str, seeds: int, full: bool) -> Iterator[Figure]:
    """Coverage, width and what the verdict names, with one process, or in the long form with one per core."""
    tasks = (delayed(extrapolation)(Plant(arm, law, seed), method) for seed in range(seeds))
    found = list(Parallel(n_jobs=-1 if full else 1)(tasks))
    section = f"{arm}, {law} friction"
    whole = Extrapolation(np.concatenate([x.error for x in found]), np.concatenate([x.band for x in found]), np.nan)
    count = f"{whole.error.size} instants of {len(found)} recordings"
    least, short = f"at least {100 * _WANTED:.0f} %", max(_WANTED - whole.inside, 0.0)
    yield Figure(section, f"{method}: in the band", least, f"{100 * whole.inside:.1f} %", short, 0.0, count)
    wide, reason = max(whole.width - _WIDEST, 0.0), "median of the half-width of the band over the error"
    most, ours = f"at most {_WIDEST:g}", f"{whole.width:.2f}"
    # A method that has the law in its model is hardly wrong, and the band holds the laws that it cannot know of.
    limit = np.inf if method == "auto" and law == "Stribeck" else 0.0
    yield Figure(section, f"{method}: band over error", most, ours, wide, limit, reason)
    named = np.array([x.share for x in found])
    ours, reason = f"{100 * np.min(named):.0f} to {100 * np.max(named):.0f} %", "recorded share that the verdict names"
    far = float(np.max(np.abs(named - SLOW)))
    yield Figure(section, f"{method}: velocity limit", f"{100 * SLOW:.0f} %", ours, far, 0.1, reason)
