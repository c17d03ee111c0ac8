"""Estimates of a workspace beside each other: errors per joint, total mass, verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynid.errors import DynidError
from dynid.identification.bodies import total_mass
from dynid.identification.estimate import Estimate
from dynid.studio.workspace import Workspace

__all__ = ["EstimateFiles", "EstimateRow", "compared", "keep_row", "own_files"]

_DEFAULT = "estimate"
_ROW = ".row.json"


@dataclass(frozen=True)
class EstimateFiles:
    """The names of the files of one estimate."""

    name: str

    @property
    def estimate(self) -> str:
        return f"{self.name}.json"

    @property
    def report(self) -> str:
        return "report.html" if self.name == _DEFAULT else f"{self.name}.html"

    @property
    def verdict(self) -> str:
        return "verdict.json" if self.name == _DEFAULT else f"{self.name}.verdict.json"

    @property
    def row(self) -> str:
        return self.name + _ROW


@dataclass(frozen=True)
class EstimateRow:
    """One estimate in the comparison.

    Attributes
    ----------
    name, method, verdict : str
        Its file without the ending, how it was identified, and whether it can be trusted.
    drives : str
        Friction terms, as the method chose them or as they were given.
    unseen : bool
        Whether the errors are those of unseen motion; otherwise of the fitted motion.
    errors : mapping of str to tuple of float, str and float
        Joint to root mean square error of the torque, its unit, and its share of the torque.
    mass, prior_mass : float
        Mass of all links (kg), identified and of the robot's file.
    given_mass : str
        That the robot was weighed, in words; empty where its mass was not given.
    """

    name: str
    method: str
    verdict: str
    drives: str
    unseen: bool
    errors: Mapping[str, tuple[float, str, float]]
    mass: float
    prior_mass: float
    given_mass: str = ""


def keep_row(workspace: Workspace, files: EstimateFiles, printed: Mapping[str, Any]) -> EstimateRow:
    """Keep what `dynid identify --json` printed about an estimate that it saved."""
    found = Estimate.load(workspace.existing(files.estimate))
    unseen = isinstance(printed.get("validation"), Mapping)
    if unseen:
        errors = {j: (float(x["rmse"]), str(x["unit"]), float(x["relative"])) for j, x in printed["validation"].items()}
    else:
        shares = zip(found.base.channels, found.rms, found.relative_error, strict=True)
        errors = {str(j): (float(e), "", float(r)) for j, e, r in shares}
    verdict, mass = printed.get("verdict"), total_mass(found)
    row = EstimateRow(
        name=files.name,
        method=str(printed.get("method", "")),
        verdict=str(verdict["verdict"]) if isinstance(verdict, Mapping) else "not assessed",
        drives=", ".join(sorted({p.symbol for p in found.robot.layout if not p.inertial})),
        unseen=unseen,
        errors=errors,
        mass=mass.after,
        prior_mass=mass.before,
        given_mass=mass.given,
    )
    workspace.write(files.row, json.dumps(row.__dict__, indent=2).encode())
    return row


def compared(workspace: Workspace) -> list[EstimateRow]:
    """The estimates of a workspace whose files are there, newest first."""
    rows = []
    for file in workspace.names((".json",)):
        if not file.endswith(_ROW):
            continue
        try:
            content = json.loads(workspace.existing(file).read_text(encoding="utf-8"))
            workspace.existing(EstimateFiles(file.removesuffix(_ROW)).estimate)
            content["errors"] = {j: (float(e), str(u), float(r)) for j, (e, u, r) in content["errors"].items()}
            rows.append(EstimateRow(**content))
        except (DynidError, ValueError, TypeError, KeyError):
            continue  # not written by this page, or of an estimate that was removed
    return rows


def own_files(workspace: Workspace) -> set[str]:
    """Files of estimates, which are no recordings."""
    out = {EstimateFiles(_DEFAULT).estimate, EstimateFiles(_DEFAULT).verdict}
    for file in workspace.names((".json",)):
        if file.endswith((_ROW, ".verdict.json")):
            name = file.removesuffix(_ROW).removesuffix(".verdict.json")
            out |= {file, EstimateFiles(name).estimate}
    return out
