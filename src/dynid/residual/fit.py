"""Fit what an estimate misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.recording.recording import Recording
from dynid.residual.blend import Blend
from dynid.residual.features import Features, fit_features
from dynid.residual.folds import fold_numbers, held_out_errors
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

__all__ = ["CANDIDATES", "fit_residual"]

Array = NDArray[np.float64]

CANDIDATES = ("friction", "own", "load", "se", "ard", "ard+own")
# Along one run every column is a function of time: which of them matter cannot be told.
_ONE_RUN = ("friction", "own", "load", "se")
_DEGREES = {"none": -1, "constant": 0, "linear": 1}
_RIGID = ("fixed", "prior", "none")
# Rows of a joint that are looked at; more are thinned evenly.
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
    progress: Callable[[str], None] | None = None,
) -> Residual:
    """Learn what a rigid model misses in the torques of a recording.

    `kernel`: words of `parse_kernel`, one for all joints or several, simplest first, to choose from by held-out error;
    "auto" chooses from friction, own, load, se, ard and ard+own, with one run from the first four. Where several are
    given a joint that gains nothing on held-out stretches of motion keeps its rigid torque, and others use their
    learned part as far as it was right there.
    `noise`: "even" or "reversal". `basis`: "none", "constant" or "linear" in the features. `rigid`: "fixed" keeps the
    model's parameters, "prior" estimates them together with the residual, starting from their covariance times
    prior_scale^2, "none" learns the whole torque. `bound` (N m, one or one a joint) limits the learned part, by
    default to the largest error seen.
    """
    training, blend = training or Training(), blend or Blend()
    if rigid not in _RIGID:
        raise DataError(f"rigid is {', '.join(map(repr, _RIGID))}, not {rigid!r}")
    if basis not in _DEGREES:
        raise DataError(f"basis is {', '.join(map(repr, _DEGREES))}, not {basis!r}")
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
    # Matrices of a few hundred rows gain nothing from several BLAS threads; small ones lose.
    with threadpool_limits(None if training.rows is None else 1, "blas"):
        thinned = [_thinned(one, _MOST_ROWS) for one in rows.joints]
        folds = fold_numbers(thinned) if len(words) > 1 else []
        # Values that are taken as exact were not fitted to any of the folds.
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
                progress(f"{names[j]}, {k + 1} of {len(thinned)} joints")
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
    """What is the same for all joints."""

    features: Features
    words: tuple[str, ...]
    training: Training
    noise: str
    degree: int
    rigid: str

    def target(self, rows: JointRows) -> Array:
        return rows.torque if self.rigid == "none" else rows.error

    def joint(
        self, rows: JointRows, held: tuple[NDArray[np.intp], Array | None] | None
    ) -> tuple[JointResidual | None, tuple[Score, ...], tuple[str, ...]]:
        """The residual of one joint, None where none helps or can be fitted, with scores and remarks.

        `held`: a fold for every row and, where the rigid model was fitted to them, its errors without each (folds, N).
        """
        y, x = self.target(rows), self.features(*rows.motion)
        scale = float(np.sqrt(np.mean(y**2)))
        if scale <= 1e-9 * max(1.0, float(np.abs(rows.torque).max())):
            return None, (), ("nothing to learn: the rigid model predicts the torque exactly",)
        kernels = [parse_kernel(word, self.features, rows.joint) for word in self.words]
        noise = parse_noise(self.noise, self.features, rows.joint)
        basis = basis_columns(self.degree, x)
        problems = [Problem.of(kernel, noise, self.features, x, y / scale, basis) for kernel in kernels]
        chosen, trust, spread = problems[0], 1.0, 1.0
        scores: tuple[Score, ...] = ()
        notes: tuple[str, ...] = ()
        if held is not None:
            folds, errors = held
            targets = np.tile(y, (int(folds.max()) + 1, 1)) if errors is None else errors
            best, scores, notes = choose(problems, targets / scale, folds, self.training, self.degree)
            if best is None:
                return None, scores, notes
            chosen, trust, spread = problems[self.words.index(best.kernel)], best.trust, best.spread
        try:
            theta, _ = hyper_parameters(chosen, self.training)
            fitted = posterior(chosen, theta, self.training, scale, self.degree)
        except Unfit as why:
            return None, scores, (*notes, f"{why}; the rigid model is kept")
        return JointResidual(fitted, trust, np.inf, spread), scores, notes


def _with_prior(
    model: RigidPart, joints: list[JointResidual | None], used: Mapping[int, JointRows], prior_scale: float
) -> tuple[Robot, list[JointResidual | None], RigidPosterior]:
    """The robot and residuals with the rigid parameters estimated together with the residuals."""
    learned = {j: joints[j] for j in used}
    fitted = {j: joint.posterior for j, joint in learned.items() if joint is not None}
    if any(len(p.blocks) > 1 or p.statistics is not None or p.points != len(used[j]) for j, p in fitted.items()):
        raise DataError("rigid='prior' needs the method 'exact'; give Training(method='exact')")
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
        raise DataError(f"bound needs one torque or one a joint ({n}), none below zero")
    return np.broadcast_to(given, (n,))


def _all_motion(rows: TorqueRows) -> list[Array]:
    return [np.concatenate([getattr(r, name) for r in rows.joints]) for name in ("q", "v", "a")]


def _thinned(rows: JointRows, most: int) -> JointRows:
    count = len(rows)
    return rows if count <= most else rows.rows(np.linspace(0, count - 1, most).astype(np.intp))
