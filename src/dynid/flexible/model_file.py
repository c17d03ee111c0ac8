"""Flexible joints written as a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid.export.label import Label
from dynid.export.mjcf import Springs, write_mjcf
from dynid.export.model_file import WRITERS, checked_form
from dynid.export.parameters import write_parameters
from dynid.flexible.estimate import FlexibleEstimate

__all__ = ["springs_of", "write_flexible"]


def springs_of(estimate: FlexibleEstimate) -> Springs:
    """Identified motors and springs for a model file; joints whose elasticity is not seen are rigid.

    Parameters
    ----------
    estimate : FlexibleEstimate
        Identified flexible joints. Damping that is negative is written as zero.

    Returns
    -------
    Springs
    """
    motors, model = estimate.motor_parameters, estimate.model.motors
    values = [motors.get(name, x) for name, x in zip(model.parameter_names, model.parameters, strict=True)]
    seen = [k for k, there in enumerate(estimate.seen) if there]
    return Springs(
        motors=model.with_parameters(np.array(values)),
        stiffness={estimate.joints[k]: float(estimate.stiffness[k]) for k in seen},
        damping={estimate.joints[k]: max(float(estimate.damping[k]), 0.0) for k in seen},
    )


def write_flexible(
    estimate: FlexibleEstimate,
    path: str | Path,
    *,
    form: str | None = None,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
) -> list[str]:
    """Write flexible joints with their springs, or the link side in a format that has no place for them.

    Parameters
    ----------
    estimate : FlexibleEstimate
        What to write.
    path : str or Path
        File to write. Its ending names the format, as for `dynid.export.write`.
    form : str, optional
        Format where the ending does not name it: urdf, mjcf, sdf, yaml, json or toml.
    template : str or Path, optional
        Model file of the same robot; its text is kept and only inertias and drives change. Not for MJCF, where springs
        add joints.
    allow_infeasible : bool, default False
        Write parameters that are not physically consistent. They are refused otherwise.

    Returns
    -------
    list of str
        Warnings: that nothing assessed the estimate, and what the format cannot hold.

    Raises
    ------
    DataError
        If the format is unknown, a template is given for a format without one, or the parameters are refused.
    ModelError
        If a template is given for MJCF.
    """
    form = checked_form(path, form, template)
    links, label = estimate.identified_robot, Label()
    settings: dict[str, Any] = {"template": template, "allow_infeasible": allow_infeasible, "label": label}
    if form == "mjcf":
        return [*label.warnings, *write_mjcf(links, path, springs=springs_of(estimate), **settings)]
    if form in ("json", "toml"):
        estimate.save(path)
        return []
    warning = f"{form.upper()} has no place for springs between motors and links: the file has the link side only"
    if form not in WRITERS:
        told = write_parameters(links, path, allow_infeasible=allow_infeasible, form=form)
    else:
        told = WRITERS[form](links, path, **settings)
    return [*label.warnings, *told, warning]
