"""Inverse kinematics from markers: nonlinear least squares per frame, each started from the previous pose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    UnknownName,
    named,
)
from dynid.markup import HtmlFrame
from dynid.mocap.capture import Capture
from dynid.mocap.marker_model import Attachments, MarkerModel, checked_attachments
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.recording.wrench import WrenchSensor
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import polars as pl

__all__ = ["InverseKinematics", "Pose", "PoseSolver", "inverse_kinematics", "rigid_fit"]

Array = NDArray[np.float64]


# One pose from one frame of markers: Levenberg-Marquardt on the manifold, with bounds.

Mask = NDArray[np.bool_]

_UNDETERMINED = 1e-6  # share of a coordinate that lies in directions no marker sees
_SINGULAR = 1e-10
_LONGEST_STEP = 0.5  # rad, m
_SOFT = 0.05  # m/rad: what a violated limit costs beside markers


@dataclass(frozen=True, eq=False)
class Pose:
    """A solved frame: q (nq,), distances (M,) m of the markers, steps taken, and what it is worth.

    `unit_std` (nv,) is the standard deviation of every coordinate for marker noise of 1 m at weight 1; infinite
    where the markers seen do not determine it, 0 where it stands at a limit.
    """

    q: Array
    distances: Array
    cost: float
    steps: int
    converged: bool
    unit_std: Array

    @property
    def rms(self) -> float:
        """Root mean square distance of the markers seen, m."""
        return float(np.sqrt(np.nanmean(self.distances**2)))


@dataclass(frozen=True, eq=False)
class PoseSolver:
    """Solver of single frames: `lower` and `upper` (nv,) are bounds, or soft limits where `soft`."""

    model: MarkerModel
    lower: Array
    upper: Array
    soft: bool = False
    tolerance: float = 1e-6
    max_iterations: int = 50
    _where: slice = field(init=False)

    def __post_init__(self) -> None:
        robot = self.model.robot
        object.__setattr__(self, "_where", slice(robot.nq - robot.n, None))

    def within(self, q: Array) -> Array:
        """The pose with its joints moved into the bounds."""
        if self.soft:
            return q
        n = self.model.robot.n
        out = q.copy()
        out[self._where] = np.clip(q[self._where], self.lower[len(self.lower) - n :], self.upper[len(self.upper) - n :])
        return out

    def solve(self, q: Array, target: Array, weights: Array) -> Pose:
        """Pose nearest to markers at `target` (M, 3), NaN where unseen, from the pose q."""
        weights = np.where(np.isfinite(target[:, 0]), weights, 0.0)
        target = np.nan_to_num(target)
        q = self.within(q)
        p, jacobian = self.model.jacobians(q)
        cost = self._cost(p, q, target, weights)
        damping, converged, steps = 1e-9, False, 0
        normal, slope = self._normal(p, jacobian, q, target, weights)
        while steps < self.max_iterations:
            steps += 1
            free = self._free(q, slope)
            step = np.zeros(len(slope))
            step[free] = _damped(normal[np.ix_(free, free)], slope[free], damping)
            # Where joints line up, the step the markers ask for may be many turns long.
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-300))
            new = self.within(self.model.moved(q, step))
            step[len(step) - self.model.robot.n :] = new[self._where] - q[self._where]
            small = np.abs(step).max(initial=0.0) < self.tolerance
            p_new, jacobian_new = self.model.jacobians(new)
            cost_new = self._cost(p_new, new, target, weights)
            if cost_new <= cost:
                q, p, jacobian, cost = new, p_new, jacobian_new, cost_new
                normal, slope = self._normal(p, jacobian, q, target, weights)
                damping = max(damping / 10, 1e-9)
            elif not small:
                damping = max(10 * damping, 1e-6)
            if small:
                converged = True
                break
        distances = np.where(weights > 0, np.linalg.norm(target - p, axis=1), np.nan)
        return Pose(q, distances, cost, steps, converged, _unit_std(normal, self._free(q, slope)))

    def _cost(self, p: Array, q: Array, target: Array, weights: Array) -> float:
        off = target - p
        cost = float(weights @ np.einsum("mi,mi->m", off, off))
        if self.soft:
            cost += _SOFT**2 * float(np.sum(self._violation(q) ** 2))
        return cost

    def _normal(self, p: Array, jacobian: Array, q: Array, target: Array, weights: Array) -> tuple[Array, Array]:
        rows = jacobian.reshape(-1, jacobian.shape[2])
        weighted = rows * np.repeat(weights, 3)[:, None]
        normal, slope = rows.T @ weighted, weighted.T @ (target - p).ravel()
        if self.soft:
            off = self._violation(q)
            normal[np.diag_indices(len(off))] += _SOFT**2 * (off != 0)
            slope -= _SOFT**2 * off
        return normal, slope

    def _violation(self, q: Array) -> Array:
        out = np.zeros(len(self.lower))
        n = self.model.robot.n
        x, low, high = q[self._where], self.lower[len(out) - n :], self.upper[len(out) - n :]
        out[len(out) - n :] = np.maximum(x - high, 0) - np.maximum(low - x, 0)
        return out

    def _free(self, q: Array, slope: Array) -> Mask:
        """Coordinates that do not press against a bound."""
        out = np.ones(len(slope), bool)
        if not self.soft:
            first = len(slope) - self.model.robot.n
            x, g = q[self._where], slope[first:]
            out[first:] = ~(((x <= self.lower[first:]) & (g < 0)) | ((x >= self.upper[first:]) & (g > 0)))
        return out


def _damped(normal: Array, slope: Array, damping: float) -> Array:
    """(H + damping diag H) step = slope; what no marker sees stays."""
    scale = np.diag(normal)
    ridge = damping * np.maximum(scale, 1e-3 * scale.max(initial=0.0)) + 1e-300
    matrix = normal.copy()
    matrix[np.diag_indices(len(scale))] += ridge
    _, step, fault = scipy.linalg.lapack.dposv(matrix, slope)
    if fault:
        step = np.linalg.lstsq(matrix, slope, rcond=1e-12)[0]
    return np.asarray(step).ravel()


def _unit_std(normal: Array, free: Mask) -> Array:
    out = np.zeros(len(free))
    where = np.flatnonzero(free)
    h = normal[np.ix_(where, where)]
    scale = np.sqrt(np.diag(h))
    blind = scale <= 1e-9 * scale.max(initial=0.0)
    out[where[blind]] = np.inf
    seen, scale = where[~blind], scale[~blind]
    if not len(seen):
        return out
    h = normal[np.ix_(seen, seen)] / np.outer(scale, scale)
    factor, fault = scipy.linalg.lapack.dpotrf(h)
    if not fault:
        inverse, fault = scipy.linalg.lapack.dpotri(factor)
        if not fault and np.diag(inverse).max() < 1 / _SINGULAR**0.5:
            out[seen] = np.sqrt(np.diag(inverse)) / scale
            return out
    values, vectors = np.linalg.eigh(h)
    good = values > _SINGULAR * values[-1]
    lost = np.sum(vectors[:, ~good] ** 2, axis=1) > _UNDETERMINED
    variance = np.sum(vectors[:, good] ** 2 / values[good], axis=1)
    out[seen] = np.where(lost, np.inf, np.sqrt(variance) / scale)
    return out


def rigid_fit(before: Array, after: Array) -> tuple[Array, Array]:
    """Rotation and translation that bring points (M, 3) nearest to others (Kabsch)."""
    a, b = before.mean(axis=0), after.mean(axis=0)
    u, _, vt = np.linalg.svd((after - b).T @ (before - a))
    turn = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return turn, b - turn @ a


# The first pose is tried from other initial poses while the marker error exceeds this (m, root mean square).
_POOR = 0.03
_STARTS = 12
# A frame whose marker error exceeds the usual one by this factor is solved again from up to this many other poses;
# if that does not help, the next frames are not retried for this many frames.
_WORSE, _RETRIES, _PAUSE = 1.5, 8, 10
_MAX_REJECTED = 5


@dataclass(frozen=True, eq=False)
class InverseKinematics(HtmlFrame):
    """Poses of a robot from markers.

    Attributes
    ----------
    robot : Robot
        The robot.
    name : str
        Name of the trial.
    t : ndarray, shape (N,)
        Times, s.
    q : ndarray, shape (N, nq)
        Position and unit quaternion x y z w (continuous in sign) of a floating base, then the joints. m and rad.
    markers : tuple of str
        Markers that were used.
    residuals : ndarray, shape (N, M)
        Distance of every marker from its predicted position, m; nan where it was not visible or was rejected.
    status : ndarray of str, shape (N,)
        "ok", "undetermined" (a coordinate without markers kept its value), "not converged" or "unseen".
    steps : ndarray of int, shape (N,)
        Iterations per frame.
    unit_std : ndarray, shape (N, nv)
        Standard deviation of every coordinate (in the order of velocities) per metre of marker noise.
    weights : ndarray, shape (M,)
        Weights of the markers.
    """

    robot: Robot
    name: str
    t: Array
    q: Array
    markers: tuple[str, ...]
    residuals: Array
    status: NDArray[np.str_]
    steps: NDArray[np.int64]
    unit_std: Array
    weights: Array

    @property
    def noise(self) -> float:
        """Standard deviation of a marker's coordinate at weight 1, m, from the residuals of all frames."""
        squares = np.nansum(self.weights * self.residuals**2)
        # Every coordinate that the markers determine takes one degree of freedom.
        determined = np.sum((self.unit_std > 0) & np.isfinite(self.unit_std))
        left = 3 * np.isfinite(self.residuals).sum() - determined
        if left <= 0:
            raise MissingArgument("too few markers to estimate their noise: give it in m", "noise")
        return float(np.sqrt(squares / left))

    def std(self, noise: float | None = None) -> Array:
        """Standard deviation (N, nv) of every coordinate for marker noise in m; by default that of the residuals."""
        return np.asarray(self.unit_std * (self.noise if noise is None else noise))

    def undetermined(self) -> tuple[str, ...]:
        """Coordinates that some frame leaves undetermined."""
        base = ("base.x", "base.y", "base.z", "base.rx", "base.ry", "base.rz")
        names = (base if self._first else ()) + self.robot.coordinates
        lost = np.isinf(self.unit_std).sum(axis=0) > 0
        return tuple(name for name, gone in zip(names, lost.tolist(), strict=True) if gone)

    @property
    def _first(self) -> int:
        return self.robot.nv - self.robot.n

    def recording(
        self, plates: Capture | None = None, *, delay: float = 0.0, feet: Mapping[str, str] | None = None
    ) -> Recording:
        """The motion as a recording; every force plate of a capture becomes a wrench sensor fixed to the world.

        Parameters
        ----------
        plates : Capture, optional
            Capture with force plates, read at the camera frames, band-limited. Frames that a plate does not cover are
            cut off.
        delay : float, default 0.0
            Delay of the plates against the cameras, s, as given by `Capture.clock_offset`.
        feet : mapping of str to str, optional
            Link that stands on each plate; needed only for joint torques.

        Returns
        -------
        Recording
            One run with the motion and the wrenches.
        """
        q, base = self.q[:, self.robot.nq - self.robot.n :], self.q[:, :7] if self._first else None
        run = Run(self.t, q, base=base, name=self.name)
        if plates is None:
            return Recording(self.robot.coordinates, (run,))
        if not plates.plates:
            raise MissingData(f"capture '{plates.name}' has no force plate")
        names = [plate.name for plate in plates.plates]
        unknown = [name for name in feet or () if name not in names]
        if unknown:
            raise UnknownName(f"feet names '{unknown[0]}', the plates are {', '.join(names)}", "feet")
        wrenches = {plate.name: plate.at(self.t + delay) for plate in plates.plates}
        good = np.flatnonzero(np.isfinite(sum(wrenches.values())[:, 0]))  # type: ignore[index]
        if len(good) < 2:
            raise Mismatch(f"the plates of '{plates.name}' and the cameras share no time", "plates")
        rows = slice(int(good[0]), int(good[-1]) + 1)
        sensors = {name: WrenchSensor("world", "world", link=(feet or {}).get(name)) for name in names}
        cut = run.rows(rows.start, rows.stop)
        run = replace(cut, wrenches={name: x[rows] for name, x in wrenches.items()}, sensors=sensors)
        return Recording(self.robot.coordinates, (run,))

    def to_frame(self) -> pl.DataFrame:
        """The poses as a table.

        Returns
        -------
        polars.DataFrame
            One row per frame: t in s, then position and quaternion of a floating base and the joints, in m and rad, and
            status.
        """
        import polars as pl

        base = ("base.x", "base.y", "base.z", "base.qx", "base.qy", "base.qz", "base.qw") if self._first else ()
        names = (*base, *self.robot.coordinates)
        columns = {name: self.q[:, k] for k, name in enumerate(names)}
        return pl.DataFrame({"t": self.t, **columns, "status": self.status.tolist()})

    def summary(self) -> str:
        """Frames, status and residuals per marker, largest first."""
        rms = np.sqrt(np.nanmean(self.residuals**2))
        counts = ", ".join(f"{np.sum(self.status == s)} {s}" for s in dict.fromkeys(self.status.tolist()))
        lines = [f"{self.name}: {len(self.q)} frames ({counts}), markers off by {1000 * rms:.1f} mm (rms)"]
        lost = self.undetermined()
        if lost:
            lines.append(f"not determined in every frame: {', '.join(lost)}")
        squares = np.where(np.isfinite(self.residuals), self.residuals, 0.0) ** 2
        seen = np.isfinite(self.residuals).sum(axis=0)
        each = np.sqrt(squares.sum(axis=0) / np.maximum(seen, 1))
        for m in np.argsort(-each):
            worst = 1000 * np.sqrt(squares[:, m].max())
            lines.append(
                f"  {self.markers[m]:<20} {1000 * each[m]:7.1f} mm rms {worst:7.1f} mm at most, {seen[m]} frames"
            )
        return "\n".join(lines)


