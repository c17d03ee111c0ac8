"""
Several runs, some joints
=========================

Runs are drawn one after the other, with a dotted line between them. Joints are chosen by names or patterns.
"""

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
recording = synthetic_recording(robot, 0, 4.0) + synthetic_recording(robot, 1, 4.0) + synthetic_recording(robot, 2, 4.0)
axes = recording.plot(["q", "torque"], joints="joint*", robot=robot)
