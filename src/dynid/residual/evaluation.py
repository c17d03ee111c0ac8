"""Torque errors of a residual on rows of any recording."""

from __future__ import annotations

import numpy as np

from dynid.identification.validation_errors import validation_of
from dynid.residual.comparison import Comparison
from dynid.residual.residual import Residual
from dynid.residual.rows import TorqueRows

__all__ = ["compare"]


def compare(residual: Residual, rows: TorqueRows) -> Comparison:
    """Torque errors of a residual on rows of any recording."""
    measured, rigid, both, covered, share = [], [], [], [], []
    for one in rows.joints:
        j = one.joint
        found = residual.predict(*one.motion)
        measured.append(one.torque)
        rigid.append(one.rigid if residual.has_rigid else np.zeros(len(one)))
        both.append(rigid[-1] + found.learned[:, j])
        inside = np.abs(one.torque - both[-1]) <= 1.96 * found.std[:, j]
        covered.append(float(np.mean(inside)) if residual.joints[j] is not None else np.nan)
        share.append(float(found.share[:, j].mean()))
    names = tuple(residual.robot.coordinates[one.joint] for one in rows.joints)
    times = [one.clock for one in rows.joints]
    before, after = (validation_of(residual.robot, names, measured, predicted, times) for predicted in (rigid, both))
    return Comparison(before, after, np.array(covered), np.array(share))