def inverse_kinematics(
    robot: Robot,
    markers: Capture,
    attachments: Attachments,
    *,
    start: ArrayLike | None = None,
    weights: Mapping[str, float] | None = None,
    limits: Literal["bounds", "soft", "none"] = "bounds",
    reject: float | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 50,
    seed: int = 0,
) -> InverseKinematics:
    """Compute the poses of a robot whose markers are closest to the captured ones.

    Parameters
    ----------
    robot : Robot
        The robot or human model.
    markers : Capture
        Captured markers. Frames with missing markers are solved with the visible ones.
    attachments : mapping of str to (str, array_like)
        Link or frame of each marker and its position there, m. Other markers are not used.
    start : array_like, shape (nq,), optional
        Initial pose; found by search if left out.
    weights : mapping of str to float, optional
        Weight of each marker, 1 if left out.
    limits : {"bounds", "soft", "none"}, default "bounds"
        Joint limits as bounds, as penalties, or not used.
    reject : float, optional
        A marker with a larger residual than this (m) is left out of its frame, largest first.
    tolerance : float, default 1e-6
        Size of the last step, rad and m.
    max_iterations : int, default 50
        Maximum number of iterations per frame.
    seed : int, default 0
        Seed of the search for an initial pose.

    Returns
    -------
    InverseKinematics
        Poses with residuals, status and standard deviations.

    Raises
    ------
    DataError
        If no attached marker is visible, or an option is invalid.
    """
    if limits not in ("bounds", "soft", "none"):
        raise UnknownName(f"{named('limits')} '{limits}' is unknown: use bounds, soft or none")
    if reject is not None and not reject > 0:
        raise InvalidValue(f"reject must be a positive distance in m, got {reject:g}", "reject")
    places = checked_attachments(attachments)
    target = np.ascontiguousarray(markers.positions[:, [markers.marker_index(name) for name in places]])
    if not np.isfinite(target).any():
        raise MissingData(f"capture '{markers.name}' shows none of the attached markers")
    weight = _weights(places, weights)
    model = MarkerModel(robot, places)
    solver = _solver(model, limits, tolerance, max_iterations)
    first = _first_frame(target)
    if start is None:
        pose = _find_start(solver, target[first], weight, seed)
    else:
        q = np.asarray(start, dtype=float)
        if q.shape != (robot.nq,) or not np.all(np.isfinite(q)):
            raise InvalidShape(f"{named('start')} has shape {q.shape}, expected ({robot.nq},) finite numbers")
        pose = solver.solve(_unit(robot, q), target[first], weight)
    track = _Track(solver, target, weight, reject, np.random.default_rng(seed))
    track.follow(first, pose)
    return _collected(robot, markers, model, track.poses, weight)


