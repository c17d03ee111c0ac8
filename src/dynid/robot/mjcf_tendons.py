"""Fixed tendons of a compiled MJCF model: lengths that are linear in the positions of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco

__all__ = ["fixed_tendon"]


def fixed_tendon(model: Any, tendon: int, names: Sequence[str]) -> dict[str, float] | None:
    """Length of a fixed tendon per position of each joint, by name; None for a tendon that runs through space."""
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    out: dict[str, float] = {}
    for k in range(start, start + count):
        if model.wrap_type[k] != int(mujoco.mjtWrap.mjWRAP_JOINT):
            return None
        name = names[model.wrap_objid[k]]
        out[name] = out.get(name, 0.0) + float(model.wrap_prm[k])
    return out
