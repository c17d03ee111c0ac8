"""Fit a Gaussian-process residual to the torque errors of a rigid model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.errors import ConflictingArguments, InvalidValue, UnknownName, keyword, named
from dynid.identification.estimate import Estimate
from dynid.progress import Progress, ProgressCallback
from dynid.recording.recording import Recording
from dynid.residual.blend import Blend
from dynid.residual.features import Features, fit_features
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import parse_noise
from dynid.residual.posterior import basis_columns
from dynid.residual.problem import Problem, Unfit
from dynid.residual.residual import JointResidual, Residual
from dynid.residual.rigid_prior import RigidPosterior, together
from dynid.residual.rows import JointRows, RigidPart, TorqueRows
from dynid.residual.selection import Score, choose
from dynid.residual.training import Training, hyper_parameters, posterior
from dynid.robot.model import Robot

__all__ = ["CANDIDATES", "fit_residual", "fold_numbers", "held_out_errors"]

Array = NDArray[np.float64]


# Cross-validation folds over a motion, and torque errors of the rigid model identified without a fold.


# Number of folds. From _ENOUGH runs on every run is a fold; fewer are cut into intervals of time, more are grouped.
_FOLDS = 6
_ENOUGH = 4
# If least squares would remove more than this share of the squared error, the model was not fitted to these rows.
_ELSEWHERE = 0.2
# Directions of the scaled parameters with less information than this in the other folds keep their identified values.
_KNOWN = 1e-9


def fold_numbers(joints: Sequence[JointRows]) -> list[NDArray[np.intp]]:
    """A fold for every row of every joint: runs, grouped or cut into intervals of time that all joints share."""
    runs = np.unique(np.concatenate([rows.run for rows in joints]))
    if len(runs) >= _ENOUGH:
        count = min(len(runs), _FOLDS)
        return [np.asarray(np.searchsorted(runs, rows.run) * count // len(runs)) for rows in joints]
    pieces = -(-_FOLDS // len(runs))
    out = [np.zeros(len(rows), np.intp) for rows in joints]
    for i, run in enumerate(runs):
        here = [rows.run == run for rows in joints]
        clock = np.concatenate([rows.t[h] for rows, h in zip(joints, here, strict=True)])
        start, length = clock.min(), max(float(np.ptp(clock)), 1e-12)
        for rows, h, fold in zip(joints, here, out, strict=True):
            piece = np.floor((rows.t[h] - start) / length * pieces).astype(np.intp)
            fold[h] = i * pieces + np.minimum(piece, pieces - 1)
    return out


def held_out_errors(joints: Sequence[JointRows], folds: Sequence[NDArray[np.intp]]) -> list[Array]:
    """Errors (folds, N) of every joint's rows, the rigid model identified each time without one of the folds.

    The change of the base parameters is that of least squares with joints weighted by their errors, which is exact for
    an estimate by weighted least squares. Errors of a model that was fitted to all folds have opposite signs in
    different folds, so that a residual learned on one fold would seem useless on another; leaving the fold out avoids
    this. Errors of a model that was fitted to other data are returned as they are.
    """
    count, size = 1 + max(int(f.max()) for f in folds), joints[0].W.shape[1]
    information, vector = np.zeros((count, size, size)), np.zeros((count, size))
    for rows, fold in zip(joints, folds, strict=True):
        weight = 1.0 / max(float(np.mean(rows.error**2)), 1e-300)
        for k in range(count):
            W, error = rows.W[fold == k], rows.error[fold == k]
            information[k] += weight * (W.T @ W)
            vector[k] += weight * (W.T @ error)
    total, scale = information.sum(axis=0), np.sqrt(np.maximum(np.diag(information.sum(axis=0)), 1e-300))

    def change(A: Array, b: Array) -> Array:
        return np.asarray(np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=_KNOWN)[0] / scale)

    whole = change(total, vector.sum(axis=0))
    samples = sum(len(rows) for rows in joints)
    if whole @ vector.sum(axis=0) > _ELSEWHERE * samples:
        return [np.tile(rows.error, (count, 1)) for rows in joints]
    moved = [change(total - information[k], vector.sum(axis=0) - vector[k]) - whole for k in range(count)]
    return [rows.error - np.array(moved) @ rows.W.T for rows in joints]


CANDIDATES = ("friction", "own", "load", "se", "ard", "ard+own")
# Along one run every feature is a function of time, so their relevance cannot be determined.
_ONE_RUN = ("friction", "own", "load", "se")
_DEGREES = {"none": -1, "constant": 0, "linear": 1}
_RIGID = ("fixed", "prior", "none")
# Rows per joint that are used; more are decimated evenly.
_MOST_ROWS = 20_000


def fit_residual(
    model: Estimate | Robot,
    data: Recording | TorqueRows,
    *,
    kernel: str | Sequence[str] = "auto",
    training: Training | None = None,
    noise: str = "even",
    basis: str = "none",
    rigid: str = "fixed",
    prior_scale: float = 10.0,
    periodic: bool | str = "auto",
    blend: Blend | None = None,
    bound: float | ArrayLike | None = None,
    progress: ProgressCallback | None = None,
) -> Residual:
    """Learn the torque errors of a rigid model from a recording, with one Gaussian process per joint.

    Parameters
    ----------
    model : Estimate or Robot
        The rigid model: an estimate, or a robot whose parameters are taken as exact.
    data : Recording or TorqueRows
        Recorded motion and torques. A recording is processed with the signal settings of the estimate.
    kernel : str or sequence of str
        Covariance function, in words joined by "+": "se", "ard", "matern32", "matern52", "exponential" and
        "rational-quadratic" depend on the motion of all joints, the last four with one length scale per column, or with
        one for all as "matern32-iso" etc.; "friction", "own" and "load" on that of the joint itself (see the page on
        residuals). Of several, given
        simplest first, cross-validation chooses one per joint. "auto" chooses from friction, own, load, se, ard and
        ard+own, with a single run from the first four. Where there is a choice, a joint whose held-out error does not
        fall keeps its rigid torque, and the others scale the learned torque by what held-out data support.
    training : Training, optional
        Inference method and search for hyper-parameters.
    noise : {"even", "reversal"}
        Constant measurement noise, or more noise where a joint reverses its motion.
    basis : {"none", "constant", "linear"}
        Explicit basis functions beside the kernel, in the features.
    rigid : {"fixed", "prior", "none"}
        "fixed" keeps the rigid parameters, "prior" estimates them together with the residual, "none" learns the whole
        torque without a rigid model.
    prior_scale : float
        With rigid="prior", factor on the standard deviations of the rigid parameters.
    periodic : bool or "auto"
        Whether positions of revolute joints enter as sine and cosine; "auto" where a joint moves by more than half a
        revolution.
    blend : Blend, optional
        How the learned torque fades away from the data.
    bound : float or array, shape (n,), optional
        Largest learned torque in N m (N for prismatic joints). Default: the largest error in the data.
    progress : callable, optional
        Called with a `dynid.progress.Progress` after each joint.

    Returns
    -------
    Residual
        Rigid model and learned torques.

    Raises
    ------
    DataError
        If a setting is unknown, or the data do not fit the robot.

    Examples
    --------
    >>> import numpy as np
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> t = np.linspace(0, 10, 200)
    >>> q = np.column_stack([np.sin(t), np.cos(1.3 * t)])
    >>> v = np.column_stack([np.cos(t), -1.3 * np.sin(1.3 * t)])
    >>> a = np.column_stack([-np.sin(t), -1.69 * np.cos(1.3 * t)])
    >>> torque = dynid.inverse_dynamics(robot, q, v, a) + 0.5 * np.sin(q)
    >>> rows = dynid.residual.TorqueRows.of_motion(robot, q, v, a, torque)
    >>> residual = dynid.fit_residual(robot, rows, kernel="own")
    >>> bool(np.abs(residual.predict(q, v, a).torque - torque).max() < 0.1)
    True
    """
    training, blend = training or Training(), blend or Blend()
    if rigid not in _RIGID:
        raise UnknownName(f"{named('rigid')} must be one of {', '.join(map(repr, _RIGID))}, got {rigid!r}")
    if basis not in _DEGREES:
        raise UnknownName(f"basis must be one of {', '.join(map(repr, _DEGREES))}, got {basis!r}", "basis")
    rigid_model = RigidPart.of(model)
    rows = data if isinstance(data, TorqueRows) else TorqueRows.of(model, data)
    words = _words(kernel, rows)
    n = rigid_model.robot.n
    limits = _limits(bound, n)
    q, v, a = _all_motion(rows)
    features = fit_features(rigid_model.robot, q, v, a, periodic)
    setting = _Setting(features, words, training, noise, _DEGREES[basis], rigid)
    joints: list[JointResidual | None] = [None] * n
    used: dict[int, JointRows] = {}
    scores: dict[str, tuple[Score, ...]] = {}
    notes: list[str] = []
    names = rigid_model.robot.coordinates
    # Matrices of a few hundred rows gain nothing from several BLAS threads; small ones get slower.
    with threadpool_limits(None if training.rows is None else 1, "blas"):
        thinned = [_thinned(one, _MOST_ROWS) for one in rows.joints]
        folds = fold_numbers(thinned) if len(words) > 1 else []
        # A robot's own parameters are exact: they were not fitted to any of the folds.
        fitted = len(words) > 1 and rigid != "none" and rigid_model.covariance.any()
        errors = held_out_errors(thinned, folds) if fitted else []
        for k, one in enumerate(thinned):
            j = one.joint
            held = (folds[k], errors[k] if fitted else None) if folds else None
            found, scores[names[j]], said = setting.joint(one, held)
            notes += [f"{names[j]}: {line}" for line in said]
            if found is not None:
                largest = float(np.abs(setting.target(one)).max())
                joints[j] = replace(found, bound=largest if limits is None else limits[j])
                used[j] = one
            if progress is not None:
                progress(Progress(f"residual of joint '{names[j]}'", (k + 1) / len(thinned)))
        robot, together_with = rigid_model.robot, None
        if rigid == "prior" and used:
            robot, joints, together_with = _with_prior(rigid_model, joints, used, prior_scale)
    return Residual(
        robot,
        features,
        tuple(joints),
        q.mean(axis=0),
        blend,
        rigid != "none",
        rigid_model.base.channels,
        rigid_model.signals,
        together_with,
        tuple(notes),
        scores,
    )


@dataclass(frozen=True, eq=False)
class _Setting:
    """Settings that all joints share."""

    features: Features
    words: tuple[str, ...]
    training: Training
    noise: str
    degree: int
    rigid: str

    def target(self, rows: JointRows) -> Array:
        """Torque (N,) to be learned."""
        return rows.torque if self.rigid == "none" else rows.error

    def joint(
        self, rows: JointRows, held: tuple[NDArray[np.intp], Array | None] | None
    ) -> tuple[JointResidual | None, tuple[Score, ...], tuple[str, ...]]:
        """The residual of one joint, or None if none helps or can be fitted, with scores and notes.

        `held` is a fold for every row and, if the rigid model was fitted to the data, its errors (folds, N) without
        each fold.
        """
        y, x = self.target(rows), self.features(*rows.motion)
        scale = float(np.sqrt(np.mean(y**2)))
        if scale <= 1e-9 * max(1.0, float(np.abs(rows.torque).max())):
            return None, (), ("no residual: the rigid model predicts the torque exactly",)
        kernels = [parse_kernel(word, self.features, rows.joint) for word in self.words]
        noise = parse_noise(self.noise, self.features, rows.joint)
        basis = basis_columns(self.degree, x)
        problems = [Problem.of(kernel, noise, self.features, x, y / scale, basis) for kernel in kernels]
        chosen, trust, variance_factor = problems[0], 1.0, 1.0
        scores: tuple[Score, ...] = ()
        notes: tuple[str, ...] = ()
        if held is not None:
            folds, errors = held
            targets = np.tile(y, (int(folds.max()) + 1, 1)) if errors is None else errors
            best, scores, notes = choose(problems, targets / scale, folds, self.training, self.degree)
            if best is None:
                return None, scores, notes
            chosen, trust = problems[self.words.index(best.kernel)], best.trust
            variance_factor = best.variance_factor
        try:
            theta, _ = hyper_parameters(chosen, self.training)
            fitted = posterior(chosen, theta, self.training, scale, self.degree)
        except Unfit as why:
            return None, scores, (*notes, f"{why}; the rigid model is kept")
        return JointResidual(fitted, trust, np.inf, variance_factor), scores, notes


def _with_prior(
    model: RigidPart, joints: list[JointResidual | None], used: Mapping[int, JointRows], prior_scale: float
) -> tuple[Robot, list[JointResidual | None], RigidPosterior]:
    """The robot and residuals with the rigid parameters estimated together with the residuals."""
    learned = {j: joints[j] for j in used}
    fitted = {j: joint.posterior for j, joint in learned.items() if joint is not None}
    if any(len(p.blocks) > 1 or p.statistics is not None or p.points != len(used[j]) for j, p in fitted.items()):
        raise ConflictingArguments(
            f"{keyword('rigid', 'prior')} needs the method 'exact'; give Training(method='exact')"
        )
    found = together(fitted, {j: rows.W for j, rows in used.items()}, prior_scale**2 * model.covariance)
    out = list(joints)
    for j, joint in learned.items():
        assert joint is not None
        p = joint.posterior
        less = p.blocks[0].reduction @ (used[j].W @ found.change) / p.scale
        block = replace(p.blocks[0], weights=p.blocks[0].weights - less)
        out[j] = replace(joint, posterior=replace(p, blocks=(block,)))
    return model.base.robot.with_parameters(model.base.standard(model.beta + found.change)), out, found


def _words(kernel: str | Sequence[str], rows: TorqueRows) -> tuple[str, ...]:
    if kernel == "auto":
        return CANDIDATES if len({int(run) for one in rows.joints for run in np.unique(one.run)}) > 1 else _ONE_RUN
    return (kernel,) if isinstance(kernel, str) else tuple(kernel)


def _limits(bound: float | ArrayLike | None, n: int) -> Array | None:
    if bound is None:
        return None
    given = np.asarray(bound, dtype=float)
    if given.shape not in ((), (n,)) or not np.all(given >= 0):
        raise InvalidValue(f"{named('bound')} must be one torque or one per joint ({n}), not negative")
    return np.broadcast_to(given, (n,))


def _all_motion(rows: TorqueRows) -> list[Array]:
    return [np.concatenate([getattr(r, name) for r in rows.joints]) for name in ("q", "v", "a")]


def _thinned(rows: JointRows, most: int) -> JointRows:
    count = len(rows)
    return rows if count <= most else rows.rows(np.linspace(0, count - 1, most).astype(np.intp))
