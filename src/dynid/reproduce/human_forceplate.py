"""A real person on a force plate: the wrench of motion held out, by the table's body and by the identified one.

One person, 36 joint angles from motion capture, one plate, 30 Hz, 90 s. The first two thirds are identified from; the
last third is predicted. Errors are root mean squares over the deviation of the measured component, in the world's axes
with moments about its origin, as the plate's file has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.dynamics.functions import inverse_dynamics
from dynid.feasibility.constraints import Constraint, Mass
from dynid.feasibility.mirror import Symmetry
from dynid.feasibility.possible import possible_robots
from dynid.human.prior import with_anthropometric_prior
from dynid.identify.estimate import Estimate
from dynid.identify.identify import identify
from dynid.identify.loads import state
from dynid.recording.recording import Recording, Run
from dynid.recording.wrench import WrenchSensor
from dynid.reproduce.study import Figure, data_folder, number
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.manifold import resample_poses
from dynid.signals.settings import Signals, prepare

__all__ = ["Halves", "bridged", "figures", "person", "world_wrench"]

Array = NDArray[np.float64]

COMPONENTS = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
_SECTION = "A person on a force plate, last third held out"
_RATE = 30.0
_HELD_OUT = 1 / 3
_GRAVITY = 9.81
# Each of the links between the axes of a ball joint takes this share of its segment, so that all 37 are bodies.
_SHARE = 1e-3
# A person who ends as he began has pushed off as much to either side: these components have no mean of their own.
_ZEROED = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
_SIGNALS = Signals(cutoff=2.0, order=2, torque_cutoff="same", decimate=(), trim=1.0, min_speed=0.0)


@dataclass(frozen=True, eq=False)
class Halves:
    """A skeleton with the table's body, what is identified from, what is predicted, and the plate's offset (6,)."""

    robot: Robot
    train: Run
    test: Run
    offset: Array
    mass: float
    repeated: int

    @property
    def zeroed(self) -> Recording:
        """The first part with the plate's offset taken off."""
        plate = self.train.wrenches["plate"] - self.offset
        run = Run(
            self.train.t, self.train.q, base=self.train.base, wrenches={"plate": plate}, sensors=self.train.sensors
        )
        return Recording(self.robot.coordinates, (run,))


def person(held_out: float = _HELD_OUT, bridge: bool = True) -> Halves:
    """The recording cut in two; weight and offset of the plate come from the first part alone."""
    folder = data_folder() / "human-forceplate-figaroh"
    skeleton = load_robot(folder / "human.urdf", base="floating")
    table = pl.read_csv(folder / "q_and_wrench_30Hz.csv.gz")
    q = table.select([f"q_{k}" for k in range(43)]).to_numpy()
    plate = table.select(COMPONENTS).to_numpy()
    whole = Run(
        np.arange(len(q)) / _RATE,
        q[:, 7:],
        base=q[:, :7],
        wrenches={"plate": plate},
        sensors={"plate": WrenchSensor("world")},
    )
    repeated = int(np.sum(~_fresh(q)))
    if bridge:
        whole = bridged(whole)
    cut = round((1 - held_out) * len(q))
    train, test = whole.rows(0, cut), whole.rows(cut, len(q))
    mass = float(train.wrenches["plate"][:, 2].mean() / _GRAVITY)
    robot = with_anthropometric_prior(skeleton, "male", mass, virtual_share=_SHARE)
    predicted, measured = world_wrench(robot, robot.parameters, train)
    return Halves(robot, train, test, _ZEROED * (measured - predicted).mean(axis=0), mass, repeated)


def bridged(run: Run) -> Run:
    """The same run with poses that only repeat the one before replaced by a curve through the others."""
    assert run.base is not None
    fresh = np.flatnonzero(_fresh(np.hstack([run.base, run.q])))
    t = np.clip(run.t, run.t[fresh[0]], run.t[fresh[-1]])
    q = scipy.interpolate.PchipInterpolator(run.t[fresh], run.q[fresh], axis=0)(t)
    base = resample_poses(run.t[fresh], run.base[fresh], t)
    return Run(run.t, q, base=base, wrenches=run.wrenches, sensors=run.sensors, name=run.name)


def _fresh(poses: Array) -> NDArray[np.bool_]:
    """Rows (N,) whose pose is not that of the row before."""
    return np.concatenate([[True], np.any(np.diff(poses, axis=0) != 0, axis=1)])


def world_wrench(robot: Robot, parameters: Array, run: Run, signals: Signals = _SIGNALS) -> tuple[Array, Array]:
    """Predicted and measured wrench (N, 6) on the ground, in the world's axes about its origin."""
    motion = prepare(run, signals)
    q, v, a = state(robot, motion)
    load = inverse_dynamics(robot, q, v, a, parameters)
    turn = Rotation.from_quat(q[:, 3:7])
    force = turn.apply(load[:, :3])
    moment = turn.apply(load[:, 3:6]) + np.cross(q[:, :3], force)
    return np.hstack([force, moment]), motion.wrenches["plate"]