def _solver(model: MarkerModel, limits: str, tolerance: float, max_iterations: int) -> PoseSolver:
    robot = model.robot
    lower, upper = np.full(robot.nv, -np.inf), np.full(robot.nv, np.inf)
    if limits != "none":
        bounds = [robot.limits[name] for name in robot.coordinates]
        lower[robot.nv - robot.n :] = [b.lower for b in bounds]
        upper[robot.nv - robot.n :] = [b.upper for b in bounds]
    return PoseSolver(model, lower, upper, limits == "soft", tolerance, max_iterations)


def _weights(places: Mapping[str, object], given: Mapping[str, float] | None) -> Array:
    unknown = [name for name in given or () if name not in places]
    if unknown:
        raise UnknownName(f"weights names '{unknown[0]}', which is not attached", "weights")
    out = np.array([float((given or {}).get(name, 1.0)) for name in places])
    if not (np.all(np.isfinite(out)) and np.all(out >= 0) and out.any()):
        raise InvalidValue("weights must be finite, not negative, and not all zero", "weights")
    return out


def _first_frame(target: Array) -> int:
    """The first of the frames that show most markers."""
    seen = np.isfinite(target[..., 0]).sum(axis=1)
    return int(np.argmax(seen))


def _find_start(solver: PoseSolver, target: Array, weights: Array, seed: int) -> Pose:
    """The best of several starts: joints at zero first, then anywhere within their limits."""
    robot, rng = solver.model.robot, np.random.default_rng(seed)
    q = np.zeros(robot.nq)
    if robot.base == "floating":
        q[6] = 1.0
    best = solver.solve(_placed(solver, q, target), target, weights)
    for k in range(_STARTS):
        if best.rms < _POOR:
            break
        pose = solver.solve(_elsewhere(solver, q, target, min(1.0, (k + 1) / 4), rng), target, weights)
        best = min(best, pose, key=lambda p: p.cost)
    return best


