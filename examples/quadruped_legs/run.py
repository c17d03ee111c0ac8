"""A quadruped on its feet, without force plates: trunk and legs from torques and an inertial unit.

python run.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dynid
from dynid.legs import identify_legs, standing_run

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"
TRUNK, CENTRE = 9.0, [0.02, 0.0, 0.01]  # kg; m
LEGS = {"FL": (1, 1), "FR": (1, -1), "RL": (-1, 1), "RR": (-1, -1)}
FEET = [f"{name}_foot" for name in LEGS]


def body(mass: float, centre: tuple[float, ...] | list[float], inertia: float) -> str:
    """The inertial element of an MJCF body."""
    return f'<inertial pos="{" ".join(map(str, centre))}" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>'


def model(trunk: float) -> str:
    """A quadruped as MJCF, with a trunk of this mass in kg."""
    legs = ""
    for name, (front, left) in LEGS.items():
        legs += f"""
    <body name="{name}_hip" pos="{0.2 * front} {0.06 * left} 0"> {body(0.7, (0.01, 0, 0), 0.001)}
      <joint name="{name}_abduction" axis="1 0 0"/>
      <body name="{name}_thigh" pos="0 {0.08 * left} 0"> {body(1.1, (0, 0.01, -0.08), 0.006)}
        <joint name="{name}_thigh" axis="0 1 0"/>
        <body name="{name}_calf" pos="0 0 -0.2"> {body(0.3, (0.005, 0, -0.1), 0.002)}
          <joint name="{name}_knee" axis="0 1 0"/> <site name="{name}_foot" pos="0 0 -0.2"/>
    </body> </body> </body>"""
    middle = f'<body name="trunk"> <freejoint/> <site name="imu" pos="0.05 0 0.03"/> {body(trunk, CENTRE, 0.1)}'
    inside = f"{middle} {legs} </body>"
    return f'<mujoco model="dog"><compiler angle="radian"/><worldbody>{inside}</worldbody></mujoco>\n'


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "true.xml").write_text(model(TRUNK))
    (OUT / "dog.xml").write_text(model(0.75 * TRUNK))  # what its maker published
    drives = {"friction": "viscous+coulomb", "rotor_inertia": True}
    true = dynid.load_robot(OUT / "true.xml", **drives)
    values = {"fv": 0.05, "fc": 0.2, "Ia": 0.01}
    true = true.with_parameters([values.get(p.symbol, x) for p, x in zip(true.layout, true.parameters, strict=True)])

    posture = np.tile([0.0, 0.7, -1.4], 4)
    for name, seed in (("stand", 0), ("again", 1)):
        run = standing_run(true, FEET, posture, imu="imu", duration=16.0, seed=seed, noise=0.005)
        dynid.Recording(true.coordinates, (run,)).to_csv(OUT / f"{name}.csv")

    robot = dynid.load_robot(OUT / "dog.xml", **drives)
    recording = dynid.load_recording(OUT / "stand.csv", robot)
    found = identify_legs(robot, recording, FEET, imu="imu")
    print("\n".join(found.lines()))
    off = 1000 * np.linalg.norm(found.trunk.center - CENTRE)
    print(f"trunk {found.trunk.mass:.2f} kg, true {TRUNK:g}, in the file {0.75 * TRUNK:g}; centre {off:.1f} mm off")
    assert abs(found.trunk.mass / TRUNK - 1) < 0.03 and off < 5


if __name__ == "__main__":
    main()
