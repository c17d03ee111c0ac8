"""Save residuals to files and load them."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.errors import DamagedFile, MissingFile, WrongFormat
from dynid.files import writing
from dynid.reading import parse_json, read_npz
from dynid.residual.blend import Blend
from dynid.residual.features import Features
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import Noise
from dynid.residual.posterior import Block, Posterior, Statistics
from dynid.residual.residual import JointResidual, Residual
from dynid.residual.rigid_prior import RigidPosterior
from dynid.residual.selection import Score
from dynid.results import Reading
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_to_dict, stored_robot
from dynid.saved import envelope, opened
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load_residual", "save_residual"]

_FEATURES = tuple(field.name for field in fields(Features))
_BLOCK = tuple(field.name for field in fields(Block))


def save_residual(residual: Residual, path: str | Path) -> None:
    """Write a residual into one .npz file."""
    arrays: dict[str, Any] = {f"features_{name}": getattr(residual.features, name) for name in _FEATURES}
    arrays["home"] = residual.home
    joints: list[dict[str, Any] | None] = []
    for j, joint in enumerate(residual.joints):
        if joint is None:
            joints.append(None)
            continue
        p = joint.posterior
        joints.append(
            {
                "kernel": p.kernel.name,
                "noise_column": p.noise.column,
                "scale": p.scale,
                "degree": p.degree,
                "blocks": len(p.blocks),
                "trust": joint.trust,
                "bound": joint.bound if np.isfinite(joint.bound) else None,
                "variance_factor": joint.variance_factor,
            }
        )
        arrays |= {f"{j}_theta": p.theta, f"{j}_noise_theta": p.noise_theta, f"{j}_centers": p.centers}
        if p.statistics is not None:
            arrays[f"{j}_information"] = p.statistics.information
            arrays[f"{j}_information_vector"] = p.statistics.information_vector
        for b, block in enumerate(p.blocks):
            arrays |= {f"{j}_{b}_{name}": getattr(block, name) for name in _BLOCK}
    together = residual.rigid_posterior
    if together is not None:
        arrays |= {"rigid_change": together.change, "rigid_covariance": together.covariance}
        arrays |= {f"{j}_rigid_projection": value for j, value in together.projection.items()}
    header = envelope("residual") | {
        "robot": robot_to_dict(residual.robot),
        "joints": joints,
        "blend": asdict(residual.blend),
        "has_rigid": residual.has_rigid,
        "channels": list(residual.channels),
        "signals": residual.signals.to_dict(),
        "notes": list(residual.notes),
        "scores": {name: [asdict(s) for s in scores] for name, scores in residual.scores.items()},
    }
    with writing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)


def load_residual(path: str | Path, robot: Robot | None = None) -> Residual:
    """Load a residual; a robot that is given must have the parameters of the one that it was fitted for."""
    try:
        data = read_npz(path)
        header = opened(parse_json(str(data["header"])), "residual", f"'{path}'")
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except OSError as error:
        raise MissingFile(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise WrongFormat(f"'{path}' is not a saved residual") from None
    try:
        return _residual(header, data, Reading(f"'{path}'", robot, "Residual.load"))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DamagedFile(f"'{path}' is a damaged residual: {type(error).__name__} {error}") from None


def _residual(header: Any, data: Mapping[str, Any], reading: Reading) -> Residual:
    features = Features(*(data[f"features_{name}"] for name in _FEATURES))
    return Residual(
        stored_robot(header["robot"], reading),
        features,
        tuple(_joint(j, entry, data, features) for j, entry in enumerate(header["joints"])),
        data["home"],
        Blend(**header["blend"]),
        header["has_rigid"],
        tuple(header["channels"]),
        Signals.from_dict(header["signals"]),
        _rigid(data),
        tuple(header["notes"]),
        {name: tuple(Score(**s) for s in scores) for name, scores in header["scores"].items()},
    )


def _rigid(data: Mapping[str, Any]) -> RigidPosterior | None:
    if "rigid_change" not in data:
        return None
    projection = {int(name.split("_")[0]): value for name, value in data.items() if name.endswith("_rigid_projection")}
    return RigidPosterior(data["rigid_change"], data["rigid_covariance"], projection)


def _joint(
    j: int, entry: Mapping[str, Any] | None, data: Mapping[str, Any], features: Features
) -> JointResidual | None:
    if entry is None:
        return None
    blocks = tuple(Block(*(data[f"{j}_{b}_{name}"] for name in _BLOCK)) for b in range(entry["blocks"]))
    known = f"{j}_information" in data
    fitted = Posterior(
        parse_kernel(entry["kernel"], features, j),
        data[f"{j}_theta"],
        Noise(entry["noise_column"]),
        data[f"{j}_noise_theta"],
        entry["scale"],
        blocks,
        data[f"{j}_centers"],
        entry["degree"],
        Statistics(data[f"{j}_information"], data[f"{j}_information_vector"]) if known else None,
    )
    bound = np.inf if entry["bound"] is None else entry["bound"]
    return JointResidual(fitted, entry["trust"], bound, entry["variance_factor"])