def _elsewhere(solver: PoseSolver, q: Array, target: Array, share: float, rng: np.random.Generator) -> Array:
    """Another initial pose: joints moved by a `share` towards a random pose within limits (or a quarter turn)."""
    robot = solver.model.robot
    low = np.maximum(solver.lower[robot.nv - robot.n :], -np.pi / 2)
    high = np.maximum(np.minimum(solver.upper[robot.nv - robot.n :], np.pi / 2), low)
    out = q.copy()
    joints = slice(robot.nq - robot.n, None)
    out[joints] += share * (rng.uniform(low, high) - out[joints])
    return _placed(solver, out, target)


def _placed(solver: PoseSolver, q: Array, target: Array) -> Array:
    """The pose with a floating base moved to where its markers fit best, joints as they are."""
    robot, seen = solver.model.robot, np.isfinite(target[:, 0])
    q = solver.within(q)
    if robot.base != "floating" or seen.sum() < 3:
        return q
    import pinocchio as pin

    turn, shift = rigid_fit(solver.model.positions(q)[seen], target[seen])
    base = pin.SE3(turn, shift) * pin.XYZQUATToSE3(q[:7])
    out = q.copy()
    out[:7] = pin.SE3ToXYZQUAT(base)
    if out[3:7] @ q[3:7] < 0:
        out[3:7] *= -1
    return out


