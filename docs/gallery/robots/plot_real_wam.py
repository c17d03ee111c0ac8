"""
A real Barrett WAM
==================

Two joints with cable drives: the torques of the last third of a recording, predicted from the rest of it. Where the
recordings are not there, the script says so and draws nothing.
"""

import os
from pathlib import Path

import dynid

# Recordings are no part of dynid: set DYNID_DATA to their folder, or put them into shared/data beside the repository.
data = Path(os.environ.get("DYNID_DATA") or Path.cwd().parents[3] / "shared" / "data")
folder = data / "barrett-wam-2dof"
if not folder.exists():
    print("The recordings of this robot are not here: there is nothing to draw.")
else:
    whole = dynid.load_robot("wam7")
    robot = whole.locked({name: 0.0 for name in whole.coordinates if name not in ("joint2", "joint4")})
    state = folder / "state_4.json.gz"
    columns = {"q": ["position[1]", "position[3]"], "torque": ["effort[1]", "effort[3]"]}
    files = {"t": state, "q": state, "torque": state}
    recording = dynid.load_recording(files, robot, columns=columns, time="time")
    fitted, unseen = recording.split(0.3)
    axes = dynid.identify(robot, fitted, "wls").validate(unseen).plot()
