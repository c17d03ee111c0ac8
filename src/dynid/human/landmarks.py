"""Points of the body that segments begin and end at: of a standing person, or measured on a given skeleton."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, InvalidValue, UnknownName
from dynid.human.table import TRUNK, AnthropometricTable, SegmentShare

__all__ = ["SIDES", "Body", "measured_body", "skeleton_data", "standing_body"]

Array = NDArray[np.float64]

SIDES = ("left", "right")
_MIDDLE = ("vertex", "cervicale", "xiphion", "omphalion", "mid_hip")


@dataclass(frozen=True, eq=False)
class Body:
    """Landmarks (3,) by name ("left_hip", "vertex") and the directions forward, left and up (3, 3), in one frame."""

    points: Mapping[str, Array]
    axes: Array
    height: float

    def ends(self, segment: SegmentShare, side: str | None) -> tuple[Array, Array]:
        """The two ends of a segment."""
        first, second = (self.points[e if e in _MIDDLE else f"{side}_{e}"] for e in segment.ends)
        return first, second


@cache
def skeleton_data() -> dict[str, Any]:
    """Joints and shape of the human model."""
    return tomllib.loads((resources.files("dynid.human") / "data" / "skeleton.toml").read_text(encoding="utf-8"))


def standing_body(table: AnthropometricTable, height: float, lengths: Mapping[str, float] | None = None) -> Body:
    """A person of this height (m) upright, arms down, seen from mid-hip: x forward, y left, z up.

    `lengths` (m) replace single numbers: segments of the table, mid_shoulder, and the shape's hip_half_width and so on.
    """
    size = {name: height * s.length for name, s in table.segments.items()}
    size |= {"mid_shoulder": height * table.mid_shoulder}
    size |= {name: height * float(share) for name, share in skeleton_data()["shape"].items()}
    for name, value in (lengths or {}).items():
        if name not in size:
            raise UnknownName(f"the body has no length '{name}', it has {', '.join(size)}", "lengths")
        if not (isinstance(value, int | float) and np.isfinite(value) and value > 0):
            raise InvalidValue(f"length '{name}' must be a positive number of metres, got {value!r:.60}", "lengths")
        size[name] = float(value)
    up = np.array([0.0, 0.0, 1.0])
    points = {"mid_hip": np.zeros(3), "omphalion": size["lower_trunk"] * up}
    points["xiphion"] = points["omphalion"] + size["middle_trunk"] * up
    points["cervicale"] = points["xiphion"] + size["upper_trunk"] * up
    points["vertex"] = points["cervicale"] + size["head"] * up
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        shoulder = np.array([0.0, sign * size["shoulder_half_width"], size["mid_shoulder"]])
        hip = np.array([0.0, sign * size["hip_half_width"], 0.0])
        down = {"shoulder": shoulder, "elbow": shoulder - size["upper_arm"] * up}
        down["wrist"] = down["elbow"] - size["forearm"] * up
        down["fingertip"] = down["wrist"] - size["hand"] * up
        down |= {"hip": hip, "knee": hip - size["thigh"] * up}
        down["ankle"] = down["knee"] - size["shank"] * up
        points |= {f"{side}_{name}": p for name, p in down.items()}
        points |= _foot(side, down["ankle"], np.eye(3), size)
    return Body(points, np.eye(3), height)


def _foot(side: str, ankle: Array, axes: Array, size: Mapping[str, float]) -> dict[str, Array]:
    """Heel and toe, halfway between ankle and ground: tables do not tell how high a foot's centre lies."""
    heel = ankle - size["heel_behind_ankle"] * axes[0] - 0.5 * size["ankle_height"] * axes[2]
    return {f"{side}_heel": heel, f"{side}_toe": heel + size["foot"] * axes[0]}


def measured_body(table: AnthropometricTable, origins: Mapping[str, Array], height: float | None) -> Body:
    """Landmarks of a skeleton from the origins (3,) of its segments' links ("left_thigh": the left hip joint).

    Joints are taken from the skeleton. Points within the trunk divide the line from mid-hip to neck as the table does;
    vertex, fingertips, heels and toes lie beyond the last joints by the table's lengths for the height. Unless it is
    given, the height is the one that the measured limbs and trunk have by the table's shares.
    """
    joints = {"upper_arm": "shoulder", "forearm": "elbow", "hand": "wrist", "thigh": "hip", "shank": "knee"}
    joints["foot"] = "ankle"
    points = {f"{side}_{joints[s]}": origins[f"{side}_{s}"] for side in SIDES for s in joints}
    points["cervicale"] = origins["head"]
    points["mid_hip"] = 0.5 * (points["left_hip"] + points["right_hip"])
    axes = _directions(points)
    trunk = points["cervicale"] - points["mid_hip"]
    share = {name: table.segments[name].length for name in TRUNK}
    whole = sum(share.values())
    points["omphalion"] = points["mid_hip"] + share["lower_trunk"] / whole * trunk
    points["xiphion"] = points["cervicale"] - share["upper_trunk"] / whole * trunk
    tall = _height(table, points, float(np.linalg.norm(trunk)) / whole) if height is None else height
    size = {name: tall * s.length for name, s in table.segments.items()}
    size |= {name: tall * float(x) for name, x in skeleton_data()["shape"].items()}
    points["vertex"] = points["cervicale"] + size["head"] * axes[2]
    for side in SIDES:
        arm = points[f"{side}_wrist"] - points[f"{side}_elbow"]
        points[f"{side}_fingertip"] = points[f"{side}_wrist"] + size["hand"] * arm / np.linalg.norm(arm)
        points |= _foot(side, points[f"{side}_ankle"], axes, size)
    return Body(points, axes, tall)


def _directions(points: Mapping[str, Array]) -> Array:
    """Forward, left and up from the legs."""
    up = points["mid_hip"] - 0.5 * (points["left_ankle"] + points["right_ankle"])
    left = points["left_hip"] - points["right_hip"]
    if np.linalg.norm(np.cross(up, left)) < 1e-6:
        raise DataError(
            "the skeleton has its hips in one place or in line with its legs: link names or pose are wrong",
            code="invalid_model",
        )
    up = up / np.linalg.norm(up)
    left = left - (left @ up) * up
    left = left / np.linalg.norm(left)
    return np.array([np.cross(left, up), left, up])


def _height(table: AnthropometricTable, points: Mapping[str, Array], trunk: float) -> float:
    """Mean of what single measured lengths say, the trunk's `trunk` among them, weighted by the length."""
    spans = [(table.segments[n].length, table.segments[n].ends) for n in ("upper_arm", "forearm", "thigh", "shank")]
    measured = [
        float(np.linalg.norm(points[f"{side}_{a}"] - points[f"{side}_{b}"])) for side in SIDES for _, (a, b) in spans
    ]
    whole = sum(table.segments[n].length for n in TRUNK)
    return (sum(measured) + trunk * whole) / (len(SIDES) * sum(length for length, _ in spans) + whole)