@dataclass(eq=False)
class _Track:
    """Poses of all frames, each from its neighbour; bad ones are tried again from elsewhere and from both sides."""

    solver: PoseSolver
    target: Array
    weights: Array
    reject: float | None
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.poses: list[Pose | None] = [None] * len(self.target)
        self._usual: list[float] = []

    def follow(self, first: int, pose: Pose) -> None:
        """Solve forwards and backwards from the frame with most markers, so that each starts next to a solved frame."""
        for frames in (range(first, len(self.target)), range(first - 1, -1, -1)):
            last, wait = pose, 0
            for k in frames:
                solved = self._solve(k, last.q)
                if solved is None:
                    continue
                wait = max(wait - 1, 0)
                if self._poor(solved) and not wait:
                    solved = self._again(k, solved)
                    wait = _PAUSE if self._poor(solved) else 0
                self.poses[k] = last = solved
                self._usual.append(solved.rms)
        count = len(self.target)
        for frames in (range(count - 1, -1, -1), range(count)):
            self._mend(frames)

    def _poor(self, pose: Pose) -> bool:
        if len(self._usual) < 10:
            return pose.rms > _POOR
        # The latest frames stand for all of them; a median of thousands would cost more than the frame.
        return not pose.converged or pose.rms > _WORSE * float(np.median(self._usual[-100:])) + 1e-6

    def _again(self, k: int, pose: Pose) -> Pose:
        """The best from a fresh placement of the base and from other joint angles."""
        best = pose
        for share in np.linspace(0, 1, _RETRIES):
            start = _elsewhere(self.solver, pose.q, self.target[k], float(share), self.rng)
            other = self._solve(k, start)
            if other is not None and other.cost < 0.9 * best.cost:
                best = other
            if not self._poor(best):
                break
        return best

    def _mend(self, frames: range) -> None:
        """Frames that are much worse than the one before are solved from its pose."""
        last: Pose | None = None
        for k in frames:
            pose = self.poses[k]
            if pose is None:
                continue
            if last is not None and (not pose.converged or pose.rms > _WORSE * last.rms + 1e-6):
                other = self._solve(k, last.q)
                if other is not None and other.cost < 0.9 * pose.cost:
                    self.poses[k] = pose = other
            last = pose

    def _solve(self, k: int, q: Array) -> Pose | None:
        target = self.target[k]
        if not np.isfinite(target[:, 0]).any():
            return None
        pose = self.solver.solve(q, target, self.weights)
        for _ in range(_MAX_REJECTED if self.reject is not None else 0):
            far = np.nan_to_num(pose.distances)
            if far.max() <= (self.reject or np.inf):
                break
            target = target.copy()
            target[int(np.argmax(far))] = np.nan
            if not np.isfinite(target[:, 0]).any():
                return None
            pose = self.solver.solve(pose.q, target, self.weights)
        return pose