def errors(
    robot: Robot, parameters: Array, run: Run, offset: Array | float = 0.0, signals: Signals = _SIGNALS
) -> Array:
    """Root mean square of the error of every component over the deviation of the measured one (6,)."""
    predicted, measured = world_wrench(robot, parameters, run, signals)
    return np.asarray(np.sqrt(np.mean((predicted + offset - measured) ** 2, axis=0)) / measured.std(axis=0))


def identified(
    part: Halves, metric: str = "euclidean", *, known: bool = True, mirror: bool = False, signals: Signals = _SIGNALS
) -> Estimate:
    """All bodies from the first part; the prior's weight is found by cross-validation inside it."""
    laws: list[Constraint | str] = ["full"]
    if known:
        laws.append(Mass(part.mass, part.mass))
    if mirror:
        laws.append(Symmetry.by_name(part.robot, "z", middle=False))
    return identify(
        part.robot,
        part.zeroed,
        "feasible",
        signals=signals,
        channels="wrench",
        constraints=laws,
        metric=metric,
        weight="cv",
    )


def figures() -> Iterator[Figure]:
    part = person()
    yield from _predictions(part)
    yield from _horizontal(part)


def _predictions(part: Halves) -> Iterator[Figure]:
    robot = part.robot
    before = errors(robot, robot.parameters, part.test)
    estimate = identified(part)
    assert estimate.standard is not None
    after = errors(robot, estimate.standard, part.test, part.offset)
    for name, a, b in zip(COMPONENTS, before, after, strict=True):
        yield Figure(_SECTION, f"{name}: table, identified", f"{a:.3f}", f"{b:.3f}", b / a - 1, 0.0, "not worse")
    yield _lower("all six: mean of the errors", before.mean(), after.mean(), -0.25)
    yield _lower("all six: mean of the ratios", 1.0, float(np.mean(after / before)), -0.25)
    zeroed = errors(robot, robot.parameters, part.test, part.offset)
    yield _lower("of which the plate's zero", 1.0, float(np.mean(zeroed / before)), 0.0)
    yield _lower("of which the body", 1.0, float(np.mean(after / zeroed)), 0.0)
    entropic = identified(part, "entropic")
    assert entropic.standard is not None
    other = errors(robot, entropic.standard, part.test, part.offset)
    yield _lower("entropic metric: mean of the ratios", 1.0, float(np.mean(other / before)), -0.25)

    plate = float(part.test.wrenches["plate"][:, 2].mean() / _GRAVITY)
    yield number(_SECTION, "mass, plate over the last third, kg", plate, _mass(estimate), 0.01 * plate, "1 %")
    free = identified(part, known=False)
    yield number(_SECTION, "mass where it is not given, kg", plate, _mass(free), 0.01 * plate, "1 %")
    broken = possible_robots(robot, "full").violations(estimate.standard, 1e-7)
    count = len(robot.parameter_links)
    yield Figure(_SECTION, "possible bodies", "37", f"{count - len(broken)}", len(broken) + abs(count - 37), 0, "all")


def _horizontal(part: Halves) -> Iterator[Figure]:
    """What the component Fx is: an offset, and a force smaller than what any model of the motion errs by."""
    section = "The horizontal force Fx, all of the recording"
    run = person(held_out=0.001).train
    estimate = identified(part)
    assert estimate.standard is not None
    table, measured = world_wrench(part.robot, part.robot.parameters, run)
    ours, _ = world_wrench(part.robot, estimate.standard, run)
    windows = [x[:, 0].mean() for x in np.array_split(measured, 9)]
    yield Figure(
        section, "offset, N; its spread over ten-second means", f"{np.mean(windows):.2f}", f"{np.std(windows):.2f}",
        float(np.std(windows)), 1.0, "an offset that does not drift",
    )  # fmt: skip
    for name, model in (("table", table), ("identified", ours)):
        gain, _ = np.polyfit(model[:, 0], measured[:, 0], 1)
        correlation = np.corrcoef(model[:, 0], measured[:, 0])[0, 1]
        yield Figure(section, f"{name}: correlation, measured over model", f"{correlation:.2f}", f"{gain:.2f}", 0, 0, "")
    size, left = measured.std(axis=0), (measured - ours).std(axis=0)
    for k in range(3):
        yield Figure(
            section, f"{COMPONENTS[k]}: deviation, error of the identified body, N", f"{size[k]:.1f}", f"{left[k]:.1f}",
            0, 0, "",
        )  # fmt: skip


def _lower(name: str, before: float, after: float, goal: float) -> Figure:
    reason = f"at least {-100 * goal:.0f} % lower" if goal else "not worse"
    return Figure(_SECTION, name, f"{before:.3f}", f"{after:.3f}", after / before - 1, goal, reason)


def _mass(estimate: Estimate) -> float:
    assert estimate.standard is not None
    layout = estimate.base.robot.layout
    return float(sum(x for x, p in zip(estimate.standard, layout, strict=True) if p.symbol == "m"))
