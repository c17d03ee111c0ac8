"""
Prismatic joints have their own axes
====================================

A joint that translates is drawn in metres and newtons, beside joints in radians and newton metres.
"""

import numpy as np

import dynid

rows = [
    {"alpha": 0.0, "inertia": {"mass": 3.0, "com": [0.1, 0, 0], "tensor": [0.02, 0, 0, 0.03, 0, 0.03]}},
    {"a": 0.4, "inertia": {"mass": 2.0, "com": [0.2, 0, 0], "tensor": [0.01, 0, 0, 0.03, 0, 0.03]}},
    {
        "a": 0.3,
        "kind": "prismatic",
        "inertia": {"mass": 1.5, "com": [0, 0, 0.1], "tensor": [0.01, 0, 0, 0.01, 0, 0.002]},
    },
]
drive = {"fv": 2.0, "fc": 1.0}
robot = dynid.Robot.from_dh([{**row, "drive": drive} for row in rows], "modified", name="scara")

t = np.arange(0.0, 6.0, 0.005)
q = np.column_stack([np.sin(1.1 * t), 0.8 * np.cos(1.7 * t), 0.1 + 0.08 * np.sin(2.3 * t)])
v = np.gradient(q, t, axis=0)
torque = dynid.inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
axes = recording.plot(robot=robot)