def _collected(
    robot: Robot, capture: Capture, model: MarkerModel, poses: list[Pose | None], weights: Array
) -> InverseKinematics:
    count, markers = len(poses), len(model.markers)
    q, residuals = np.full((count, robot.nq), np.nan), np.full((count, markers), np.nan)
    std, steps = np.full((count, robot.nv), np.inf), np.zeros(count, np.int64)
    status = np.full(count, "unseen", dtype="<U16")
    for k, pose in enumerate(poses):
        if pose is None:
            continue
        q[k], residuals[k], std[k], steps[k] = pose.q, pose.distances, pose.unit_std, pose.steps
        lost = np.isinf(pose.unit_std).any()
        status[k] = "not converged" if not pose.converged else "undetermined" if lost else "ok"
    known = np.flatnonzero(status != "unseen")
    # Frames without any marker hold the pose of the nearest one that has some.
    nearest = known[np.argmin(np.abs(np.arange(count)[:, None] - known), axis=1)] if len(known) < count else known
    q = q[nearest]
    if robot.base == "floating":
        flips = np.sum(q[1:, 3:7] * q[:-1, 3:7], axis=1) < 0
        q[1:, 3:7] *= np.where(np.cumsum(flips) % 2, -1.0, 1.0)[:, None]
    return InverseKinematics(robot, capture.name, capture.t, q, model.markers, residuals, status, steps, std, weights)


def _unit(robot: Robot, q: Array) -> Array:
    if robot.base != "floating":
        return q
    size = float(np.linalg.norm(q[3:7]))
    if size < 1e-6:
        raise InvalidValue(f"{named('start')} has a quaternion of length zero")
    out = q.copy()
    out[3:7] /= size
    return out
