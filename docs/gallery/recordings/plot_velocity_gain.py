"""
A velocity in another unit
==========================

A logged velocity is drawn beside the differences of the position: here it is in revolutions per second.
"""

import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink")
sound = synthetic_recording(robot, seed=0, duration=6.0)
run = sound.runs[0]
velocity = np.gradient(run.q, run.t, axis=0) * np.array([1.0, 1.0 / (2.0 * np.pi)])
wrong = dynid.Run(run.t, run.q, v=velocity, torque=run.torque, name="mixed units")
recording = dynid.Recording(sound.joints, (wrong,))

finding = next(f for f in dynid.check(robot, recording) if f.joint == "joint2" and f.code.startswith("velocity"))
axes = finding.plot(recording, robot=robot)
