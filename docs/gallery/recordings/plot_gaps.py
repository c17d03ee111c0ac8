"""
Samples that are missing
========================

A log that lost samples shows steps of its clock that are too long.
"""

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink")
sound = synthetic_recording(robot, seed=0, duration=6.0)
whole = sound.runs[0]
kept = [i for i in range(len(whole)) if not (1500 <= i < 1560 or 4000 <= i < 4015)]
run = dynid.Run(whole.t[kept], whole.q[kept], torque=whole.torque[kept], name="lossy log")
recording = dynid.Recording(sound.joints, (run,))

finding = next(f for f in dynid.check(robot, recording) if f.code == "samples_missing")
axes = finding.plot(recording, robot=robot)
print(finding.what_to_do)
