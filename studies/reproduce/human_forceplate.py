"""A real person on a force plate: the wrench of held-out motion, predicted by the table's and the identified body.

One person, 36 joint angles from motion capture, one plate, 30 Hz, 90 s. The first two thirds are used for
identification, the last third is predicted. Errors are root mean squares divided by the standard deviation of the
measured component, in world axes with moments about the origin, as in the plate's file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.dynamics.functions import inverse_dynamics
from dynid.feasibility.constraints import Constraint, Mass
from dynid.feasibility.mirror import Symmetry
from dynid.human.prior import with_anthropometric_prior
from dynid.identification.estimate import Estimate
from dynid.identification.loads import state
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.recording.wrench import WrenchSensor
from dynid.robot.consistency import link_violations
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.manifold import resample_poses
from dynid.signals.settings import Signals, prepare
from studies.reproduce.study import Figure, data_folder, kept_figures, number

__all__ = ["Halves", "bridged", "errors", "figures", "identified", "person", "world_wrench"]

Array = NDArray[np.float64]

COMPONENTS = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
_SECTION = "A person on a force plate, last third held out"
_RATE = 30.0
_HELD_OUT = 1 / 3
_GRAVITY = 9.81
# Each link between the axes of a ball joint gets this share of its segment, so that all 37 links have inertia.
_SHARE = 1e-3
# A person who ends in the state of the beginning has gained no momentum: these components have zero mean.
_ZEROED = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
# Derivatives of the narrower stencil: they attenuate the noise of markers, which a wider band would pass.
_SIGNALS = Signals(
    cutoff=2.0, order=2, torque_cutoff="same", decimate=(), trim=1.0, min_velocity=0.0, derivative="central"
)


@dataclass(frozen=True, eq=False)
class Halves:
    """A skeleton with the table's body, training and test parts of the recording, and the plate's offset (6,)."""

    robot: Robot
    train: Run
    test: Run
    offset: Array
    mass: float
    repeated: int

    @property
    def zeroed(self) -> Recording:
        """The training part with the plate's offset subtracted."""
        plate = self.train.wrenches["plate"] - self.offset
        run = replace(self.train, wrenches={"plate": plate})
        return Recording(self.robot.coordinates, (run,))


def person(held_out: float = _HELD_OUT, bridge: bool = True) -> Halves:
    """The recording divided in two; the person's weight and the plate's offset come from the first part alone."""
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
    train, test = whole.rows(0, cut), whole.rows(cut, len(q)) if cut < len(q) else whole
    mass = float(train.wrenches["plate"][:, 2].mean() / _GRAVITY)
    robot = with_anthropometric_prior(skeleton, "male", mass, virtual_share=_SHARE)
    predicted, measured = world_wrench(robot, robot.parameters, train)
    return Halves(robot, train, test, _ZEROED * (measured - predicted).mean(axis=0), mass, repeated)


def bridged(run: Run) -> Run:
    """The same run with repeated poses replaced by interpolation through the others."""
    assert run.base is not None
    fresh = np.flatnonzero(_fresh(np.hstack([run.base, run.q])))
    t = np.clip(run.t, run.t[fresh[0]], run.t[fresh[-1]])
    q = scipy.interpolate.PchipInterpolator(run.t[fresh], run.q[fresh], axis=0)(t)
    base = resample_poses(run.t[fresh], run.base[fresh], t)
    return replace(run, q=q, base=base)


def _fresh(poses: Array) -> NDArray[np.bool_]:
    """Rows (N,) whose pose differs from that of the previous row."""
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
    """Root mean square error per component (6,), divided by the standard deviation of the measured component."""
    predicted, measured = world_wrench(robot, parameters, run, signals)
    return np.asarray(np.sqrt(np.mean((predicted + offset - measured) ** 2, axis=0)) / measured.std(axis=0))


