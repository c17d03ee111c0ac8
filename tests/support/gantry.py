"""A robot with a prismatic and a revolute joint."""

from __future__ import annotations

import dynid


def gantry() -> dynid.Robot:
    """A slide that carries an arm."""
    tensors = [0.03, 0, 0, 0.03, 0, 0.02], [0.01, 0, 0, 0.04, 0, 0.04]
    rows = [
        {"kind": "prismatic", "alpha": 0.0, "inertia": {"mass": 4.0, "com": [0.0, 0, 0.1], "tensor": tensors[0]}},
        {"alpha": "-pi/2", "inertia": {"mass": 2.0, "com": [0.2, 0.02, 0], "tensor": tensors[1]}},
    ]
    drive = {"Ia": 0.2, "fv": 1.0, "fc": 0.7, "off": 0.1}
    return dynid.Robot.from_dh([{**row, "drive": drive} for row in rows], "modified", name="gantry")