def identified(
    part: Halves, metric: str = "euclidean", *, known: bool = True, mirror: bool = False, signals: Signals = _SIGNALS
) -> Estimate:
    """Estimate of all bodies from the first part; the prior's weight is chosen by cross-validation inside it."""
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


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Errors of the identified body on unseen motion; `full`: with the variants of the study too."""
    sections: dict[str, Callable[[], Iterator[Figure]]] = {
        "predictions": lambda: _predictions(person(), _estimate()),
        "horizontal force": lambda: _horizontal(person(), _estimate()),
    }
    if full:
        sections |= {name: partial(_variant, name) for name in _VARIANTS}
    yield from kept_figures("human-forceplate", sections, folder)


@cache
def _estimate() -> Estimate:
    return identified(person())


# Arguments of the recording and of the identification: also the entropic metric, symmetry, other low-pass filters, half
# of the time held out, and repeated poses.
_VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "entropic metric": ({}, {"metric": "entropic"}),
    "symmetric body": ({}, {"mirror": True}),
    "3 Hz": ({}, {"signals": replace(_SIGNALS, cutoff=3.0)}),
    "steeper low-pass, order 4": ({}, {"signals": replace(_SIGNALS, order=4)}),
    "second half held out": ({"held_out": 0.5}, {}),
    "repeated poses left in": ({"bridge": False}, {}),
}


def _variant(name: str) -> Iterator[Figure]:
    """Errors with one choice of the study changed."""
    given, options = _VARIANTS[name]
    case, signals = person(**given), options.get("signals", _SIGNALS)
    found = standard(identified(case, **options))
    before = errors(case.robot, case.robot.parameters, case.test, signals=signals)
    after = errors(case.robot, found, case.test, case.offset, signals)
    section = f"{_SECTION}: {name}"
    yield _lower("mean of the errors", float(before.mean()), float(after.mean()), 0.0, section)
    yield _lower("mean of the ratios", 1.0, float(np.mean(after / before)), 0.0, section)


def _predictions(part: Halves, estimate: Estimate) -> Iterator[Figure]:
    robot, found = part.robot, standard(estimate)
    before = errors(robot, robot.parameters, part.test)
    after = errors(robot, found, part.test, part.offset)
    for name, a, b in zip(COMPONENTS, before, after, strict=True):
        yield Figure(_SECTION, f"{name}: table, identified", f"{a:.3f}", f"{b:.3f}", b / a - 1, 0.0, "not worse")
    yield _lower("mean of the errors", float(before.mean()), float(after.mean()), -0.25)
    yield _lower("mean of the ratios", 1.0, float(np.mean(after / before)), -0.25)
    zeroed = errors(robot, robot.parameters, part.test, part.offset)
    yield _lower("of which the plate's zero", 1.0, float(np.mean(zeroed / before)), 0.0)
    yield _lower("of which the body, mean of the ratios", 1.0, float(np.mean(after / zeroed)), 0.0)
    yield _lower("of which the body, mean of the errors", float(zeroed.mean()), float(after.mean()), 0.0)
    plate = float(part.test.wrenches["plate"][:, 2].mean() / _GRAVITY)
    yield number(_SECTION, "mass: plate, last third; given from the rest, kg", plate, part.mass, 0.01 * plate, "1 %")
    free = identified(part, known=False)
    yield number(_SECTION, "mass: plate, last third; identified, kg", plate, _mass(free), 0.01 * plate, "1 %")
    broken = link_violations(robot, found)
    count = len(robot.parameter_links)
    yield Figure(_SECTION, "feasible bodies", "37", f"{count - len(broken)}", len(broken) + abs(count - 37), 0, "all")


def _horizontal(part: Halves, estimate: Estimate) -> Iterator[Figure]:
    """The component Fx: an offset, and a force that is smaller than the error of the table's body."""
    section = "The horizontal force Fx, whole recording"
    run = person(held_out=0.0).train
    table, measured = world_wrench(part.robot, part.robot.parameters, run)
    ours, _ = world_wrench(part.robot, standard(estimate), run)
    means = np.array([x[:, 0].mean() for x in np.array_split(measured, 9)])
    name, reason = "offset, N; scatter of ten-second means", "an offset without drift"
    yield Figure(section, name, f"{means.mean():.2f}", f"{means.std():.2f}", float(means.std()), 1.0, reason)
    for name, model in (("table", table), ("identified", ours)):
        slope, _ = np.polyfit(model[:, 0], measured[:, 0], 1)
        along = float(np.corrcoef(model[:, 0], measured[:, 0])[0, 1])
        yield _shown(section, f"{name}: correlation, measured over model", f"{along:.2f}", f"{slope:.2f}")
        # Rotated axes would show the large vertical force in the horizontal one.
        others = np.column_stack([model[:, :3] - model[:, :3].mean(axis=0), np.ones(len(model))])
        leak = float(np.linalg.lstsq(others, measured[:, 0], rcond=None)[0][2])
        yield _shown(section, f"{name}: share of Fz in Fx; as an angle", f"{leak:.4f}", f"{np.degrees(leak):.2f} deg")
    size, left = measured.std(axis=0), (measured - ours).std(axis=0)
    for k in range(3):
        name = f"{COMPONENTS[k]}: std; error of the identified body, N"
        yield _shown(section, name, f"{size[k]:.1f}", f"{left[k]:.1f}")


def _shown(section: str, name: str, a: str, b: str) -> Figure:
    """Two values for information, without a tolerance."""
    return Figure(section, name, a, b, 0.0, 0.0, "shown")


def _lower(name: str, before: float, after: float, goal: float, section: str = _SECTION) -> Figure:
    reason = f"at least {-100 * goal:.0f} % lower" if goal else "not worse"
    return Figure(section, name, f"{before:.3f}", f"{after:.3f}", after / before - 1, goal, reason)


def standard(estimate: Estimate) -> Array:
    """Standard parameters (p,) of a feasible estimate."""
    assert estimate.standard is not None
    return estimate.standard


def _mass(estimate: Estimate) -> float:
    layout = estimate.base.robot.layout
    return float(sum(x for x, p in zip(standard(estimate), layout, strict=True) if p.symbol == "m"))
